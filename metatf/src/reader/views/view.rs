//! A record by its values, as long as its reader does not go on.

use crate::reader::At;
use std::fmt;

/// A data record of any format. Its values lie in memory that the next record uses again.
///
/// Its *places* are its leaves in the order of its bytes, the tag first, those of a repetition as often as they occur: where nothing
/// repeats, the place of a leaf is its index.
#[derive(Clone, Copy)]
pub struct RecordView<'t> {
    values: &'t Values,
    data: &'t [u8],
    /// Where it ends in the data.
    end: usize,
    offset: u64,
}

/// What stands at a place of a [`RecordView`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'t> {
    /// Of a numeric leaf, or the tag.
    Number(u64),
    /// Of a byte array.
    Bytes(&'t [u8]),
}

/// The values of a record.
#[derive(Debug, Default)]
pub(super) struct Values {
    pub(super) section: usize,
    pub(super) record: u16,
    /// By place; 0 for a byte array.
    pub(super) numbers: Vec<u64>,
    /// By place: where a byte array lies in the part.
    pub(super) spans: Vec<Span>,
}

/// Where the bytes of a place lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    start: usize,
    len: usize,
}

impl Span {
    /// A place with a number.
    const NUMBER: usize = usize::MAX;
    /// A place with the bytes at the end of the record.
    const REST: usize = usize::MAX - 1;

    /// The bytes at the end of the record, as many as the number at a place says.
    pub(super) fn rest(length: u8) -> Self {
        Self { start: Self::REST, len: length.into() }
    }

    #[inline(always)]
    pub(super) fn new(start: usize, len: usize) -> Self {
        Self { start, len }
    }

    #[inline(always)]
    pub(super) fn is_number(self) -> bool {
        self.start == Self::NUMBER
    }
}

impl Values {
    /// Adds a place with a number.
    #[inline]
    pub(super) fn push_number(&mut self, value: u64) {
        self.numbers.push(value);
        self.spans.push(Span { start: Span::NUMBER, len: 0 });
    }

    /// Adds a place with bytes.
    #[inline]
    pub(super) fn push_bytes(&mut self, span: Span) {
        self.numbers.push(0);
        self.spans.push(span);
    }

    /// Empties it, for a record.
    #[inline]
    pub(super) fn begin(&mut self, (section, record): (usize, u16), tag: u32) {
        (self.section, self.record) = (section, record);
        self.numbers.clear();
        self.spans.clear();
        self.push_number(tag.into());
    }
}

impl<'t> RecordView<'t> {
    #[inline(always)]
    pub(super) fn new(values: &'t Values, data: &'t [u8], end: usize, offset: u64) -> Self {
        Self { values, data, end, offset }
    }

    /// Index of its section in the format.
    #[inline]
    #[must_use]
    pub fn section(&self) -> usize {
        self.values.section
    }

    /// Its index in the records of the format.
    #[inline]
    #[must_use]
    pub fn record(&self) -> u16 {
        self.values.record
    }

    /// Where it stands.
    #[inline]
    #[must_use]
    pub fn at(&self) -> At {
        At { section: self.values.section, record: self.values.record, offset: self.offset }
    }

    /// How many places it has, the tag among them.
    #[allow(clippy::len_without_is_empty, reason = "there is a tag")]
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.numbers.len()
    }

    /// Its numbers by place, the tag first; 0 where bytes stand.
    #[inline]
    #[must_use]
    pub fn numbers(&self) -> &'t [u64] {
        &self.values.numbers
    }

    /// The bytes at a place; none where a number stands.
    #[inline]
    #[must_use]
    pub fn bytes(&self, place: usize) -> &'t [u8] {
        self.values.spans.get(place).map_or(&[], |&span| self.bytes_of(span))
    }

    #[inline]
    fn bytes_of(&self, Span { start, len }: Span) -> &'t [u8] {
        if start == Span::REST {
            let length = self.values.numbers.get(len).and_then(|&length| usize::try_from(length).ok());
            let start = length.and_then(|length| self.end.checked_sub(length));
            return start.and_then(|start| self.data.get(start..self.end)).unwrap_or_default();
        }
        self.data.get(start..).and_then(|rest| rest.get(..len)).unwrap_or_default()
    }

    /// What stands at a place.
    #[inline]
    #[must_use]
    pub fn get(&self, place: usize) -> Option<Item<'t>> {
        let number = *self.values.numbers.get(place)?;
        let is_number = self.values.spans.get(place)?.is_number();
        Some(if is_number { Item::Number(number) } else { Item::Bytes(self.bytes(place)) })
    }

    /// What stands at each place, the tag first.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Item<'t>> + use<'t> {
        let view = *self;
        let places = view.values.numbers.iter().zip(&view.values.spans);
        places.map(move |(&number, &span)| match span.is_number() {
            true => Item::Number(number),
            false => Item::Bytes(view.bytes_of(span)),
        })
    }
}

impl fmt::Debug for RecordView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items: Vec<_> = self.iter().collect();
        f.debug_struct("RecordView").field("at", &self.at()).field("items", &items).finish()
    }
}
