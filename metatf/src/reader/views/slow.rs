//! Records that are decoded leaf by leaf.

use super::spans::Span;
use super::view::{Head, What};
use crate::decode::ContentRow;
use crate::decode::Run;
use crate::format::Steps;
use crate::record::{Row, Stopped};

/// A record that was decoded leaf by leaf.
#[derive(Debug, Default)]
pub(super) struct LeafByLeaf {
    pub(super) head: Head,
    /// By place; 0 for a byte array.
    pub(super) numbers: Vec<u64>,
    /// By place.
    pub(super) spans: Vec<Span>,
}

impl LeafByLeaf {
    /// Decodes the data record that comes next. None where there is none, false where it cannot be decoded.
    #[inline(never)]
    pub(super) fn read_next(&mut self, run: &mut Run<'_>) -> Option<bool> {
        let (record, first) = run.listed()?;
        let at = run.position + usize::from(run.format.tag_width);
        let mut row = run.row((record, first), run.position, at)?;
        let read = self.read(record, &mut row).and_then(|()| row.finish());
        run.position = row.position;
        run.count += 1;
        Some(read.is_ok())
    }

    /// Takes the values of a record whose tag was read.
    pub(super) fn read(&mut self, record: u16, row: &mut ContentRow<'_, '_>) -> Result<(), Stopped> {
        self.head = Head { start: row.start as u64, what: What::new(record, What::APART) };
        self.numbers.clear();
        self.spans.clear();
        self.push(row.record.tag.into(), Span::Number);
        row.record.walk(1, &mut Reading { slow: self, row })
    }

    #[inline]
    fn push(&mut self, number: u64, span: Span) {
        self.numbers.push(number);
        self.spans.push(span);
    }
}

/// A row whose values are taken.
struct Reading<'w, 'r, 'd> {
    slow: &'w mut LeafByLeaf,
    row: &'w mut ContentRow<'r, 'd>,
}

impl Steps for Reading<'_, '_, '_> {
    type Error = Stopped;

    #[inline]
    fn number(&mut self, leaf: u8) -> Result<(), Stopped> {
        let number = self.row.number(leaf)?;
        self.slow.push(number, Span::Number);
        Ok(())
    }

    #[inline]
    fn bytes(&mut self, leaf: u8) -> Result<(), Stopped> {
        let length = self.row.bytes(leaf)?.len();
        self.slow.push(0, Span::At(self.row.position - length - self.row.start, length));
        Ok(())
    }

    #[inline]
    fn items(&mut self, count: u8) -> Result<u64, Stopped> {
        Ok(self.row.items(self.row.last(count))? as u64)
    }
}
