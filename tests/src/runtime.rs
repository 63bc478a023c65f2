//! Runtime under test, wrapped in the types of the tests.

use crate::random::Action;
use crate::{Seen, Value, What};
use crate::{columns, oracle, views};
use metatf::container::{Reader, Sink, WriteOptions};
use metatf::dynamic::{self, JsonOptions, Line, OwnedRecord, Schema, Strides, Trace, Writer};
use metatf::reader::Event;
use metatf::{ContentRow, Error, ErrorKind, Result, Row};
use metatf_parser::schema::{Item, LeafId, Record, Repeated};

/// Returns the schema of a valid DTD.
///
/// # Panics
/// Panics if the DTD has errors.
#[must_use]
pub fn schema(text: &str) -> Schema {
    let parsed = metatf_parser::parse("random.dtd", text.as_bytes());
    let Some(dtd) = parsed.dtd else {
        panic!("the parser rejects:\n{text}\n{}", complaints(&parsed.diagnostics));
    };
    Schema::new(dtd)
}

fn complaints(diagnostics: &[metatf_parser::Diagnostic]) -> String {
    let line = |d: &metatf_parser::Diagnostic| format!("{}:{}: {}\n", d.primary.line, d.primary.column, d.message);
    diagnostics.iter().map(line).collect()
}

/// Converts values for the dynamic writer.
#[must_use]
pub fn owned(values: &[Value]) -> OwnedRecord {
    let mut owned = OwnedRecord::default();
    for value in values {
        match value {
            Value::Number(n) => owned.push_number(*n),
            Value::Bytes(bytes) => owned.push_bytes(bytes),
        }
    }
    owned
}

fn values(owned: &OwnedRecord) -> Vec<Value> {
    owned.iter().map(value).collect()
}

/// Copies a value of the dynamic reader.
pub(crate) fn value(item: dynamic::Item<'_>) -> Value {
    match item {
        dynamic::Item::Number(n) => Value::Number(n),
        dynamic::Item::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
    }
}

/// Writes actions and checks that the runtime and the reference decoder read them back.
///
/// # Panics
/// Panics if they do not.
pub fn comes_back(schema: &Schema, actions: &[Action], options: &WriteOptions) {
    let (trace, done) = write(schema, actions, options);
    let (seen, result) = read(schema, &trace);
    assert_eq!(result, Ok(()), "{}", schema.dtd.text);
    assert_eq!(oracle::read(&schema.dtd, &trace), (seen.clone(), Ok(())), "{}", schema.dtd.text);
    let read = records_of(seen, options.version, &|_| false);
    assert_eq!(read, expected(schema, &done, options.version), "{}", schema.dtd.text);
}

/// Performs one action with a writer.
///
/// # Errors
/// Returns the writer's error.
pub fn perform<S: Sink>(writer: &mut Writer<S>, action: &Action) -> Result<()> {
    match action {
        Action::Record(section, record, values) => writer.write(&Line::Record(*section, *record), &owned(values)),
        Action::Element(section, shared, values) => writer.element(*section, *shared, &owned(values)).map(drop),
        Action::Metadata(section, metadata) => {
            writer.write(&Line::Metadata(*section, *metadata), &OwnedRecord::default())
        }
        Action::Group => writer.write(&Line::Group, &OwnedRecord::default()),
        Action::Reset(section) => writer.write(&Line::Reset(*section), &OwnedRecord::default()),
    }
}

/// Writes actions, dropping those that a writer may refuse: metadata not currently allowed, and elements too wide for
/// their section. Returns the trace and the actions it contains.
///
/// # Panics
/// Panics if the writer refuses anything else.
#[must_use]
pub fn write(schema: &Schema, actions: &[Action], options: &WriteOptions) -> (Vec<u8>, Vec<Action>) {
    let mut writer = Writer::new(Vec::new(), schema, options).expect("memory takes anything");
    let mut done = Vec::new();
    for action in actions {
        match (perform(&mut writer, action), action) {
            (Ok(()), _) => done.push(action.clone()),
            (Err(Error { kind: ErrorKind::Metadata(_), .. }), Action::Metadata(..)) => {}
            (
                Err(Error { kind: ErrorKind::DoesNotFit { .. } | ErrorKind::NotImplied { .. }, .. }),
                Action::Element(..),
            ) => {}
            (Err(error), _) => panic!("the writer refuses {action:?}: {error}"),
        }
    }
    (writer.finish().expect("memory takes anything"), done)
}

/// Opens a trace with this schema, regardless of the embedded DTD.
///
/// # Errors
/// Returns the container's error.
pub fn open<'a>(schema: &Schema, bytes: &'a [u8]) -> Result<Trace<'a>> {
    Trace::new(schema.clone(), Reader::from_slice(bytes)?)
}

/// Returns all items of a reader and the final result.
pub fn drain(trace: &mut Trace<'_>) -> (Vec<Seen>, Result<()>) {
    let mut out = Vec::new();
    loop {
        match next(trace) {
            Ok(Some(seen)) => out.push(seen),
            Ok(None) => return (out, Ok(())),
            Err(error) => return (out, Err(error)),
        }
    }
}

