//! Records that are decoded leaf by leaf.

use super::spans::Span;
use super::view::{Head, What};
use crate::format::Step;
use crate::reader::run::Run;
use crate::row::{ContentRow, Row, Stopped};

/// A record that was decoded leaf by leaf.
#[derive(Debug, Default)]
pub(super) struct Apart {
    pub(super) head: Head,
    /// By place; 0 for a byte array.
    pub(super) numbers: Vec<u64>,
    /// By place.
    pub(super) spans: Vec<Span>,
}

impl Apart {
    /// Decodes the data record that comes next. None where there is none, false where it cannot be decoded.
    #[inline(never)]
    pub(super) fn read_next(&mut self, run: &mut Run<'_>) -> Option<bool> {
        let (record, first) = run.listed()?;
        let at = run.position + usize::from(run.format.tag_width);
        let mut row = run.row(record, first, at)?;
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
        self.steps(row, row.record.steps.get(1..).unwrap_or_default(), 1)
    }

    /// Repetitions nest at most 32 deep (spec 3.5), so this recursion is bounded.
    fn steps(&mut self, row: &mut ContentRow<'_, '_>, steps: &[Step], offset: usize) -> Result<(), Stopped> {
        let mut at = 0;
        while let Some(step) = steps.get(at) {
            at += 1;
            match *step {
                Step::Number(leaf) => {
                    let number = row.number(leaf)?;
                    self.push(number, Span::Number);
                }
                Step::Bytes(leaf) => {
                    let length = row.bytes(leaf)?.len();
                    self.push(0, Span::At(row.position - length - row.start, length));
                }
                Step::Repeat { count, end } => {
                    let end = usize::from(end).saturating_sub(offset).max(at);
                    let body = steps.get(at..end).unwrap_or_default();
                    for _ in 0..row.items(row.last(count))? {
                        self.steps(row, body, offset + at)?;
                    }
                    at = end;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn push(&mut self, number: u64, span: Span) {
        self.numbers.push(number);
        self.spans.push(span);
    }
}
