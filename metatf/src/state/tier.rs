//! How a record can be decoded now, by the plans of its leaves: in a straight line, or leaf by leaf with all that may come up.
//!
//! What metadata changes, changes one plan; the tier of a record follows from the worst of its leaves. Both this and
//! `typed/shape.rs`, which knows the DTD when the program is compiled, ask [`floor`] what a leaf can be at best.

use crate::format::{Floor, Format, METADATA, Section, floor};
use crate::formula::{LAST, PREDICTED, Plan, REFERENCED, SPECIAL, STRIDED};
use crate::state::expected;
use std::ops::Range;

/// Every leaf is the stored integer, or the default that the DTD gives it.
pub(crate) const STORED: u8 = 0;
/// The formula, without history, gives every leaf that is not the default that the DTD gives it.
pub(crate) const FORMULA: u8 = 1;
/// As `FORMULA`; some values are noted for others to look at, or told by a model.
pub(crate) const FORETOLD: u8 = 2;
/// As `FORETOLD`; other values are the next element of a stream section.
pub(crate) const GATHERED: u8 = 3;
/// As `GATHERED`; other values go by the value before.
pub(crate) const TOLD: u8 = 4;
/// As `TOLD`; some are not the default that the DTD gives.
pub(crate) const CHANGED: u8 = 5;
/// Leaf by leaf.
pub(crate) const GENERAL: u8 = 6;

/// Who asks what has changed: what fills columns,
pub(crate) const COLUMNS: usize = 0;
/// and what gives records by their values.
pub(crate) const VIEWS: usize = 1;

/// The tiers of the records of a section.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tiers {
    /// By the record's position in the section, for the first 64: whether it is of this tier.
    stored: u64,
    formula: u64,
    /// Of tier `GATHERED`, and no leaf is foretold.
    gathered: u64,
    told: u64,
    changed_defaults: u64,
    /// By position: data records.
    data: u64,
    /// There are more than 64 positions.
    many: bool,
    /// By plan: its record's position, what it can be at best, and its tier now.
    plans: Vec<(u16, Floor, u8)>,
    /// By plan: how its leaf is expected to be stored, if it is graded by its plan and that can be said; and whether it is.
    expected: Vec<(Option<Plan>, bool)>,
    /// How many plans of data records are not as expected.
    unexpected: usize,
    /// By position: how many plans of each tier.
    counts: Vec<[u16; 7]>,
    /// For each who [asks](Self::take_changed), by position: a plan has changed; all bits for positions from 64 on.
    changed: [u64; 2],
}

impl Tiers {
    pub(crate) fn new(format: &Format, section: &Section, plans: impl Fn(usize) -> Option<usize>) -> Self {
        let mut tiers = Self { many: section.records.len() > 64, ..Self::default() };
        for (position, &record) in section.records.iter().enumerate() {
            tiers.counts.push([0; 7]);
            tiers.data |= if record > METADATA { bit(position) } else { 0 };
            let Some(r) = format.records.get(usize::from(record)).filter(|_| plans(position).is_some()) else {
                continue;
            };
            for leaf in 0..r.leaves.len() {
                let floor = if record <= METADATA { Floor::General } else { floor(r, leaf) };
                tiers.plans.push((u16::try_from(position).unwrap_or(u16::MAX), floor, GENERAL));
                let plan = if floor == Floor::Stored { expected(format, record, leaf) } else { None };
                // Others than data records never are, and do not count.
                tiers.expected.push((plan.filter(|_| record > METADATA), false));
                tiers.unexpected += usize::from(record > METADATA);
                if let Some(counts) = tiers.counts.get_mut(position) {
                    counts[usize::from(GENERAL)] += 1;
                }
            }
        }
        tiers
    }

    /// The tier of all data records, which is the worst of one; `GENERAL` where it is worse than `FORMULA`, or than
    /// `GATHERED` where nothing is foretold.
    #[inline]
    pub(crate) fn of_all(&self) -> u8 {
        match self.data {
            _ if self.many => GENERAL,
            data if data & !self.stored == 0 => STORED,
            data if data & !self.formula == 0 => FORMULA,
            data if data & !(self.formula | self.gathered) == 0 => GATHERED,
            _ => GENERAL,
        }
    }

