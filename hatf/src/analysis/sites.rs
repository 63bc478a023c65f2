//! Which stacks allocated.

use hatf_lab::sites::{Counts, Measure, Sites as Counting, ranked};
use hatf_lab::{Heap, Object, ObjectEvent, Observer as _, Result};
use serde::Serialize;

use crate::stacks::Location;

/// Sites of each measure that a report has.
const TOP: usize = 5;

/// Functions of a stack in its name.
const FUNCTIONS: usize = 3;

/// The sites that allocated most, of a trace with stacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SitesReport {
    /// Stacks that differ.
    pub stacks: u64,
    /// Whether functions are known.
    pub has_symbols: bool,
    /// Whether modules are known, so that functions can be found.
    pub has_modules: bool,
    /// The sums of all sites.
    pub total: Counts,
    /// Those with the most bytes live at the peak.
    pub peak: Vec<TopSite>,
    /// Those with the most bytes never freed.
    pub leaked: Vec<TopSite>,
    /// Those with the most bytes allocated.
    pub allocated: Vec<TopSite>,
    /// Those with the most bytes freed by the event that follows their allocation.
    pub temporary: Vec<TopSite>,
    /// Those with the most bytes that lived shortly.
    pub short: Vec<TopSite>,
}

/// A site, and what it has of a measure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TopSite {
    /// Bytes asked for.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u64,
    /// The functions of its stack, innermost first; none: the stack is not known.
    pub functions: Vec<String>,
    /// The innermost of them with their lines, as people read them.
    #[serde(skip)]
    pub name: String,
}

impl SitesReport {
    /// Returns the sites of a measure.
    #[must_use]
    pub fn get(&self, measure: Measure) -> &[TopSite] {
        match measure {
            Measure::Peak => &self.peak,
            Measure::Leaked => &self.leaked,
            Measure::Allocated => &self.allocated,
            Measure::Temporary => &self.temporary,
            Measure::Short => &self.short,
            // A report is not asked for these.
            Measure::At | Measure::Between | Measure::Copied | Measure::Slack => &[],
        }
    }
}

/// Counts by site. Of a trace without stacks all is one site.
#[derive(Clone, Debug, Default)]
pub(super) struct Sites(Counting);

impl Sites {
    /// Blocks are a sample: see [`hatf_lab::Observer::sampled`].
    pub(super) fn sampled(&mut self, mean: u64) {
        self.0.sampled(mean);
    }

    /// Counts an event.
    #[inline]
    pub(super) fn count(&mut self, event: &ObjectEvent) -> Result<()> {
        self.0.event(event)
    }

    /// A block ends of which it is not known when it does.
    pub(super) fn freed_unseen(&mut self, object: &Object) -> Result<()> {
        self.0.freed(object.site, object.size, false)
    }

    /// Returns what each site allocated, by its number.
    pub(super) fn counts(&self) -> Vec<Counts> {
        self.0.report()
    }

    /// Returns the sites that allocated most, none if the trace has no stacks; and the sums of all.
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
