//! Stream sections while a group is written: values that leaves put there by `sectionStride`, elements given outright,
//! and tables that grow over the whole trace.

use crate::format::{Format, Interpretation, LeafKind, Model, ModelKind};
use crate::row_write::bytes_for;
use std::collections::BTreeMap;

/// A stretch of one stream section's elements that was given outright; a reset stands before all but the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segment {
    /// Values, for a section of one numeric leaf.
    pub(crate) values: Vec<u64>,
    /// Encoded elements, for others.
    pub(crate) raw: Vec<u8>,
    pub(crate) count: u32,
}

/// One stream section of the group in progress.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamWriter {
    /// By index of element: what strides put there. `None`: skipped by a stride over 1.
    pub(crate) put: Vec<Option<u64>>,
    /// Elements given outright; they take precedence, and must agree with `put`.
    pub(crate) given: Vec<Segment>,
    /// Encoded elements of the shared table that are not in the file yet.
    pub(crate) table: Vec<u8>,
    pub(crate) table_count: u32,
    /// Logical length of the shared table, `table` included.
    pub(crate) table_length: u64,
    /// Bytes of group-local content in groups that are done.
    pub(crate) local_length: u64,
}

impl StreamWriter {
    /// Offset of the next element that is given outright, where numbers are `width` bytes wide.
    pub(crate) fn next_local(&self, width: u8) -> u64 {
        let length = |s: &Segment| s.raw.len() as u64 + s.values.len() as u64 * u64::from(width);
        self.local_length + self.given.iter().map(length).sum::<u64>()
    }
}

/// All stream sections, and the cursors of those who stride through them.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamWriters {
    pub(crate) streams: Vec<StreamWriter>,
    /// Section, target section number, index of the next element.
    cursors: Vec<(usize, u8, u64)>,
    /// Cursor and element as they were before the record in progress.
    undo: Vec<Undo>,
    /// Bytes held for the group, about.
    pub(crate) held: usize,
    /// Version 0: no chunk can change the width of a section of one number.
    pub(crate) fixed: bool,
}

/// A cursor as it was, and what `put` changed.
#[derive(Clone, Copy, Debug)]
struct Undo {
    cursor: usize,
    index: u64,
    put: Put,
}

#[derive(Clone, Copy, Debug)]
enum Put {
    /// The element had this value already.
    Kept,
    /// The stream had this length before.
    Grown(usize, usize),
    /// An element that was skipped before has its value now.
    Filled(usize, usize),
}

/// Bytes that a number of a stream section counts for while it is held.
pub(crate) const HELD_A_NUMBER: usize = 4;

/// Elements a stride may skip in one step; padding is written for them.
const LARGEST_GAP: u64 = 1 << 20;

impl StreamWriters {
    pub(crate) fn new(format: &Format, fixed: bool) -> Self {
        Self { streams: vec![StreamWriter::default(); format.sections.len()], fixed, ..Self::default() }
    }

    /// Puts a value at the cursor of (`section`, `target`). False where the element has another value already, or lies
    /// too far on.
    pub(crate) fn put(&mut self, format: &Format, section: usize, target: u8, stride: u64, value: u64) -> bool {
        let Some(stream) = format.section_index(target) else { return false };
        let fixed = self.fixed;
        let at = match self.cursors.iter().position(|c| c.0 == section && c.1 == target) {
            Some(at) => at,
            None => {
                self.cursors.push((section, target, 0));
                self.cursors.len() - 1
            }
        };
        let (Some(cursor), Some(writer)) = (self.cursors.get_mut(at), self.streams.get_mut(stream)) else {
            return false;
        };
        let length = writer.put.len();
        let near = usize::try_from(cursor.2).ok().filter(|&i| i as u64 <= length as u64 + LARGEST_GAP);
        let Some(index) = near else { return false };
        if index >= length {
            writer.put.resize(index + 1, None);
            self.held += (index + 1 - length) * HELD_A_NUMBER;
        }
        let Some(&slot) = writer.put.get(index) else { return false };
        let put = match slot {
            Some(there) if there != value => return false,
            Some(_) => Put::Kept,
            None if fixed && !room(format, stream, &writer.put, index, value) => {
                self.held = self.held.saturating_sub((writer.put.len() - length) * HELD_A_NUMBER);
                writer.put.truncate(length);
                return false;
            }
            None if index >= length => Put::Grown(stream, length),
            None => Put::Filled(stream, index),
        };
        if let Some(slot) = writer.put.get_mut(index) {
            *slot = Some(value);
        }
        self.undo.push(Undo { cursor: at, index: cursor.2, put });
        cursor.2 = cursor.2.saturating_add(stride);
        true
    }

