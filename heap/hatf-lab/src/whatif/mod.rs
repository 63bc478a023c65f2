//! Finds the allocator and settings that suit a trace. Runs a small grid of simulations and ranks them by predicted
//! memory, along with the known error of each simulator.
//!
//! # Examples
//!
//! BUDDY rounds 130 bytes up to 256, so a program that allocates many such blocks needs more memory with BUDDY than
//! with GLIBC:
//!
//! ```
//! use hatf_lab::HeapTracker;
//! use hatf_lab::simulate::Grid;
//! use hatf_lab::whatif::{KnownBy, Now, WhatIf, simulations};
//! use hatf_trace::{Event, EventSink};
//!
//! let mut tracker = HeapTracker::new(Grid::new(simulations()?, 1)?);
//! for page in 1..=1_000_u64 {
//!     tracker.event(&Event::malloc(page << 12, 130))?;
//! }
//! let (heap, grid) = tracker.into_parts();
//! let now = Now { allocator: "glibc".to_owned(), known_by: KnownBy::Given, ..Now::default() };
//! let whatif = WhatIf::new(heap.totals(), now, [None; 2], &grid.finish()?);
//! let buddy = whatif.predictions.iter().find(|prediction| prediction.allocator == "buddy");
//! assert_eq!(buddy.and_then(|buddy| buddy.saves).map(|saves| saves < 0.0), Some(true));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod candidates;
mod known;
mod page;

pub use candidates::{CANDIDATES, Candidate, NOW, of_module, without_model};
pub use known::{BOUND, KnownError, known_error};
pub use page::{bars, describe};

use serde::Serialize;

use candidates::{family, own_data};

use crate::allocator::by_name;
use crate::simulate::{Outcome, Simulation};
use crate::{Result, Totals};

/// The predicted memory of a candidate, in bytes of held pages and of the library's own data.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Prediction {
    /// The allocator in the syntax of `hatf simulate --allocator`.
    pub allocator: &'static str,
    /// The environment settings that select the allocator, or `None` for a model without a library.
    pub environment: Option<&'static str>,
    /// The argument of `hatf replay --with` for measuring the candidate.
    pub replay: Option<&'static str>,
    /// The maximum number of bytes.
    pub peak: u64,
    /// The number of bytes averaged over events.
    pub mean: u64,
    /// Operations per allocated object.
    pub ops: Option<f64>,
    /// The saving as a fraction of the current allocator's peak; negative if the candidate needs more memory.
    pub saves: Option<f64>,
    /// The known error of the simulator, if it was measured.
    pub error: Option<KnownError>,
}

/// Predictions for one trace in ascending order of the peak.
///
/// The [module's example](crate::whatif#examples) ranks the candidates for a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WhatIf {
    /// The trace.
    pub trace: Totals,
    /// The allocator in use.
    pub now: Now,
    /// The maximum number of bytes in private pages of the program as reported by the kernel, including pages unrelated
    /// to malloc.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub private: Option<u64>,
    /// The maximum number of bytes that the program obtained with its own calls to `mmap` and by moving the program
    /// break, if the trace contains page requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapped: Option<u64>,
    /// The predictions.
    pub predictions: Vec<Prediction>,
    /// Suggestions to try.
    pub advice: Vec<Advice>,
}

/// The allocator that a program uses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Now {
    /// One of [`NOW`].
    pub allocator: String,
    /// The actual allocator, if there is no model of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_truth: Option<String>,
    /// The version of the C library, if the trace contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub libc: Option<String>,
    /// The evidence for the allocator.
    pub known_by: KnownBy,
}

/// The evidence for the allocator in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KnownBy {
    /// The user specified the allocator.
    Given,
    /// The program loaded this shared object.
    Module(String),
    /// The program contains a statically linked allocator with this function.
    LinkedIn(String),
    /// The trace lists modules, none of which belongs to another allocator.
    NoOther,
    /// The trace contains no evidence.
    #[default]
    Assumed,
}

/// A suggestion to try a candidate.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Advice {
    /// The candidate.
    pub allocator: &'static str,
    /// The environment settings; empty if none are needed.
    pub set: &'static str,
    /// The shared object of another allocator. The environment settings take effect only if the program runs without
    /// this shared object.
    pub without: Option<String>,
    /// The number of bytes saved at the peak.
    pub bytes: u64,
    /// The saving as a fraction of the current allocator's peak.
    pub saves: f64,
    /// The mean error of the simulator, if known.
    pub error: Option<f64>,
    /// The argument of `hatf replay --with` for measuring the candidate.
    pub replay: Option<&'static str>,
}

/// Savings that differ by less than this fraction of the peak count as ties; among tied candidates, the one with the
/// fewest settings is preferred.
const SAME: f64 = 0.01;

/// Creates a simulation of each candidate, in order.
///
/// # Errors
/// Never fails, as all candidates are known.
pub fn simulations() -> Result<Vec<Simulation>> {
    CANDIDATES.iter().map(|of| Ok(Simulation::new(of.allocator, by_name(of.allocator)?))).collect()
}

