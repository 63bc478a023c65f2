//! From one form of a heap trace to another.
//!
//! Every form has a source and a sink of [`Event`](crate::Event)s. What a form cannot hold is counted, never dropped silently.
//! Raw records and `heap.dtd` convert without an allocation for an event. Sinks are called dynamically: a loop for each pair of forms
//! would be a tenth faster, and take most of the time to compile.

mod form;
mod input;
mod json;
mod last_access;
mod malloclab;
mod memory;
mod native;
mod raw;

pub use form::Form;
pub use input::Input;
pub use json::{JsonSource, print_heap};
pub use last_access::{EarlyFrees, FreedEarly, LastAccesses};
pub use malloclab::{MalloclabSink, MalloclabSource};
pub use memory::convert_bytes;
pub use native::{NativeSink, NativeSource, print_native};
pub use raw::{RawSink, RawSource};

use std::io::{BufRead, Seek as _, SeekFrom, Write};

use metatf::container::{Reader, Sink, WriteOptions};

use crate::event::{EventSink, EventSource, Item, copy};
use crate::hatf10::Hatf10Writer;
use crate::heap::{GROUP_RECORDS, HeapOptions, HeapReader, HeapWriter};
use crate::loss::Losses;
use crate::pipeline::EventFeed;
use crate::trace::TraceReader;
use crate::{Error, Result};

/// How to convert.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The form of the input; guessed without.
    pub from: Option<Form>,
    /// How Meta-TF forms are written.
    pub write: WriteOptions,
    /// Nanoseconds in a tick of a `heap` trace's clock; without, that of the input.
    pub resolution: Option<u64>,
    /// Records in a group of a `heap` trace; without, [`GROUP_RECORDS`].
    pub group_records: Option<u64>,
    /// Write to `hatf1`, before each realloc, records of the malloc and the free that it made: see [`NativeSink::with_inner_records`].
    pub inner_records: bool,
    /// Called with each warning: what a trace of another version of its DTD and this reader do not share.
    pub warn: Option<fn(&str)>,
}

