//! Converts records to rows for tabular formats.

use super::columns::{Cell, ColumnSink, Row, Show, Table, optional_leaf, tables};
use super::resolve::{Resolved, Resolver};
use super::select::Select;
use super::thread_column::ThreadColumn;
use super::{Args, Format as Output, Printer};
use crate::failure::Result;
use crate::fields::{self, Cursor};
use metatf::dynamic::{Item as Stored, Schema, Trace};
use metatf::reader::{At, Event};
use metatf_parser::schema::{Format, Item, Leaf, LeafId, Repeated};
use serde_json::{Map, Number, Value};
use std::collections::HashMap;
use std::rc::Rc;

/// A printer that writes rows to a sink.
pub(super) struct Rows<S> {
    /// The schema, not shared with other printers (see `Text`).
    schema: Rc<Schema>,
    show: Show,
    resolver: Option<Resolver>,
    thread: Option<ThreadColumn>,
    tables: Vec<Table>,
    /// The index of the table for each section and record.
    places: HashMap<(usize, u16), usize>,
    sink: S,
}

impl<S: ColumnSink> Rows<S> {
    pub(super) fn new(schema: &Schema, select: &Select, args: &Args, resolver: Option<Resolver>) -> Result<Self> {
        // SQL statements contain numbers instead of names, because SQL compares and adds them.
        let show = Show { all: args.all, named: args.names && args.format == Output::Csv };
        let thread = args.thread_column.as_ref().map(|name| ThreadColumn::new(schema, name, select)).transpose()?;
        let (kinds, tables): (Vec<_>, Vec<_>) = tables(schema, select, show, resolver.is_some()).into_iter().unzip();
        let places = kinds.into_iter().zip(0..).collect();
        let sink = S::new(&tables, args);
        Ok(Self { schema: Rc::new(schema.clone()), show, resolver, thread, tables, places, sink })
    }
}

impl<S: ColumnSink> Printer for Rows<S> {
    fn head(&mut self, out: &mut Vec<u8>) {
        self.sink.head(out);
    }

    fn foot(&mut self, out: &mut Vec<u8>) {
        self.sink.foot(out);
    }

    fn resolver(&mut self) -> Option<&mut Resolver> {
        self.resolver.as_mut()
    }

    fn needs(&mut self, event: Event) -> bool {
        self.thread.as_ref().is_some_and(|thread| thread.is_named_by(event))
            || self.resolver.as_ref().is_some_and(|resolver| resolver.needs(event))
    }

    fn take(&mut self, trace: &Trace<'_>, event: Event) {
        if let Some(thread) = &mut self.thread {
            thread.take(trace, event);
        }
        if let Some(resolver) = &mut self.resolver {
            resolver.take(trace, event);
        }
    }

    fn print(&mut self, trace: &mut Trace<'_>, event: Event, out: &mut Vec<u8>) -> metatf::Result<()> {
        let (Event::Record(at) | Event::Element(at, _)) = event else { return Ok(()) };
        let At { section, record: index, offset } = at;
        let schema = Rc::clone(&self.schema);
        let (Some(&table), Some(record)) = (self.places.get(&(section, index)), schema.record(index)) else {
            return Ok(());
        };
        let resolved = self.resolver.as_ref().map(|resolver| resolver.record(trace, at, record)).transpose()?;
        let cursor = Cursor::new(record, trace.record());
        let mut values = Values { cursor, resolved: resolved.unwrap_or_default().into_iter(), show: self.show };
        let mut cells = Vec::with_capacity(record.leaves.len());
        values.cells(&record.items, &mut cells);
        debug_assert!(self.tables.get(table).is_some_and(|table| table.takes(&cells)), "{}: {cells:?}", record.name);
        let thread = self.thread.as_ref().map(|thread| thread.number);
        self.sink.row(Row { table, offset, thread, cells }, out);
        Ok(())
    }
}

/// The values of a record, consumed in order.
struct Values<'t> {
    cursor: Cursor<'t>,
    resolved: std::vec::IntoIter<Option<Resolved>>,
    show: Show,
}

impl<'t> Values<'t> {
    /// Appends a cell for each column. Items nest at most 32 levels deep (spec 3.5), which bounds the recursion.
    fn cells(&mut self, items: &[Item], cells: &mut Vec<Cell<'t>>) {
        for item in items {
            match item {
                Item::Leaf(id) => {
                    if let Some((leaf, cell)) = self.next(*id)
                        && fields::is_shown(leaf, self.show.all)
                    {
                        cells.push(cell);
                    }
                }
                Item::Nested { record, items, .. } => match fields::vfield(record, items) {
                    Some((length, data)) => cells.push(self.vfield(length, data)),
                    None => self.cells(items, cells),
                },
                Item::Repeat { count, body, .. } => cells.push(self.optional(*count, body).unwrap_or_else(|| {
                    let optional = self.cursor.record.is_optional(*count);
                    let mut repeated = self.repeat(*count, body);
                    match (optional, repeated.pop()) {
                        (true, only) => only.map_or(Cell::Null, Cell::Json),
                        (false, last) => {
                            repeated.extend(last);
                            Cell::Json(Value::Array(repeated))
                        }
                    }
                })),
            }
        }
    }

