//! Files that are not traces as they are: compressed ones, and heap traces in a form without a DTD, of which a trace is made.

use crate::Result;
use hatf::forms::{self, CreateOptions, Input, OpenOptions};
use metatf::container::{Codec, WriteOptions};
use std::io::{Cursor, Read as _};
use std::sync::Arc;

/// The most bytes that a compressed file may have, unpacked: as many as the page opens of one that is not compressed.
const MOST_UNPACKED: u64 = 1 << 29;

/// A trace of `heap.dtd` made of a heap trace in another form.
pub struct Converted {
    /// The trace.
    pub trace: Arc<[u8]>,
    /// The name of the form, as commands have it.
    pub form: &'static str,
    /// Why the file was not read to its end.
    pub damage: Option<String>,
}

/// Unpacks a file that is compressed by gzip or zstd; any other is returned as it is.
///
/// # Errors
/// It is damaged, or too large.
pub fn unpacked(bytes: Vec<u8>, name: &str) -> Result<Vec<u8>> {
    let is_packed = [&[0x1f, 0x8b][..], &[0x28, 0xb5, 0x2f, 0xfd]].iter().any(|magic| bytes.starts_with(magic));
    if !is_packed {
        return Ok(bytes);
    }
    let failed = |error: &dyn std::fmt::Display| format!("{name}: it is compressed, and cannot be unpacked: {error}");
    let input = Input::of(name.to_owned(), Box::new(Cursor::new(bytes))).map_err(|error| failed(&error))?;
    let mut out = Vec::new();
    input.into_read().take(MOST_UNPACKED + 1).read_to_end(&mut out).map_err(|error| failed(&error))?;
    if out.len() as u64 > MOST_UNPACKED {
        return Err(format!("{name}: unpacked it has more than {} MiB: use hatf or metatfc", MOST_UNPACKED >> 20));
    }
    Ok(out)
}

/// Makes a trace of a heap trace in the form that its first bytes show, or the end of its name, as `hatf convert` does. What is behind damage
/// is left out.
///
/// # Errors
/// It has none of the forms, which the sentence says beside `tried`, or nothing of it can be read.
pub fn heap(bytes: &Arc<[u8]>, name: &str, tried: &[String]) -> Result<Converted> {
    let input = Input::of(name.to_owned(), Box::new(Cursor::new(Arc::clone(bytes))));
    let mut input = input.map_err(|error| error.to_string())?;
    let Ok(form) = input.guess() else {
        let readable = forms::FORMS.iter().filter(|form| form.open.is_some());
        let ends: Vec<_> = readable.flat_map(|form| form.suffixes).copied().collect();
        return Err(format!(
            "{name}: it is no trace, it does not begin as a file of {} does, and its name does not end as one of a heap trace without a head: {}",
            tried.join(", "),
            ends.join(", ")
        ));
    };
    made(input, form).map_err(|error| format!("{name}: {error}"))
}

fn made(input: Input, form: &'static forms::Form) -> hatf::Result<Converted> {
    use hatf::EventSource as _;
    let mut source = forms::read(input, &OpenOptions { form: Some(form), ..OpenOptions::default() })?;
    let begin = forms::HEAP.create.ok_or_else(|| hatf::Error::Usage("heap traces are not written".to_owned()))?;
    let write = WriteOptions { codec: Codec::Lz4, ..WriteOptions::default() };
    let options = CreateOptions { resolution: Some(source.resolution()), write, ..CreateOptions::default() };
    let mut trace = Vec::new();
    let mut writer = begin(&mut trace, &options)?;
    let given = source.give(&mut *writer);
    writer.finish()?;
    // Nothing was read before the error: it is the answer.
    let damage = match given {
        Err(error) if records(&trace) == 0 => return Err(error),
        given => given.err().map(|error| error.to_string()),
    };
    Ok(Converted { trace: trace.into(), form: form.name, damage })
}

/// Data records of a finished trace.
fn records(trace: &[u8]) -> u64 {
    metatf::container::Reader::from_slice(trace).map_or(0, |reader| reader.header().nrecords)
}
