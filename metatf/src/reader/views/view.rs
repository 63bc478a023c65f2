//! A record by its values, as long as its reader does not go on.

use super::Kinds;
use super::spans::Span;
use crate::reader::At;
use std::fmt;

/// A data record of any format. Its values lie in memory that later records use again.
///
/// Its *places* are its leaves in the order of its bytes, the tag first, those of a repetition as often as they occur: where nothing
/// repeats, the place of a leaf is its index.
#[derive(Clone, Copy)]
pub struct RecordView<'t> {
    pub(super) numbers: &'t [u64],
    pub(super) kinds: &'t Kinds,
    pub(super) data: &'t [u8],
    /// What stands before the data in its section, or in the file.
    pub(super) base: u64,
    pub(super) head: Head,
}

/// What a record is, beside its values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Head {
    /// Where it begins in the data.
    pub(super) start: u64,
    pub(super) what: What,
}

/// What a record is, in one number, as it stands before the values of a record that was decoded ahead.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct What(pub(super) u64);

impl What {
    /// The position of a record that was decoded leaf by leaf.
    pub(super) const APART: u16 = u16::MAX;

    /// A record by its index in the format, and its position in the section.
    pub(super) fn new(record: u16, position: u16) -> Self {
        Self(u64::from(record) | u64::from(position) << 16)
    }

    /// The same, where its first span lies among those that differ from record to record.
    #[inline]
    pub(super) fn with_spans(self, first: usize) -> Self {
        Self(self.0 | (first as u64) << 32)
    }

    #[allow(clippy::cast_possible_truncation, reason = "the part of it that holds the record")]
    #[inline(always)]
    pub(super) fn record(self) -> u16 {
        self.0 as u16
    }

    #[allow(clippy::cast_possible_truncation, reason = "the part of it that holds the position")]
    #[inline(always)]
    pub(super) fn position(self) -> u16 {
        (self.0 >> 16) as u16
    }

    #[inline(always)]
    pub(super) fn spans(self) -> usize {
        (self.0 >> 32) as usize
    }
}

/// What stands at a place of a [`RecordView`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'t> {
    /// Of a numeric leaf, or the tag.
    Number(u64),
    /// Of a byte array.
    Bytes(&'t [u8]),
}

impl<'t> RecordView<'t> {
    /// Index of its section in the format.
    #[inline]
    #[must_use]
    pub fn section(&self) -> usize {
        self.kinds.section
    }

    /// Its index in the records of the format.
    #[inline]
    #[must_use]
    pub fn record(&self) -> u16 {
        self.head.what.record()
    }

    /// Where it stands.
    #[inline]
    #[must_use]
    pub fn at(&self) -> At {
        At { section: self.section(), record: self.record(), offset: self.base + self.head.start }
    }

    /// How many places it has, the tag among them.
    #[allow(clippy::len_without_is_empty, reason = "there is a tag")]
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Its numbers by place, the tag first; 0 where bytes stand.
    #[inline]
    #[must_use]
    pub fn numbers(&self) -> &'t [u64] {
        self.numbers
    }

    /// The bytes at a place; none where a number stands.
    #[inline]
    #[must_use]
    pub fn bytes(&self, place: usize) -> &'t [u8] {
        self.kinds.spans(self.head.what).get(place).map_or(&[], |&span| self.bytes_of(span))
    }

    #[inline]
    fn bytes_of(&self, span: Span) -> &'t [u8] {
        let Some((distance, length)) = self.kinds.resolve(span, self.head.what, self.numbers) else { return &[] };
        let start = usize::try_from(self.head.start).ok().and_then(|start| start.checked_add(distance));
        start.and_then(|start| self.data.get(start..)?.get(..length)).unwrap_or_default()
    }

    /// What stands at a place.
    #[inline]
    #[must_use]
    pub fn get(&self, place: usize) -> Option<Item<'t>> {
        let number = *self.numbers.get(place)?;
        let span = *self.kinds.spans(self.head.what).get(place)?;
        Some(if span == Span::Number { Item::Number(number) } else { Item::Bytes(self.bytes_of(span)) })
    }

    /// What stands at each place, the tag first.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Item<'t>> + use<'t> {
        let view = *self;
        let places = view.numbers.iter().zip(view.kinds.spans(view.head.what));
        places.map(move |(&number, &span)| match span {
            Span::Number => Item::Number(number),
            span => Item::Bytes(view.bytes_of(span)),
        })
    }
}

impl fmt::Debug for RecordView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items: Vec<_> = self.iter().collect();
        f.debug_struct("RecordView").field("at", &self.at()).field("items", &items).finish()
    }
}
