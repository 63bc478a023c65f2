//! Runs trials of models on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use serde::Serialize;

use super::super::{Generator, Limits, Model};
use super::Tracking;
use crate::model::law::wide;
use hatf_lab::allocator::by_name;
use hatf_lab::simulate::{Grid, Outcome, Simulation};
use hatf_lab::{Error, ObjectEvent, Observer as _, Result, Totals};

/// The settings shared by all trials.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The simulated allocators, in the syntax of [`by_name`].
    pub allocators: Vec<String>,
    /// The number of trials per model.
    pub trials: u64,
    /// The random seed. Each trial uses its own stream.
    pub seed: u64,
    /// The bytes available for the live objects of one trial, or `None` for no limit. Each object counts as
    /// [`OBJECT_BYTES`].
    pub memory_limit: Option<u64>,
}

/// The maximum number of bytes per live object in a trial with four allocators. They cover the entries in the free
/// queue and the object table, and the simulated blocks.
pub const OBJECT_BYTES: u64 = 512;

/// The metrics of one allocator in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Extrinsic {
    /// Operations per object, each with weight 1.
    pub ops: Option<f64>,
    /// The mean number of live bytes divided by the mean heap size.
    pub efficiency: Option<f64>,
}

/// The metrics of one trace, actual or synthetic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// The number of bytes allocated.
    pub bytes: u64,
    /// The number of objects allocated.
    pub objects: u64,
    /// The maximum number of simultaneously live bytes.
    pub max_bytes: u64,
    /// The maximum number of simultaneously live objects.
    pub max_objects: u64,
    /// The maxima of live bytes and live objects in each of the [`WINDOWS`](super::WINDOWS) windows, which have equal
    /// numbers of events.
    pub windows: Vec<[u64; 2]>,
    /// Metrics by allocator.
    pub allocators: Vec<Extrinsic>,
}

/// The metrics of the trace itself.
pub type Actual = Trial;

/// The outcome of a trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The trial was completed.
    Done(Trial),
    /// The trial exceeded the memory limit with this many live objects.
    Stopped(u64),
}

/// A trial to run, identified by the model and the number of the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The index of the model.
    pub model: usize,
    /// The number of the trial.
    pub trial: u64,
}

impl Trial {
    /// Combines the measurements of a trace.
    #[must_use]
    pub fn new(totals: &Totals, tracking: &Tracking, outcomes: &[Outcome]) -> Self {
        let of = |outcome: &Outcome| Extrinsic { ops: outcome.ops, efficiency: outcome.memory_efficiency };
        let Totals { bytes, objects, max_bytes, max_objects, .. } = *totals;
        let (windows, allocators) = (tracking.windows(totals), outcomes.iter().map(of).collect());
        Self { bytes, objects, max_bytes, max_objects, windows, allocators }
    }

    /// Returns the metrics of [`INTRINSIC`](super::INTRINSIC).
    #[must_use]
    pub fn intrinsic(&self) -> [f64; 4] {
        [self.bytes, self.objects, self.max_bytes, self.max_objects].map(wide)
    }
}

impl Ended {
    /// Returns the trial if it was completed.
    #[must_use]
    pub fn trial(&self) -> Option<&Trial> {
        match self {
            Self::Done(trial) => Some(trial),
            Self::Stopped(_) => None,
        }
    }
}

impl Experiment {
    /// Creates the simulations of a trial and distributes them over the threads.
    ///
    /// # Errors
    /// Fails if an allocator is unknown or the system cannot create a thread.
    pub fn grid(&self, threads: usize) -> Result<Grid> {
        let simulations = self.allocators.iter().map(|name| Ok(Simulation::new(name, by_name(name)?)));
        Grid::new(simulations.collect::<Result<_>>()?, threads)
    }

    /// Lists the trials of the models. A deterministic model gets a single trial.
    #[must_use]
    pub fn jobs(&self, models: &[Model]) -> Vec<Job> {
        let of = |(model, trials)| (0..trials).map(move |trial| Job { model, trial });
        let trials = |model: &Model| if model.kind().is_certain() { self.trials.min(1) } else { self.trials };
        models.iter().map(trials).enumerate().flat_map(of).collect()
    }

    fn run(&self, model: &Model, trial: u64) -> Result<Ended> {
        let live = self.memory_limit.map(|bytes| bytes / OBJECT_BYTES);
        let (mut grid, mut tracking) = (self.grid(1)?, Tracking::default());
        let mut both = |event: &ObjectEvent| {
            tracking.event(event)?;
            grid.event(event)
        };
        match Generator::new(model, self.seed, trial, Limits { events: None, live }).run(&mut both) {
            Ok(totals) => Ok(Ended::Done(Trial::new(&totals, &tracking, &grid.finish()?))),
            Err(Error::Memory(live)) => Ok(Ended::Stopped(live)),
            Err(error) => Err(error),
        }
    }
}

/// Runs the trials of models on several threads and returns the outcomes by model. Calls `done` on the calling thread
/// after each trial.
///
/// # Errors
/// Returns the first error of a trial.
pub fn trials(
    experiment: &Experiment,
    models: &[Model],
    threads: usize,
    mut done: impl FnMut(),
) -> Result<Vec<Vec<Ended>>> {
    let jobs = experiment.jobs(models);
    let next = AtomicUsize::new(0);
    let mut ended: Vec<Vec<(u64, Ended)>> = models.iter().map(|_| Vec::new()).collect();
    std::thread::scope(|scope| {
        let (results, taken) = mpsc::channel();
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            let (results, jobs, next) = (results.clone(), &jobs, &next);
            let work = move || {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let Some(model) = models.get(job.model) else { return };
                    if results.send((*job, experiment.run(model, job.trial))).is_err() {
                        return;
                    }
                }
            };
            let spawned = std::thread::Builder::new().name("hatf-trial".to_owned()).spawn_scoped(scope, work);
            spawned.map_err(|error| Error::System("a thread", error))?;
        }
        drop(results);
        // Returning an error drops the receiver, so no further trial begins.
        for (job, result) in taken {
            let result = result?;
            if let Some(ended) = ended.get_mut(job.model) {
                ended.push((job.trial, result));
            }
            done();
        }
        Ok(())
    })?;
    let in_order = |mut trials: Vec<(u64, Ended)>| {
        trials.sort_by_key(|(trial, _)| *trial);
        trials.into_iter().map(|(_, ended)| ended).collect()
    };
    Ok(ended.into_iter().map(in_order).collect())
}
