//! The paper's experiment, which measures how closely synthetic traces match the traces to which their models were
//! fitted.
//!
//! # Examples
//!
//! ```
//! use hatf_lab::HeapTracker;
//! use hatf_research::model::evaluate::{Experiment, OfModel, Tracking, Trial, trials};
//! use hatf_research::model::{Choice, Fitter, Kind, Settings};
//! use hatf_trace::{Event, EventSink};
//!
//! let kind = Kind::same(Choice::Cdf);
//! let fitter = Fitter::new(Settings::new(vec![kind]), None)?;
//! let mut tracker = HeapTracker::new((fitter, Tracking::default()));
//! for address in 1..=100 {
//!     tracker.event(&Event::malloc(address, 64))?;
//!     tracker.event(&Event::free(address))?;
//! }
//! let (heap, (fitter, tracking)) = tracker.into_parts();
//! let actual = Trial::new(&heap.totals(), &tracking, &[]);
//! let models = fitter.finish(&heap.totals(), None)?.models();
//!
//! let experiment = Experiment { allocators: vec!["bsd".to_owned()], trials: 3, seed: 1, memory_limit: None };
//! let ended = trials(&experiment, &models, 1, || ())?.remove(0);
//! let [_, _, max_bytes, _] = OfModel::new(kind, &actual, ended).intrinsic.ok_or("a trial was stopped")?;
//! // Objects never overlap, neither in the trace nor in the trials.
//! assert_eq!((actual.max_bytes, max_bytes.mean), (64, 1.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod chart;
mod page;
mod predictions;
mod tracking;
mod trials;

pub use chart::chart;
pub use page::describe;
pub use predictions::{Errors, Predicted, Predictions, Rank, Summary};

pub use tracking::{Off, Tracking, WINDOWS};
pub use trials::{Actual, Ended, Experiment, Job, OBJECT_BYTES, Trial, trials};

use hatf_lab::statistics::{Interval, interval, mean};
use serde::Serialize;

use super::Kind;

/// All measurements for one trace.
#[derive(Clone, Debug, Serialize)]
pub struct Program {
    /// The trace's name.
    pub name: String,
    /// The measurements of the trace itself.
    pub actual: Actual,
    /// The models, in the order of the experiment.
    pub models: Vec<OfModel>,
}

/// The results of one model of a trace.
#[derive(Clone, Debug, Serialize)]
pub struct OfModel {
    /// The model.
    pub model: Kind,
    /// The trials in order. A trial that exceeds the memory limit is the last one.
    pub trials: Vec<Ended>,
    /// The intrinsic metrics divided by the actual metrics, or `None` if a trial was stopped.
    pub intrinsic: Option<[Interval; 4]>,
    /// The deviations of live bytes and live objects over time from the actual numbers.
    pub tracking: Option<[Off; 2]>,
}

/// The names of the intrinsic metrics (the paper's Table 5).
pub const INTRINSIC: [&str; 4] = ["Bytes", "Objects", "MaxBytes", "MaxObjects"];

impl OfModel {
    /// Combines the trials of a model.
    #[must_use]
    pub fn new(model: Kind, actual: &Actual, trials: Vec<Ended>) -> Self {
        let done = done(&trials);
        let ratio = |metric: usize| {
            let actual = actual.intrinsic().get(metric).copied().unwrap_or(0.0);
            let of = |trial: &&Trial| trial.intrinsic().get(metric).map(|value| value / actual);
            interval(&done.iter().flat_map(|trials| trials.iter().filter_map(of)).collect::<Vec<_>>())
        };
        let intrinsic = done.as_ref().map(|_| [0, 1, 2, 3].map(ratio));
        let windows = |trials: &Vec<&Trial>| {
            let windows: Vec<&[[u64; 2]]> = trials.iter().map(|trial| &trial.windows[..]).collect();
            tracking::off(&actual.windows, &windows)
        };
        let tracking = done.as_ref().map(windows);
        Self { model, trials, intrinsic, tracking }
    }
}

/// Returns the trials, or `None` if a trial was stopped or if there are no trials.
fn done(trials: &[Ended]) -> Option<Vec<&Trial>> {
    let done: Option<Vec<&Trial>> = trials.iter().map(Ended::trial).collect();
    done.filter(|trials| !trials.is_empty())
}

/// Returns the predictions of the models for the work (`ops`) and the memory efficiency of each allocator.
#[must_use]
pub fn predictions(programs: &[Program], allocators: &[String], models: &[Kind]) -> [Predictions; 2] {
    let metrics: [fn(&trials::Extrinsic) -> Option<f64>; 2] = [|metric| metric.ops, |metric| metric.efficiency];
    metrics.map(|metric| {
        let of_model = |model: &OfModel| {
            let trials = done(&model.trials)?;
            let mean = |allocator: usize| {
                let values = trials.iter().map(|trial| trial.allocators.get(allocator).and_then(metric));
                let values: Option<Vec<f64>> = values.collect();
                values.map(|values| mean(&values))
            };
            (0..allocators.len()).map(mean).collect::<Option<Vec<f64>>>()
        };
        let program = |program: &Program| Predicted {
            name: program.name.clone(),
            actual: program.actual.allocators.iter().map(|of| metric(of).unwrap_or(0.0)).collect(),
            models: program.models.iter().map(of_model).collect(),
        };
        Predictions {
            allocators: allocators.to_vec(),
            models: models.iter().map(ToString::to_string).collect(),
            programs: programs.iter().map(program).collect(),
        }
    })
}