/// Returns the next item.
///
/// # Errors
/// Returns the reader's error.
pub fn next(trace: &mut Trace<'_>) -> Result<Option<Seen>> {
    let schema = trace.schema().clone();
    let Some(entry) = trace.next_entry()? else { return Ok(None) };
    let number = |section: usize| schema.format.sections[section].number;
    let (what, mut at) = match entry.event {
        Event::Record(at) | Event::Comment(at) => (What::Record, Some(at)),
        Event::Element(at, false) => (What::Element, Some(at)),
        Event::Element(at, true) => (What::Shared, Some(at)),
        Event::Metadata(at, _) => (What::Metadata, Some(at)),
        Event::Section(at, n) => (What::Section(n), Some(at)),
        Event::Group(n) => (What::Group(n), None),
        Event::Reset(_) => (What::Reset, None),
    };
    let mut values = values(entry.record);
    if let Event::Metadata(_, m) = entry.event {
        let head = [u64::from(m.record), m.field.into(), m.property.into()];
        values = head.into_iter().chain(m.values.into_iter().take(m.count.into())).map(Value::Number).collect();
    }
    let section = match entry.event {
        Event::Reset(section) => number(section),
        _ => at.map_or(0, |at| number(at.section)),
    };
    let record = at.take().map(|at| (schema.format.records[usize::from(at.record)].name.to_string(), at.offset));
    let (record, offset) = record.unwrap_or_default();
    Ok(Some(Seen { what, section, record, offset, values }))
}

/// Reads everything in a trace, including elements. Reads the data records again by columns and as views.
///
/// # Panics
/// Panics if these differ.
pub fn read(schema: &Schema, bytes: &[u8]) -> (Vec<Seen>, Result<()>) {
    let (mut trace, mut again) = match (open(schema, bytes), open(schema, bytes)) {
        (Ok(trace), Ok(again)) => (trace, again),
        (Err(error), _) | (_, Err(error)) => return (Vec::new(), Err(error)),
    };
    trace.reader_mut().set_all(true);
    again.reader_mut().set_all(true);
    let (seen, end) = drain(&mut trace);
    check_views(schema, bytes, &seen, end);
    let (found, found_end) = columns::records(&mut again);
    let number = |section: usize| schema.format.sections[section].number;
    let records = seen.iter().filter(|seen| seen.what == What::Record && seen.record != "comment");
    let mut found = found.into_iter();
    for record in records {
        let (section, index, values) = found.next().expect("as many records by columns");
        let name = &*schema.format.records[usize::from(index)].name;
        assert_eq!((number(section), name, &values), (record.section, &*record.record, &record.values), "by columns");
    }
    assert!(found.next().is_none(), "more records by columns");
    assert_eq!(found_end, end, "by columns");
    // Readers of some leaves trust labels, and need not find errors in other leaves (spec 5.2, filter 4).
    if !may_have_columns(bytes) || oracle::labels(&schema.dtd, bytes).is_ok() {
        columns::check_some_leaves(|| {
            let mut trace = open(schema, bytes).expect("it was opened before");
            trace.reader_mut().set_all(true);
            trace
        });
    } else if let Ok(mut trace) = open(schema, bytes) {
        columns::read_some_leaves(&mut trace);
    }
    (seen, end)
}

/// Returns whether the bytes contain the beginning of a chunk with filter 4.
fn may_have_columns(bytes: &[u8]) -> bool {
    bytes.windows(8).any(|head| head.starts_with(b"MTFC") && head.ends_with(&[4]))
}

/// Compares record views with the items seen.
fn check_views(schema: &Schema, bytes: &[u8], seen: &[Seen], end: Result<()>) {
    for mixed in [false, true] {
        let mut trace = open(schema, bytes).expect("it was opened before");
        trace.reader_mut().set_all(true);
        let (found, found_end) = views::records(&mut trace, mixed);
        let mut records = seen.iter().filter(|seen| seen.what == What::Record && seen.record != "comment");
        for (offset, (section, index, values)) in found {
            let number = schema.format.sections[section].number;
            let name = &*schema.format.records[usize::from(index)].name;
            let is_it = |seen: &&Seen| (seen.section, &*seen.record, seen.offset) == (number, name, offset);
            // If mixed, other records were read by columns in between.
            let record = if mixed { records.find(is_it) } else { records.next().filter(is_it) };
            let record = record.unwrap_or_else(|| panic!("no {name} at {offset}"));
            assert_eq!(values, record.values, "by its values");
        }
        assert!(mixed || records.next().is_none(), "fewer records by their values");
        assert_eq!(found_end, end, "by their values");
    }
}

/// Returns the trace as JSON lines.
///
/// # Errors
/// Returns the reader's error.
pub fn json(schema: &Schema, bytes: &[u8], options: JsonOptions) -> Result<String> {
    let mut trace = open(schema, bytes)?;
    trace.reader_mut().set_all(options.all);
    let mut out = Vec::new();
    while trace.next_json(&mut out, options)? {}
    Ok(String::from_utf8(out).expect("JSON is UTF-8"))
}

