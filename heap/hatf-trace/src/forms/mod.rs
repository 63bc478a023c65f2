//! The heap trace formats: each format has a file and a row in [`FORMS`].
//!
//! A format is opened as a source of [`Event`](crate::Event)s and created as a sink for them. Data that a format cannot
//! store is counted, never dropped silently. The table of formats drives guessing, options and their help, completion,
//! error messages, and tables in the documentation.
//!
//! # Examples
//!
//! ```
//! use hatf_trace::forms::{CreateOptions, Form, RAW32, convert_bytes};
//! use hatf_trace::loss::Loss;
//!
//! // `malloc(40)` and `free`, each as a tag, a size, an address and an old address.
//! let words = [1_u64, 40, 0x1000, 0, 2, 0, 0x1000, 0];
//! let raw: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
//! let malloclab = Form::of("malloclab").ok_or("unknown format")?;
//! let (text, losses) = convert_bytes(&raw, Some(&RAW32), malloclab, &CreateOptions::default())?;
//! assert_eq!(String::from_utf8(text)?, "40\n1\n2\n1\na 0 40\nf 0\n");
//! // The malloc lab format numbers blocks instead of storing their addresses.
//! assert_eq!(losses.iter().collect::<Vec<_>>(), [(Loss::Addresses, 1)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod convert;
mod firefox;
mod hatf1;
mod hatf10;
mod heap;
mod heaptrack;
mod input;
mod jsonl;
mod last_access;
mod malloclab;
mod memray;
mod mps;
mod mtrace;
mod named;
mod raw;
mod segment_files;
mod segments;
mod source;
mod text;

use std::fmt;
use std::path::Path;

use metatf::container::{Sink, WriteOptions};

pub use convert::{First, convert, convert_bytes, first_raw32, with_early_frees};
pub use heap::FORM as HEAP;
pub use input::{Head, Input, RereadInput, is_program};
pub use last_access::{EarlyFrees, FreedEarly, LastAccesses};
pub use raw::{RAW32, RawSink, RawSource};
pub use segment_files::Segments;
pub use source::TraceReader;

use crate::event::EventSink;
use crate::loss::Losses;
use crate::trace::Opening;
use crate::{Error, Result};

/// A heap trace format.
///
/// # Examples
///
/// ```
/// use hatf_trace::forms::{FORMS, Form, HEAP};
///
/// assert_eq!(Form::of("heap"), Some(&HEAP));
/// assert_eq!(Form::of_file("perl.hatf.gz"), Form::of("hatf1"));
/// let write_only: Vec<_> = FORMS.iter().filter(|form| form.open.is_none()).map(|form| form.name).collect();
/// assert_eq!(write_only, ["firefox"]);
/// ```
pub struct Form {
    /// The name on the command line.
    pub name: &'static str,
    /// A description of one line, for help.
    pub about: &'static str,
    /// The file name suffixes of the format, without compression suffixes.
    pub suffixes: &'static [&'static str],
    /// The function that recognizes a trace by its beginning. The first format that recognizes a trace is chosen.
    pub sniff: fn(&Head<'_>) -> bool,
    /// The function that opens a trace, or `None` if the format is write-only. Its notes describe how the trace is
    /// interpreted and which data is not read.
    pub open: Option<Open>,
    /// The function that creates a trace, or `None` if the format is read-only.
    pub create: Option<Create>,
    /// The data that the format cannot store, for the documentation; empty if the format is read-only.
    pub lost: &'static str,
}

/// A function that opens a trace of a format and reports notes about it.
pub type Open = fn(Input, &mut dyn FnMut(&str)) -> Result<TraceReader>;
/// A function that creates a trace of a format in a sink.
pub type Create = for<'o> fn(&'o mut dyn Sink, &CreateOptions) -> Result<Box<dyn EventWriter + 'o>>;

/// All formats. Meta-TF traces are recognized in this order.
pub static FORMS: [&Form; 13] = [
    &heap::FORM,
    &hatf10::FORM,
    &hatf1::FORM,
    &raw::RAW32,
    &raw::RAW64,
    &malloclab::FORM,
    &jsonl::FORM,
    &mps::FORM,
    &heaptrack::FORM,
    &mtrace::FORM,
    &memray::FORM,
    &firefox::FORM,
    &named::FORM,
];

impl Form {
    /// Returns the format with this name, or `None` if there is none.
    #[must_use]
    pub fn of(name: &str) -> Option<&'static Self> {
        FORMS.into_iter().find(|form| form.name == name)
    }

    /// Returns the format of files with this name: the one whose suffix occurs last in the name.
    #[must_use]
    pub fn of_file(name: &str) -> Option<&'static Self> {
        let place = |form: &Self| form.suffixes.iter().filter_map(|suffix| name.rfind(suffix)).max();
        FORMS
            .into_iter()
            .filter_map(|form| Some((place(form)?, form)))
            .max_by_key(|(place, _)| *place)
            .map(|(_, form)| form)
    }
}

