//! Stream sections of a group being written. They contain values added by leaves with `sectionStride`, elements
//! supplied by the caller, and tables that grow over the whole trace.

use crate::format::{Format, Interpretation, LeafKind, Model, ModelKind, slot};
use crate::formula::bytes_for;
use std::collections::BTreeMap;

/// A run of elements of a stream section supplied by the caller. A reset separates each run from the previous one.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenElements {
    /// Values, for a section of single numbers.
    pub(crate) values: Vec<u64>,
    /// Encoded elements, for any other section.
    pub(crate) raw: Vec<u8>,
    pub(crate) count: u32,
}

/// Numbers by element index, some of which may have been skipped by strides greater than 1.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    values: Vec<u64>,
    /// A bit set of skipped numbers, up to the last skipped one.
    skipped: Vec<u64>,
}

impl Numbers {
    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the value at an index, or `None` if it was skipped.
    fn get(&self, index: usize) -> Option<u64> {
        let skipped = self.skipped.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 != 0);
        self.values.get(index).copied().filter(|_| !skipped)
    }

    /// Sets the value at an index and skips any indices before it that have no value.
    fn set(&mut self, index: usize, value: u64) {
        let length = self.values.len();
        if index >= length {
            self.values.resize(index + 1, 0);
            (length..index).for_each(|skipped| self.skip(skipped));
        }
        if let Some(slot) = self.values.get_mut(index) {
            *slot = value;
        }
        if let Some(word) = self.skipped.get_mut(index / 64) {
            *word &= !(1 << (index % 64));
        }
    }

    fn skip(&mut self, index: usize) {
        if self.skipped.len() <= index / 64 {
            self.skipped.resize(index / 64 + 1, 0);
        }
        if let Some(word) = self.skipped.get_mut(index / 64) {
            *word |= 1 << (index % 64);
        }
    }

    fn truncate(&mut self, length: usize) {
        self.values.truncate(length);
        self.skipped.truncate(length.div_ceil(64));
        if let Some(last) = self.skipped.get_mut(length / 64) {
            *last &= (1 << (length % 64)) - 1;
        }
    }

    /// Starts over, reusing the memory of a vector.
    pub(crate) fn reuse(&mut self, mut values: Vec<u64>) {
        values.clear();
        *self = Self { values, skipped: Vec::new() };
    }

    /// Returns the values by index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Option<u64>> + '_ {
        (0..self.values.len()).map(|index| self.get(index))
    }

    /// Returns all values. A skipped value repeats the value before it.
    pub(crate) fn into_values(mut self) -> Vec<u64> {
        if !self.skipped.is_empty() {
            let mut before = 0;
            let fill = |value: Option<u64>| {
                before = value.unwrap_or(before);
                before
            };
            self.values = self.iter().map(fill).collect();
        }
        self.values
    }
}

/// A stream section of the current group.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamWriter {
    /// Values added by strides and models.
    pub(crate) put: Numbers,
    /// Elements supplied by the caller, in runs. They take precedence over the values in `put`, and must agree with
    /// them.
    pub(crate) given: Vec<GivenElements>,
    /// Encoded elements of the shared table that are not in the file yet.
    pub(crate) table: Vec<u8>,
    pub(crate) table_count: u32,
    /// Logical length of the shared table, including `table`.
    pub(crate) table_length: u64,
    /// Number of content bytes in finished groups, excluding shared tables.
    pub(crate) local_length: u64,
}

impl StreamWriter {
    /// Returns the offset of the next element supplied by the caller, if numbers are `width` bytes wide.
    pub(crate) fn next_local(&self, width: u8) -> u64 {
        let length = |s: &GivenElements| s.raw.len() as u64 + s.values.len() as u64 * u64::from(width);
        self.local_length + self.given.iter().map(length).sum::<u64>()
    }
}

/// All stream sections and the cursors that stride through them.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamWriters {
    pub(crate) streams: Vec<StreamWriter>,
    cursors: Vec<PutCursor>,
    /// Cursors by [`slot`], up to the last cursor in use, counting from 1.
    slots: Vec<u32>,
    /// The cursors and elements before the current record.
    undo: Vec<StreamUndo>,
    /// Estimated number of bytes of stream section content buffered for the group.
    pub(crate) held: usize,
    /// Whether the trace is version 0, in which the width of a section of single numbers is fixed because there are no
    /// chunks.
    pub(crate) fixed: bool,
}

