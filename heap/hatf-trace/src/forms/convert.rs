//! Conversion between heap trace formats.
//!
//! Raw records and `heap.dtd` convert without allocating memory per event. Sinks are called dynamically: a specialized
//! loop for each pair of formats would be 10% faster but dominate compile time.

use std::io::Cursor;

use metatf::container::Sink;

use super::{
    CreateOptions, EarlyFrees, EventWriter as _, Form, FreedEarly, Input, LastAccesses, OpenOptions, RawSink, hatf1,
    jsonl, read,
};
use crate::event::{EventSink as _, EventSource as _, Item};
use crate::heap::{GROUP_RECORDS, HeapOptions, HeapWriter};
use crate::loss::Losses;
use crate::{Error, Result};

/// Converts a trace. Returns counts of the data that the target format cannot store.
///
/// # Errors
/// The input is corrupt or does not have the given format, the target format is read-only, or the output failed.
pub fn convert(
    input: Input,
    to: &Form,
    open: &OpenOptions,
    create: &CreateOptions,
    output: &mut dyn Sink,
) -> Result<Losses> {
    let only_read = || Error::Usage(format!("{} is a read-only format", to.name));
    let begin = to.create.ok_or_else(only_read)?;
    let mut input = input.opening(open.opening);
    let from = open.form.map_or_else(|| input.guess(), Ok)?;
    if from == &hatf1::FORM && to == &jsonl::FORM {
        // Printing HATF 1.0 records as JSON lines loses no data.
        return hatf1::print_lines(input.into_read(), output).map(|()| Losses::default());
    }
    let mut source = read(input, &OpenOptions { form: Some(from), ..*open })?;
    let resolution = create.resolution.or_else(|| Some(source.resolution()));
    let mut writer = begin(output, &CreateOptions { resolution, ..create.clone() })?;
    match source.give(&mut *writer) {
        Ok(read) => {
            let mut lost = writer.finish()?;
            lost.merge(&read);
            Ok(lost)
        }
        Err(error) => {
            writer.abandon();
            Err(error)
        }
    }
}

/// Writes a `heap.dtd` trace in which each block ends at its [last access](EarlyFrees). The input is opened twice.
///
/// # Errors
/// The input failed, the input contains no last accesses, or the output failed.
pub fn with_early_frees(
    input: &dyn Fn() -> Result<Input>,
    open: &OpenOptions,
    create: &CreateOptions,
    output: &mut dyn Sink,
) -> Result<(FreedEarly, Losses)> {
    let mut accesses = LastAccesses::default();
    read(input()?, &OpenOptions { note: |_| (), ..*open })?.give(&mut accesses)?;
    if accesses.known() == 0 {
        let why = "the trace contains no last accesses: build the program with `hatf cc` and record it with `--stacks`";
        return Err(Error::Trace(why.into()));
    }
    let mut source = read(input()?, open)?;
    let resolution = create.resolution.unwrap_or_else(|| source.resolution());
    let group_records = create.group_records.unwrap_or(GROUP_RECORDS);
    let options = HeapOptions { write: create.write.clone(), resolution, group_records, plain: false };
    let mut sink = HeapWriter::new(output, &options)?;
    let mut early = EarlyFrees::new(accesses, &mut sink);
    let given = source.give(&mut early).and_then(|losses| Ok((early.finish()?, losses)));
    match given {
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

/// The first 32-byte raw records of a trace.
pub struct First {
    /// The records.
    pub raw: Vec<u8>,
    /// Counts of the event data that the records cannot store.
    pub losses: Losses,
    /// Whether the trace contains no more records.
    pub is_all: bool,
}

/// Converts the first events of a trace to 32-byte raw records in memory, until there are `most` records. Later events
/// are not read.
///
/// # Errors
/// The input is corrupt, or its format cannot be guessed.
pub fn first_raw32(input: Input, open: &OpenOptions, most: u64) -> Result<First> {
    let mut source = read(input, open)?;
    let mut raw = Vec::new();
    let mut sink = RawSink::<_, 32>::new(&mut raw);
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
    let mut losses = Box::new(sink).finish()?;
    losses.merge(&source.losses());
    Ok(First { raw, losses, is_all })
}

/// Converts a trace in memory, like [`convert`]. Without `from`, the format is detected from the first bytes.
///
/// # Errors
/// As for [`convert`].
pub fn convert_bytes(
    bytes: &[u8],
    from: Option<&'static Form>,
    to: &Form,
    create: &CreateOptions,
) -> Result<(Vec<u8>, Losses)> {
    let input = Input::of("a trace in memory".to_owned(), Box::new(Cursor::new(bytes.to_vec())))?;
    let mut output = Vec::new();
    let losses = convert(input, to, &OpenOptions { form: from, ..OpenOptions::default() }, create, &mut output)?;
    Ok((output, losses))
}