    /// Puts values one after the other. False where there is no room for one of them; then the record in progress has to
    /// be taken back.
    pub(crate) fn put_all(&mut self, format: &Format, section: usize, target: u8, values: &[u64]) -> bool {
        values.iter().all(|&value| self.put(format, section, target, 1, value))
    }

    /// Gives the stream sections that `section` alone fills with what its model misses other elements. False where
    /// others have a part in one of them; then nothing has changed.
    pub(crate) fn replace(&mut self, format: &Format, section: usize, elements: &BTreeMap<u8, Vec<u64>>) -> bool {
        let values = |target: u8| {
            let takes = |m: &Model| m.section == target && matches!(m.kind, ModelKind::Values(_));
            format.models.iter().any(takes)
        };
        let alone = |target: &u8| {
            let stream = format.section_index(*target).and_then(|stream| self.streams.get(stream));
            let others = self.cursors.iter().any(|c| c.0 != section && c.1 == *target);
            stream.is_some_and(|s| s.given.is_empty()) && !others && !values(*target)
        };
        if self.fixed || !elements.keys().all(alone) {
            return false;
        }
        for (target, values) in elements {
            let Some(stream) = format.section_index(*target).and_then(|stream| self.streams.get_mut(stream)) else {
                continue;
            };
            stream.put = values.iter().copied().map(Some).collect();
        }
        true
    }

    /// Whether [`put_all`](Self::put_all) may find no room.
    pub(crate) fn may_refuse(&self, format: &Format, section: usize, target: u8) -> bool {
        let width = || {
            let stream = format.sections.get(format.section_index(target)?)?;
            format.records.get(usize::from(*stream.records.first()?))?.single_number().map(|leaf| leaf.width())
        };
        let shared = self.cursors.iter().any(|c| c.0 != section && c.1 == target);
        shared || (self.fixed && width() != Some(8))
    }

    /// Whether nobody but `section` puts anything anywhere, and all of that finds room.
    pub(crate) fn are_only_of(&self, section: usize) -> bool {
        !self.fixed && self.cursors.iter().all(|c| c.0 == section)
    }

    pub(crate) fn start(&mut self) {
        self.undo.clear();
    }

    pub(crate) fn roll_back(&mut self) {
        while let Some(undo) = self.undo.pop() {
            if let Some(cursor) = self.cursors.get_mut(undo.cursor) {
                cursor.2 = undo.index;
            }
            match undo.put {
                Put::Kept => {}
                Put::Grown(stream, length) => {
                    if let Some(writer) = self.streams.get_mut(stream) {
                        let grown = writer.put.len().saturating_sub(length);
                        self.held = self.held.saturating_sub(grown * HELD_A_NUMBER);
                        writer.put.truncate(length);
                    }
                }
                Put::Filled(stream, index) => {
                    let slot = self.streams.get_mut(stream).and_then(|w| w.put.get_mut(index));
                    if let Some(slot) = slot {
                        *slot = None;
                    }
                }
            }
        }
    }

    /// A new group: cursors start over.
    pub(crate) fn start_group(&mut self) {
        self.cursors.clear();
        self.held = 0;
        for stream in &mut self.streams {
            stream.put.clear();
            stream.given.clear();
        }
    }
}

/// Whether a value fits the DTD's width at `index` of a section of one number, and the element behind it still does.
/// Elements that were skipped have the value before them.
fn room(format: &Format, stream: usize, put: &[Option<u64>], index: usize, value: u64) -> bool {
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
    let before = put.iter().take(index).rev().find_map(|p| *p);
    let behind = put.iter().skip(index + 1).find_map(|p| *p);
    fits(value, before) && behind.is_none_or(|behind| fits(behind, Some(value)))
}
