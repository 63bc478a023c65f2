//! HATF 1.0 with frequent metadata records, as produced by the planner's `best`. Widths, bases, defaults and strides of
//! sizes and addresses change between records, so the loop must keep them in variables. The loop supports only a fixed
//! set of record types, and only traces that store no times, threads or heaps.

use super::skip;
use crate::{Counts, Event, Result};
use metatf::container::Reader;

const METADATA: u8 = 3;
const ALLOC: u8 = 4;
const REALLOC: u8 = 5;
const FREE: u8 = 6;

/// The number of bytes that can always be read at the start of a record. The fields before a record's attributes never
/// occupy more bytes.
const ROOM: usize = 40;

/// The contents of a chunk.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// Whether all leaves are reset to the DTD's definitions at the start.
    reset: bool,
    /// The bytes, padded so that a record can be read in a single step.
    bytes: Vec<u8>,
}

/// Returns the chunks of a trace with a single section.
///
/// # Errors
/// Returns the errors of the trace.
pub fn chunks(trace: &[u8]) -> Result<Vec<Chunk>> {
    let mut reader = Reader::from_slice(trace)?;
    let mut chunks = Vec::new();
    while let Some(part) = reader.next_part()? {
        let bytes = [reader.bytes(&part.content), &[0; ROOM]].concat();
        chunks.push(Chunk { reset: part.reset, bytes });
    }
    Ok(chunks)
}

/// The current encoding of a leaf: `((raw ^ sign) - sign) + base + (previous & history)`, where `raw` has `width`
/// bytes.
#[derive(Clone, Copy)]
struct Leaf {
    width: usize,
    mask: u64,
    sign: u64,
    base: u64,
    history: u64,
    previous: u64,
    /// The last nonzero width, which applies again when the leaf stores bytes again.
    remembered: u8,
    /// The number that identifies the interpretation in metadata.
    interpretation: u8,
}

impl Leaf {
    /// The initial state of sizes and addresses in the DTD.
    const FOUR: Self = Self { width: 4, mask: 0xFFFF_FFFF, remembered: 4, ..Self::ONE };
    /// The initial state of lengths in the DTD.
    const ONE: Self =
        Self { width: 1, mask: 0xFF, sign: 0, base: 0, history: 0, previous: 0, remembered: 1, interpretation: 1 };

    /// Returns the value that starts at offset `at` in the window. `at` must be less than 32.
    #[inline(always)]
    fn value(&mut self, window: &[u8; ROOM], at: usize) -> Option<u64> {
        let raw = u64::from_le_bytes(*window.get(at & 31..)?.first_chunk()?) & self.mask;
        let value = (raw ^ self.sign).wrapping_sub(self.sign).wrapping_add(self.base);
        self.previous = value.wrapping_add(self.previous & self.history);
        Some(self.previous)
    }

    fn set_width(&mut self, width: u8) {
        if width != 0 {
            self.remembered = width;
        }
        let stores = !matches!(self.interpretation, 4 | 6);
        if stores {
            self.width = width.into();
            self.mask = u64::MAX.checked_shr(64 - 8 * u32::from(width)).unwrap_or(0);
            self.sign = if matches!(self.interpretation, 2 | 3) { (self.mask >> 1) ^ self.mask } else { 0 };
        }
    }

    /// Sets the interpretation to `none` (1), `baseOffset` (2), `delta` (3), `default` (4) or `stride` (6).
    fn set_interpretation(&mut self, interpretation: u8, value: u64, stride: u64) {
        self.interpretation = interpretation;
        (self.base, self.history) = match interpretation {
            2 | 4 => (value, 0),
            3 => (0, u64::MAX),
            6 => (stride, u64::MAX),
            _ => (0, 0),
        };
        if self.history != 0 {
            self.previous = value;
        }
        if matches!(interpretation, 4 | 6) {
            (self.width, self.mask, self.sign) = (0, 0, 0);
        } else {
            self.set_width(self.remembered);
        }
    }
}

/// The state that changes between records.
struct State {
    /// The leaves of an allocation: size, address, and length of the attributes.
    alloc: [Leaf; 3],
    /// The leaves of a reallocation: old address, address, and length of the attributes.
    realloc: [Leaf; 3],
    /// The leaves of a free: address, and length of the attributes.
    free: [Leaf; 2],
}

impl State {
    const NEW: Self = Self {
        alloc: [Leaf::FOUR, Leaf::FOUR, Leaf::ONE],
        realloc: [Leaf::FOUR, Leaf::FOUR, Leaf::ONE],
        free: [Leaf::FOUR, Leaf::ONE],
    };

