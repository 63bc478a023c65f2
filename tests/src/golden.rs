//! Golden files: traces of version 1.0. Every later version must read the same values from them and must not write
//! longer files.
//!
//! The directory `tests/golden/1.0` contains the files and `SUMS`, which has one line per file: its length and CRC-32C,
//! and the number and CRC-32C of its JSON lines (spec 8), first of the records and then of everything.
//! `dev/scripts/golden` regenerates the directory until the first line of `SUMS` marks it as released.

mod records;
mod sums;
mod written;

pub use sums::{Sum, Sums, sum};
pub use written::{make, make_all, options, rewritten};

use crate::runtime;
use metatf::container::{Class, Order, Reader};
use metatf::dynamic::{JsonOptions, Schema, Trace};
use std::path::{Path, PathBuf};

/// Returns the directory of the golden files.
#[must_use]
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/1.0")
}

/// Returns the sorted names of all traces in a directory. A name that begins with a DTD name and `.`, like
/// `pcap.packets`, has that DTD of `dtds`.
///
/// # Panics
/// Panics if the directory cannot be read.
#[must_use]
pub fn names(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).expect("the folder of golden files");
    let names = files.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
    let is_trace = |name: &String| ![".dtd", ".jsonl", ".md"].iter().any(|end| name.ends_with(end)) && name != "SUMS";
    let mut names: Vec<String> = names.filter(is_trace).collect();
    names.sort();
    names
}

/// Returns whether a file has no header (spec 5.4).
#[must_use]
pub fn is_raw(name: &str) -> bool {
    !name.ends_with(".mtf")
}

/// Returns the DTD of a file: the embedded one, or else one next to the file or from `dtds`.
///
/// # Panics
/// Panics if there is no DTD or if it is invalid.
#[must_use]
pub fn schema(folder: &Path, name: &str, bytes: &[u8]) -> Schema {
    let stem = name.split('.').next().unwrap_or_default();
    if !is_raw(name) {
        let container = Reader::from_slice(bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        if container.dtd_text().is_some() {
            return Schema::embedded(&container).unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
    let beside = folder.join(format!("{stem}.dtd"));
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../dtds/{stem}.dtd"));
    let text = std::fs::read(beside).or_else(|_| std::fs::read(shipped)).unwrap_or_else(|e| panic!("{name}: {e}"));
    Schema::parse(&format!("{stem}.dtd"), &text).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Opens a file.
///
/// # Errors
/// Fails if the file cannot be read.
pub fn open<'b>(schema: &Schema, name: &str, bytes: &'b [u8]) -> metatf::Result<Trace<'b>> {
    if !is_raw(name) {
        return runtime::open(schema, bytes);
    }
    let container = Reader::raw_from_slice(bytes, Class::Bits64, Order::Little, 0)?;
    let container = metatf::reader::recognized(&metatf::reader::FormatRef::Shared(schema.format.clone()), container)?;
    Trace::new(schema.clone(), container)
}

/// Returns the JSON lines of a file.
///
/// # Errors
/// Fails if the file cannot be read.
pub fn lines(schema: &Schema, name: &str, bytes: &[u8], all: bool) -> metatf::Result<String> {
    let mut trace = open(schema, name, bytes)?;
    trace.reader_mut().set_all(all);
    let options = JsonOptions { all, resets: all, ..JsonOptions::default() };
    let mut out = Vec::new();
    while trace.next_json(&mut out, options)? {}
    Ok(String::from_utf8(out).expect("JSON is UTF-8"))
}