impl PartialEq for Form {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Options for opening traces.
///
/// # Examples
///
/// Raw records do not identify their format, so the format must be specified unless the file extension indicates it:
///
/// ```
/// use hatf_trace::forms::{Input, OpenOptions, RAW32, read};
/// use hatf_trace::{Event, EventSource, Item};
///
/// let raw: Vec<u8> = [1_u64, 24, 0x1000, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
/// let input = || Input::of("a pipe".to_owned(), Box::new(std::io::Cursor::new(raw.clone())));
/// assert!(read(input()?, &OpenOptions::default()).is_err());
/// let mut trace = read(input()?, &OpenOptions { form: Some(&RAW32), ..OpenOptions::default() })?;
/// assert_eq!(trace.next()?, Some(Item::Event(Event::malloc(0x1000, 24))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// The format of the trace; guessed if `None`.
    pub form: Option<&'static Form>,
    /// A function called with each note about the trace: how it is interpreted, or which data is not read.
    pub note: fn(&str),
    /// The functions that open a Meta-TF trace.
    pub opening: Opening,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { form: None, note: |_| (), opening: Opening::default() }
    }
}

/// Options for creating traces. A format ignores options that do not apply to it.
///
/// # Examples
///
/// A clock with ticks of one microsecond rounds the time of this event down:
///
/// ```
/// use hatf_trace::forms::{CreateOptions, Form, HEAP, convert_bytes};
/// use hatf_trace::loss::Loss;
///
/// // `malloc(24)` after 1,500 ns in thread 1.
/// let words = [1_u64, 24, 0x1000, 0, 1_500, 1, 0, 0];
/// let raw: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
/// let options = CreateOptions { resolution: Some(1_000), ..CreateOptions::default() };
/// let (_, losses) = convert_bytes(&raw, Form::of("raw64"), &HEAP, &options)?;
/// assert_eq!(losses.iter().collect::<Vec<_>>(), [(Loss::Rounding, 1)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct CreateOptions {
    /// Options for the Meta-TF formats.
    pub write: WriteOptions,
    /// The number of nanoseconds in a clock tick of a `heap` trace. The default is the resolution of the input trace.
    pub resolution: Option<u64>,
    /// The number of records in a group of a `heap` trace. The default is
    /// [`GROUP_RECORDS`](crate::heap::GROUP_RECORDS).
    pub group_records: Option<u64>,
    /// Whether `hatf1` output contains, before each realloc, records of the malloc and the free that the realloc
    /// performed.
    pub inner_records: bool,
}

/// A writer of a trace in some format.
pub trait EventWriter: EventSink {
    /// Finishes the trace. Returns counts of the event data that the format cannot store.
    ///
    /// # Errors
    /// The output failed.
    fn finish(self: Box<Self>) -> Result<Losses>;

    /// Abandons the trace. The output contains an incomplete trace.
    fn abandon(self: Box<Self>) {}
}

/// Opens a trace of any format, compressed or not; `-` is standard input. A directory of [`Segments`] is opened as one
/// trace, which begins with the live state at the start of the oldest segment.
///
/// # Errors
/// The file does not exist, its head is corrupt, it has another format, or its format cannot be guessed; or a segment
/// of a directory is missing or does not belong there.
pub fn open(path: &Path, options: &OpenOptions) -> Result<TraceReader> {
    read(Input::open(path)?, options)
}

/// Opens a trace from an input, like [`open`].
///
/// # Errors
/// As for [`open`].
pub fn read(input: Input, options: &OpenOptions) -> Result<TraceReader> {
    if let Some(folder) = input.folder() {
        return segments::open(folder, options);
    }
    let mut input = input.opening(options.opening);
    let form = options.form.map_or_else(|| input.guess(), Ok)?;
    let name = input.name().to_owned();
    let only_written = || Error::Usage(format!("{} is a write-only format", form.name));
    (form.open.ok_or_else(only_written)?)(input, &mut |note| (options.note)(&format!("{name}: {note}"))).map_err(
        |error| match error {
            Error::Trace(error) if !error.to_string().starts_with(&name) => {
                Error::Trace(format!("{name}: {error}").into())
            }
            other => other,
        },
    )
}

fn failed(error: impl fmt::Display) -> Error {
    Error::Trace(error.to_string().into())
}

#[cfg(test)]
mod tests;