    /// Whether all data records are stored as generated code expects it.
    #[inline]
    pub(crate) fn are_specialized(&self) -> bool {
        self.unexpected == 0
    }

    /// Positions of records whose tier is planned, by bit.
    #[inline]
    pub(crate) fn planned(&self) -> u64 {
        self.formula
    }

    /// Positions of records whose tier is stateful, by bit: planned leaves, values noted, history, streams, models, and defaults
    /// that metadata has changed.
    #[inline]
    pub(crate) fn stateful(&self) -> u64 {
        self.told | self.changed_defaults
    }

    /// Positions of records whose tier is `FORETOLD`, `GATHERED` or `TOLD`, by bit.
    #[inline]
    pub(crate) fn told(&self) -> u64 {
        self.told
    }

    /// Positions of records whose tier is `CHANGED`, by bit.
    #[inline]
    pub(crate) fn changed_defaults(&self) -> u64 {
        self.changed_defaults
    }

    /// Of the plans of a record, given by their indices: each one's position, what its leaf can be at best, and its tier.
    /// Nothing where the record's tier is worse than `FORMULA`, or than `GATHERED` where nothing is foretold.
    #[inline]
    pub(crate) fn straight_plans(&self, plans: Range<usize>) -> Option<&[(u16, Floor, u8)]> {
        let plans = self.plans.get(plans)?;
        let &(position, ..) = plans.first()?;
        ((self.formula | self.gathered) & bit(position.into()) != 0).then_some(plans)
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
        let Some((position, floor, now)) = self.plans.get_mut(index) else { return };
        let changed = if *position < 64 { bit(usize::from(*position)) } else { u64::MAX };
        self.changed = self.changed.map(|before| before | changed);
        let new = tier(*floor, plan);
        if let Some((expected, was)) = self.expected.get_mut(index) {
            let is = match expected {
                Some(expected) => new <= FORMULA && expected.stores_as(plan),
                None => new == STORED && *floor != Floor::Stored,
            };
            self.unexpected = self.unexpected + usize::from(*was) - usize::from(is);
            *was = is;
        }
        if new == *now {
            return;
        }
        let position = usize::from(*position);
        let Some(counts) = self.counts.get_mut(position) else { return };
        counts[usize::from(*now)] -= 1;
        counts[usize::from(new)] += 1;
        *now = new;
        let bit = bit(position);
        let worst = (0..=GENERAL).rev().find(|&tier| counts[usize::from(tier)] > 0).unwrap_or(STORED);
        let set = |bits: u64, on: bool| if on { bits | bit } else { bits & !bit };
        self.stored = set(self.stored, worst == STORED);
        self.formula = set(self.formula, worst <= FORMULA);
        self.gathered = set(self.gathered, worst == GATHERED && counts[usize::from(FORETOLD)] == 0);
        self.told = set(self.told, (FORETOLD..=TOLD).contains(&worst));
        self.changed_defaults = set(self.changed_defaults, worst == CHANGED);
    }
}

/// The bit of a position under 64.
pub(crate) const fn bit(position: usize) -> u64 {
    if position < 64 { 1 << position } else { 0 }
}

fn tier(floor: Floor, plan: &Plan) -> u8 {
    match floor {
        Floor::General => GENERAL,
        Floor::Array(_) | Floor::Counted => STORED,
        Floor::Fixed(value) if plan.flags == 0 && plan.mask == 0 && plan.base == value => STORED,
        // A constant, or a stride over several elements.
        _ if plan.flags & (SPECIAL | STRIDED | PREDICTED) == SPECIAL => GENERAL,
        Floor::Fixed(_) => CHANGED,
        _ if plan.is(STRIDED) && plan.flags & !(LAST | SPECIAL | STRIDED) == 0 => GATHERED,
        _ if plan.flags & !(LAST | REFERENCED | SPECIAL | PREDICTED) != 0 => TOLD,
        _ if plan.is(PREDICTED | REFERENCED) => FORETOLD,
        _ if plan.sign == 0 && plan.base == 0 => STORED,
        Floor::Stored | Floor::Predicted => FORMULA,
    }
}
