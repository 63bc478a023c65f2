//! The decode tier of a record: how it can be decoded now, by the plans of its leaves.
//!
//! | tier | what its leaves are |
//! | --- | --- |
//! | specialized | stored as generated code has it in constants; of a section as a whole |
//! | planned | the formula without history, or the default that the DTD gives |
//! | stateful | as planned; or noted for others, with history, the next of a stream section, predicted, a default that metadata changed |
//! | general | all else: constants to check, repetitions, strides over several elements |
//!
//! What metadata changes, changes one plan; the tier of a record is that of its worst leaf. Both this and `record/known.rs`, which
//! knows the DTD when the program is compiled, ask [`floor`] what a leaf can be at best.

use super::expected;
use crate::format::{Floor, Format, METADATA, Record, Section, floor};
use crate::formula::{HISTORY, PREDICTED, PREVIOUS, Plan, REFERENCED, SPECIAL, STRIDED, Width};
use std::ops::Range;

/// The tier of a leaf, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Tier {
    /// The formula without history, or the default that the DTD gives.
    Planned,
    /// As `Planned`; or noted for others, with history, the next of a stream section, predicted.
    Stateful,
    /// As `Stateful`; a default of the DTD that metadata changed. Its record is stateful.
    Changed,
    /// All else.
    General,
}

/// The width of a code where it is expected.
pub(crate) const CODE: Width = Width::saturating(1);

/// Who asks what has changed: what fills columns,
pub(crate) const COLUMNS: usize = 0;
/// and what gives records by their values.
pub(crate) const VIEWS: usize = 1;

/// The tiers of the records of a section.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tiers {
    /// By the record's position in the section, for the first 64: whether it is of this tier.
    planned: u64,
    stateful: u64,
    /// Of the stateful ones: whether metadata changed a default.
    changed_defaults: u64,
    /// Whether all leaves are stored as generated code has it in constants, except for defaults; values may be noted for others.
    /// Only writers ask, and find it out for the positions of which a plan has changed.
    expected: u64,
    unsure: u64,
    /// By position: data records, except for a catch-all record, which is always general.
    data: u64,
    /// There are more than 64 positions.
    many: bool,
    /// By plan.
    leaves: Vec<LeafTier>,
    /// How many plans of data records are not as they are specialized for.
    unspecialized: usize,
    /// By position: how many plans of each tier.
    counts: Vec<[u16; 4]>,
    /// For each who [asks](Self::take_changed), by position: a plan has changed; all bits for positions from 64 on.
    changed: [u64; 2],
}

/// What is known of the tier of one leaf.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafTier {
    /// Its record's position in the section.
    position: u16,
    pub(crate) floor: Floor,
    tier: Tier,
    /// How it is stored in the state that generated code is specialized for, where its tier goes by its plan.
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
                // Others than data records never are, and do not count; nor do catch-all records.
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

    /// Whether all data records are planned.
    #[inline]
    pub(crate) fn are_planned(&self) -> bool {
        !self.many && self.data & !self.planned == 0
    }

    /// Whether all data records are stored as generated code is specialized for.
    #[inline]
    pub(crate) fn are_specialized(&self) -> bool {
        self.unspecialized == 0
    }

    /// Positions of planned records, by bit.
    #[inline]
    pub(crate) fn planned(&self) -> u64 {
        self.planned
    }

    /// Positions of stateful records, by bit.
    #[inline]
    pub(crate) fn stateful(&self) -> u64 {
        self.stateful
    }

    /// Positions of records of which metadata changed a default, by bit.
    #[inline]
    pub(crate) fn changed_defaults(&self) -> u64 {
        self.changed_defaults
    }

    /// Positions of records whose leaves are all stored as generated code has it in constants, except for defaults, by bit; of
    /// those that were when [`find_expected`](Self::find_expected) was called last, none that changed since.
    #[inline]
    pub(crate) fn expected(&self) -> u64 {
        self.expected
    }

    /// Finds out what is [expected](Self::expected) now, by all plans.
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

    /// What is known of the leaves of a record, given by the indices of its plans. Nothing where the record is general.
    #[inline]
    pub(crate) fn leaves(&self, plans: Range<usize>) -> Option<&[LeafTier]> {
        let leaves = self.leaves.get(plans)?;
        let position = leaves.first()?.position;
        ((self.planned | self.stateful) & bit(position.into()) != 0).then_some(leaves)
    }

    /// Which positions, of all records there are, have plans that changed since this was asked last by the same; all of them where
    /// one from 64 on has.
    pub(crate) fn take_changed(&mut self, asks: usize) -> impl Iterator<Item = usize> + use<> {
        let changed = self.changed.get_mut(asks).map_or(0, std::mem::take);
        let (all, mut some) = if changed == u64::MAX { (self.counts.len(), 0) } else { (0, changed) };
        (0..all).chain(std::iter::from_fn(move || {
            let next = (some != 0).then_some(some.trailing_zeros() as usize);
            some &= some.wrapping_sub(1);
            next
        }))
    }

    /// All positions have, for one who asks for the first time.
    pub(crate) fn all_changed(&mut self, asks: usize) {
        self.changed.get_mut(asks).into_iter().for_each(|changed| *changed = u64::MAX);
    }

    /// Whether there is something to [take](Self::take_changed).
    #[inline(always)]
    pub(crate) fn has_changed(&self, asks: usize) -> bool {
        self.changed.get(asks).is_some_and(|&changed| changed != 0)
    }

    /// The plan of this index has changed.
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

/// The bit of a position under 64.
pub(crate) const fn bit(position: usize) -> u64 {
    if position < 64 { 1 << position } else { 0 }
}

/// Whether a leaf is stored as generated code has it in constants: a stored integer, or the code of a predicted leaf in a byte.
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
        // A constant, or a stride over several elements.
        _ if plan.flags & (SPECIAL | STRIDED | PREDICTED) == SPECIAL => Tier::General,
        Floor::Fixed(_) => Tier::Changed,
        _ if plan.flags & (HISTORY | PREVIOUS | REFERENCED | STRIDED | PREDICTED) != 0 => Tier::Stateful,
        _ => Tier::Planned,
    }
}
