//! Fills the columns of several tables from one pass over a trace or one of its groups.
//!
//! If each column has one value per record and contains no references, values come from the columns of the dynamic
//! reader. In all other cases, records are read one by one.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arrow_array::ArrayRef;
use arrow_schema::{ArrowError, DataType};
use metatf::ErrorKind;
use metatf::columns::{Columns, RecordColumns};
use metatf::dynamic::{Item, OwnedRecord, Trace};
use metatf::reader::{At, Event};
use metatf_parser::schema::{Leaf, LeafId};
use metatf_tools::fields::Cursor;

use crate::builder::{Builder, Fault};
use crate::layout::{Kind, Shape, Step};
use crate::record_table::{Lead, RecordTable};
use crate::source::Source;

/// Maximum number of rows in a batch.
pub(crate) const ROWS: usize = 1 << 16;

/// Approximate size in bytes at which a batch is complete. All tables together may use twice as much.
pub(crate) const WEIGHT: usize = 32 << 20;

/// Maximum number of cached element strings.
const TEXTS: usize = 1 << 16;

/// Rows as arrays, in the requested column order.
pub(crate) struct Chunk {
    pub(crate) arrays: Vec<ArrayRef>,
    pub(crate) rows: usize,
}

/// The reason that reading ends early.
pub(crate) enum Stop {
    /// An error in the trace.
    Trace(metatf::Error),
    /// A value that does not fit its column.
    Value { table: usize, record: u64, field: String, fault: Fault },
    /// An Arrow error.
    Arrow(ArrowError),
    /// The receiver has stopped reading.
    Unwanted,
}

/// Tables of one trace that are read at the same time.
pub(crate) struct Reading {
    tables: Vec<Filled>,
    columns: Box<Columns>,
    /// Whether values come from the columns of the dynamic reader.
    by_columns: bool,
    ended: bool,
    /// An error to return after the rows before it.
    stop: Option<Stop>,
    owned: OwnedRecord,
    texts: Texts,
}

/// The texts of elements by section and offset, or `None` for offsets at which no element begins.
type Texts = HashMap<(usize, u64), Option<String>>;

/// A table that is being read.
struct Filled {
    table: Arc<RecordTable>,
    /// The requested columns.
    wanted: Arc<[usize]>,
    /// Builders by column of the table, including the leading columns.
    builders: Vec<Builder>,
    rows: usize,
}

impl From<metatf::Error> for Stop {
    fn from(error: metatf::Error) -> Self {
        Self::Trace(error)
    }
}

impl From<ArrowError> for Stop {
    fn from(error: ArrowError) -> Self {
        Self::Arrow(error)
    }
}

/// Clones the request without the rows read so far.
impl Clone for Reading {
    fn clone(&self) -> Self {
        Self::new(self.tables.iter().map(|filled| (Arc::clone(&filled.table), Arc::clone(&filled.wanted))))
    }
}

impl Reading {
    /// Creates a reading of these columns. It uses the columns of the dynamic reader if [all
    /// tables](RecordTable::is_by_columns) permit it.
    pub(crate) fn new(tables: impl IntoIterator<Item = (Arc<RecordTable>, Arc<[usize]>)>) -> Self {
        let tables: Vec<_> = tables.into_iter().map(|(table, wanted)| Filled::new(table, wanted)).collect();
        let by_columns = tables.iter().all(|filled| filled.table.is_by_columns(&filled.wanted));
        let format = tables.first().map(|filled| &filled.table.source.schema.format);
        let is_wanted = |section, record, leaf| tables.iter().any(|filled| filled.wants(section, record, leaf));
        let columns = format.filter(|_| by_columns).map(|format| Columns::of_leaves(format, is_wanted));
        Self {
            columns: Box::new(columns.unwrap_or_default()),
            tables,
            by_columns,
            ended: false,
            stop: None,
            owned: OwnedRecord::default(),
            texts: HashMap::new(),
        }
    }

    /// Returns whether elements of stream sections are also read.
    pub(crate) fn has_elements(&self) -> bool {
        self.tables.iter().any(|filled| filled.table.is_element)
    }

