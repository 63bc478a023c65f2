//! Which allocator, and which of its settings, would suit a trace: a small grid of simulations, ranked by the memory that they
//! predict, each with the error that its simulator is known to have.

mod candidates;
mod known;
mod page;

pub use candidates::{CANDIDATES, Candidate, NOW, of_module, without_model};
pub use known::{BOUND, KnownError, known_error};
pub use page::{bars, describe};

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
    pub now: Now,
    /// The most bytes of private pages that the program had, by the kernel: those that are not malloc's among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private: Option<u64>,
    /// The most bytes that the program's own calls of `mmap` and of the program break held, where calls for pages are in the trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapped: Option<u64>,
    /// The predictions.
    pub predictions: Vec<Prediction>,
    /// What is worth a try.
    pub advice: Vec<Advice>,
}

/// The allocator that a program runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Now {
    /// One of [`NOW`].
    pub allocator: String,
    /// What it is in truth, where there is no model of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_truth: Option<String>,
    /// The version of the C library, where the trace tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub libc: Option<String>,
    /// How that is known.
    pub known_by: KnownBy,
}

/// How the allocator in use is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KnownBy {
    /// It was given.
    Given,
    /// The program has loaded this shared object.
    Module(String),
    /// The program has an allocator with this function linked in.
    LinkedIn(String),
    /// The trace has modules, and none of them is another allocator's.
    NoOther,
    /// The trace does not say.
    #[default]
    Assumed,
}

/// What is worth a try.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The candidate.
    pub allocator: &'static str,
    /// What to set in the environment; empty: nothing.
    pub set: &'static str,
    /// The shared object that the program has to be run, or linked, without, for the environment to have an effect.
    pub without: Option<String>,
    /// Saved bytes of the peak.
    pub bytes: u64,
    /// What that is of the peak of the allocator in use.
    pub saves: f64,
    /// The mean error of the simulator, where it is known.
    pub error: Option<f64>,
    /// What `hatf replay --with` takes to measure it.
    pub replay: Option<&'static str>,
}

/// What differs by less than this part of the peak is taken to be the same: then fewer settings are better.
const SAME: f64 = 0.01;

/// Makes a simulation of each candidate, in their order.
///
/// # Errors
/// None, as the candidates are known.
pub fn simulations() -> Result<Vec<Simulation>> {
    CANDIDATES.iter().map(|of| Ok(Simulation::new(of.allocator, by_name(of.allocator)?))).collect()
}

impl WhatIf {
    /// Ranks what came out of [`simulations`]. `memory` is what the program had in all: see [`private`](Self::private) and [`mapped`](Self::mapped).
    #[must_use]
    pub fn new(trace: Totals, now: Now, memory: [Option<u64>; 2], outcomes: &[Outcome]) -> Self {
        let [private, mapped] = memory;
        let now_peak = outcomes.iter().find(|outcome| outcome.name == now.allocator).map(|outcome| outcome.most_held);
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
        let advice = advice(&predictions, &now, now_peak.unwrap_or(0));
        predictions.sort_by_key(|prediction| prediction.peak);
        Self { trace, now, private, mapped, predictions, advice }
    }

    /// Returns the prediction for the allocator in use.
    #[must_use]
    pub fn prediction_now(&self) -> Option<&Prediction> {
        self.predictions.iter().find(|prediction| prediction.allocator == self.now.allocator)
    }
}

