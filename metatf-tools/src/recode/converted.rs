//! Converts a trace to a different DTD while planning its encoding.

use super::writer::PlannedWriter;
use super::{Failure, Groups, Options, Report};
use crate::convert::{ConvertError, ConvertedSink, Converter};
use metatf::container::{Result, Sink, WriteOptions};
use metatf::dynamic::{OwnedRecord, Trace};

/// Converts an entire trace to another DTD, and writes it with a planned encoding. If groups are kept, the groups of
/// the trace are used. `step` is called for every record and element.
///
/// # Errors
/// Returns an error if the trace is malformed, a value cannot be converted to the other DTD, or the sink fails.
pub fn recode_converted<S: Sink>(
    trace: &mut Trace<'_>,
    converter: &mut Converter,
    sink: S,
    write: &WriteOptions,
    options: Options,
    step: &mut dyn FnMut(),
) -> Result<(S, Report), Failure> {
    let groups = options.groups;
    let writer = PlannedWriter::new(sink, converter.target(), write, options).map_err(Failure::Write)?;
    let mut to = PlannedCopy { writer, groups };
    match converter.copy(trace, &mut to, write.version != 0, step) {
        Ok(()) => to.writer.finish().map_err(Failure::Write),
        Err(error) => {
            to.writer.abandon();
            Err(match error {
                ConvertError::Read(error) => Failure::Read(error),
                ConvertError::Write(error) => Failure::Write(error),
            })
        }
    }
}

struct PlannedCopy<S: Sink> {
    writer: PlannedWriter<S>,
    groups: Groups,
}

impl<S: Sink> ConvertedSink for PlannedCopy<S> {
    fn record(&mut self, section: usize, record: u16, owned: &OwnedRecord) -> Result<()> {
        self.writer.record(section, record, owned)
    }

    fn element(&mut self, section: usize, shared: bool, owned: &OwnedRecord) -> Result<()> {
        self.writer.element(section, shared, owned).map(drop)
    }

    fn intern(&mut self, section: usize, owned: &OwnedRecord) -> Result<u64> {
        self.writer.beneath().intern(section, owned)
    }

    fn next_offset(&mut self, section: usize) -> u64 {
        self.writer.beneath().next_offset(section)
    }

    fn start_group(&mut self) -> Result<()> {
        match self.groups {
            Groups::Keep => self.writer.start_group(),
            Groups::Bytes(_) => Ok(()),
        }
    }

    fn user_metadata(&mut self, json: &str) -> Result<()> {
        self.writer.user_metadata(json)
    }
}