    /// Returns the next rows with the index of their table, or `None` at the end. An error is returned after the rows
    /// before it.
    pub(crate) fn next_chunk(&mut self, trace: &mut Trace<'_>) -> Result<Option<(usize, Chunk)>, Stop> {
        while !self.ended && self.full().is_none() {
            let read = if self.by_columns { self.read_columns(trace) } else { self.read_records(trace) };
            match read {
                Ok(goes_on) => self.ended = !goes_on,
                Err(stop) => {
                    self.stop = Some(stop);
                    self.ended = true;
                }
            }
        }
        let full = self.full().or_else(|| self.tables.iter().position(|filled| filled.rows > 0));
        match full.and_then(|place| Some((place, self.tables.get_mut(place)?))) {
            Some((place, filled)) => Ok(Some((place, filled.finish()?))),
            None => self.stop.take().map_or(Ok(None), Err),
        }
    }

    /// Returns the index of a table whose batch is complete.
    fn full(&self) -> Option<usize> {
        let weights = || self.tables.iter().map(Filled::weight);
        let full =
            self.tables.iter().zip(weights()).position(|(filled, weight)| filled.rows >= ROWS || weight >= WEIGHT);
        let heaviest = || (0..).zip(weights()).max_by_key(|(_, weight)| *weight).map(|(place, _)| place);
        full.or_else(|| heaviest().filter(|_| weights().sum::<usize>() >= 2 * WEIGHT))
    }

    /// Takes the next records from the columns of the dynamic reader. Returns false at the end.
    fn read_columns(&mut self, trace: &mut Trace<'_>) -> Result<bool, Stop> {
        if !trace.next_columns(&mut self.columns)? {
            return Ok(false);
        }
        let Self { columns, tables, .. } = self;
        for (place, filled) in tables.iter_mut().enumerate() {
            filled.take(place, columns)?;
        }
        Ok(true)
    }

    /// Takes some of the next records one by one. Returns false at the end.
    fn read_records(&mut self, trace: &mut Trace<'_>) -> Result<bool, Stop> {
        for _ in 0..1024 {
            let Some(event) = trace.reader_mut().next_event()? else { return Ok(false) };
            let (at, is_element) = match event {
                Event::Record(at) => (at, false),
                Event::Element(at, _) => (at, true),
                Event::Group(_) | Event::Reset(_) => {
                    self.texts.clear();
                    continue;
                }
                _ => continue,
            };
            let mut tables = self.tables.iter_mut().enumerate();
            let Some((place, filled)) = tables.find(|(_, filled)| filled.table.has(at, is_element)) else { continue };
            let table = Arc::clone(&filled.table);
            let Some(record) = table.source.schema.record(table.record) else { continue };
            trace.decode(event)?;
            self.owned.copy(trace.record());
            let number = trace.reader().records_read().saturating_sub(1);
            filled.lead(at, number);
            let mut cursor = Cursor::new(record, &self.owned);
            let fields = filled.builders.get_mut(table.lead.len()..).unwrap_or_default();
            let mut filling = Filling { trace, texts: &mut self.texts, source: &table.source, first: None };
            filling.steps(&table.layout.steps, fields, &mut cursor);
            match filling.first {
                None => filled.rows += 1,
                Some((leaf, Problem::Trace(error))) => return Err(Stop::Trace(at_leaf(trace, at, leaf.0, error))),
                Some((leaf, Problem::Fault(fault))) => {
                    let field = record.leaf(leaf).map_or(String::new(), |leaf| leaf.path.join("."));
                    return Err(Stop::Value { table: place, record: number, field, fault });
                }
            }
            if filled.rows >= ROWS {
                break;
            }
        }
        Ok(true)
    }
}

impl Filled {
    fn new(table: Arc<RecordTable>, wanted: Arc<[usize]>) -> Self {
        let lead = table.lead.len();
        let builder = |column: usize, shape: &Shape| {
            if wanted.contains(&column) { Builder::new(shape) } else { Builder::Skipped }
        };
        let leads = table.lead.iter().enumerate().map(|(column, lead)| {
            let kind = if *lead == Lead::Section { Kind::Text } else { Kind::Count };
            builder(column, &Shape::Value(kind, LeafId(0)))
        });
        let fields = table.layout.shapes.iter().enumerate().map(|(column, shape)| builder(lead + column, shape));
        let builders = leads.chain(fields).collect();
        Self { table, wanted, builders, rows: 0 }
    }

    fn weight(&self) -> usize {
        self.builders.iter().map(Builder::weight).sum()
    }