/// Returns for each library the prediction with the least peak, if that saves more than the errors of both simulators; the least peak
/// first. `predictions` are in the order of [`CANDIDATES`].
fn advice(predictions: &[Prediction], now: &Now, now_peak: u64) -> Vec<Advice> {
    let error = |prediction: &Prediction| prediction.error.as_ref().map_or(0.0, |error| error.mean);
    let saves = |prediction: &Prediction| prediction.saves.unwrap_or(0.0);
    let error_now = predictions.iter().find(|prediction| prediction.allocator == now.allocator).map_or(0.0, error);
    let mut advice: Vec<Advice> = Vec::new();
    for family in NOW {
        let of = |(candidate, _): &(&Candidate, &Prediction)| candidate.family() == *family;
        let all: Vec<_> = CANDIDATES.iter().zip(predictions).filter(of).collect();
        let most = all.iter().map(|(_, prediction)| saves(prediction)).fold(f64::MIN, f64::max);
        let among = all.iter().filter(|(_, prediction)| saves(prediction) + SAME > most);
        let key = |(candidate, prediction): &&(&Candidate, &Prediction)| (candidate.settings(), prediction.peak);
        let Some((candidate, best)) = among.min_by_key(key) else { continue };
        let is_now = *family == now.allocator;
        // Errors of one simulator are alike with all settings.
        let both = error(best) + if is_now { 0.0 } else { error_now };
        if best.allocator == now.allocator || saves(best) <= both.max(SAME) {
            continue;
        }
        let environment = candidate.environment.unwrap_or_default();
        // The C library's allocator cannot be put before another, which has its place.
        let in_the_way = match &now.known_by {
            KnownBy::Module(module) => module.clone(),
            KnownBy::LinkedIn(_) => format!("the {} that it has linked in", now.allocator),
            _ => format!("the library of {}", now.allocator),
        };
        advice.push(Advice {
            allocator: best.allocator,
            set: match (is_now, candidate.settings()) {
                (true, _) => candidates::without_library(environment),
                (false, 0) if *family == "glibc" => "",
                _ => environment,
            },
            without: (!is_now && *family == "glibc").then_some(in_the_way),
            bytes: now_peak.saturating_sub(best.peak),
            saves: saves(best),
            error: best.error.as_ref().map(|error| error.mean),
            replay: best.replay,
        });
    }
    advice.sort_by_key(|advice| std::cmp::Reverse(advice.bytes));
    advice
}

