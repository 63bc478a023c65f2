//! The values of a record, accessible until its reader advances.

use super::ahead::RecordView;
use super::rows::Span;
use crate::reader::At;
use std::fmt;

/// A value of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'t> {
    /// The value of a numeric leaf or the tag.
    Number(u64),
    /// The value of a byte array.
    Bytes(&'t [u8]),
}

impl<'t> Item<'t> {
    /// Returns the bytes, or an empty slice for a number.
    #[inline]
    #[must_use]
    pub fn bytes(self) -> &'t [u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Number(_) => &[],
        }
    }
}

impl<'t> RecordView<'t> {
    /// Returns the index of the record's section in the format.
    #[inline]
    #[must_use]
    pub fn section(&self) -> usize {
        self.views.section
    }

    /// Returns the record's index in the records of the format.
    #[inline]
    #[must_use]
    pub fn record(&self) -> u16 {
        self.head.record()
    }

    /// Returns the record's position.
    #[inline]
    #[must_use]
    pub fn at(&self) -> At {
        At { section: self.section(), record: self.record(), offset: self.base + self.start }
    }

    /// Returns the number of places, including the tag.
    #[allow(clippy::len_without_is_empty, reason = "there is always a tag")]
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns the place of the record's first value. A tag counts as a value only in a catch-all record.
    #[cfg(feature = "dynamic")]
    #[inline]
    #[doc(hidden)]
    #[must_use]
    pub fn first_value(&self) -> usize {
        usize::from(self.head.position() != super::rows::Head::CATCH_ALL)
    }

    /// Returns the record's numbers by place, starting with the tag. Places with bytes contain 0.
    #[inline]
    #[must_use]
    pub fn numbers(&self) -> &'t [u64] {
        self.numbers
    }

    /// Returns the bytes at a place, or an empty slice if the place contains a number.
    #[inline]
    #[must_use]
    pub fn bytes(&self, place: usize) -> &'t [u8] {
        self.spans().get(place).map_or(&[], |&span| self.bytes_of(place, span))
    }

    /// Returns the positions of the bytes at the record's places.
    #[inline]
    fn spans(&self) -> &'t [Span] {
        self.views.spans(self.head, self.row).get(..self.numbers.len()).unwrap_or_default()
    }

    #[inline]
    fn bytes_of(&self, place: usize, span: Span) -> &'t [u8] {
        let (distance, length) = match span {
            Span::Number => return &[],
            Span::At(distance, length) => (distance, Some(length)),
            Span::Counted(distance) => {
                let length = place.checked_sub(1).and_then(|before| self.numbers.get(before));
                (distance, length.and_then(|&length| usize::try_from(length).ok()))
            }
        };
        let start = usize::try_from(self.start).ok().and_then(|start| start.checked_add(distance));
        start.zip(length).and_then(|(start, length)| self.data.get(start..)?.get(..length)).unwrap_or_default()
    }

    /// Returns the value at a place.
    #[inline]
    #[must_use]
    pub fn get(&self, place: usize) -> Option<Item<'t>> {
        Some(self.item(place, *self.numbers.get(place)?, *self.spans().get(place)?))
    }

    #[inline]
    fn item(&self, place: usize, number: u64, span: Span) -> Item<'t> {
        if span == Span::Number { Item::Number(number) } else { Item::Bytes(self.bytes_of(place, span)) }
    }

    /// Returns an iterator over the values at all places, starting with the tag.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Item<'t>> + use<'t> {
        let view = *self;
        let places = view.numbers.iter().zip(view.spans()).enumerate();
        places.map(move |(place, (&number, &span))| view.item(place, number, span))
    }
}

impl fmt::Debug for RecordView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items: Vec<_> = self.iter().collect();
        f.debug_struct("RecordView").field("at", &self.at()).field("items", &items).finish()
    }
}
