//! Compile-time knowledge about records, which enables straight-line decoding.

use crate::format::{ExprOp, Floor, Format, Interpretation, LeafKind, METADATA, Record, SECTION, borrowed, floor};
use crate::formula::{Plan, Width};
use crate::state::expected;

/// Compile-time constants that describe a record.
pub trait Known {
    /// The record's tag.
    const TAG: u32;
    /// Size of a tag in bytes.
    const TAG_WIDTH: usize;
    /// Index of the record's section in the format.
    const SECTION: usize;
    /// The record's index in the format.
    const RECORD: u16;
    /// The record's position in its section.
    const POSITION: usize;
    /// Index of the record's first plan.
    const FIRST: usize;
    /// Whether the format has models. Without models, no code for predicted values is generated.
    const MODELS: bool;
    /// Whether the DTD allows records to be stateful because of stream sections, models or previous values. If not, no
    /// code for stateful records is generated.
    const STATEFUL: bool;
    /// Whether a leaf always needs the general tier, so that no code of the other tiers is generated.
    const IS_GENERAL: bool;
    /// Whether the layout contains repetitions.
    const REPEATS: bool;
    /// Number of leaves.
    const LEAVES: usize;
    /// The leaf that contains the time of the record.
    const TIME: Option<u8>;
    /// The best tier of each leaf.
    const FLOORS: [Floor; 256];
    /// For each leaf computed as a bit of another leaf, that leaf and the number of the bit.
    const BITS: [Option<(u8, u8)>; 256];
    /// The encoding of each numeric leaf in the expected state.
    const EXPECTED: [Plan; 256];
    /// Whether all leaves have an expected encoding. Otherwise, there is no expected state.
    const CAN_SPECIALIZE: bool;
    /// Whether all leaves that are not predicted have an expected encoding.
    const CAN_EXPECT: bool;
}

pub(super) const fn record(format: &Format, index: u16) -> &Record {
    &borrowed(&format.records)[index as usize]
}

/// Returns the number of plans in a section.
#[must_use]
pub const fn plans(format: &Format, section: usize) -> usize {
    // No record has this index, so the function counts the plans of all records.
    place(format, section, u16::MAX).1
}

/// Returns whether code for storing typed records in columns is generated, which requires that sections have few enough
/// types and leaves for a table on the stack.
#[must_use]
pub(crate) const fn has_slots(format: &Format) -> bool {
    let sections = borrowed(&format.sections);
    let mut i = 0;
    while i < sections.len() {
        if borrowed(&sections[i].records).len() > 64 || plans(format, i) > 1024 {
            return false;
        }
        i += 1;
    }
    true
}

/// Returns the position of a record in its section and the index of its first plan.
pub(super) const fn place(format: &Format, section: usize, wanted: u16) -> (usize, usize) {
    let listed = borrowed(&borrowed(&format.sections)[section].records);
    let (mut position, mut first) = (0, 0);
    while position < listed.len() && listed[position] != wanted {
        let index = listed[position];
        if index != SECTION && index != METADATA {
            first += borrowed(&record(format, index).leaves).len();
        }
        position += 1;
    }
    (position, first)
}

/// Returns whether no record of the format, as declared in the DTD, depends on earlier records.
pub(crate) const fn is_stateless(format: &Format) -> bool {
    borrowed(&format.models).is_empty() && !is_stateful(format)
}

/// Returns whether the DTD allows records to be stateful because of stream sections or previous values.
pub(super) const fn is_stateful(format: &Format) -> bool {
    has_streams(format) || has_history(format)
}

const fn has_streams(format: &Format) -> bool {
    let sections = borrowed(&format.sections);
    let mut i = 0;
    while i < sections.len() {
        if sections[i].stream {
            return true;
        }
        i += 1;
    }
    false
}

const fn has_history(format: &Format) -> bool {
    use Interpretation::{BaseOffsetOf, Delta, Stride};
    let records = borrowed(&format.records);
    let mut i = 0;
    while i < records.len() {
        let leaves = borrowed(&records[i].leaves);
        let mut leaf = 0;
        while leaf < leaves.len() {
            if let LeafKind::Number { interpretation: Delta(_) | Stride(..) | BaseOffsetOf(..), .. } = leaves[leaf].kind
            {
                return true;
            }
            leaf += 1;
        }
        i += 1;
    }
    false
}

pub(super) const fn floors(record: &Record) -> [Floor; 256] {
    let mut floors = [Floor::General; 256];
    let mut leaf = 0;
    while leaf < borrowed(&record.leaves).len() && leaf < floors.len() {
        floors[leaf] = floor(record, leaf);
        leaf += 1;
    }
    floors
}

pub(super) const fn bits(record: &Record) -> [Option<(u8, u8)>; 256] {
    let mut bits = [None; 256];
    let leaves = borrowed(&record.leaves);
    let mut leaf = 0;
    while leaf < leaves.len() && leaf < bits.len() {
        if let LeafKind::Computed(program) = &leaves[leaf].kind
            && let [ExprOp::Leaf(of), ExprOp::Bit(bit)] = borrowed(program)
            && *bit < 64
            && leaves[leaf].constant.is_none()
        {
            bits[leaf] = Some((*of, *bit));
        }
        leaf += 1;
    }
    bits
}

/// Returns whether a leaf of the record always needs the general tier.
pub(super) const fn is_general(record: &Record) -> bool {
    let mut leaf = 0;
    while leaf < borrowed(&record.leaves).len() {
        if matches!(floor(record, leaf), Floor::General) {
            return true;
        }
        leaf += 1;
    }
    false
}

pub(super) const fn specialized_plans(format: &Format, index: u16) -> [Plan; 256] {
    let mut plans = [Plan::straight(Width::saturating(0), None); 256];
    let mut leaf = 0;
    while leaf < borrowed(&record(format, index).leaves).len() && leaf < plans.len() {
        if let Some(plan) = expected(format, index, leaf) {
            plans[leaf] = plan;
        }
        leaf += 1;
    }
    plans
}

/// Returns whether there is an [expected](Known::EXPECTED) state in which straight-line code can decode the records of
/// a section.
pub(super) const fn can_specialize(format: &Format, section: usize) -> bool {
    let listed = borrowed(&borrowed(&format.sections)[section].records);
    let mut position = 0;
    while position < listed.len() {
        let is_data = listed[position] > METADATA && !record(format, listed[position]).is_catch_all();
        if is_data && !record_can_specialize(format, listed[position], false) {
            return false;
        }
        position += 1;
    }
    true
}

/// Returns whether straight-line code can decode the record in its expected state. If `predicted` is set, predicted
/// leaves are allowed.
pub(super) const fn record_can_specialize(format: &Format, index: u16, predicted: bool) -> bool {
    let mut leaf = 0;
    while leaf < borrowed(&record(format, index).leaves).len() {
        let is_plain = match floor(record(format, index), leaf) {
            Floor::General => false,
            Floor::Predicted => predicted,
            Floor::Stored => expected(format, index, leaf).is_some(),
            Floor::Fixed(_) | Floor::Array(_) | Floor::Counted => true,
        };
        if !is_plain {
            return false;
        }
        leaf += 1;
    }
    true
}
