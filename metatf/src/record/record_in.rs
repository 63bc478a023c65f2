//! The compile-time description of each record of a generated module.

use super::known::{
    Known, bits, floors, is_general, is_stateful, place, record, record_can_specialize, specialized_plans,
};
use super::protocol::Protocol;
use crate::format::{Floor, LeafRef, borrowed, repeats};
use crate::formula::Plan;
use std::marker::PhantomData;

/// A tagged record of a section, as a type. `SECTION` and `RECORD` are indices in the format of `P`. Functions with
/// this type as a parameter are compiled for the record's tag, leaves and widths.
#[derive(Debug)]
pub struct RecordIn<P, const SECTION: usize, const RECORD: u16>(PhantomData<P>);

impl<P, const SECTION: usize, const RECORD: u16> RecordIn<P, SECTION, RECORD> {
    /// The record's index in the format.
    pub const INDEX: u16 = RECORD;

    /// The indices of the section and the record in the format.
    pub const PLACE: (usize, u16) = (SECTION, RECORD);

    /// Returns a reference to a leaf of the record.
    #[must_use]
    pub const fn leaf(leaf: u8) -> LeafRef {
        (RECORD, leaf)
    }
}

impl<P: Protocol, const SECTION: usize, const RECORD: u16> Known for RecordIn<P, SECTION, RECORD> {
    const TAG: u32 = record(P::FORMAT, RECORD).tag;
    const TAG_WIDTH: usize = P::FORMAT.tag_width as usize;
    const SECTION: usize = SECTION;
    const RECORD: u16 = RECORD;
    const POSITION: usize = place(P::FORMAT, SECTION, RECORD).0;
    const FIRST: usize = place(P::FORMAT, SECTION, RECORD).1;
    const MODELS: bool = !borrowed(&P::FORMAT.models).is_empty();
    const STATEFUL: bool = is_stateful(P::FORMAT);
    const IS_GENERAL: bool = is_general(record(P::FORMAT, RECORD));
    const REPEATS: bool = repeats(record(P::FORMAT, RECORD));
    const LEAVES: usize = borrowed(&record(P::FORMAT, RECORD).leaves).len();
    const TIME: Option<u8> = record(P::FORMAT, RECORD).time;
    const FLOORS: [Floor; 256] = floors(record(P::FORMAT, RECORD));
    const BITS: [Option<(u8, u8)>; 256] = bits(record(P::FORMAT, RECORD));
    const EXPECTED: [Plan; 256] = specialized_plans(P::FORMAT, RECORD);
    const CAN_SPECIALIZE: bool = record_can_specialize(P::FORMAT, RECORD, false);
    const CAN_EXPECT: bool = record_can_specialize(P::FORMAT, RECORD, true);
}