#[expect(clippy::cast_precision_loss, reason = "a ratio is what is shown")]
fn float(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HeapTracker;
    use crate::simulate::Grid;
    use hatf_trace::{Event, EventSink as _};
    use metatf_page::{Form, Page, render};

    fn printed(whatif: &WhatIf) -> String {
        let (mut page, mut out) = (Page::default(), Vec::new());
        describe(whatif, &mut page);
        render(&page, Form::text(None), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn ranked_and_named() {
        let mut tracker = HeapTracker::new(Grid::new(simulations().unwrap(), 2).unwrap());
        for n in 1..20_000_u64 {
            tracker.event(&Event { thread: n % 2, ..Event::malloc(n, n * 7 % 3000) }).unwrap();
            if n % 3 == 0 {
                tracker.event(&Event::free(n / 2)).unwrap();
            }
        }
        let (heap, grid) = tracker.into_parts();
        let outcomes = grid.finish().unwrap();
        let whatif = WhatIf::new(heap.totals(), now("glibc"), [None; 2], &outcomes);
        assert!(whatif.predictions.is_sorted_by_key(|prediction| prediction.peak));
        assert_eq!(whatif.predictions.len(), CANDIDATES.len());
        let now = whatif.predictions.iter().find(|prediction| prediction.allocator == "glibc").unwrap();
        assert_eq!(now.saves, Some(0.0));
        assert!(whatif.advice.iter().all(|advice| advice.saves > 0.0));
        assert!(printed(&whatif).contains("GLIBC_TUNABLES=glibc.malloc.tcache_count=0"));
    }

    /// Returns outcomes with these peaks, in the order of candidates; all others have the last.
    fn outcomes(peaks: &[(&str, u64)]) -> Vec<Outcome> {
        let mut outcomes = Grid::new(simulations().unwrap(), 1).unwrap().finish().unwrap();
        for (candidate, outcome) in CANDIDATES.iter().zip(&mut outcomes) {
            let of = peaks.iter().find(|(allocator, _)| *allocator == candidate.allocator).or(peaks.last());
            outcome.most_held = of.unwrap().1;
        }
        outcomes
    }

    fn now(allocator: &str) -> Now {
        Now { allocator: allocator.to_owned(), known_by: KnownBy::Given, ..Now::default() }
    }

    /// What is as good with fewer settings is better; settings of the C library's allocator do nothing beside another.
    #[test]
    fn advice_that_can_be_applied() {
        let outcomes = outcomes(&[
            ("glibc", 500),
            ("glibc:tcache=0", 499),
            ("jemalloc", 1000),
            ("jemalloc:arenas=1", 800),
            ("mimalloc", 500),
            ("mimalloc:purge=0", 400),
            ("all others", 2000),
        ]);
        let by = KnownBy::Module("libjemalloc.so.2".to_owned());
        let whatif =
            WhatIf::new(Totals::default(), Now { known_by: by, ..now("jemalloc") }, [Some(5000), Some(64)], &outcomes);
        let advice: Vec<_> = whatif.advice.iter().map(|of| (of.allocator, of.set, of.without.as_deref())).collect();
        let expected = [
            ("mimalloc:purge=0", "MIMALLOC_DECOMMIT_DELAY=0 LD_PRELOAD=libmimalloc.so.2", None),
            ("glibc", "", Some("libjemalloc.so.2")),
            ("jemalloc:arenas=1", "MALLOC_CONF=narenas:1", None),
        ];
        assert_eq!(advice, expected);
        let out = printed(&whatif);
        for line in [
            "now: jemalloc, as libjemalloc.so.2 is loaded",
            "run, or link, the program without libjemalloc.so.2: the environment alone does not",
            "4.88 KiB private at most, 1000 B of them malloc's by the prediction: 3.91 KiB are not, and no allocator saves of them",
            "64 B at most were asked for by the program's own calls (mmap, brk)",
            "saves 60.0% of the peak, 12.0% of the program's private memory",
        ] {
            assert!(out.contains(line), "{line}: {out}");
        }
    }

    /// What is known of the allocator in use is said, and what there is no model of.
    #[test]
    fn the_allocator_in_use() {
        let outcomes = outcomes(&[("all", 500)]);
        let said = |now: Now| {
            let out = printed(&WhatIf::new(Totals::default(), now, [None; 2], &outcomes));
            out.lines().next().unwrap_or_default().trim().to_owned()
        };
        let libc = Some("glibc 2.36".to_owned());
        let linked =
            Now { known_by: KnownBy::LinkedIn("_rjem_malloc".to_owned()), libc: libc.clone(), ..now("jemalloc") };
        assert_eq!(said(linked.clone()), "now: jemalloc, as the program has it linked in (_rjem_malloc)");
        let musl = KnownBy::Module("ld-musl-x86_64.so.1".to_owned());
        let musl = Now { known_by: musl, in_truth: Some("musl".to_owned()), ..now("glibc") };
        let expected =
            "now: musl, as ld-musl-x86_64.so.1 is loaded; there is no model of it, so others are compared with glibc";
        assert_eq!(said(musl), expected);
        let glibc = Now { known_by: KnownBy::NoOther, libc, ..now("glibc") };
        assert_eq!(said(glibc), "now: glibc 2.36, as no other allocator is among the modules");
    }

    #[test]
    fn modules_that_are_allocators() {
        let files =
            ["libjemalloc.so.2", "libmimalloc-secure.so.2.0", "libtcmalloc_minimal.so.4.5.9", "libc.so.6", "jemalloc"];
        let found = files.map(of_module);
        assert_eq!(found, [Some("jemalloc"), Some("mimalloc"), Some("tcmalloc"), None, None]);
        let files = ["ld-musl-x86_64.so.1", "libc.musl-x86_64.so.1", "libsnmallocshim.so", "libc.so.6", "libhoardx"];
        let found = files.map(without_model);
        assert_eq!(found, [Some("musl"), Some("musl"), Some("snmalloc"), None, Some("hoard")]);
    }

    #[test]
    fn an_empty_trace() {
        let outcomes = Grid::new(simulations().unwrap(), 1).unwrap().finish().unwrap();
        let whatif = WhatIf::new(Totals::default(), now("jemalloc"), [None; 2], &outcomes);
        assert!(whatif.advice.is_empty() && whatif.predictions.iter().all(|prediction| prediction.saves.is_none()));
    }
}
