//! Records decoded individually, leaf by leaf. Each such record has its own row, after the rows that belong to record
//! types.

use super::rows::{HEAD, Head, Span};
use crate::decode::{ContentRow, Run};
use crate::format::Steps;
use crate::record::{Row, Stopped};

/// The positions of the bytes in individually decoded records.
#[derive(Debug, Default)]
pub(super) struct Singles {
    /// One span for each word in the rows of these records.
    spans: Vec<Span>,
    /// The index of the word at which these rows begin.
    first: usize,
}

impl Singles {
    /// Discards all rows. `first` is the end of the rows that belong to types.
    pub(super) fn clear(&mut self, first: usize) {
        self.spans.clear();
        self.first = first;
    }

    /// Returns the spans, by place, of the record whose row begins at a word.
    #[inline]
    pub(super) fn spans(&self, row: usize) -> &[Span] {
        row.checked_sub(self.first).and_then(|row| self.spans.get(row + HEAD..)).unwrap_or_default()
    }

    /// Decodes the values of the next data record and returns its row. Returns `None` if there is no such record, or if
    /// it cannot be decoded; in that case, the run stores the error.
    #[inline(never)]
    pub(super) fn read_next(&mut self, run: &mut Run<'_>, places: &mut Vec<u64>) -> Option<u32> {
        let (record, first) = run.listed()?;
        let at = run.position + usize::from(run.format.tag_width);
        let mut row = run.row((record, first), at)?;
        let read = self.read(record, &mut row, places).and_then(|entry| row.finish().map(|()| entry));
        run.position = row.position;
        read.ok()
    }

    /// Decodes the values of a record whose tag has been read and returns its row.
    pub(super) fn read(
        &mut self,
        record: u16,
        row: &mut ContentRow<'_, '_>,
        places: &mut Vec<u64>,
    ) -> Result<u32, Stopped> {
        let entry = places.len();
        let mut reading = Reading { places, spans: &mut self.spans, row };
        let record_of_row = reading.row.record;
        let first = record_of_row.first_value();
        for word in [reading.row.start as u64, 0, record_of_row.tag.into()].iter().take(HEAD + first) {
            reading.push(*word, Span::Number);
        }
        record_of_row.walk(first, &mut reading)?;
        let len = places.len() - entry - HEAD;
        if let Some(head) = places.get_mut(entry + 1) {
            let position = if first == 0 { Head::CATCH_ALL } else { Head::SINGLE };
            *head = Head::new(record, position, len).0;
        }
        #[allow(clippy::cast_possible_truncation, reason = "the values of one record only")]
        Ok(entry as u32)
    }
}

/// A row whose values are being decoded.
struct Reading<'w, 'r, 'd> {
    places: &'w mut Vec<u64>,
    spans: &'w mut Vec<Span>,
    row: &'w mut ContentRow<'r, 'd>,
}

impl Reading<'_, '_, '_> {
    #[inline]
    fn push(&mut self, number: u64, span: Span) {
        self.places.push(number);
        self.spans.push(span);
    }
}

impl Steps for Reading<'_, '_, '_> {
    type Error = Stopped;

    #[inline]
    fn number(&mut self, leaf: u8) -> Result<(), Stopped> {
        let number = self.row.number(leaf)?;
        self.push(number, Span::Number);
        Ok(())
    }

    #[inline]
    fn bytes(&mut self, leaf: u8) -> Result<(), Stopped> {
        // A terminator may follow the bytes.
        let from = self.row.position - self.row.start;
        let length = self.row.bytes(leaf)?.len();
        self.push(0, Span::At(from, length));
        Ok(())
    }

    #[inline]
    fn items(&mut self, count: u8) -> Result<u64, Stopped> {
        Ok(self.row.items(self.row.last(count))? as u64)
    }
}
