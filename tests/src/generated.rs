//! The readers and writers generated from the DTDs of the vectors, and from others, held against the universal reader.
//!
//! What reads or writes one record is compiled in line wherever it is called, and all of this is compiled for every format: so each
//! way to read or write is called from one function (`next`, `put`, `put_all`), and the rest goes through it.

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

/// What is done with a trace by every generated reader.
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

    /// Names of vectors, then paths of other DTDs.
    pub(super) fn all() -> impl Iterator<Item = &'static (&'static str, Ways)> {
        VECTORS.iter().chain(MORE)
    }

    pub(super) fn is_vector(name: &str) -> bool {
        VECTORS.iter().any(|(vector, _)| *vector == name)
    }
}

/// How many generated readers there are.
#[must_use]
pub fn count() -> usize {
    modules::all().count()
}

/// Number of the reader generated from this vector's DTD.
#[must_use]
pub fn number_of(vector: &str) -> Option<usize> {
    modules::all().position(|(name, _)| *name == vector)
}

/// The tables of a reader.
///
/// # Panics
/// There is none.
#[must_use]
pub fn format(number: usize) -> FormatRef {
    FormatRef::Static(modules::all().nth(number).expect("a number of a reader").1.format)
}

/// The DTD of the generated reader of this number.
///
/// # Panics
/// There is none, or its DTD is gone.
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

/// Reads a trace with the generated reader of this number, writes what it gives with the generated writer, and holds
/// both against the universal reader.
///
/// # Panics
/// They disagree.
pub fn agree(number: usize, trace: &[u8]) {
    if let Some((_, ways)) = modules::all().nth(number) {
        (ways.check)(trace);
    }
}

/// The records that the generated reader of this number finds, written again by the generated writer.
///
/// # Errors
/// The reader does not open the trace, or something is wrong with that.
///
/// # Panics
/// There is no such reader.
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

/// What the fastest ways to read are made for takes more bytes than most vectors have: the records of a short trace, time and again.
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
    // A trace with another DTD is resolved by name: it has no universal counterpart.
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
    assert_eq!(String::from_utf8(lines).expect("JSON"), again, "after {count} records");
}

/// To any sink, so that it is compiled once.
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

/// Whether a writer refuses a value, as a strict one may.
fn refused(written: metatf::Result<()>) -> bool {
    let refused = |error: &Error| matches!(error.kind, ErrorKind::DoesNotFit { .. });
    assert!(written.as_ref().err().is_none_or(refused), "{written:?}");
    written.is_err()
}

/// The records by `write`, except for those that are refused.
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

/// The records by `write_all`, begun again behind those that are refused.
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

/// The records by `write_all`, whose iterator panics in between.
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

/// The records written again as `try_for_each` and, where that was left, `next` give them, and the error that ended it.
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

/// The records written again as `next_columns` and, between, `next` give them, and the error that ended it.
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

/// Records of all groups, each read by itself.
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
