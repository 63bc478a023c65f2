//! Runs trials of models, on all cores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use serde::Serialize;

use super::super::{Generator, Limits, Model};
use super::Tracking;
use crate::allocator::by_name;
use crate::model::law::wide;
use crate::simulate::{Grid, Outcome, Simulation};
use crate::{Error, ObjectEvent, Observer as _, Result, Totals};

/// What is common to all trials.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The simulated allocators, as [`by_name`] takes them.
    pub allocators: Vec<String>,
    /// Trials of each model.
    pub trials: u64,
    /// The seed; each trial has a stream of its own.
    pub seed: u64,
    /// Bytes that the live objects of one trial may need, each counted as [`OBJECT_BYTES`]; `None`: no limit.
    pub memory_limit: Option<u64>,
}

/// What one live object needs at most in a trial, with four allocators: places in the queue of frees, in the table of objects,
/// and blocks of the simulations.
pub const OBJECT_BYTES: u64 = 512;

/// What one allocator did in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Extrinsic {
    /// Acts an object, each with weight 1.
    pub ops: Option<f64>,
    /// Mean live bytes / mean heap.
    pub efficiency: Option<f64>,
}

/// What came of one trace: the actual one, or a synthetic one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// Bytes allocated.
    pub bytes: u64,
    /// Objects allocated.
    pub objects: u64,
    /// The most bytes live at once.
    pub max_bytes: u64,
    /// The most objects live at once.
    pub max_objects: u64,
    /// The most live bytes and live objects in each of [`WINDOWS`](super::WINDOWS) windows of equal numbers of events.
    pub windows: Vec<[u64; 2]>,
    /// By allocator.
    pub allocators: Vec<Extrinsic>,
}

/// The trace itself.
pub type Actual = Trial;

/// How a trial ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// At its end.
    Done(Trial),
    /// It ran into the memory limit with this many live objects.
    Stopped(u64),
}

/// A trial to run: an index of a model, and the number of the trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Which model.
    pub model: usize,
    /// Which of its trials.
    pub trial: u64,
}

impl Trial {
    /// Puts together what a trace came to.
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
    /// Returns the trial, if it came to its end.
    #[must_use]
    pub fn trial(&self) -> Option<&Trial> {
        match self {
            Self::Done(trial) => Some(trial),
            Self::Stopped(_) => None,
        }
    }
}

impl Experiment {
    /// Makes the simulations of a trial. With several threads each has some of them.
    ///
    /// # Errors
    /// An allocator is unknown; the system has no thread.
    pub fn grid(&self, threads: usize) -> Result<Grid> {
        let simulations = self.allocators.iter().map(|name| Ok(Simulation::new(name, by_name(name)?)));
        Grid::new(simulations.collect::<Result<_>>()?, threads)
    }

    /// Lists the trials of models; of one that chance has no part in, a single trial.
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

/// Runs the trials of models by several threads; returns them by model. `done` is called after each, by the calling thread.
///
/// # Errors
/// The first of a trial.
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
        // An error drops the receiver, so that no further trial begins.
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