/// Returns whether the trace ends with elements of shared tables in a group that contains nothing else. Rewriting moves
/// them to the group before, because lines cannot distinguish them from elements to which that group refers.
#[must_use]
pub fn ends_with_a_table(lines: &str) -> bool {
    let shared = |line: &str| line.contains(",\"@shared\":true");
    lines.lines().last().is_some_and(shared) && !lines.lines().all(shared)
}

/// Writes a trace from JSON lines.
///
/// # Errors
/// Fails with the line and its error.
pub fn from_json(schema: &Schema, lines: &str, options: &WriteOptions) -> std::result::Result<Vec<u8>, String> {
    let mut writer = Writer::new(Vec::new(), schema, options).map_err(|e| e.to_string())?;
    let (mut owned, mut strides) = (OwnedRecord::default(), Strides::new(schema));
    for line in lines.lines() {
        let parsed = writer.read_json(line.as_bytes(), &mut owned, &mut strides);
        let parsed = parsed.map_err(|e| format!("{e} in {line}"));
        let written = parsed.and_then(|parsed| writer.write(&parsed, &owned).map_err(|e| format!("{e} in {line}")));
        if let Err(error) = written {
            let _ = writer.finish();
            return Err(error);
        }
    }
    writer.finish().map_err(|e| e.to_string())
}

/// Returns the records that a reader must return for these actions, in order: data records and comments, then the
/// elements of each stream section, without metadata, groups or resets. In version 0 the global section comes first.
#[must_use]
pub fn expected(schema: &Schema, actions: &[Action], version: u8) -> Vec<Seen> {
    let mut out = Vec::new();
    for action in actions {
        let (what, section, record, values) = match action {
            Action::Record(section, record, values) => (What::Record, *section, *record, values),
            Action::Element(section, shared, values) => {
                let what = if *shared && version == 1 { What::Shared } else { What::Element };
                (what, *section, schema.format.sections[*section].records[0], values)
            }
            _ => continue,
        };
        let section = schema.format.sections[section].number;
        let record = schema.format.records[usize::from(record)].name.to_string();
        out.push(Seen { what, section, record, offset: 0, values: values.clone() });
    }
    in_order(out, version)
}

/// Filters items to those that [`expected`] covers. Elements are kept only for sections that `given` selects by number.
#[must_use]
pub fn records_of(seen: Vec<Seen>, version: u8, given: &dyn Fn(u8) -> bool) -> Vec<Seen> {
    let kept = seen.into_iter().filter(|s| match s.what {
        What::Record => true,
        What::Element | What::Shared => given(s.section),
        _ => false,
    });
    in_order(kept.map(|s| Seen { offset: 0, ..s }).collect(), version)
}

fn in_order(mut seen: Vec<Seen>, version: u8) -> Vec<Seen> {
    seen.sort_by_key(|s| match s.what {
        What::Record if version == 0 && s.section == 0 => (0, 0),
        What::Record => (1, 0),
        _ => (2, s.section),
    });
    seen
}

/// Returns the element at an offset of a stream section.
///
/// # Errors
/// Returns the reader's error.
pub fn element_at(trace: &mut Trace<'_>, section: usize, offset: u64) -> Result<Vec<Value>> {
    let dtd = trace.schema().dtd.clone();
    let record = dtd.sections[section].stream.and_then(|id| dtd.record(id)).expect("a stream section");
    trace.reader_mut().element_at(section, offset, |row| {
        let mut out = Vec::new();
        let mut last = [0; 256];
        items(row, record, &record.items, &mut last, &mut out).map(|()| out)
    })
}

/// Decodes a row leaf by leaf, as generated code does.
fn items(
    row: &mut ContentRow<'_, '_>,
    record: &Record,
    list: &[Item],
    last: &mut [u64; 256],
    out: &mut Vec<Value>,
) -> Result<()> {
    let leaf = |row: &mut ContentRow<'_, '_>, id: LeafId, last: &mut [u64; 256], out: &mut Vec<Value>| {
        if !record.leaves[usize::from(id.0)].is_numeric() {
            out.push(Value::Bytes(Row::bytes(row, id.0)?.to_vec()));
            return Ok(());
        }
        let value = Row::number(row, id.0)?;
        last[usize::from(id.0)] = value;
        out.push(Value::Number(value));
        Ok::<(), Error>(())
    };
    for item in list {
        match item {
            Item::Leaf(id) => leaf(row, *id, last, out)?,
            Item::Nested { items: list, .. } => items(row, record, list, last, out)?,
            Item::Repeat { count, body, .. } => {
                for _ in 0..row.items(last[usize::from(count.0)])? {
                    match body {
                        Repeated::Leaf(id) => leaf(row, *id, last, out)?,
                        Repeated::Group(list) | Repeated::Record { items: list, .. } => {
                            items(row, record, list, last, out)?;
                        }
                    }
                }
            }
        }
    }
    Ok(())
}
