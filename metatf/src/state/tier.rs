//! The decoding tier of a record, which follows from the current plans of its leaves.
//!
//! | tier | properties of its leaves |
//! | --- | --- |
//! | specialized | encoded according to the constants in generated code; applies to a complete section |
//! | planned | the formula without history, or the default specified in the DTD |
//! | stateful | as planned, or saved for other leaves, with history, the next element of a stream section, predicted, or a default changed by metadata |
//! | general | everything else: constants to check, repetitions, strides over several elements |
//!
//! Metadata changes one plan at a time, and a record has the tier of its least capable leaf. Both this module and
//! `record/known.rs`, which uses the DTD at compile time, call [`floor`] to determine the best tier of a leaf.

use super::expected;
use crate::format::{Floor, Format, METADATA, Record, Section, floor};
use crate::formula::{HISTORY, PREDICTED, PREVIOUS, Plan, REFERENCED, SPECIAL, STRIDED, Width};
use std::ops::Range;

/// The tier of a leaf, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tier {
    /// The formula without history, or the default specified in the DTD.
    Planned,
    /// As `Planned`, or a leaf whose value is saved for other leaves, has history, is the next element of a stream
    /// section, or is predicted.
    Stateful,
    /// As `Stateful`, or a default of the DTD that metadata has changed. The record of such a leaf is stateful.
    Changed,
    /// Everything else.
    General,
}

/// The expected width of a predicted leaf's code.
pub(crate) const CODE: Width = Width::saturating(1);

/// Index of the consumer of changes that fills columns.
pub(crate) const COLUMNS: usize = 0;
/// Index of the consumer of changes that returns record views.
pub(crate) const VIEWS: usize = 1;

/// The tiers of the records of a section.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tiers {
    /// Positions of the planned records in the section, as a bit set of the first 64 positions.
    planned: u64,
    /// Positions of the stateful records.
    stateful: u64,
    /// Positions of the stateful records with a default changed by metadata.
    changed_defaults: u64,
    /// Positions of records that are encoded exactly according to the constants in generated code, except for defaults;
    /// their values may be saved for other leaves. Only writers use this set. They recompute it for positions whose
    /// plans have changed.
    expected: u64,
    unsure: u64,
    /// Positions of data records, excluding a catch-all record, which is always general.
    data: u64,
    /// Whether there are more than 64 positions.
    many: bool,
    /// The tiers of leaves, by plan.
    leaves: Vec<LeafTier>,
    /// Number of plans of data records that differ from their specialized encoding.
    unspecialized: usize,
    /// For each position, the number of plans in each tier.
    counts: Vec<[u16; 4]>,
    /// For each consumer of [changes](Self::take_changed), a bit set of the positions with a changed plan. If a plan at
    /// position 64 or later changes, all bits are set.
    changed: [u64; 2],
}

/// The tier of a leaf and the data that determines it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafTier {
    /// Position of the leaf's record in the section.
    position: u16,
    pub(crate) floor: Floor,
    tier: Tier,
    /// Encoding of the leaf in the state that generated code is specialized for, if the leaf's tier depends on its
    /// plan.
    specialized: Option<Plan>,
    is_specialized: bool,
}

impl Tiers {
    pub(crate) fn new(format: &Format, section: &Section, plans: impl Fn(usize) -> Option<usize>) -> Self {
        let mut tiers = Self { many: section.records.len() > 64, ..Self::default() };
        for (position, &record) in section.records.iter().enumerate() {
            let found = format.records.get(usize::from(record)).filter(|_| plans(position).is_some());
            let is_data = record > METADATA && !found.is_some_and(Record::is_catch_all);
            tiers.data |= if is_data { bit(position) } else { 0 };
            let leaves = found.map_or(&[][..], |record| &record.leaves);
            for leaf in 0..leaves.len() {
                let floor = found.filter(|_| is_data).map_or(Floor::General, |record| floor(record, leaf));
                // Only data records can be specialized, excluding catch-all records.
                let specialized = (floor == Floor::Stored).then(|| expected(format, record, leaf)).flatten();
                let position = u16::try_from(position).unwrap_or(u16::MAX);
                let tier = Tier::General;
                tiers.leaves.push(LeafTier { position, floor, tier, specialized, is_specialized: false });
                tiers.unspecialized += usize::from(is_data);
            }
            let leaves = u16::try_from(leaves.len()).unwrap_or(u16::MAX);
            tiers.counts.push([0, 0, 0, leaves]);
        }
        tiers
    }

    /// Returns whether all data records are planned.
    #[inline]
    pub(crate) fn are_planned(&self) -> bool {
        !self.many && self.data & !self.planned == 0
    }

    /// Returns whether all data records are stored in the way that generated code is specialized for.
    #[inline]
    pub(crate) fn are_specialized(&self) -> bool {
        self.unspecialized == 0
    }

    /// Returns the positions of planned records as a bit set.
    #[inline]
    pub(crate) fn planned(&self) -> u64 {
        self.planned
    }

    /// Returns the positions of stateful records as a bit set.
    #[inline]
    pub(crate) fn stateful(&self) -> u64 {
        self.stateful
    }

    /// Returns the positions of records with a default changed by metadata as a bit set.
    #[inline]
    pub(crate) fn changed_defaults(&self) -> u64 {
        self.changed_defaults
    }

