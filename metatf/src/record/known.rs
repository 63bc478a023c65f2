//! What is known of a record when the program is compiled, so that it can be decoded in a straight line.

use crate::format::{Floor, Format, Interpretation, LeafKind, METADATA, Record, SECTION, borrowed, floor};
use crate::formula::{Plan, Width};
use crate::state::expected;

/// A record as a section lists it.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    pub(super) tag: u32,
    /// It is the first that carries data.
    pub(super) is_first: bool,
}

/// The facts about a record, all constants.
pub trait Known {
    /// The record's tag.
    const TAG: u32;
    /// The tag, and where its section lists it.
    const LISTED: Listed;
    /// It is the record of all tags that no other has: by its tag it is not found.
    const IS_CATCH_ALL: bool;
    /// Bytes of a tag.
    const TAG_WIDTH: usize;
    /// The record's index in the format.
    const RECORD: u16;
    /// The record's position in its section.
    const POSITION: usize;
    /// Index of its first plan.
    const FIRST: usize;
    /// Whether the format has models: without, there is no code for values that they tell.
    const MODELS: bool;
    /// Whether by the DTD records can be stateful, by streams, models or previous values: else no code for them is generated.
    const STATEFUL: bool;
    /// How many leaves it has.
    const LEAVES: usize;
    /// What each leaf can be at best.
    const FLOORS: [Floor; 256];
    /// How each numeric leaf is stored in the state that is expected.
    const EXPECTED: [Plan; 256];
    /// Whether that can be said of all its leaves. Else there is no state in which it is expected.
    const CAN_SPECIALIZE: bool;
    /// Whether that can be said of all its leaves that no model predicts.
    const CAN_EXPECT: bool;
}

pub(super) const fn record(format: &Format, index: u16) -> &Record {
    &borrowed(&format.records)[index as usize]
}

/// How many plans a section has.
#[must_use]
pub const fn plans(format: &Format, section: usize) -> usize {
    // As there is no such record, all are counted.
    place(format, section, u16::MAX).1
}

/// Whether there is code that puts records into columns by their types: where sections have few enough types, and leaves, for a
/// table of them on the stack.
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

/// The only one of sections; none where there are several.
#[must_use]
pub const fn only_section(sections: &[usize]) -> Option<usize> {
    if let [section] = sections { Some(*section) } else { None }
}

/// Whether leaves of a section's records stride through stream sections by the DTD, one element after the other.
#[must_use]
pub const fn has_streamed(format: &Format, section: usize) -> bool {
    let listed = borrowed(&borrowed(&format.sections)[section].records);
    let mut i = 0;
    while i < listed.len() {
        let leaves = borrowed(&record(format, listed[i]).leaves);
        let mut leaf = 0;
        while leaf < leaves.len() {
            if let LeafKind::Number { interpretation: Interpretation::SectionStride(_, 1), .. } = leaves[leaf].kind {
                return true;
            }
            leaf += 1;
        }
        i += 1;
    }
    false
}

/// Position of a record in its section, and index of its first plan.
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

pub(super) const fn has_streams(format: &Format) -> bool {
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

/// Index of the first plan of a section's first data record.
pub(super) const fn first(format: &Format, section: usize) -> usize {
    let listed = borrowed(&borrowed(&format.sections)[section].records);
    let mut position = 0;
    while position < listed.len() {
        if listed[position] > METADATA {
            return place(format, section, listed[position]).1;
        }
        position += 1;
    }
    0
}

pub(super) const fn has_history(format: &Format) -> bool {
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

/// Whether there is a state in which records of a section are [expected](Known::EXPECTED) that can be decoded in a straight line.
#[must_use]
pub const fn can_specialize(format: &Format, section: usize) -> bool {
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

/// Whether that can be said of the record. `predicted`: of a leaf that a model predicts, it can.
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

/// Whether the tag may be one of these records': not where it lies outside of their tags. The first records of a section, which are
/// most often those that come most, are not asked.
#[cfg_attr(not(debug_assertions), inline(always))]
#[must_use]
pub const fn among(tag: u32, records: &[Listed]) -> bool {
    let (mut least, mut most) = (u32::MAX, 0);
    let mut i = 0;
    while i < records.len() {
        if records[i].is_first {
            return true;
        }
        least = if records[i].tag < least { records[i].tag } else { least };
        most = if records[i].tag > most { records[i].tag } else { most };
        i += 1;
    }
    least <= tag && tag <= most
}
