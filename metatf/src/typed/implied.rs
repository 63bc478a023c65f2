//! The values of fields with the interpretation `stride` in the next record.

use std::cell::RefCell;

use crate::format::{Format, Interpretation, LeafKind};

/// The values that [`next`](Self::next) returned last. They can change while the writer is borrowed, so that a call such
/// as `writer.submit(&Submit { time, ..writer.next_submit() })` compiles.
#[derive(Debug, Default)]
pub(super) struct ImpliedValues(RefCell<Vec<Cell>>);

/// The previous value of one leaf, or of several leaves that share it.
#[derive(Debug)]
struct Cell {
    section: usize,
    number: u32,
    value: u64,
}

impl ImpliedValues {
    /// Returns the value that follows the last value returned for this leaf's cell. `plan` is the leaf's position among
    /// the leaves of the section. Returns 0 if the leaf is not a `stride` leaf.
    pub(super) fn next(&self, format: &Format, section: usize, plan: usize, record: u16, leaf: u8) -> u64 {
        let leaf = format.records.get(usize::from(record)).and_then(|record| record.leaves.get(usize::from(leaf)));
        let Some(LeafKind::Number { interpretation: Interpretation::Stride(initial, stride), .. }) =
            leaf.map(|leaf| &leaf.kind)
        else {
            return 0;
        };
        let number = format.sections.get(section).and_then(|section| section.cells.get(plan)).copied();
        let Some(number) = number else { return 0 };
        let mut cells = self.0.borrow_mut();
        let known = cells.iter().position(|cell| (cell.section, cell.number) == (section, number));
        let index = known.unwrap_or_else(|| {
            cells.push(Cell { section, number, value: *initial });
            cells.len() - 1
        });
        cells.get_mut(index).map_or(0, |cell| {
            cell.value = cell.value.wrapping_add(*stride);
            cell.value
        })
    }
}