/// A reader's cursor in a stream section: the position of its next value; see [`slot`].
#[derive(Clone, Copy, Debug)]
struct PutCursor {
    reader: usize,
    /// The number and the index of the stream section.
    target: u8,
    stream: usize,
    /// The index of the next element.
    index: u64,
}

/// A cursor's position before a value, and the change that the value made.
#[derive(Clone, Copy, Debug)]
struct StreamUndo {
    cursor: usize,
    index: u64,
    put: Placement,
}

#[derive(Clone, Copy, Debug)]
enum Placement {
    /// The element already had this value.
    Kept,
    /// The length of the stream before it grew.
    Grown(usize),
    /// A previously skipped element received its value.
    Filled(usize),
}

/// Estimated size of a buffered stream section number in bytes.
pub(crate) const HELD_A_NUMBER: usize = 4;

/// Maximum number of elements that a stride may skip in one step, because padding is written for them.
const LARGEST_GAP: u64 = 1 << 20;

impl StreamWriters {
    pub(crate) fn new(format: &Format, fixed: bool) -> Self {
        Self { streams: vec![StreamWriter::default(); format.sections.len()], fixed, ..Self::default() }
    }

    /// Appends a value to a stream section for the cursor in the slot. Returns false and changes nothing if the slot
    /// has no cursor yet or the cursor is not at the end of the section.
    #[inline(always)]
    pub(crate) fn append(&mut self, slot: u64, value: u64) -> bool {
        let at = usize::try_from(slot).ok().and_then(|slot| self.slots.get(slot)).copied().unwrap_or(0) as usize;
        let Some(cursor) = at.checked_sub(1).and_then(|at| self.cursors.get_mut(at)).filter(|_| !self.fixed) else {
            return false;
        };
        let Some(writer) = self.streams.get_mut(cursor.stream) else { return false };
        let length = writer.put.values.len();
        if cursor.index != length as u64 {
            return false;
        }
        writer.put.values.push(value);
        self.undo.push(StreamUndo { cursor: at - 1, index: cursor.index, put: Placement::Grown(length) });
        self.held += HELD_A_NUMBER;
        cursor.index += 1;
        true
    }

    /// Sets the value at a reader's cursor in stream section number `target`. Returns false if the element already has
    /// a different value or is too far past the end.
    pub(crate) fn put(&mut self, format: &Format, (reader, target): (usize, u8), stride: u64, value: u64) -> bool {
        let fixed = self.fixed;
        let Some(at) = self.cursor(format, reader, target) else { return false };
        let Some(cursor) = self.cursors.get_mut(at) else { return false };
        let Some(writer) = self.streams.get_mut(cursor.stream) else { return false };
        let length = writer.put.values.len();
        let near = usize::try_from(cursor.index).ok().filter(|&i| i as u64 <= length as u64 + LARGEST_GAP);
        let Some(index) = near else { return false };
        let put = match writer.put.get(index) {
            Some(there) if there != value => return false,
            Some(_) => Placement::Kept,
            None if fixed && !fits_dtd(format, cursor.stream, &writer.put, index, value) => return false,
            None if index >= length => Placement::Grown(length),
            None => Placement::Filled(index),
        };
        if !matches!(put, Placement::Kept) {
            writer.put.set(index, value);
            self.held += (writer.put.values.len() - length) * HELD_A_NUMBER;
        }
        self.undo.push(StreamUndo { cursor: at, index: cursor.index, put });
        cursor.index = cursor.index.saturating_add(stride);
        true
    }

