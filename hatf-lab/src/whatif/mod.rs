//! Which allocator, and which of its settings, would suit a trace: a small grid of simulations, ranked by the memory that they
//! predict, each with the error that its simulator is known to have.

mod candidates;
mod known;
mod text;

pub use candidates::{CANDIDATES, Candidate, NOW};
pub use known::{BOUND, KnownError, known_error};
pub use text::text;

use serde::Serialize;

use crate::allocator::by_name;
use crate::simulate::{Outcome, Simulation};
use crate::{Result, Totals};

/// What a candidate is predicted to need. Bytes are those of pages held.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// The simulation, in the form that `hatf simulate --allocator` takes.
    pub allocator: &'static str,
    /// What to set in the environment to have it; `None`: it is a model without a library.
    pub environment: Option<&'static str>,
    /// What `hatf replay --with` takes to measure it.
    pub replay: Option<&'static str>,
    /// The most bytes.
    pub peak: u64,
    /// Their mean over events.
    pub mean: u64,
    /// Acts for each object allocated.
    pub ops: Option<f64>,
    /// What it saves of the peak, in parts of that of the allocator in use; negative: what it needs more.
    pub saves: Option<f64>,
    /// How far its simulator was from what replays measured; `None`: that is not known.
    pub error: Option<KnownError>,
}

/// Predictions for one trace, the least peak first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhatIf {
    /// The trace.
    pub trace: Totals,
    /// The allocator in use.
    pub now: String,
    /// The predictions.
    pub predictions: Vec<Prediction>,
}

/// Makes a simulation of each candidate, in their order.
///
/// # Errors
/// None, as the candidates are known.
pub fn simulations() -> Result<Vec<Simulation>> {
    CANDIDATES.iter().map(|of| Ok(Simulation::new(of.allocator, by_name(of.allocator)?))).collect()
}

impl WhatIf {
    /// Ranks what came out of [`simulations`]. `now` is one of [`NOW`].
    #[must_use]
    pub fn new(trace: Totals, now: &str, outcomes: &[Outcome]) -> Self {
        let now_peak = outcomes.iter().find(|outcome| outcome.name == now).map(|outcome| outcome.most_held);
        let mut predictions: Vec<Prediction> = CANDIDATES
            .iter()
            .zip(outcomes)
            .map(|(of, outcome)| Prediction {
                allocator: of.allocator,
                environment: of.environment,
                replay: of.replay,
                peak: outcome.most_held,
                mean: outcome.mean_held,
                ops: outcome.ops,
                saves: now_peak.filter(|peak| *peak > 0).map(|peak| 1.0 - float(outcome.most_held) / float(peak)),
                error: known_error(of.family()),
            })
            .collect();
        predictions.sort_by_key(|prediction| prediction.peak);
        Self { trace, now: now.to_owned(), predictions }
    }

    /// Returns what is worth a try: for each library the prediction with the least peak, if that saves more than the errors of
    /// both simulators, in the order of their peaks.
    #[must_use]
    pub fn advice(&self) -> Vec<&Prediction> {
        let error = |prediction: &Prediction| prediction.error.as_ref().map_or(0.0, |error| error.mean);
        let now = self.predictions.iter().find(|prediction| prediction.allocator == self.now).map_or(0.0, error);
        let (mut advice, mut families) = (Vec::new(), Vec::new());
        for prediction in self.predictions.iter().filter(|prediction| prediction.environment.is_some()) {
            let family = candidates::family(prediction.allocator);
            // Errors of one simulator are alike with all settings.
            let both = error(prediction) + if family == self.now { 0.0 } else { now };
            let saves = prediction.saves.unwrap_or(0.0);
            if !families.contains(&family) && prediction.allocator != self.now && saves > both.max(0.01) {
                families.push(family);
                advice.push(prediction);
            }
        }
        advice
    }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio is what is shown")]
fn float(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::Grid;
    use crate::{Allocation, Objects};

    #[test]
    fn ranked_and_named() {
        let mut grid = Grid::new(simulations().unwrap(), 2).unwrap();
        let mut objects = Objects::new();
        for n in 0..20_000_u64 {
            let call = Allocation { address: n, size: Some(n * 7 % 3000), thread: n % 2, ..Allocation::default() };
            objects.allocate(&call, &mut grid).unwrap();
            if n % 3 == 0 {
                objects.free_by(0, n / 2, 0, &mut grid).unwrap();
            }
        }
        let whatif = WhatIf::new(objects.totals(), "glibc", &grid.finish().unwrap());
        assert!(whatif.predictions.is_sorted_by_key(|prediction| prediction.peak));
        assert_eq!(whatif.predictions.len(), CANDIDATES.len());
        let now = whatif.predictions.iter().find(|prediction| prediction.allocator == "glibc").unwrap();
        assert_eq!(now.saves, Some(0.0));
        assert!(whatif.advice().iter().all(|prediction| prediction.saves.unwrap() > 0.0));
        let mut out = Vec::new();
        text(&whatif, &mut out).unwrap();
        assert!(String::from_utf8(out).unwrap().contains("GLIBC_TUNABLES=glibc.malloc.tcache_count=0"));
    }

    #[test]
    fn an_empty_trace() {
        let outcomes = Grid::new(simulations().unwrap(), 1).unwrap().finish().unwrap();
        let whatif = WhatIf::new(Totals::default(), "jemalloc", &outcomes);
        assert!(whatif.advice().is_empty() && whatif.predictions.iter().all(|prediction| prediction.saves.is_none()));
    }
}
