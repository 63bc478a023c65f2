//! Files that must be converted: compressed files, and heap traces in formats without a DTD.

use crate::Result;
use hatf_trace::forms::{self, CreateOptions, Input, OpenOptions};
use metatf::container::{Codec, WriteOptions};
use std::io::{Cursor, Read as _};
use std::sync::Arc;

/// Maximum size of an unpacked file in bytes, the same as for uncompressed files.
const MOST_UNPACKED: u64 = 1 << 29;

/// A `heap.dtd` trace converted from another heap trace format.
pub struct Converted {
    /// The trace.
    pub trace: Arc<[u8]>,
    /// Name of the original format, as in the commands.
    pub form: &'static str,
    /// The reason that the file was not read completely.
    pub damage: Option<String>,
}

/// Unpacks a file that is compressed with gzip or zstd. Other files are returned unchanged.
///
/// # Errors
/// Returns an error if the file is damaged or too large.
pub fn unpacked(bytes: Vec<u8>, name: &str) -> Result<Vec<u8>> {
    let is_packed = [&[0x1f, 0x8b][..], &[0x28, 0xb5, 0x2f, 0xfd]].iter().any(|magic| bytes.starts_with(magic));
    if !is_packed {
        return Ok(bytes);
    }
    let failed = |error: &dyn std::fmt::Display| format!("{name}: cannot decompress the file: {error}");
    let input = Input::of(name.to_owned(), Box::new(Cursor::new(bytes))).map_err(|error| failed(&error))?;
    let mut out = Vec::new();
    input.into_read().take(MOST_UNPACKED + 1).read_to_end(&mut out).map_err(|error| failed(&error))?;
    if out.len() as u64 > MOST_UNPACKED {
        return Err(format!(
            "{name}: larger than {} MiB when decompressed: use hatf or metatfc instead",
            MOST_UNPACKED >> 20
        ));
    }
    Ok(out)
}

/// Converts a heap trace like `hatf convert`. The format is recognized by the first bytes or the file name. Everything
/// after damage is omitted.
///
/// # Errors
/// Returns an error if nothing can be read, or if the format is not recognized. In the latter case, the message lists
/// the heap trace formats and `tried`.
pub fn heap(bytes: &Arc<[u8]>, name: &str, tried: &[String]) -> Result<Converted> {
    let input = Input::of(name.to_owned(), Box::new(Cursor::new(Arc::clone(bytes))));
    let mut input = input.map_err(|error| error.to_string())?;
    let Ok(form) = input.guess() else {
        let readable = forms::FORMS.iter().filter(|form| form.open.is_some());
        let ends: Vec<_> = readable.flat_map(|form| form.suffixes).copied().collect();
        return Err(format!(
            "{name}: unknown trace format: the first bytes match no known format ({}), and the file extension is not \
             the extension of a headerless heap trace ({})",
            tried.join(", "),
            ends.join(", ")
        ));
    };
    made(input, form).map_err(|error| format!("{name}: {error}"))
}

fn made(input: Input, form: &'static forms::Form) -> hatf_trace::Result<Converted> {
    use hatf_trace::EventSource as _;
    let mut source = forms::read(input, &OpenOptions { form: Some(form), ..OpenOptions::default() })?;
    let begin =
        forms::HEAP.create.ok_or_else(|| hatf_trace::Error::Usage("heap traces cannot be written".to_owned()))?;
    let write = WriteOptions { codec: Codec::Lz4, ..WriteOptions::default() };
    let options = CreateOptions { resolution: Some(source.resolution()), write, ..CreateOptions::default() };
    let mut trace = Vec::new();
    let mut writer = begin(&mut trace, &options)?;
    let given = source.give(&mut *writer);
    writer.finish()?;
    // If nothing was read before the error, return the error.
    let damage = match given {
        Err(error) if records(&trace) == 0 => return Err(error),
        given => given.err().map(|error| error.to_string()),
    };
    Ok(Converted { trace: trace.into(), form: form.name, damage })
}

/// Returns the number of data records of a complete trace.
fn records(trace: &[u8]) -> u64 {
    metatf::container::Reader::from_slice(trace).map_or(0, |reader| reader.header().nrecords)
}
