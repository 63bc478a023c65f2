//! The records of a section, stored as columns for planning and encoding.

use super::column_encoder::ColumnEncoder;
use super::fill_columns::Fill;
use super::item_row::ItemRow;
use super::leaf_column::{BlockRecords, LeafColumn, firsts, traits};
use metatf::Row;
use metatf::container::{Error, ErrorKind, Result};
use metatf::format::{Format, METADATA, SECTION};
use metatf::reader::RecordView;

/// The records of one section in a block.
#[derive(Debug)]
pub(crate) struct SectionColumns {
    section: usize,
    /// Kinds of records, in the order of the section.
    pub(crate) kinds: Vec<BlockRecords>,
    /// The kind of each record.
    pub(crate) order: Vec<u16>,
    /// The state after the stored records, as previous values by cell and last values by leaf.
    cells: Vec<u64>,
    last: Vec<u64>,
    /// The cells at the start of the block.
    pub(crate) start_cells: Vec<u64>,
    /// Size of the stored records, in values and bytes.
    pub(crate) size: usize,
}

impl SectionColumns {
    pub(crate) fn new(format: &Format, section: usize) -> Self {
        let mut kinds = Vec::new();
        let mut leaves = 0;
        if let Some(s) = format.sections.get(section) {
            let firsts = firsts(format, section);
            let mut users = vec![0_u32; s.initials.len()];
            for &cell in s.cells.iter() {
                if let Some(n) = users.get_mut(cell as usize) {
                    *n += 1;
                }
            }
            for &record in s.records.iter() {
                let Some(r) = format.records.get(usize::from(record)) else { continue };
                let mut kind = BlockRecords { first: leaves, ..BlockRecords::default() };
                if record != SECTION && record != METADATA {
                    kind.columns.resize_with(r.leaves.len(), LeafColumn::default);
                    kind.traits = traits(format, section, record, leaves, &firsts, &users);
                    kind.repeats = kind.traits.iter().any(|t| t.repeated);
                    leaves += r.leaves.len();
                }
                kinds.push(kind);
            }
        }
        let mut columns = Self {
            section,
            kinds,
            order: Vec::new(),
            cells: Vec::new(),
            last: vec![0; leaves],
            start_cells: Vec::new(),
            size: 0,
        };
        columns.reset(format);
        columns
    }

    /// Removes all records and resets the state to the DTD's state.
    pub(crate) fn reset(&mut self, format: &Format) {
        if let Some(s) = format.sections.get(self.section) {
            self.cells.clear();
            self.cells.extend_from_slice(&s.initials);
        }
        self.last.fill(0);
        self.clear();
    }

    /// Removes all records and continues with the current state.
    pub(crate) fn clear(&mut self) {
        self.order.clear();
        self.size = 0;
        self.start_cells.clone_from(&self.cells);
        for kind in &mut self.kinds {
            kind.rows.clear();
            kind.most_items = 0;
            for column in &mut kind.columns {
                column.clear();
            }
        }
    }

    /// Adds a record of the `kind`th record type of the section.
    pub(crate) fn push<'r>(&mut self, format: &Format, kind: usize, row: &mut impl Row<'r>) -> Result<()> {
        let record = format.sections.get(self.section).and_then(|s| s.records.get(kind));
        let record = record.and_then(|&r| format.records.get(usize::from(r)));
        let (Some(record), Some(mut fill)) = (record, self.fill(kind)) else {
            return Err(Error::at(0, ErrorKind::Usage("the section has no such record")));
        };
        fill.record(record, row)?;
        let Fill { size, items, .. } = fill;
        self.added(kind, size, items);
        Ok(())
    }

    /// Adds a record of a trace. Without repetitions, values have the same positions as their leaves.
    pub(crate) fn push_view(&mut self, format: &Format, kind: usize, record: &RecordView<'_>) -> Result<()> {
        let (values, first) = (record.iter(), record.first_value());
        match self.fill(kind).filter(|fill| !fill.records.repeats) {
            Some(mut fill) => {
                values.enumerate().skip(first).for_each(|(leaf, value)| fill.value(leaf, value));
                let size = fill.size;
                self.added(kind, size, 0);
                Ok(())
            }
            None => self.push(format, kind, &mut ItemRow::new(values.skip(first))),
        }
    }

    fn fill(&mut self, kind: usize) -> Option<Fill<'_>> {
        let records = self.kinds.get_mut(kind)?;
        Some(Fill { records, cells: &mut self.cells, last: &mut self.last, size: 0, items: 0 })
    }

    /// Counts a record that was added to its columns.
    fn added(&mut self, kind: usize, size: usize, items: usize) {
        let Some(records) = self.kinds.get_mut(kind) else { return };
        self.size += size + 1;
        records.most_items = records.most_items.max(items);
        records.rows.push(u32::try_from(self.order.len()).unwrap_or(u32::MAX));
        if records.repeats {
            for (column, _) in records.columns.iter_mut().zip(&records.traits).filter(|(_, t)| t.repeated) {
                column.ends.push(u32::try_from(column.numbers()).unwrap_or(u32::MAX));
            }
        }
        self.order.push(u16::try_from(kind).unwrap_or(u16::MAX));
    }

    /// Returns encoders that start at the first record.
    pub(crate) fn encoders(&self, format: &Format) -> Vec<ColumnEncoder> {
        let records = format.sections.get(self.section).map_or(&[][..], |s| &s.records);
        let of = |record: &u16| format.records.get(usize::from(*record));
        self.kinds.iter().zip(records).map(|(kind, record)| ColumnEncoder::new(kind, of(record))).collect()
    }
}