    /// Returns whether a leaf belongs to a requested column of this table, which must be flat.
    fn wants(&self, section: usize, record: u16, leaf: u8) -> bool {
        let is_here = self.table.record == record && self.table.sections.contains(&section);
        let fields = self.builders.get(self.table.lead.len()..).unwrap_or_default();
        is_here
            && fields.iter().zip(&self.table.layout.shapes).any(|(builder, shape)| match shape {
                // The length directly before an array is read with the array.
                Shape::Value(_, id) if !matches!(builder, Builder::Skipped) => {
                    id.0 == leaf || id.0.checked_add(1) == Some(leaf)
                }
                _ => false,
            })
    }

    /// Builds arrays from the rows read so far.
    fn finish(&mut self) -> Result<Chunk, ArrowError> {
        let rows = std::mem::take(&mut self.rows);
        let arrays = self.wanted.iter().map(|&column| {
            let field = self.table.schema.fields().get(column);
            let data_type = field.map_or(&DataType::Null, |field| field.data_type());
            match self.builders.get_mut(column) {
                // A record that was not read completely may have left extra values.
                Some(builder) => builder.finish(data_type).map(|array| array.slice(0, rows.min(array.len()))),
                None => Err(ArrowError::SchemaError("no such column".to_owned())),
            }
        });
        let arrays = arrays.collect::<Result<_, _>>()?;
        Ok(Chunk { arrays, rows })
    }

    /// Takes the records of the table; `place` is its index among the tables being read.
    fn take(&mut self, place: usize, columns: &Columns) -> Result<(), Stop> {
        let Self { table, builders, .. } = self;
        let section = table.sections.first().copied().unwrap_or(0);
        let (Some(found), Some(record)) =
            (columns.record(section, table.record), table.source.schema.record(table.record))
        else {
            return Ok(());
        };
        if found.is_empty() {
            return Ok(());
        }
        let numbers = || {
            let all = (columns.first()..).zip(columns.order());
            all.filter(|(_, at)| *at == (section, table.record)).map(|(number, _)| number)
        };
        let lead = table.lead.len().min(builders.len());
        let (leads, fields) = builders.split_at_mut(lead);
        for lead in leads {
            if let Builder::Count(values) = lead {
                if found.len() == columns.len() {
                    values.extend((columns.first()..columns.first() + found.len() as u64).map(u64::cast_signed));
                } else {
                    values.extend(numbers().map(u64::cast_signed));
                }
            }
        }
        for (builder, shape) in fields.iter_mut().zip(&table.layout.shapes) {
            let Shape::Value(_, id) = shape else { continue };
            let Some(leaf) = record.leaf(*id) else { continue };
            take(builder, leaf, *id, found).map_err(|(at, fault)| Stop::Value {
                table: place,
                record: numbers().nth(at).unwrap_or(0),
                field: leaf.path.join("."),
                fault,
            })?;
        }
        self.rows += found.len();
        Ok(())
    }

    fn lead(&mut self, at: At, number: u64) {
        for (builder, lead) in self.builders.iter_mut().zip(&self.table.lead) {
            match (builder, lead) {
                (Builder::Count(values), Lead::Number) => values.push(number.cast_signed()),
                (Builder::Count(values), Lead::Offset) => values.push(at.offset.cast_signed()),
                (builder @ Builder::Text(..), Lead::Section) => {
                    let name = self.table.source.schema.section(at.section).and_then(|section| section.name.as_deref());
                    // A section name is short, so this cannot fail.
                    let _ = builder.text(name.unwrap_or_default());
                }
                _ => {}
            }
        }
    }
}

/// Takes the values of a leaf from all records of a type.
fn take(builder: &mut Builder, leaf: &Leaf, id: LeafId, found: &RecordColumns) -> Result<(), (usize, Fault)> {
    if matches!(builder, Builder::Skipped) {
        return Ok(());
    }
    if !leaf.is_numeric() {
        return builder.arrays(leaf, found.arrays(id.0));
    }
    let numbers = found.numbers(id.0);
    if !numbers.is_empty() {
        return builder.numbers(leaf, numbers);
    }
    // The length directly before an array is not among the numbers.
    let arrays = found.arrays(id.0.saturating_add(1));
    let lengths: Vec<u64> = arrays.iter().map(|array| array.len() as u64).collect();
    builder.numbers(leaf, &lengths)
}

