//! Runs several simulations in one pass over a trace, in several threads.

use std::mem;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use super::{Outcome, Simulation};
use crate::objects::ObjectEvent;
use crate::observer::Observer;
use crate::{Error, Result};

/// The number of events per batch. A batch stays in the cache while the simulations process it in turn.
const BATCH: usize = 4096;
/// The maximum number of batches queued for a worker.
const WAITING: usize = 4;

/// Simulations that all receive the same events.
///
/// The [module's example](crate::simulate#examples) runs two simulations.
pub struct Grid {
    batch: Vec<ObjectEvent>,
    /// The simulations run by this thread.
    own: Vec<Simulation>,
    workers: Vec<Worker>,
    /// The order of the outcomes. This thread's own simulations come first, followed by those of the workers.
    order: Vec<usize>,
}

/// A thread with its own simulations.
struct Worker {
    batches: SyncSender<Arc<[ObjectEvent]>>,
    thread: JoinHandle<Result<Vec<Outcome>>>,
}

impl Grid {
    /// Distributes simulations over up to `threads` threads. If there is only one thread, the calling thread runs all
    /// simulations.
    ///
    /// # Errors
    /// Fails if the system cannot create a thread.
    pub fn new(simulations: Vec<Simulation>, threads: usize) -> Result<Self> {
        let count = threads.min(simulations.len());
        let mut grid = Self { batch: Vec::new(), own: Vec::new(), workers: Vec::new(), order: Vec::new() };
        if count < 2 {
            grid.order = (0..simulations.len()).collect();
            grid.own = simulations;
            return Ok(grid);
        }
        let mut shares: Vec<Vec<(usize, Simulation)>> = (0..count).map(|_| Vec::new()).collect();
        for (n, simulation) in simulations.into_iter().enumerate() {
            if let Some(share) = shares.get_mut(n % count) {
                share.push((n, simulation));
            }
        }
        for share in shares {
            let (order, simulations): (Vec<_>, Vec<_>) = share.into_iter().unzip();
            grid.order.extend(order);
            grid.workers.push(Worker::start(simulations)?);
        }
        Ok(grid)
    }

    fn send(&mut self) -> Result<()> {
        let batch = mem::take(&mut self.batch);
        run(&mut self.own, &batch)?;
        if !self.workers.is_empty() {
            let batch: Arc<[ObjectEvent]> = batch.as_slice().into();
            let sent = |worker: &Worker| worker.batches.send(Arc::clone(&batch)).map_err(|_| Error::Stopped);
            self.workers.iter().try_for_each(sent)?;
        }
        self.batch = batch;
        self.batch.clear();
        Ok(())
    }

    /// Returns the outcomes in the order of the simulations.
    ///
    /// # Errors
    /// Fails if an invariant is violated. If an event returned [`Error::Stopped`], report the error of this function
    /// instead.
    pub fn finish(mut self) -> Result<Vec<Outcome>> {
        let sent = self.send();
        let mut outcomes = self.own.into_iter().map(Simulation::finish).collect::<Result<Vec<_>>>()?;
        for Worker { batches, thread } in self.workers {
            drop(batches);
            outcomes.extend(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        sent?;
        let mut outcomes: Vec<_> = self.order.into_iter().zip(outcomes).collect();
        outcomes.sort_by_key(|(n, _)| *n);
        Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
    }
}

impl Worker {
    fn start(mut simulations: Vec<Simulation>) -> Result<Self> {
        let (batches, taken) = sync_channel::<Arc<[ObjectEvent]>>(WAITING);
        let work = move || {
            taken.iter().try_for_each(|batch| run(&mut simulations, &batch))?;
            simulations.into_iter().map(Simulation::finish).collect()
        };
        let thread = std::thread::Builder::new().name("hatf-simulate".to_owned()).spawn(work);
        Ok(Self { batches, thread: thread.map_err(|error| Error::System("a thread", error))? })
    }
}

fn run(simulations: &mut [Simulation], batch: &[ObjectEvent]) -> Result<()> {
    simulations.iter_mut().try_for_each(|simulation| batch.iter().try_for_each(|event| simulation.step(event)))
}

impl Observer for Grid {
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        self.batch.push(*event);
        if self.batch.len() < BATCH { Ok(()) } else { self.send() }
    }
}
