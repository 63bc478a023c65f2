//! From one form of a heap trace to another.
//!
//! Raw records and `heap.dtd` convert without an allocation for an event. Sinks are called dynamically: a loop for each pair of forms
//! would be a tenth faster, and take most of the time to compile.

use std::io::Cursor;

use metatf::container::Sink;

use super::{CreateOptions, Form, Input, OpenOptions, hatf1, jsonl, read};
use crate::event::EventSource as _;
use crate::loss::Losses;
use crate::{Error, Result};

/// Converts a trace; returns what got lost on the way.
///
/// # Errors
/// The input is damaged or of another form than given; the form is only read; the output's.
pub fn convert(
    mut input: Input,
    to: &Form,
    open: &OpenOptions,
    create: &CreateOptions,
    output: &mut dyn Sink,
) -> Result<Losses> {
    let only_read = || Error::Usage(format!("{} is only read, not written", to.name));
    let begin = to.create.ok_or_else(only_read)?;
    let from = open.form.map_or_else(|| input.guess(), Ok)?;
    if from == &hatf1::FORM && to == &jsonl::FORM {
        // HATF 1.0's own lines: nothing is lost.
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

/// Converts a trace in memory, as [`convert`] does. Without `from` its form shows in its first bytes.
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