/// An error in a record.
enum Problem {
    Trace(metatf::Error),
    Fault(Fault),
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Distributes the values of a record to columns.
struct Filling<'f, 'a> {
    trace: &'f mut Trace<'a>,
    texts: &'f mut Texts,
    source: &'f Source,
    /// The first error and its leaf. The rest of the record is still distributed, so that all columns of an object have
    /// the same number of values.
    first: Option<(LeafId, Problem)>,
}

impl Filling<'_, '_> {
    /// Distributes values. Items nest at most 32 deep (spec 3.5), so this recursion is bounded.
    fn steps(&mut self, steps: &[Step], builders: &mut [Builder], cursor: &mut Cursor<'_>) {
        for step in steps {
            match step {
                Step::Hidden(id) => {
                    let _ = cursor.take(*id);
                }
                Step::Value(id, column) => {
                    let taken = cursor.take(*id);
                    if let (Some((leaf, value)), Some(builder)) = (taken, builders.get_mut(*column)) {
                        let put = self.value(builder, leaf, value);
                        self.note(*id, put);
                    }
                }
                Step::Repeat { count, steps, column } => {
                    let items = cursor.count(*count);
                    let mut builder = column.and_then(|column| builders.get_mut(column));
                    for _ in 0..items {
                        match &mut builder {
                            Some(builder) => {
                                self.steps(steps, builder.of_item(), cursor);
                                builder.end_item();
                            }
                            None => self.steps(steps, &mut [], cursor),
                        }
                    }
                    let ended = builder.map_or(Ok(()), |builder| builder.end(items));
                    self.note(*count, ended.map_err(Problem::Fault));
                }
            }
        }
    }

    fn note(&mut self, leaf: LeafId, done: Result<(), Problem>) {
        if let Err(problem) = done {
            self.first.get_or_insert((leaf, problem));
        }
    }

    fn value(&mut self, builder: &mut Builder, leaf: &Leaf, value: Item<'_>) -> Result<(), Problem> {
        match (value, &mut *builder) {
            (Item::Number(offset), &mut Builder::Reference(section, ..)) => {
                let is_strict = self.source.is_strict;
                let text = self.text(section, offset);
                builder.element(text.as_ref().map_or(None, |text| *text))?;
                match text.map(|text| text.is_some()) {
                    Ok(true) => Ok(()),
                    Ok(false) if is_strict => {
                        let number = self.trace.schema().section(section).map_or(0, |section| section.number);
                        let missing = ErrorKind::NoOffset { section: number, offset };
                        Err(Problem::Trace(metatf::Error::at(0, missing)))
                    }
                    Ok(false) => {
                        self.source.dangling.fetch_add(1, Ordering::Relaxed);
                        Ok(())
                    }
                    Err(error) => Err(Problem::Trace(error)),
                }
            }
            (Item::Number(n), _) => Ok(builder.number(leaf, n)?),
            (Item::Bytes(bytes), _) => Ok(builder.bytes(leaf, bytes)?),
        }
    }

    /// Returns the text of an element, or `None` if no element begins at the offset.
    fn text(&mut self, section: usize, offset: u64) -> metatf::Result<Option<&str>> {
        if self.texts.len() >= TEXTS {
            self.texts.clear();
        }
        let key = (section, offset);
        if !self.texts.contains_key(&key) {
            let mut owned = OwnedRecord::default();
            let text = match self.trace.reader_mut().element_at(section, offset, |row| owned.decode(row)) {
                Ok(()) => {
                    let bytes = owned.iter().next_back().map_or(&[][..], Item::bytes);
                    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
                    Some(String::from_utf8_lossy(text).into_owned())
                }
                Err(error) if matches!(error.kind, ErrorKind::NoOffset { .. }) => None,
                Err(error) => return Err(error),
            };
            self.texts.insert(key, text);
        }
        Ok(self.texts.get(&key).and_then(Option::as_deref))
    }
}

/// Adds the position of a leaf to an error about a decoded record.
fn at_leaf(trace: &Trace<'_>, at: At, leaf: u8, mut error: metatf::Error) -> metatf::Error {
    if let Some((place, _)) = trace.reader().bytes_of(at) {
        error.place = place;
        error.place.record_start = Some(place.content.unwrap_or(place.offset));
    }
    error.place.section = trace.schema().section(at.section).map(|section| section.number);
    error.place.tag = trace.schema().record(at.record).and_then(|record| record.tag);
    error.place.leaf = Some(leaf);
    error
}
