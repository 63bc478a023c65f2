//! Allocation sites. Each site is a stack.

use hatf_lab::blocks::Untouched;
use hatf_lab::history::{LiveBySite, LiveBySiteBuilder};
use hatf_lab::sites::{Counts, Measure, Sites as Counting, ranked};
use hatf_lab::{Heap, Object, ObjectEvent, Observer as _, Result};
use hatf_trace::Event;
use serde::Serialize;

use hatf_trace::stacks::Location;

/// Number of sites that a report lists per measure.
const TOP: usize = 5;

/// Number of functions in the name of a stack.
const FUNCTIONS: usize = 3;

/// The sites that allocated most, in a trace with stacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SitesReport {
    /// The number of distinct stacks.
    pub stacks: u64,
    /// Whether functions are known.
    pub has_symbols: bool,
    /// Whether modules are known, so that functions can be symbolized.
    pub has_modules: bool,
    /// The totals of all sites.
    pub total: Counts,
    /// The sites with the most bytes live at the peak.
    pub peak: Vec<TopSite>,
    /// The sites with the most bytes that were never freed.
    pub leaked: Vec<TopSite>,
    /// The sites with the most bytes allocated.
    pub allocated: Vec<TopSite>,
    /// The sites with the most bytes freed by the event that follows their allocation.
    pub temporary: Vec<TopSite>,
    /// The sites with the most bytes in short-lived blocks.
    pub short: Vec<TopSite>,
}

/// A site and its amount by some measure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TopSite {
    /// Requested bytes.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u64,
    /// The functions of the stack, innermost first; empty if the stack is unknown.
    pub functions: Vec<String>,
    /// The names of the innermost functions with line numbers, shortened for display.
    #[serde(skip)]
    pub name: String,
}

impl SitesReport {
    /// Returns the top sites of a measure.
    #[must_use]
    pub fn get(&self, measure: Measure) -> &[TopSite] {
        match measure {
            Measure::Peak => &self.peak,
            Measure::Leaked => &self.leaked,
            Measure::Allocated => &self.allocated,
            Measure::Temporary => &self.temporary,
            Measure::Short => &self.short,
            // Reports do not contain these measures.
            Measure::At | Measure::Between | Measure::Copied | Measure::Slack | Measure::Untouched => &[],
        }
    }
}

/// Counts by site. In a trace without stacks, all blocks belong to one site.
#[derive(Clone, Debug)]
pub(super) struct Sites {
    counting: Counting,
    live: LiveBySiteBuilder,
    untouched: Untouched,
}

impl Default for Sites {
    fn default() -> Self {
        Self { counting: Counting::with_changes(), live: LiveBySiteBuilder::default(), untouched: Untouched::default() }
    }
}

impl Sites {
    /// Sets the sampling rate; see [`hatf_lab::Observer::sampled`].
    pub(super) fn sampled(&mut self, mean: u64) {
        self.counting.sampled(mean);
    }

    /// Counts an event.
    #[inline]
    pub(super) fn count(&mut self, event: &ObjectEvent) -> Result<()> {
        self.untouched.event(event)?;
        self.live.before(event, &mut self.counting);
        self.counting.event(event)
    }

    /// Handles a record that is not a call.
    pub(super) fn other(&mut self, event: &Event<'_>, heap: &Heap) -> Result<()> {
        self.untouched.record(event, heap)
    }

    /// Ends a block at an unknown time.
    pub(super) fn freed_unseen(&mut self, object: &Object) -> Result<()> {
        self.counting.freed(object.site, object.size, false)
    }

    /// Returns the counts of each site, indexed by site number.
    pub(super) fn counts(&self) -> Vec<Counts> {
        let mut counts = self.counting.report();
        self.untouched.fill(&mut counts);
        counts
    }

    /// Returns the live bytes of each site over time.
    pub(super) fn live(&self) -> LiveBySite {
        self.live.finish(&self.counting)
    }

    /// Returns the sites that allocated the most and the totals of all sites. The sites are `None` if the trace has no
    /// stacks.
    pub(super) fn report(&self, heap: &Heap) -> (Option<SitesReport>, Counts) {
        let (stacks, sites) = (&heap.stacks, self.counts());
        let mut total = Counts::default();
        sites.iter().for_each(|site| total.add(site));
        if stacks.count() == 1 {
            return (None, total);
        }
        let top = |measure| {
            let first = ranked(&sites, measure, false).into_iter().take(TOP);
            let names = |site| stacks.get(site).flat_map(Location::names).collect();
            first
                .map(|(site, amount)| TopSite {
                    bytes: amount.bytes,
                    blocks: amount.blocks,
                    functions: names(site as u64),
                    name: stacks.name(site as u64, FUNCTIONS).with_lines().to_string(),
                })
                .collect()
        };
        let report = SitesReport {
            stacks: stacks.count() - 1,
            has_symbols: stacks.has_symbols(),
            has_modules: stacks.have_places(),
            total,
            peak: top(Measure::Peak),
            leaked: top(Measure::Leaked),
            allocated: top(Measure::Allocated),
            temporary: top(Measure::Temporary),
            short: top(Measure::Short),
        };
        (Some(report), total)
    }
}