    /// Consumes an optional field. Returns `None` if the field may be repeated, or if its count exceeds 1 although it
    /// should not.
    fn optional(&mut self, count: LeafId, body: &Repeated) -> Option<Cell<'t>> {
        optional_leaf(self.cursor.record, count, body)?;
        match (self.cursor.count(count), body) {
            (0, _) => Some(Cell::Null),
            (1, Repeated::Leaf(id)) => Some(self.next(*id).map_or(Cell::Null, |(_, cell)| cell)),
            (1, Repeated::Record { record, items, .. }) => {
                fields::vfield(record, items).map(|(length, data)| self.vfield(length, data))
            }
            _ => None,
        }
    }

    fn vfield(&mut self, length: LeafId, data: LeafId) -> Cell<'t> {
        let _ = self.next(length);
        self.next(data).map_or(Cell::Null, |(_, cell)| cell)
    }

    /// Consumes the next value, whether or not it is printed. Returns its replacement, its name, or the value itself.
    fn next(&mut self, id: LeafId) -> Option<(&'t Leaf, Cell<'t>)> {
        let (leaf, stored) = self.cursor.take(id)?;
        let resolved = self.resolved.next().flatten().map(|resolved| match resolved.cell() {
            Value::String(text) => Cell::Text(text.into()),
            Value::Null => Cell::Null,
            other => Cell::Json(other),
        });
        let cell = resolved.or_else(|| self.name(leaf, stored)).unwrap_or_else(|| cell(leaf, stored));
        Some((leaf, cell))
    }

    fn name(&self, leaf: &'t Leaf, stored: Stored<'t>) -> Option<Cell<'t>> {
        let name = match stored {
            _ if !self.show.named => None,
            Stored::Number(n) => leaf.names.text(n).or_else(|| leaf.format.word(n).map(Into::into)),
            Stored::Bytes(bytes) => leaf.format.word_of_bytes(bytes).map(Into::into),
        };
        name.map(Cell::Text)
    }

    /// Consumes repeated values and returns them as in JSON lines.
    fn repeat(&mut self, count: LeafId, body: &Repeated) -> Vec<Value> {
        let mut values = Vec::new();
        for _ in 0..self.cursor.count(count) {
            values.push(match body {
                Repeated::Leaf(id) => self.next(*id).map_or(Value::Null, |(_, cell)| json(cell)),
                Repeated::Group(items) => self.object(items),
                Repeated::Record { record, items, .. } => match fields::vfield(record, items) {
                    Some((length, data)) => json(self.vfield(length, data)),
                    None => self.object(items),
                },
            });
        }
        values
    }

    fn object(&mut self, items: &[Item]) -> Value {
        let mut object = Map::new();
        for item in items {
            match item {
                Item::Leaf(id) => {
                    if let Some((leaf, cell)) = self.next(*id)
                        && fields::is_shown(leaf, self.show.all)
                    {
                        object.insert(leaf.key.clone(), json(cell));
                    }
                }
                Item::Nested { key, record, items, .. } => {
                    let value = match fields::vfield(record, items) {
                        Some((length, data)) => json(self.vfield(length, data)),
                        None => self.object(items),
                    };
                    object.insert(key.clone(), value);
                }
                Item::Repeat { count, key, body } if self.cursor.record.is_optional(*count) => {
                    object.extend(self.repeat(*count, body).pop().map(|value| (key.clone(), value)));
                }
                Item::Repeat { count, key, body } => {
                    object.insert(key.clone(), Value::Array(self.repeat(*count, body)));
                }
            }
        }
        Value::Object(object)
    }
}

fn cell<'t>(leaf: &Leaf, stored: Stored<'t>) -> Cell<'t> {
    match stored {
        Stored::Number(n) => match leaf.format {
            Format::Signed => Cell::Signed(n.cast_signed()),
            Format::F64 => Cell::Real(f64::from_bits(n)),
            _ => Cell::Unsigned(n),
        },
        Stored::Bytes(bytes) => {
            leaf.format.text_of_bytes(bytes).map_or(Cell::Bytes(bytes), |text| Cell::Text(text.into()))
        }
    }
}