/// A source of any form. Forms that have to be fast have variants of their own.
enum Source<'i> {
    Raw32(RawSource<Box<dyn BufRead>, 32>),
    Raw64(RawSource<Box<dyn BufRead>, 64>),
    Heap(Box<HeapReader<'i>>),
    Other(Box<dyn EventSource + 'i>),
}

/// Where a trace goes, and what of it got lost on the way.
pub type Converted = (Box<dyn Sink>, Losses);

/// Converts a trace.
///
/// # Errors
/// The input is damaged or of another form than given; the output's.
pub fn convert(mut input: Input, to: Form, options: &Options, mut output: Box<dyn Sink>) -> Result<Converted> {
    let from = match options.from {
        Some(from) => from,
        None => input.guess()?,
    };
    if (from, to) == (Form::Hatf1, Form::Jsonl) {
        // HATF 1.0's own lines: nothing is lost.
        return Ok((print_native(input.into_read(), output)?, Losses::default()));
    }
    let (source, warnings) = open(from, options.from.is_some(), input)?;
    if let Some(warn) = options.warn {
        warnings.iter().for_each(|warning| warn(warning));
    }
    match to {
        Form::Heap => {
            let (resolution, write) = (resolution(&source, options), options.write.clone());
            let group_records = options.group_records.unwrap_or(GROUP_RECORDS);
            let losses =
                into_heap(source, &HeapOptions { write, resolution, group_records, plain: false }, &mut *output)?;
            Ok((output, losses))
        }
        Form::Jsonl => into_json(source, output),
        Form::Hatf10 => {
            let mut sink = Hatf10Writer::new(&mut *output, &options.write)?;
            let lost = match source.pour(&mut sink) {
                Ok(losses) => finished(((), sink.finish()?), &losses)?.1,
                Err(error) => {
                    sink.abandon();
                    return Err(error);
                }
            };
            Ok((output, lost))
        }
        Form::Hatf1 => {
            let mut sink = NativeSink::new(output).with_inner_records(options.inner_records);
            let losses = source.pour(&mut sink)?;
            finished(sink.finish()?, &losses)
        }
        Form::Raw32 => into_raw(source, RawSink::<_, 32>::new(output)),
        Form::Raw64 => into_raw(source, RawSink::<_, 64>::new(output)),
        Form::Malloclab => {
            let mut sink = MalloclabSink::new()?;
            let losses = source.pour(&mut sink)?;
            finished(sink.finish(output)?, &losses)
        }
    }
}

/// Writes a trace of `heap.dtd` in which each block ends where it is [last accessed](EarlyFrees). The input is opened twice.
///
/// # Errors
/// The input's, of which none may say when blocks are last accessed; the output's.
pub fn with_early_frees(
    open: &dyn Fn() -> Result<Input>,
    options: &Options,
    output: &mut dyn Sink,
) -> Result<(FreedEarly, Losses)> {
    let warn = options.warn.unwrap_or(|_| {});
    let mut accesses = LastAccesses::default();
    read(open()?, options.from, |_| {}, &mut accesses)?;
    if accesses.known() == 0 {
        let why = "it does not say when blocks are last accessed: build the program with hatf cc, and record it with --stacks";
        return Err(Error::Trace(why.into()));
    }
    let source = known(open()?, options.from, warn)?;
    let (resolution, write) = (resolution(&source, options), options.write.clone());
    let group_records = options.group_records.unwrap_or(GROUP_RECORDS);
    let mut sink = HeapWriter::new(output, &HeapOptions { write, resolution, group_records, plain: false })?;
    let mut early = EarlyFrees::new(accesses, &mut sink);
    let poured = source.pour(&mut early).and_then(|losses| Ok((early.finish()?, losses)));
    match poured {
        Ok((counts, losses)) => {
            let mut lost = sink.finish()?;
            lost.merge(&losses);
            Ok((counts, lost))
        }
        Err(error) => {
            sink.abandon();
            Err(error)
        }
    }
}

/// Gives a sink the events of a trace in any form, which is guessed without `from`, and `warn` what the trace and its reader do
/// not share. Returns what events could not hold of the trace.
///
/// # Errors
/// The input is damaged or of another form, or its form cannot be guessed; the sink's.
pub fn read(input: Input, from: Option<Form>, warn: fn(&str), sink: &mut dyn EventSink) -> Result<Losses> {
    known(input, from, warn)?.pour(sink)
}

/// As [`read`], for a sink in another thread.
///
/// # Errors
/// As for [`read`].
pub fn feed(input: Input, from: Option<Form>, warn: fn(&str), feed: &mut EventFeed) -> Result<Losses> {
    match known(input, from, warn)? {
        Source::Raw32(mut source) => copy(&mut source, feed).map(|()| source.losses()),
        Source::Heap(mut source) => copy(&mut *source, feed).map(|()| source.losses()),
        source => source.pour(feed),
    }
}

/// Opens a trace in any form.
fn known(mut input: Input, from: Option<Form>, warn: fn(&str)) -> Result<Source<'static>> {
    let form = from.map_or_else(|| input.guess(), Ok)?;
    let (source, warnings) = open(form, from.is_some(), input)?;
    warnings.iter().for_each(|warning| warn(warning));
    Ok(source)
}

/// The first raw records of a trace, of 32 bytes each.
pub struct First {
    /// The records.
    pub raw: Vec<u8>,
    /// What they cannot hold of the events that were read.
    pub losses: Losses,
    /// Whether the trace has no more.
    pub is_all: bool,
}

/// Converts the first events of a trace to raw records of 32 bytes, in memory: as many as make `most` records. What is behind them is not read.
///
/// # Errors
/// The input is damaged, or its form cannot be guessed.
pub fn raw32(mut input: Input, most: u64) -> Result<First> {
    let form = input.guess()?;
    let mut sink = RawSink::<_, 32>::new(Vec::new());
    let (is_all, more) = match open(form, false, input)?.0 {
        Source::Raw32(mut source) => first(&mut source, most, &mut sink)?,
        Source::Raw64(mut source) => first(&mut source, most, &mut sink)?,
        Source::Heap(mut source) => first(&mut *source, most, &mut sink)?,
        Source::Other(mut source) => first(&mut source, most, &mut sink)?,
    };
    let (raw, losses) = finished(sink.finish()?, &more)?;
    Ok(First { raw, losses, is_all })
}

/// Passes events on until they have made so many records. Returns whether these are all, and what events could not hold of the trace.
fn first(source: &mut impl EventSource, most: u64, sink: &mut RawSink<Vec<u8>, 32>) -> Result<(bool, Losses)> {
    sink.user_metadata(&source.user_metadata())?;
    let mut is_all = true;
    while let Some(item) = source.next()? {
        if sink.records() >= most {
            is_all = false;
            break;
        }
        match item {
            Item::Event(event) => sink.event(&event)?,
            Item::Comment(text) => sink.comment(text)?,
        }
    }
    Ok((is_all, source.losses()))
}