    /// Returns, as a bit set, the positions of records whose leaves are all encoded according to the constants in
    /// generated code, except for defaults. The set reflects the last call of [`find_expected`](Self::find_expected),
    /// without positions that have changed since.
    #[inline]
    pub(crate) fn expected(&self) -> u64 {
        self.expected
    }

    /// Determines the currently [expected](Self::expected) positions from all plans.
    pub(crate) fn find_expected(&mut self, plans: &[Plan]) {
        if self.unsure == 0 {
            return;
        }
        self.expected |= std::mem::take(&mut self.unsure);
        for (leaf, plan) in self.leaves.iter().zip(plans) {
            if !is_expected(leaf, plan) {
                self.expected &= !bit(leaf.position.into());
            }
        }
    }

    /// Returns the tiers of a record's leaves, given the indices of the record's plans, or `None` if the record is
    /// general.
    #[inline]
    pub(crate) fn leaves(&self, plans: Range<usize>) -> Option<&[LeafTier]> {
        let leaves = self.leaves.get(plans)?;
        let position = leaves.first()?.position;
        ((self.planned | self.stateful) & bit(position.into()) != 0).then_some(leaves)
    }

    /// Returns the positions of all records with plans that changed since the last call by the same consumer. If
    /// position 64 or a later position has changed, returns all positions.
    pub(crate) fn take_changed(&mut self, asks: usize) -> impl Iterator<Item = usize> + use<> {
        let changed = self.changed.get_mut(asks).map_or(0, std::mem::take);
        let (all, mut some) = if changed == u64::MAX { (self.counts.len(), 0) } else { (0, changed) };
        (0..all).chain(std::iter::from_fn(move || {
            let next = (some != 0).then_some(some.trailing_zeros() as usize);
            some &= some.wrapping_sub(1);
            next
        }))
    }

    /// Marks all positions as changed for a consumer that has not seen any plans yet.
    pub(crate) fn all_changed(&mut self, asks: usize) {
        self.changed.get_mut(asks).into_iter().for_each(|changed| *changed = u64::MAX);
    }

    /// Returns whether there are changes to [take](Self::take_changed).
    #[inline(always)]
    pub(crate) fn has_changed(&self, asks: usize) -> bool {
        self.changed.get(asks).is_some_and(|&changed| changed != 0)
    }

    /// Updates the tiers after the plan with this index has changed.
    pub(crate) fn update(&mut self, index: usize, plan: &Plan) {
        let Some(leaf) = self.leaves.get_mut(index) else { return };
        let position = usize::from(leaf.position);
        let changed = if position < 64 { bit(position) } else { u64::MAX };
        self.changed = self.changed.map(|before| before | changed);
        self.unsure |= bit(position);
        self.expected &= !bit(position);
        let (before, now) = (leaf.tier, tier(leaf.floor, plan));
        let is_specialized = now == Tier::Planned
            && match leaf.specialized {
                Some(specialized) => specialized.stores_as(plan),
                None => leaf.floor != Floor::Stored && leaf.floor != Floor::Predicted,
            };
        self.unspecialized = self.unspecialized + usize::from(leaf.is_specialized) - usize::from(is_specialized);
        (leaf.tier, leaf.is_specialized) = (now, is_specialized);
        let set = |bits: u64, on: bool| if on { bits | bit(position) } else { bits & !bit(position) };
        let Some(counts) = self.counts.get_mut(position).filter(|_| now != before) else { return };
        counts[before as usize] -= 1;
        counts[now as usize] += 1;
        let [_, stateful, defaults, general] = *counts;
        self.planned = set(self.planned, stateful + defaults + general == 0);
        self.stateful = set(self.stateful, stateful + defaults > 0 && general == 0);
        self.changed_defaults = set(self.changed_defaults, defaults > 0);
    }
}

/// Returns the bit of a position less than 64.
pub(crate) const fn bit(position: usize) -> u64 {
    if position < 64 { 1 << position } else { 0 }
}

/// Returns whether a leaf is encoded according to the constants in generated code: as a stored integer, or as the
/// one-byte code of a predicted leaf.
fn is_expected(leaf: &LeafTier, plan: &Plan) -> bool {
    match leaf.floor {
        Floor::Stored => {
            plan.flags & (HISTORY | SPECIAL | STRIDED) == 0
                && leaf.specialized.is_some_and(|known| known.stores_as(plan))
        }
        Floor::Predicted => plan.flags & PREDICTED != 0 && plan.width == CODE,
        Floor::Fixed(_) | Floor::Array(_) | Floor::Counted => true,
        Floor::General => false,
    }
}

fn tier(floor: Floor, plan: &Plan) -> Tier {
    match floor {
        Floor::General => Tier::General,
        Floor::Array(_) | Floor::Counted => Tier::Planned,
        Floor::Fixed(value) if plan.flags == 0 && plan.mask == 0 && plan.base == value => Tier::Planned,
        // A constant that must be checked, or a stride over several elements.
        _ if plan.flags & (SPECIAL | STRIDED | PREDICTED) == SPECIAL => Tier::General,
        Floor::Fixed(_) => Tier::Changed,
        _ if plan.flags & (HISTORY | PREVIOUS | REFERENCED | STRIDED | PREDICTED) != 0 => Tier::Stateful,
        _ => Tier::Planned,
    }
}
