//! The readers and writers generated from the DTDs of the vectors, held against the universal reader.

use crate::columns::Cursors;
use crate::runtime;
use metatf::Error;
use metatf::columns::Columns;
use metatf::container::{Reader, WriteOptions};
use metatf::dynamic::{JsonOptions, Schema, Trace};
use metatf::reader::Event;
use metatf::typed::{DataRecord, Protocol, TraceOptions, Writer};

/// What is done with a trace by every generated reader.
type Check = fn(&[u8]);

/// Why a loop over records was left.
#[derive(Debug, PartialEq)]
enum Left {
    Enough,
    Error(Error),
}

impl From<Error> for Left {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

#[allow(missing_docs, unreachable_pub, reason = "made by the code generator; its own tests hold it to lints")]
mod modules {
    use super::{Check, check};
    include!(concat!(env!("OUT_DIR"), "/vectors.rs"));

    pub(super) fn all() -> &'static [(&'static str, Check)] {
        VECTORS
    }
}

/// How many generated readers there are.
#[must_use]
pub fn count() -> usize {
    modules::all().len()
}

/// Number of the reader generated from this vector's DTD.
#[must_use]
pub fn number_of(vector: &str) -> Option<usize> {
    modules::all().iter().position(|(name, _)| *name == vector)
}

/// Reads a trace with the generated reader of this number, writes what it gives with the generated writer, and holds
/// both against the universal reader.
///
/// # Panics
/// They disagree.
pub fn agree(number: usize, trace: &[u8]) {
    if let Some((_, check)) = modules::all().get(number) {
        check(trace);
    }
}

fn check<P: Protocol>(trace: &[u8])
where
    P::Record<Vec<u8>>: DataRecord,
    for<'b> P::Record<&'b [u8]>: DataRecord,
{
    let schema = Schema::parse("generated", P::FORMAT.dtd.as_bytes()).expect("code was generated from it");
    let Ok(mut typed) = TraceOptions::new().from_slice::<P>(trace) else { return };
    let mut writer = Writer::<Vec<u8>, P>::with_options(Vec::new(), &WriteOptions::default()).expect("memory");
    writer.set_keep_order(true);
    let mut records = 0_u64;
    let end = loop {
        match typed.next_owned() {
            Ok(Some(record)) => {
                writer.write(&record).expect("what was read can be written");
                records += 1;
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    let written = writer.finish().expect("memory takes anything");
    let (looped, looped_end) = in_loops::<P>(trace);
    assert_eq!(end, looped_end, "after {records} records");
    assert!(written == looped, "`for_each` gives other records than `next`");
    let (columns, columns_end) = in_columns::<P>(trace);
    assert_eq!(end, columns_end, "by columns");
    assert!(written == columns, "columns hold other records than `next` gives");
    if end.is_ok() {
        assert_eq!(count_by_groups::<P>(trace), Ok(records));
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
    assert_eq!(end, universal_end, "after {records} records");
    let again = runtime::json(&schema, &written, JsonOptions::default()).expect("what was written can be read");
    assert_eq!(String::from_utf8(lines).expect("JSON"), again, "after {records} records");
}

/// The records written again as `try_for_each` and, where that was left, `next` give them, and the error that ended it.
fn in_loops<P: Protocol>(trace: &[u8]) -> (Vec<u8>, metatf::Result<()>)
where
    for<'b> P::Record<&'b [u8]>: DataRecord,
{
    let mut typed = TraceOptions::new().from_slice::<P>(trace).expect("it was opened before");
    let mut writer = Writer::<Vec<u8>, P>::with_options(Vec::new(), &WriteOptions::default()).expect("memory");
    writer.set_keep_order(true);
    let mut enough = 1;
    let end = loop {
        let mut given = 0;
        let left = typed.try_for_each(|record| {
            writer.write(&record).expect("what was read can be written");
            given += 1;
            if given == enough { Err(Left::Enough) } else { Ok(()) }
        });
        match left {
            Ok(()) => break Ok(()),
            Err(Left::Error(error)) => break Err(error),
            Err(Left::Enough) => {}
        }
        match typed.next() {
            Ok(Some(record)) => writer.write(&record).expect("what was read can be written"),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
        enough = enough * 2 + 1;
    };
    (writer.finish().expect("memory takes anything"), end)
}

/// The records written again as `next_columns` and, between, `next` give them, and the error that ended it.
fn in_columns<P: Protocol>(trace: &[u8]) -> (Vec<u8>, metatf::Result<()>)
where
    P::Record<Vec<u8>>: DataRecord,
    for<'b> P::Record<&'b [u8]>: DataRecord,
{
    let mut typed = TraceOptions::new().from_slice::<P>(trace).expect("it was opened before");
    let mut writer = Writer::<Vec<u8>, P>::with_options(Vec::new(), &WriteOptions::default()).expect("memory");
    writer.set_keep_order(true);
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
            writer.write(&record).expect("what was read can be written");
        }
        match typed.next() {
            Ok(Some(record)) => writer.write(&record).expect("what was read can be written"),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    (writer.finish().expect("memory takes anything"), end)
}

/// Records of all groups, each read by itself.
fn count_by_groups<P: Protocol>(trace: &[u8]) -> metatf::Result<u64> {
    let mut typed = TraceOptions::new().from_slice::<P>(trace).expect("it was opened before");
    let mut records = 0;
    typed.par_groups().threads(1).ordered(
        |group| {
            let mut records = 0_u64;
            while group.next()?.is_some() {
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
