//! Readers and writers generated from the DTDs of the vectors and from other DTDs, compared with the dynamic reader.
//!
//! The code for one record is inlined at every call and compiled for every format. Each way to read or write is
//! therefore called from one function (`next`, `put`, `put_all`), which everything else uses.

use crate::columns::Cursors;
use crate::runtime;
use metatf::columns::Columns;
use metatf::container::{Codec, Reader, Sink, WriteOptions};
use metatf::dynamic::{JsonOptions, Schema, Trace};
use metatf::format::Format;
use metatf::reader::{Event, FormatRef};
use metatf::typed::{self, DataRecord, OpenError, Protocol, TraceOptions};
use metatf::{Error, ErrorKind};
use std::io::Cursor;
use std::panic::AssertUnwindSafe;
use std::path::Path;

/// Operations of one generated reader on a trace.
struct Ways {
    format: &'static Format,
    check: fn(&[u8]),
    rewrite: fn(TraceOptions, Reader<'_>) -> Result<Vec<u8>, OpenError>,
}

impl Ways {
    const fn of<P: Protocol>() -> Self
    where
        P::Record<Vec<u8>>: DataRecord,
        for<'b> P::Record<&'b [u8]>: DataRecord,
    {
        Self { format: P::FORMAT, check: check::<P>, rewrite: rewrite::<P> }
    }
}

#[allow(missing_docs, unreachable_pub, reason = "made by the code generator; its own tests hold it to lints")]
mod modules {
    use super::Ways;
    include!(concat!(env!("OUT_DIR"), "/vectors.rs"));

    include!(concat!(env!("OUT_DIR"), "/more.rs"));

    /// Iterates over the vectors by name, then over the other DTDs by path.
    pub(super) fn all() -> impl Iterator<Item = &'static (&'static str, Ways)> {
        VECTORS.iter().chain(MORE)
    }

    pub(super) fn is_vector(name: &str) -> bool {
        VECTORS.iter().any(|(vector, _)| *vector == name)
    }
}

/// Returns the number of generated readers.
#[must_use]
pub fn count() -> usize {
    modules::all().count()
}

/// Returns the number of the reader generated from this vector's DTD.
#[must_use]
pub fn number_of(vector: &str) -> Option<usize> {
    modules::all().position(|(name, _)| *name == vector)
}

/// Returns the tables of a reader.
///
/// # Panics
/// Panics if there is no reader of this number.
#[must_use]
pub fn format(number: usize) -> FormatRef {
    FormatRef::Static(modules::all().nth(number).expect("a number of a reader").1.format)
}

