//! Which stacks allocated.

use hatf_lab::Observer as _;
use hatf_lab::sites::{Counts, Measure, Sites as Counting, ranked};
use serde::Serialize;

use crate::Result;
use crate::event::EventKind;
use crate::stacks::{Location, Stacks};

/// Sites of each measure that a report has.
const TOP: usize = 5;

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
        }
    }
}

/// Counts by site. Of a trace without stacks all is one site.
#[derive(Debug, Default)]
pub(super) struct Sites {
    stacks: Stacks,
    counting: Counting,
    /// The block that began by the event before, if it was one.
    newest: Option<u64>,
}

impl Sites {
    /// Learns which modules are loaded, and which functions are where.
    pub(super) fn note(&mut self, kind: &EventKind<'_>) {
        self.stacks.note(kind);
    }

    /// Blocks are a sample: see [`hatf_lab::Observer::sampled`].
    pub(super) fn sampled(&mut self, mean: u64) {
        self.counting.sampled(mean);
    }

    /// Returns the number of a stack's site. Stacks after the first 2^32 are not known.
    #[inline]
    pub(super) fn number(&mut self, stack: &[u64]) -> u32 {
        if stack.is_empty() { 0 } else { u32::try_from(self.stacks.number(stack)).unwrap_or(0) }
    }

    /// A block begins.
    #[inline]
    pub(super) fn began(&mut self, address: u64, size: u64, site: u32) -> Result<()> {
        self.newest = Some(address);
        Ok(self.counting.allocated(site.into(), size)?)
    }

    /// A block of which it is not known when it ends.
    pub(super) fn asked(&mut self, size: u64, site: u32) -> Result<()> {
        self.counting.allocated(site.into(), size)?;
        Ok(self.counting.freed(site.into(), size, false)?)
    }

    /// A block ends.
    #[inline]
    pub(super) fn ended(&mut self, address: u64, size: u64, site: u32) -> Result<()> {
        let temporary = self.newest.take() == Some(address);
        Ok(self.counting.freed(site.into(), size, temporary)?)
    }

    /// The program of a block becomes another, and the block ends.
    pub(super) fn replaced(&mut self, size: u64, site: u32) -> Result<()> {
        self.newest = None;
        Ok(self.counting.freed(site.into(), size, false)?)
    }

    /// The heap of a block ends, and the block with it.
    pub(super) fn left(&mut self, size: u64, site: u32) -> Result<()> {
        self.newest = None;
        Ok(self.counting.left(site.into(), size)?)
    }

    /// Returns the sites that allocated most, none if the trace has no stacks; and the sums of all.
    pub(super) fn finish(self) -> (Option<SitesReport>, Counts) {
        let stacks = self.stacks;
        let sites = self.counting.finish();
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
        };
        (Some(report), total)
    }
}
