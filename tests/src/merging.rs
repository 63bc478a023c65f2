//! Invariants of merging.

use crate::runtime;
use metatf::Error;
use metatf::ErrorKind;
use metatf::container::{Reader, WriteOptions};
use metatf::dynamic::{JsonOptions, Schema, Trace, Writer};
use metatf::format::{Interpretation, LeafKind};
use metatf_tools::convert::{ConvertError, ConvertOptions, Converter};
use metatf_tools::merge::{KeyOf, Keyed, Source, TraceSource, merge};
use std::collections::VecDeque;

/// Returns a trace as a source of records for its own DTD.
///
/// # Errors
/// Fails if the trace is invalid.
pub fn source<'a>(
    schema: &Schema,
    trace: &'a [u8],
    drop: &ConvertOptions,
    key: KeyOf<'a>,
) -> Result<TraceSource<'a>, ConvertError> {
    let container = Reader::from_slice(trace).map_err(ConvertError::Read)?;
    let trace = Trace::new(schema.clone(), container).map_err(ConvertError::Read)?;
    let converter = Converter::new(schema, schema, drop).expect("records fit into their own DTD");
    Ok(TraceSource::new(trace, converter, 0, key))
}

/// Merges sources into a trace in memory.
///
/// # Errors
/// Fails if a source is invalid.
///
/// # Panics
/// Panics if the writer cannot finish the trace.
pub fn merged(schema: &Schema, mut sources: Vec<TraceSource<'_>>) -> Result<Vec<u8>, ConvertError> {
    let mut writer = Writer::new(Vec::new(), schema, &WriteOptions::default()).map_err(ConvertError::Write)?;
    let done = merge(&mut sources, &mut writer, &mut |writer, keyed| put(writer, keyed));
    if let Err(error) = done {
        writer.abandon();
        return Err(error);
    }
    writer.finish().map_err(ConvertError::Write)
}

fn put(writer: &mut Writer<Vec<u8>>, keyed: &Keyed) -> Result<(), ConvertError> {
    writer.record(keyed.section, keyed.record, &keyed.owned).map_err(ConvertError::Write)
}

/// Returns a trace of the records whose numbers satisfy `is_in`, with all tables, and these numbers.
fn piece(
    schema: &Schema,
    trace: &[u8],
    drop: &ConvertOptions,
    is_in: &dyn Fn(u64) -> bool,
) -> Result<(Vec<u8>, VecDeque<u64>), ConvertError> {
    let mut source = source(schema, trace, drop, Box::new(|_, _| None))?;
    let mut writer = Writer::new(Vec::new(), schema, &WriteOptions::default()).map_err(ConvertError::Write)?;
    let (mut keyed, mut numbers) = (Keyed::default(), VecDeque::new());
    for number in 0.. {
        if !Source::<_, ConvertError>::next(&mut source, &mut writer, &mut keyed)? {
            break;
        }
        if is_in(number) {
            put(&mut writer, &keyed)?;
            numbers.push_back(number);
        }
    }
    Ok((writer.finish().map_err(ConvertError::Write)?, numbers))
}

/// Splits a trace and merges the pieces: the records must come back in their order. Bit `number % 64` of `sides`
/// selects the piece of a record.
///
/// # Errors
/// Fails if the trace is invalid or cannot be converted.
///
/// # Panics
/// Panics if a record is lost or misplaced.
pub fn check(
    schema: &Schema,
    trace: &[u8],
    drop: &ConvertOptions,
    sides: u64,
    about: &str,
) -> Result<(), ConvertError> {
    let whole = merged(schema, vec![source(schema, trace, drop, Box::new(|_, _| None))?])?;
    match pieces_of(schema, &whole, drop, sides, about) {
        Err(ConvertError::Read(error)) => panic!("what was merged cannot be read: {error:?}\n{about}"),
        done => done,
    }
}

fn pieces_of(
    schema: &Schema,
    whole: &[u8],
    drop: &ConvertOptions,
    sides: u64,
    about: &str,
) -> Result<(), ConvertError> {
    let lines = |trace: &[u8]| runtime::json(schema, trace, JsonOptions::default());
    let mut pieces = Vec::new();
    for side in 0..2 {
        pieces.push(piece(schema, whole, drop, &|number| sides >> (number % 64) & 1 == side)?);
    }
    let sources = pieces.iter().map(|(trace, numbers)| {
        let mut numbers = numbers.clone();
        source(schema, trace, drop, Box::new(move |_, _| numbers.pop_front()))
    });
    let again = merged(schema, sources.collect::<Result<_, _>>()?)?;
    assert_eq!(lines(&again), lines(whole), "{about}");
    // If keys are equal, records of the first source come first.
    let (first, second) = (&pieces[0].0, &pieces[1].0);
    let sources = [first, second].map(|trace| source(schema, trace, drop, Box::new(|_, _| Some(7))));
    let behind = merged(schema, sources.into_iter().collect::<Result<_, _>>()?)?;
    assert_eq!(
        lines(&behind),
        Ok([first, second].map(|trace| lines(trace).expect("it was written")).concat()),
        "{about}"
    );
    Ok(())
}

/// Returns whether the error is about a limit that a trace may exceed but its copy may not.
#[must_use]
pub fn is_limit(schema: &Schema, error: ConvertError) -> bool {
    match error {
        ConvertError::Write(error) => {
            matches!(
                error.kind,
                ErrorKind::TooManyItems(_) | ErrorKind::Limit(_) | ErrorKind::Usage(_) | ErrorKind::Expression
            ) || is_far_from_the_element_before(schema, error)
        }
        ConvertError::Read(_) => false,
    }
}

/// Returns whether the error is about a stream section value stored relative to the preceding element, which differs in
/// the copy. No metadata can widen such a leaf.
#[must_use]
pub fn is_far_from_the_element_before(schema: &Schema, error: Error) -> bool {
    let (ErrorKind::DoesNotFit { .. } | ErrorKind::NotImplied { .. }) = error.kind else { return false };
    let format = &schema.format;
    let section = error.place.section.and_then(|number| format.section_index(number));
    let element = section.map(|section| &format.sections[section]).filter(|section| section.stream);
    let leaf = element.zip(error.place.leaf).and_then(|(element, leaf)| {
        let record = &format.records[usize::from(element.records[0])];
        record.leaves.get(usize::from(leaf))
    });
    leaf.is_some_and(|leaf| {
        matches!(
            leaf.kind,
            LeafKind::Number { interpretation: Interpretation::Delta(_) | Interpretation::Stride(..), .. }
        )
    })
}