    /// Applies a metadata record for one of the leaves above. Returns the length of the metadata record after the tag.
    #[cold]
    fn metadata(&mut self, rest: &[u8]) -> Option<usize> {
        let [record, field, property, values @ ..] = rest else { return None };
        let [size, address, alloc_length] = &mut self.alloc;
        let [old, new, realloc_length] = &mut self.realloc;
        let [freed, free_length] = &mut self.free;
        let leaf = match (*record, field) {
            (ALLOC, 1) => size,
            (ALLOC, 2) => address,
            (ALLOC, 6) => alloc_length,
            (REALLOC, 1) => old,
            (REALLOC, 2) => new,
            (REALLOC, 6) => realloc_length,
            (FREE, 1) => freed,
            (FREE, 5) => free_length,
            _ => return None,
        };
        let each = if *property >> 4 == 0 { 8 } else { usize::from(*property >> 4) };
        let number = |n: usize| {
            let bytes = values.get(n * each..(n + 1) * each)?;
            Some(bytes.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte)))
        };
        let values = match property & 15 {
            0 => {
                leaf.set_width(u8::try_from(number(0)?).ok()?);
                1
            }
            1 => {
                leaf.set_interpretation(1, 0, 0);
                0
            }
            kind @ 2..=4 => {
                leaf.set_interpretation(kind, number(0)?, 0);
                1
            }
            6 => {
                let empty = 64 - 8 * u32::try_from(each).ok()?;
                // A stride is signed.
                let stride = (number(1)? << empty).cast_signed() >> empty;
                leaf.set_interpretation(6, number(0)?, stride.cast_unsigned());
                2
            }
            _ => return None,
        };
        Some(3 + values * each)
    }
}

/// Visits the records. Returns `None` if the content ends in the middle of a record or is unexpected.
#[inline(always)]
fn each(chunks: &[Chunk], mut visit: impl FnMut(Event)) -> Option<()> {
    let mut state = State::NEW;
    for chunk in chunks {
        if chunk.reset {
            state = State::NEW;
        }
        let mut data = &*chunk.bytes;
        while data.len() > ROOM {
            let window: &[u8; ROOM] = data.first_chunk()?;
            let [tag, ..] = *window;
            let (end, length) = match tag {
                ALLOC => {
                    let [size, address, length] = &mut state.alloc;
                    let at = 1 + size.width;
                    let end = at + address.width;
                    visit(Event::Alloc { size: size.value(window, 1)?, address: address.value(window, at)? });
                    (end + length.width, length.value(window, end)?)
                }
                REALLOC => {
                    let [old, new, length] = &mut state.realloc;
                    let at = 1 + old.width;
                    let end = at + new.width;
                    let (old, address) = (old.value(window, 1)?, new.value(window, at)?);
                    visit(Event::Realloc { old, size: 0, address });
                    (end + length.width, length.value(window, end)?)
                }
                FREE => {
                    let [address, length] = &mut state.free;
                    let end = 1 + address.width;
                    visit(Event::Free { address: address.value(window, 1)? });
                    (end + length.width, length.value(window, end)?)
                }
                METADATA => (1 + state.metadata(data.get(1..)?)?, 0),
                _ => return None,
            };
            data = skip(data.get(end..)?, length)?;
        }
        if data.len() < ROOM {
            return None;
        }
    }
    Some(())
}

/// Returns the sum of all fields.
#[must_use]
pub fn all(chunks: &[Chunk]) -> Option<u64> {
    let mut sum = 0_u64;
    each(chunks, |event| {
        sum = sum.wrapping_add(match event {
            Event::Alloc { size, address } => size.wrapping_add(address),
            Event::Realloc { old, address, .. } => old.wrapping_add(address),
            Event::Free { address } => address,
        });
    })?;
    Some(sum)
}

/// Returns the total size of all allocations.
#[must_use]
pub fn one(chunks: &[Chunk]) -> Option<u64> {
    let mut sum = 0_u64;
    each(chunks, |event| {
        if let Event::Alloc { size, .. } = event {
            sum = sum.wrapping_add(size);
        }
    })?;
    Some(sum)
}

/// Returns the number of events of each kind.
#[must_use]
pub fn count(chunks: &[Chunk]) -> Option<Counts> {
    let [mut allocs, mut reallocs, mut frees] = [0; 3];
    each(chunks, |event| match event {
        Event::Alloc { .. } => allocs += 1,
        Event::Realloc { .. } => reallocs += 1,
        Event::Free { .. } => frees += 1,
    })?;
    Some([allocs, reallocs, frees])
}