    /// Finds or creates a reader's cursor in a stream section.
    fn cursor(&mut self, format: &Format, reader: usize, target: u8) -> Option<usize> {
        if let Some(at) = self.cursors.iter().position(|c| c.reader == reader && c.target == target) {
            return Some(at);
        }
        let (stream, slot) = format.section_index(target).zip(slot(format, reader, target))?;
        self.cursors.push(PutCursor { reader, target, stream, index: 0 });
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, 0);
        }
        *self.slots.get_mut(slot)? = u32::try_from(self.cursors.len()).ok()?;
        Some(self.cursors.len() - 1)
    }

    /// Appends the elements of a section's model. Returns false if an element cannot be added; the current record must
    /// then be rolled back.
    pub(crate) fn put_of_model(&mut self, format: &Format, section: usize, model: u16, elements: &[u64]) -> bool {
        let target = format.models.get(usize::from(model)).map_or(0, |model| model.section);
        elements.iter().all(|&element| self.put(format, (format.sections.len() + section, target), 1, element))
    }

    /// Replaces the elements that the model of `reader` added to stream sections. Returns false and changes nothing if
    /// other readers added values to one of these sections, or if the caller supplied different elements.
    pub(crate) fn replace(&mut self, format: &Format, reader: usize, elements: &BTreeMap<u8, Vec<u64>>) -> bool {
        let values = |target: u8| {
            let takes = |m: &Model| m.section == target && matches!(m.kind, ModelKind::Values(_));
            format.models.iter().any(takes)
        };
        let alone = |(target, elements): (&u8, &Vec<u64>)| {
            let stream = format.section_index(*target).and_then(|stream| self.streams.get(stream));
            let others = self.cursors.iter().any(|c| c.reader != reader && c.target == *target);
            stream.is_some_and(|s| s.given.is_empty() || s.given.iter().flat_map(|s| &s.values).eq(elements))
                && !others
                && !values(*target)
        };
        if self.fixed || !elements.iter().all(alone) {
            return false;
        }
        for (target, values) in elements {
            let Some(stream) = format.section_index(*target).and_then(|stream| self.streams.get_mut(stream)) else {
                continue;
            };
            stream.put = Numbers { values: values.clone(), ..Numbers::default() };
        }
        true
    }

    /// Returns whether [`put_of_model`](Self::put_of_model) may fail.
    pub(crate) fn may_refuse(&self, format: &Format, reader: usize, target: u8) -> bool {
        let width = || {
            let stream = format.sections.get(format.section_index(target)?)?;
            format.records.get(usize::from(*stream.records.first()?))?.single_number().map(|leaf| leaf.width())
        };
        let shared = self.cursors.iter().any(|c| c.reader != reader && c.target == target);
        shared || (self.fixed && width() != Some(8))
    }

    /// Returns whether the models of `reader` can add any value, because no other reader adds values to their stream
    /// sections.
    pub(crate) fn models_can_put(&self, format: &Format, reader: usize) -> bool {
        let models = |target: u8| format.models.iter().any(|model| model.section == target);
        !self.fixed && self.cursors.iter().all(|c| c.reader == reader || !models(c.target))
    }

    /// Starts a record that [`roll_back`](Self::roll_back) can undo.
    #[inline]
    pub(crate) fn start_record(&mut self) {
        self.undo.clear();
    }

    /// Undoes all changes since [`start_record`](Self::start_record).
    pub(crate) fn roll_back(&mut self) {
        while let Some(undo) = self.undo.pop() {
            let Some(cursor) = self.cursors.get_mut(undo.cursor) else { continue };
            cursor.index = undo.index;
            let Some(writer) = self.streams.get_mut(cursor.stream) else { continue };
            match undo.put {
                Placement::Kept => {}
                Placement::Grown(length) => {
                    let grown = writer.put.values.len().saturating_sub(length);
                    self.held = self.held.saturating_sub(grown * HELD_A_NUMBER);
                    writer.put.truncate(length);
                }
                Placement::Filled(index) => writer.put.skip(index),
            }
        }
    }

    /// Starts a group, in which all cursors start over.
    pub(crate) fn start_group(&mut self) {
        self.cursors.clear();
        self.slots.clear();
        self.held = 0;
        for stream in &mut self.streams {
            stream.put.truncate(0);
            stream.given.clear();
        }
    }
}

/// Returns whether the value at `index` of a section of single numbers fits in the DTD's width, and whether the next
/// element still fits after it. A skipped element repeats the value before it.
fn fits_dtd(format: &Format, stream: usize, put: &Numbers, index: usize, value: u64) -> bool {
    let record = format.sections.get(stream).and_then(|s| s.records.first());
    let leaf = record.and_then(|&r| format.records.get(usize::from(r))?.single_number());
    let Some(LeafKind::Number { width, interpretation }) = leaf.map(|l| &l.kind) else { return false };
    let fits = |value: u64, before: Option<u64>| {
        let (base, signed) = match *interpretation {
            Interpretation::BaseOffset(base) => (base, true),
            Interpretation::Delta(initial) => (before.unwrap_or(initial), true),
            _ => (0, false),
        };
        bytes_for(value.wrapping_sub(base), signed) <= *width
    };
    let before = (0..index.min(put.values.len())).rev().find_map(|i| put.get(i));
    let behind = (index + 1..put.values.len()).find_map(|i| put.get(i));
    fits(value, before) && behind.is_none_or(|behind| fits(behind, Some(value)))
}