fn finished<W>((output, mut losses): (W, Losses), more: &Losses) -> Result<(W, Losses)> {
    losses.merge(more);
    Ok((output, losses))
}

impl Source<'_> {
    /// Passes everything to a sink; returns what events could not hold of it.
    fn pour(self, sink: &mut dyn EventSink) -> Result<Losses> {
        match self {
            Self::Raw32(mut source) => copy(&mut source, sink).map(|()| source.losses()),
            Self::Raw64(mut source) => copy(&mut source, sink).map(|()| source.losses()),
            Self::Heap(mut source) => copy(&mut *source, sink).map(|()| source.losses()),
            Self::Other(mut source) => copy(&mut source, sink).map(|()| source.losses()),
        }
    }
}

fn into_heap(source: Source<'_>, options: &HeapOptions, output: &mut dyn Sink) -> Result<Losses> {
    let mut sink = HeapWriter::new(output, options)?;
    let losses = match source.pour(&mut sink) {
        Ok(losses) => losses,
        Err(error) => {
            sink.abandon();
            return Err(error);
        }
    };
    let mut lost = sink.finish()?;
    lost.merge(&losses);
    Ok(lost)
}

fn into_raw<W: Write, const N: usize>(source: Source<'_>, mut sink: RawSink<W, N>) -> Result<(W, Losses)> {
    let losses = source.pour(&mut sink)?;
    finished(sink.finish()?, &losses)
}

/// Converts through a `heap` trace in a temporary file, whose times are in nanoseconds.
fn into_json(source: Source<'_>, output: Box<dyn Sink>) -> Result<Converted> {
    let file = tempfile::tempfile().map_err(Error::system("a temporary file"))?;
    let mut file = std::io::BufWriter::new(file);
    let losses = into_heap(source, &HeapOptions::default(), &mut file)?;
    let mut file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    file.seek(SeekFrom::Start(0))?;
    finished(print_heap(Reader::from_read(file).map_err(trace_error)?, output)?, &losses)
}

fn resolution(source: &Source<'_>, options: &Options) -> u64 {
    let own = match source {
        Source::Heap(reader) => reader.resolution(),
        _ => 1,
    };
    options.resolution.unwrap_or(own)
}

/// Opens the input, and returns warnings about it. `explicit`: the user named the form. A guess cannot always distinguish the two
/// DTDs.
fn open(from: Form, explicit: bool, input: Input) -> Result<(Source<'static>, Vec<String>)> {
    let name = input.name().to_owned();
    let named = |error: Error| match error {
        Error::Trace(error) => Error::Trace(format!("{name}: {error}").into()),
        other => other,
    };
    let mut warnings = Vec::new();
    let mut trace = |input: Input| -> Result<TraceReader<'static>> {
        let trace = TraceReader::of(input.into_container()?).map_err(named)?;
        warnings = trace.warnings(&name);
        Ok(trace)
    };
    let source = match from {
        Form::Raw32 => Source::Raw32(RawSource::new(input.into_read())),
        Form::Raw64 => Source::Raw64(RawSource::new(input.into_read())),
        Form::Heap | Form::Hatf10 => match (trace(input)?, from) {
            (TraceReader::Heap(reader), form) if form == Form::Heap || !explicit => Source::Heap(Box::new(reader)),
            (TraceReader::Hatf10(reader), form) if form == Form::Hatf10 || !explicit => Source::Other(Box::new(reader)),
            (TraceReader::Named(reader), _) if !explicit => Source::Other(reader),
            (TraceReader::Named(_), _) => return Err(wrong(&name, "of another DTD: leave --from out")),
            (TraceReader::Heap(_), _) => return Err(wrong(&name, "a trace of heap.dtd: --from heap")),
            (TraceReader::Hatf10(_), _) => return Err(wrong(&name, "HATF 1.0 in Meta-TF: --from hatf10")),
        },
        Form::Hatf1 => Source::Other(Box::new(NativeSource::new(input.into_read()))),
        Form::Malloclab => Source::Other(Box::new(MalloclabSource::new(input.into_read())?)),
        Form::Jsonl => Source::Other(Box::new(JsonSource::new(input.into_read()))),
    };
    Ok((source, warnings))
}

fn wrong(name: &str, problem: &str) -> Error {
    Error::Trace(format!("{name} is {problem}").into())
}

fn trace_error(error: metatf::Error) -> Error {
    Error::Trace(error.to_string().into())
}

#[cfg(test)]
mod tests;