/// Returns the schema of the generated reader of this number.
///
/// # Panics
/// Panics if there is no such reader, or if its DTD cannot be read.
#[must_use]
pub fn schema(number: usize) -> Schema {
    let (name, _) = modules::all().nth(number).expect("a number of a reader");
    let file = match modules::is_vector(name) {
        true => format!("vectors/good/{name}/format.dtd"),
        false => (*name).to_owned(),
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    Schema::parse("format.dtd", &std::fs::read(path).expect("code was generated from it")).expect("likewise")
}

/// Reads a trace with the generated reader of this number, writes the records with the generated writer, and compares
/// both with the dynamic reader.
///
/// # Panics
/// Panics if they disagree.
pub fn agree(number: usize, trace: &[u8]) {
    if let Some((_, ways)) = modules::all().nth(number) {
        (ways.check)(trace);
    }
}

/// Reads records with the generated reader of this number and writes them with the generated writer.
///
/// # Errors
/// Fails if the reader cannot open the trace or finds an error in it.
///
/// # Panics
/// Panics if there is no such reader.
pub fn rewritten(number: usize, options: TraceOptions, trace: Reader<'_>) -> Result<Vec<u8>, OpenError> {
    let (_, ways) = modules::all().nth(number).expect("a number of a reader");
    (ways.rewrite)(options, trace)
}

fn rewrite<P: Protocol>(options: TraceOptions, trace: Reader<'_>) -> Result<Vec<u8>, OpenError>
where
    P::Record<Vec<u8>>: DataRecord,
{
    let mut trace = options.read::<P>(trace)?;
    let mut written = Vec::new();
    let mut writer = writer::<P>(&mut written, &WriteOptions::default(), false);
    while let Some(record) = next_owned(&mut trace)? {
        put(&mut writer, &record)?;
    }
    writer.finish()?;
    Ok(written)
}

fn check<P: Protocol>(trace: &[u8])
where
    P::Record<Vec<u8>>: DataRecord,
    for<'b> P::Record<&'b [u8]>: DataRecord,
{
    check_ways::<P>(trace);
    if let Some(longer) = longer::<P>(trace) {
        check_ways::<P>(&longer);
    }
}

/// Repeats the records of a short trace, because the fast paths need more bytes than most vectors contain.
fn longer<P: Protocol>(trace: &[u8]) -> Option<Vec<u8>>
where
    P::Record<Vec<u8>>: DataRecord,
{
    const BYTES: usize = 2000;
    let mut typed = TraceOptions::new().from_slice::<P>(trace).ok().filter(|_| trace.len() < BYTES)?;
    let mut records = Vec::new();
    while let Ok(Some(record)) = next_owned(&mut typed) {
        records.push(record);
    }
    let mut longer = Vec::new();
    let mut writer = Writer::<P>::with_options(&mut longer, &WriteOptions::default()).expect("memory");
    for record in records.iter().cycle().take(records.len() * BYTES.div_ceil(trace.len())) {
        put(&mut writer, record).expect("what was read can be written");
    }
    writer.finish().ok()?;
    Some(longer)
}

fn check_ways<P: Protocol>(trace: &[u8])
where
    P::Record<Vec<u8>>: DataRecord,
    for<'b> P::Record<&'b [u8]>: DataRecord,
{
    let schema = Schema::parse("generated", P::FORMAT.dtd.as_bytes()).expect("code was generated from it");
    let Ok(mut typed) = TraceOptions::new().from_slice::<P>(trace) else { return };
    let mut written = Vec::new();
    let mut writer = writer::<P>(&mut written, &WriteOptions::default(), false);
    let mut records = Vec::new();
    let end = loop {
        match next_owned(&mut typed) {
            Ok(Some(record)) => {
                put(&mut writer, &record).expect("what was read can be written");
                records.push(record);
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    writer.finish().expect("memory takes anything");
    assert!(written == at_once::<P>(&records, &WriteOptions::default(), false), "`write_all` writes something else");
    assert!(written == interrupted::<P>(&records), "`write_all` forgets records where an iterator panics");
    let small = WriteOptions { chunk_size: 100, group_size: 1000, codec: Codec::Stored, ..WriteOptions::default() };
    let strict = one_by_one::<P>(&records, &small, true);
    assert!(strict == at_once::<P>(&records, &small, true), "a strict `write_all` writes something else");
    let count = records.len() as u64;
    let (looped, looped_end) = in_loops::<P>(trace);
    assert_eq!(end, looped_end, "after {count} records");
    assert!(written == looped, "`for_each` gives other records than `next`");
    let (columns, columns_end) = in_columns::<P>(trace);
    assert_eq!(end, columns_end, "by columns");
    assert!(written == columns, "columns hold other records than `next` gives");
    if end.is_ok() {
        assert_eq!(count_by_groups::<P>(trace), Ok(count));
    }
    // A trace with a different DTD is resolved by name, for which there is no dynamic counterpart.
    let Ok(container) = Reader::from_slice(trace) else { return };
    let same = match Schema::embedded(&container) {
        Ok(embedded) => embedded.dtd.same_meaning(&schema.dtd),
        Err(_) => container.dtd_text().is_none(),
    };
    if !same {
        return;
    }
    let order = container.header().order;
    let Ok(mut universal) = Trace::new(schema.clone(), container) else { panic!("only the generated reader opens it") };
    let mut lines = Vec::new();
    let universal_end = loop {
        match universal.next_entry() {
            Ok(Some(entry)) => {
                let event = entry.event;
                if matches!(event, Event::Record(_)) {
                    universal.print_json(event, &mut lines, JsonOptions::default()).expect("nothing is resolved");
                }
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    assert_eq!(end, universal_end, "after {count} records");
    // Records in byte arrays have the byte order of their trace.
    let options = WriteOptions { order, ..WriteOptions::default() };
    let written = one_by_one::<P>(&records, &options, false);
    let again = runtime::json(&schema, &written, JsonOptions::default()).expect("what was written can be read");
    let lines = String::from_utf8(lines).expect("JSON");
    assert_eq!(as_f32(&schema, &lines), as_f32(&schema, &again), "after {count} records");
}

/// Replaces values of `f32` fields that have more than 32 bits, which generated readers return as not-a-number (spec 8).
fn as_f32(schema: &Schema, lines: &str) -> String {
    let leaves = || schema.dtd.records.iter().flat_map(|record| &record.leaves);
    if !leaves().any(|leaf| leaf.format == metatf_parser::schema::Format::F32) {
        return lines.to_owned();
    }
    let mut parts = lines.split("{\"hex\":\"");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.find('"').unwrap_or(0);
        let rest = part.split_at(digits).1;
        out.push_str("{\"hex\":\"");
        out.push_str(if digits == 16 { "7fc00000" } else { part.split_at(digits).0 });
        out.push_str(rest);
    }
    out
}

/// Writer to any sink, so that it is compiled once.
type Writer<'w, P> = typed::Writer<&'w mut dyn Sink, P>;

fn writer<'w, P: Protocol>(sink: &'w mut dyn Sink, options: &WriteOptions, strict: bool) -> Writer<'w, P> {
    let mut writer = Writer::with_options(sink, options).expect("memory");
    writer.set_keep_order(true);
    writer.set_strict(strict);
    writer
}

#[inline(never)]
fn next<'s, P: Protocol>(trace: &'s mut typed::Trace<'_, P>) -> metatf::Result<Option<P::Record<&'s [u8]>>> {
    trace.next()
}

#[inline(never)]
fn next_owned<P: Protocol>(trace: &mut typed::Trace<'_, P>) -> metatf::Result<Option<P::Record<Vec<u8>>>> {
    trace.next_owned()
}

#[inline(never)]
fn put<P: Protocol>(writer: &mut Writer<'_, P>, record: &impl DataRecord) -> metatf::Result<()> {
    writer.write(record)
}

#[inline(never)]
fn put_all<P: Protocol>(
    writer: &mut Writer<'_, P>,
    records: &mut dyn Iterator<Item = &P::Record<Vec<u8>>>,
) -> metatf::Result<()>
where
    P::Record<Vec<u8>>: DataRecord,
{
    writer.write_all(records)
}

/// Returns whether a writer refused a value, as a strict writer may.
fn refused(written: metatf::Result<()>) -> bool {
    let refused = |error: &Error| matches!(error.kind, ErrorKind::DoesNotFit { .. } | ErrorKind::NotImplied { .. });
    assert!(written.as_ref().err().is_none_or(refused), "{written:?}");
    written.is_err()
}

/// Writes the records with `write`, skipping refused records.
fn one_by_one<P: Protocol>(records: &[P::Record<Vec<u8>>], options: &WriteOptions, strict: bool) -> Vec<u8>
where
    P::Record<Vec<u8>>: DataRecord,
{
    let mut trace = Cursor::new(Vec::new());
    let mut writer = writer::<P>(&mut trace, options, strict);
    for record in records {
        let before = writer.records_written();
        let written = !refused(put(&mut writer, record));
        assert_eq!(writer.records_written(), before + u64::from(written));
    }
    writer.finish().expect("memory takes anything");
    trace.into_inner()
}

/// Writes the records with `write_all`, starting again after each refused record.
fn at_once<P: Protocol>(records: &[P::Record<Vec<u8>>], options: &WriteOptions, strict: bool) -> Vec<u8>
where
    P::Record<Vec<u8>>: DataRecord,
{
    let mut trace = Vec::new();
    let mut writer = writer::<P>(&mut trace, options, strict);
    let mut left = records;
    loop {
        let before = writer.records_written();
        let stopped = refused(put_all(&mut writer, &mut left.iter()));
        let written = usize::try_from(writer.records_written() - before).expect("not so many");
        assert_eq!(stopped, written < left.len(), "only an error stops it, and it stops at one");
        if !stopped {
            writer.finish().expect("memory takes anything");
            return trace;
        }
        left = &left[written + 1..];
    }
}

/// Writes the records with `write_all` from an iterator that panics midway.
fn interrupted<P: Protocol>(records: &[P::Record<Vec<u8>>]) -> Vec<u8>
where
    P::Record<Vec<u8>>: DataRecord,
{
    let mut written = Vec::new();
    let mut writer = writer::<P>(&mut written, &WriteOptions::default(), false);
    let (first, rest) = records.split_at(records.len() / 2);
    let panics = std::iter::from_fn(|| std::panic::resume_unwind(Box::new("no more records")));
    let caught = std::panic::catch_unwind(AssertUnwindSafe(|| put_all(&mut writer, &mut first.iter().chain(panics))));
    assert!(caught.is_err(), "the panic goes on");
    assert!(!refused(put_all(&mut writer, &mut rest.iter())), "what was read can be written");
    writer.finish().expect("memory takes anything");
    written
}

/// Rewrites the records that `try_for_each` returns, followed by `next` after the loop is left. Returns the trace and
/// the final error.
fn in_loops<P: Protocol>(trace: &[u8]) -> (Vec<u8>, metatf::Result<()>)
where
    for<'b> P::Record<&'b [u8]>: DataRecord,
{
    let mut typed = TraceOptions::new().from_slice::<P>(trace).expect("it was opened before");
    let mut written = Vec::new();
    let mut writer = writer::<P>(&mut written, &WriteOptions::default(), false);
    let mut enough = 1;
    let end = loop {
        let mut given = 0;
        let left = typed.try_for_each(|record| {
            put(&mut writer, &record).expect("what was read can be written");
            given += 1;
            if given == enough { Err(None) } else { Ok(()) }
        });
        match left {
            Ok(()) => break Ok(()),
            Err(Some(error)) => break Err(error),
            Err(None) => {}
        }
        match next(&mut typed) {
            Ok(Some(record)) => put(&mut writer, &record).expect("what was read can be written"),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
        enough = enough * 2 + 1;
    };
    writer.finish().expect("memory takes anything");
    (written, end)
}

/// Rewrites the records that `next_columns` and, in between, `next` return. Returns the trace and the final error.
fn in_columns<P: Protocol>(trace: &[u8]) -> (Vec<u8>, metatf::Result<()>)
where
    P::Record<Vec<u8>>: DataRecord,
    for<'b> P::Record<&'b [u8]>: DataRecord,
{
    let mut typed = TraceOptions::new().from_slice::<P>(trace).expect("it was opened before");
    let mut written = Vec::new();
    let mut writer = writer::<P>(&mut written, &WriteOptions::default(), false);
    let mut columns = Columns::default();
    let end = loop {
        match typed.next_columns(&mut columns) {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
        let mut cursors = Cursors::default();
        for (section, record) in columns.order() {
            let mut row = cursors.row(P::FORMAT, &columns, (section, record));
            let record: P::Record<Vec<u8>> = P::record(section, record, &mut row).expect("columns hold all leaves");
            put(&mut writer, &record).expect("what was read can be written");
        }
        match next(&mut typed) {
            Ok(Some(record)) => put(&mut writer, &record).expect("what was read can be written"),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    writer.finish().expect("memory takes anything");
    (written, end)
}

/// Counts the records of all groups, reading each group separately.
fn count_by_groups<P: Protocol>(trace: &[u8]) -> metatf::Result<u64> {
    let mut typed = TraceOptions::new().from_slice::<P>(trace).expect("it was opened before");
    let mut records = 0;
    typed.par_groups().threads(1).ordered(
        |group| {
            let mut records = 0_u64;
            while next(group)?.is_some() {
                records += 1;
            }
            Ok::<_, metatf::Error>(records)
        },
        |of_group| {
            records += of_group;
            Ok(())
        },
    )?;
    Ok(records)
}
