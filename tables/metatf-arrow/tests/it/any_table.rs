//! The body of the fuzz target `import`: importing any table yields a complete trace or an error that names the file.
//!
//! `dev/fuzz/fuzz_targets/import.rs` also includes this file.
#![allow(clippy::panic, clippy::expect_used, reason = "what is wrong has to panic")]

use std::io::{self, Write};

use metatf::container::{Forward, Reader, WriteOptions};
use metatf::dynamic::{Schema, Trace, Writer};
use metatf::reader::Event;
use metatf_arrow::files;
use metatf_tests::importing::DTD;

/// Maximum size of a trace in bytes, because a small table may have very many rows.
const MOST: usize = 16 << 20;

/// A trace in memory.
struct Kept(Vec<u8>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Imports an input, which consists of a byte of switches and a table of the record `r`, or `q` if the lowest bit is
/// set.
///
/// # Panics
/// Panics if an error does not name the file, or if the trace is incomplete.
pub(crate) fn import(input: &[u8]) {
    let Some((switches, table)) = input.split_first() else { return };
    let schema = Schema::parse("table.dtd", DTD).expect("it is correct");
    let mut file = tempfile::NamedTempFile::new().expect("there is room for it");
    file.write_all(table).expect("there is room for it");
    let paths = [file.path().to_owned()];
    let record = if switches & 1 == 0 { "r" } else { "q" };
    let options = WriteOptions::default();
    let mut writer = Writer::new(Forward(Kept(Vec::new())), &schema, &options).expect("it fits");
    match files::import(&schema, &paths, Some(record), &mut writer, &mut |_| ()) {
        Err(error) => {
            writer.abandon();
            let error = error.to_string();
            assert!(error.contains(&*file.path().to_string_lossy()), "it does not name the file: {error}");
        }
        Ok(count) => {
            let Ok(Forward(Kept(trace))) = writer.finish() else { return };
            let mut trace =
                Trace::new(schema, Reader::from_slice(&trace).expect("it is a trace")).expect("it has its DTD");
            let mut found = 0;
            while let Some(entry) = trace.next_entry().expect("it is whole") {
                found += u64::from(matches!(entry.event, Event::Record(_)));
            }
            assert_eq!(found, count);
        }
    }
}