impl WhatIf {
    /// Ranks the outcomes of [`simulations`]. `memory` consists of [`private`](Self::private) and
    /// [`mapped`](Self::mapped).
    #[must_use]
    pub fn new(trace: Totals, now: Now, memory: [Option<u64>; 2], outcomes: &[Outcome]) -> Self {
        let [private, mapped] = memory;
        let peak_of = |outcome: &Outcome| {
            let own = if outcome.most_held == 0 { 0 } else { own_data(family(&outcome.name)) };
            outcome.most_held + own
        };
        let now_peak = outcomes.iter().find(|outcome| outcome.name == now.allocator).map(peak_of);
        let mut predictions: Vec<Prediction> = CANDIDATES
            .iter()
            .zip(outcomes)
            .map(|(of, outcome)| Prediction {
                allocator: of.allocator,
                environment: of.environment,
                replay: of.replay,
                peak: peak_of(outcome),
                mean: outcome.mean_held + peak_of(outcome) - outcome.most_held,
                ops: outcome.ops,
                saves: now_peak.filter(|peak| *peak > 0).map(|peak| 1.0 - float(peak_of(outcome)) / float(peak)),
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

/// Returns the best prediction for each library, in ascending order of the peak. Omits libraries whose saving does not
/// exceed the combined errors of the simulators of the library and of the allocator in use. `predictions` must be in
/// the order of [`CANDIDATES`].
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
        // The errors of a simulator are similar for all settings.
        let both = error(best) + if is_now { 0.0 } else { error_now };
        if best.allocator == now.allocator || saves(best) <= both.max(SAME) {
            continue;
        }
        let environment = candidate.environment.unwrap_or_default();
        // The C library's allocator cannot be preloaded over another allocator.
        let in_the_way = match &now.known_by {
            KnownBy::Module(module) => module.clone(),
            KnownBy::LinkedIn(_) => format!("the linked {}", now.allocator),
            _ => format!("the {} library", now.allocator),
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

#[expect(clippy::cast_precision_loss, reason = "the ratio is for display")]
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

    /// Returns outcomes with these peaks, in the order of the candidates. All other candidates get the last peak.
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

    /// If results are equal, fewer settings are better. Settings of the C library's allocator have no effect with
    /// another allocator.
    #[test]
    fn advice_that_can_be_applied() {
        let outcomes = outcomes(&[
            ("glibc", 500 << 20),
            ("glibc:tcache=0", 499 << 20),
            ("jemalloc", 1000 << 20),
            ("jemalloc:arenas=1", 800 << 20),
            ("mimalloc", 500 << 20),
            ("mimalloc:purge=0", 400 << 20),
            ("all others", 2000 << 20),
        ]);
        let by = KnownBy::Module("libjemalloc.so.2".to_owned());
        let whatif = WhatIf::new(
            Totals::default(),
            Now { known_by: by, ..now("jemalloc") },
            [Some(5000 << 20), Some(64)],
            &outcomes,
        );
        let advice: Vec<_> = whatif.advice.iter().map(|of| (of.allocator, of.set, of.without.as_deref())).collect();
        let expected = [
            ("mimalloc:purge=0", "MIMALLOC_DECOMMIT_DELAY=0 LD_PRELOAD=libmimalloc.so.2", None),
            ("glibc", "", Some("libjemalloc.so.2")),
            ("jemalloc:arenas=1", "MALLOC_CONF=narenas:1", None),
        ];
        assert_eq!(advice, expected);
        let out = printed(&whatif);
        for line in [
            "now: jemalloc, because libjemalloc.so.2 is loaded",
            "run or link the program without libjemalloc.so.2: the environment alone has no effect",
            "at most 4.88 GiB private, of which malloc uses 1000 MiB according to the prediction; no allocator can save \
             the other 3.91 GiB",
            "at most 64 B were requested by the program's own calls (mmap, brk)",
            "saves 60.0% of the peak, 12.0% of the program's private memory",
        ] {
            assert!(out.contains(line), "{line}: {out}");
        }
        // The prediction can exceed the memory that the kernel reported.
        let private = [Some(900 << 20), None];
        let out = printed(&WhatIf::new(Totals::default(), now("jemalloc"), private, &outcomes));
        let line =
            "at most 900 MiB private when the kernel was queried; the 1000 MiB predicted for malloc include memory";
        assert!(out.contains(line), "{out}");
    }

    /// The page names the allocator in use and the evidence for it, even if there is no model of the allocator.
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
        assert_eq!(said(linked.clone()), "now: jemalloc, because it is linked into the program (_rjem_malloc)");
        let musl = KnownBy::Module("ld-musl-x86_64.so.1".to_owned());
        let musl = Now { known_by: musl, in_truth: Some("musl".to_owned()), ..now("glibc") };
        let expected = "now: musl, because ld-musl-x86_64.so.1 is loaded; there is no model of it, so the comparison is with glibc";
        assert_eq!(said(musl), expected);
        let glibc = Now { known_by: KnownBy::NoOther, libc, ..now("glibc") };
        assert_eq!(said(glibc), "now: glibc 2.36, because the modules include no other allocator");
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