/// Converts a value to its form in JSON lines.
fn json(cell: Cell<'_>) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Unsigned(n) => n.into(),
        Cell::Signed(n) => n.into(),
        Cell::Real(real) => Number::from_f64(real).map_or_else(|| real.to_string().into(), Value::Number),
        Cell::Text(text) => text.into(),
        Cell::Bytes(bytes) => {
            let mut hex = String::new();
            fields::hex(&mut hex, bytes);
            hex.into()
        }
        Cell::Json(value) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;
    use metatf::container::WriteOptions;
    use metatf::dynamic::{OwnedRecord, Writer};

    const DTD: &str = "section s 1 {
        there.width = 1; there.interpretation = none; there.format = \"bool\";
        count.width = 1; count.interpretation = none; text.width = 9; text.interpretation = none; text.format = \"utf8\";
        took.width = 4; took.interpretation = none; took.unit = \"us\"; change.width = 2; change.interpretation = none;
        change.format = \"signed\"; part.width = 8; part.interpretation = none; part.format = \"f64\";
        name.width = 8; name.interpretation = sectionOffset 2;
        one: (tag, took, there*change, text, part) { tag.value = 4; }
        two: (tag, name, count*took, vfield) { tag.value = 5; }
    }
    section names 2 { entry: vfield { vfield.data.format = \"utf8\"; } }";

    const LINES: &str = r#"{"@section":"s","@record":"one","took":7,"change":[-3],"text":"ninechars","part":0.5}
{"@section":"s","@record":"one","took":9,"change":[],"text":"ninebytes","part":-2}
{"@section":"s","@record":"two","name":0,"took":[1,2],"vfield":"ff00"}"#;

    /// A sink that keeps values by column, like a columnar format.
    struct Columns {
        tables: Vec<(String, Vec<String>)>,
        cells: Vec<Vec<Vec<Cell<'static>>>>,
    }

    impl ColumnSink for Columns {
        fn new(tables: &[Table], _: &Args) -> Self {
            let about = |table: &Table| {
                let columns = table.columns.iter().map(|column| {
                    let unit = column.unit.as_deref().unwrap_or("-");
                    format!("{} {:?} {unit} {}", column.name, column.kind, column.is_optional)
                });
                (table.record.clone(), columns.collect())
            };
            let cells = tables.iter().map(|table| vec![Vec::new(); table.columns.len()]).collect();
            Self { tables: tables.iter().map(about).collect(), cells }
        }

        fn head(&self, _: &mut Vec<u8>) {}

        fn row(&mut self, row: Row<'_>, _: &mut Vec<u8>) {
            for (column, cell) in self.cells[row.table].iter_mut().zip(row.cells) {
                column.push(match cell {
                    Cell::Text(text) => Cell::Text(text.into_owned().into()),
                    Cell::Bytes(bytes) => Cell::Bytes(bytes.to_vec().leak()),
                    Cell::Null => Cell::Null,
                    Cell::Unsigned(n) => Cell::Unsigned(n),
                    Cell::Signed(n) => Cell::Signed(n),
                    Cell::Real(real) => Cell::Real(real),
                    Cell::Json(value) => Cell::Json(value),
                });
            }
        }
    }

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn read(options: &[&str]) -> Columns {
        let args = Command::try_parse_from([&["dump", "-"], options].concat()).unwrap().args;
        let schema = Schema::parse("test.dtd", DTD.as_bytes()).unwrap();
        let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default()).unwrap();
        let mut owned = OwnedRecord::default();
        let entry = r#"{"@section":"names","@record":"entry","vfield":"a name"}"#;
        for json in [entry].into_iter().chain(LINES.lines()) {
            let line = schema.read_json(json.as_bytes(), &mut owned).unwrap();
            writer.write(&line, &owned).unwrap();
        }
        let bytes = writer.finish().unwrap();
        let mut trace = Trace::from_slice(&bytes).unwrap();
        let select = Select::new(&schema, &[], &[], None, false).ok().unwrap();
        let resolver = Resolver::new(&schema, args.resolve);
        let mut rows = Rows::<Columns>::new(&schema, &select, &args, resolver).ok().unwrap();
        while let Some(event) = trace.reader_mut().next_event().unwrap() {
            rows.decode(&mut trace, event).unwrap();
            rows.print(&mut trace, event, &mut Vec::new()).unwrap();
        }
        rows.sink
    }

    #[test]
    fn columns_have_types_and_values() {
        let Columns { tables, cells } = read(&[]);
        let one = [
            "took Unsigned us false",
            "there Unsigned - false",
            "change Signed - true",
            "text Text - false",
            "part Real - false",
        ];
        assert_eq!(tables[0], ("one".to_owned(), one.map(str::to_owned).to_vec()));
        let two = ["name Unsigned - false", "count Unsigned - false", "took Json us false", "vfield Bytes - false"];
        assert_eq!(tables[1], ("two".to_owned(), two.map(str::to_owned).to_vec()));
        assert_eq!(cells[0][0], [Cell::Unsigned(7), Cell::Unsigned(9)]);
        assert_eq!(cells[0][2], [Cell::Signed(-3), Cell::Null]);
        assert_eq!(cells[0][3], [Cell::Text("ninechars".into()), Cell::Text("ninebytes".into())]);
        assert_eq!(cells[0][4], [Cell::Real(0.5), Cell::Real(-2.0)]);
        assert_eq!(cells[1][2], [Cell::Json(vec![1, 2].into())]);
        assert_eq!(cells[1][3], [Cell::Bytes(b"\xff\0")]);
    }

    #[test]
    fn strings_stand_in_place_of_their_offsets() {
        let Columns { tables, cells } = read(&["--resolve"]);
        assert_eq!(tables[1].1[0], "name Any - false");
        assert_eq!(cells[1][0], [Cell::Text("a name".into())]);
    }
}
