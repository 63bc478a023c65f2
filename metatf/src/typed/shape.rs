//! What is known of a record when the program is compiled, so that it can be decoded in a straight line.

use super::protocol::Protocol;
use crate::format::{Format, METADATA, Record, SECTION, borrowed};
use crate::grade::{Floor, floor};
use std::marker::PhantomData;

/// A tagged record of a section, by their indices in the format of `P`.
#[derive(Debug)]
pub struct Shape<P, const SECTION: usize, const RECORD: u16>(PhantomData<P>);

/// The facts about a [`Shape`], all constants.
pub trait Known {
    /// The record's tag.
    const TAG: u32;
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
    /// What each leaf can be at best.
    const FLOORS: [Floor; 256];
}

impl<P: Protocol, const SECTION: usize, const RECORD: u16> Known for Shape<P, SECTION, RECORD> {
    const TAG: u32 = record(P::FORMAT, RECORD).tag;
    const TAG_WIDTH: usize = P::FORMAT.tag_width as usize;
    const RECORD: u16 = RECORD;
    const POSITION: usize = place(P::FORMAT, SECTION, RECORD).0;
    const FIRST: usize = place(P::FORMAT, SECTION, RECORD).1;
    const MODELS: bool = !borrowed(&P::FORMAT.models).is_empty();
    const FLOORS: [Floor; 256] = floors(record(P::FORMAT, RECORD));
}

const fn record(format: &Format, index: u16) -> &Record {
    &borrowed(&format.records)[index as usize]
}

/// How many plans a section has.
#[must_use]
pub const fn plans(format: &Format, section: usize) -> usize {
    // As there is no such record, all are counted.
    place(format, section, u16::MAX).1
}

/// Position of a record in its section, and index of its first plan.
const fn place(format: &Format, section: usize, wanted: u16) -> (usize, usize) {
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

const fn floors(record: &Record) -> [Floor; 256] {
    let mut floors = [Floor::General; 256];
    let mut leaf = 0;
    while leaf < borrowed(&record.leaves).len() && leaf < floors.len() {
        floors[leaf] = floor(record, leaf);
        leaf += 1;
    }
    floors
}

/// Whether the tag lies between the least and the greatest of these.
#[inline(always)]
#[must_use]
pub const fn between(tag: u32, tags: &[u32]) -> bool {
    let (mut least, mut most) = (u32::MAX, 0);
    let mut i = 0;
    while i < tags.len() {
        least = if tags[i] < least { tags[i] } else { least };
        most = if tags[i] > most { tags[i] } else { most };
        i += 1;
    }
    least <= tag && tag <= most
}
