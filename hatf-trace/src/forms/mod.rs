//! The forms of a heap trace: a file for each, and a row of [`FORMS`] for each.
//!
//! A form is opened as a source of [`Event`](crate::Event)s, and created as a sink of them. What a form cannot hold is counted, never dropped silently.
//! Whatever needs to know the forms takes them from the table: guessing, options and their help, completion, errors, and the tables of the book.

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
pub use source::TraceReader;

use crate::event::EventSink;
use crate::loss::Losses;
use crate::{Error, Result};

/// A form of a heap trace.
pub struct Form {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a line of help.
    pub about: &'static str,
    /// Endings of the names of its files, without that of a compression.
    pub suffixes: &'static [&'static str],
    /// Recognizes a trace by its beginning. The first row that does is taken.
    pub sniff: fn(&Head<'_>) -> bool,
    /// Opens a trace; `None`: the form is only written. The notes are what its reader should know: how it is read, and what is not.
    pub open: Option<Open>,
    /// Begins a trace; `None`: the form is only read.
    pub create: Option<Create>,
    /// What of a trace it does not hold, for the book; empty where it is only read.
    pub lost: &'static str,
}

/// Opens a trace of a form, and passes notes about it on.
pub type Open = fn(Input, &mut dyn FnMut(&str)) -> Result<TraceReader>;
/// Begins a trace of a form in a sink.
pub type Create = for<'o> fn(&'o mut dyn Sink, &CreateOptions) -> Result<Box<dyn EventWriter + 'o>>;

/// All forms. Traces in Meta-TF are recognized in this order.
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
    /// Returns the form of a name; `None`: there is none.
    #[must_use]
    pub fn of(name: &str) -> Option<&'static Self> {
        FORMS.into_iter().find(|form| form.name == name)
    }

    /// Returns the form that files of this name have: the one whose suffix stands last in it.
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

/// How traces are opened.
#[derive(Clone, Copy, Debug)]
pub struct OpenOptions {
    /// The form of the trace; guessed without.
    pub form: Option<&'static Form>,
    /// Called with each note about the trace: how it is read, and what of it is not.
    pub note: fn(&str),
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { form: None, note: |_| () }
    }
}

/// How traces are created. A form ignores what it does not have.
#[derive(Clone, Debug, Default)]
pub struct CreateOptions {
    /// How Meta-TF forms are written.
    pub write: WriteOptions,
    /// Nanoseconds in a tick of a `heap` trace's clock; without, that of the trace that is converted.
    pub resolution: Option<u64>,
    /// Records in a group of a `heap` trace; without, [`GROUP_RECORDS`](crate::heap::GROUP_RECORDS).
    pub group_records: Option<u64>,
    /// Write to `hatf1`, before each realloc, records of the malloc and the free that it made.
    pub inner_records: bool,
}

/// Writes a trace in some form.
pub trait EventWriter: EventSink {
    /// Finishes the trace; what of the events its form could not hold.
    ///
    /// # Errors
    /// The output's.
    fn finish(self: Box<Self>) -> Result<Losses>;

    /// Gives the trace up: what is in the output is not a whole trace.
    fn abandon(self: Box<Self>) {}
}

/// Opens a trace in any form, compressed or not; `-` is standard input.
///
/// # Errors
/// There is none, it is damaged at its head, it is of another form, or its form cannot be guessed.
pub fn open(path: &Path, options: &OpenOptions) -> Result<TraceReader> {
    read(Input::open(path)?, options)
}

/// As [`open`], of an input.
///
/// # Errors
/// As for [`open`].
pub fn read(mut input: Input, options: &OpenOptions) -> Result<TraceReader> {
    let form = options.form.map_or_else(|| input.guess(), Ok)?;
    let name = input.name().to_owned();
    let only_written = || Error::Usage(format!("{} is only written, not read", form.name));
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
