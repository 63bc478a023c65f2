//! From a trace to a writer that plans.

use super::writer::{PlannedWriter, Report};
use super::{Groups, Options};
use crate::container::{Sink, WriteOptions};
use crate::dynamic::{Schema, Trace};
use crate::error::{Error, ErrorKind};
use crate::format::{Interpretation, LeafKind};
use crate::reader::{At, Event, Metadata};
use std::fmt;

/// Why a trace was not recoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The trace.
    Read(Error),
    /// What was to be written.
    Write(Error),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => write!(f, "reading: {error}"),
            Self::Write(error) => write!(f, "writing: {error}"),
        }
    }
}

impl std::error::Error for Failure {}

/// Writes all of a trace again, its encoding by a plan. `step` is called for every record.
///
/// # Errors
/// What is wrong with the trace; the sink's; an offset into a stream section that would not lead to its element any more.
pub fn recode<S: Sink>(
    trace: &mut Trace<'_>,
    sink: S,
    write: &WriteOptions,
    options: Options,
    mut step: impl FnMut(),
) -> Result<(S, Report), Failure> {
    let schema = trace.schema().clone();
    trace.reader_mut().set_all(true);
    let mut copy = Copy {
        writer: PlannedWriter::new(sink, &schema, write, options.clone()).map_err(Failure::Write)?,
        groups: options.groups,
        user: 0,
        strided: vec![false; schema.format.sections.len()],
        schema,
        version: write.version,
        split: false,
    };
    let copied = copy.all(trace, &mut step);
    if let Err(failure) = copied {
        copy.writer.abandon();
        return Err(failure);
    }
    copy.writer.finish().map_err(Failure::Write)
}

struct Copy<S: Sink> {
    writer: PlannedWriter<S>,
    schema: Schema,
    groups: Groups,
    version: u8,
    /// User metadata copied.
    user: usize,
    /// By section: records take their values from this stream section.
    strided: Vec<bool>,
    /// Groups of the trace were joined or split.
    split: bool,
}

impl<S: Sink> Copy<S> {
    fn all(&mut self, trace: &mut Trace<'_>, step: &mut impl FnMut()) -> Result<(), Failure> {
        let mut first = true;
        loop {
            while self.writer.push_run(trace.reader_mut(), step).map_err(Failure::Read)? {
                self.writer.flush().map_err(Failure::Write)?;
            }
            // Whatever comes now may change how records are stored.
            self.writer.forget_recipes();
            let Some(event) = trace.reader_mut().next_event().map_err(Failure::Read)? else { break };
            if std::mem::take(&mut first) {
                self.user_metadata(trace)?;
                for section in 0..self.schema.format.sections.len() {
                    self.note_declared(section);
                }
            }
            match event {
                Event::Record(at) | Event::Comment(at) => {
                    self.record(trace, at)?;
                    step();
                }
                Event::Element(at, shared) => self.element(trace, at, shared)?,
                Event::Metadata(at, metadata) => self.metadata(trace, at, &metadata),
                Event::Group(_) => self.group()?,
                Event::Reset(section) => self.reset(section)?,
                Event::Section(..) => {}
            }
        }
        // What came late stands at the end, wherever it stood: so it does when the trace is recoded again.
        self.user_metadata(trace)
    }

    fn record(&mut self, trace: &mut Trace<'_>, at: At) -> Result<(), Failure> {
        let writer = &mut self.writer;
        let read = trace.reader_mut().decode(|row| writer.push(at.section, at.record, row));
        let full = read.map_err(Failure::Read)?;
        if full { self.writer.flush().map_err(Failure::Write) } else { Ok(()) }
    }

    fn element(&mut self, trace: &mut Trace<'_>, at: At, shared: bool) -> Result<(), Failure> {
        trace.decode(Event::Element(at, shared)).map_err(Failure::Read)?;
        let format = &self.schema.format;
        let number = format.sections.get(at.section).map_or(0, |s| s.number);
        if format.models.iter().any(|model| model.section == number) {
            // What models miss is put there when they run again, and may be something else.
            return Ok(());
        }
        let strided = self.strided.get(at.section) == Some(&true);
        if strided && matches!(self.groups, Groups::Bytes(_)) {
            // The records that take it put it there again.
            return Ok(());
        }
        if !shared && self.split {
            let why = "a stream section holds elements of a group, and groups cannot be changed: keep them";
            return Err(Failure::Write(Error::at(0, ErrorKind::Usage(why))));
        }
        let offset = self.writer.element(at.section, shared, trace.tape()).map_err(Failure::Write)?;
        let chunks = self.version == 1 && trace.reader().container().header().version == 1;
        if offset.is_some_and(|offset| offset != at.offset) && chunks && self.is_pointed_at(at.section) {
            let why = "offsets into a stream section would not lead to its elements any more";
            return Err(Failure::Write(Error::at(0, ErrorKind::Usage(why))));
        }
        Ok(())
    }

    /// Whether the DTD has offsets into a stream section. One of single numbers is not asked: its chunks choose their width.
    fn is_pointed_at(&self, section: usize) -> bool {
        let format = &self.schema.format;
        let Some(s) = format.sections.get(section) else { return false };
        let element = s.records.first().and_then(|&r| format.records.get(usize::from(r)));
        let points = |kind: &LeafKind| match kind {
            LeafKind::Number { interpretation: Interpretation::SectionOffset(n), .. } => *n == s.number,
            _ => false,
        };
        element.is_some_and(|r| r.single_number().is_none())
            && format.records.iter().any(|r| r.leaves.iter().any(|l| points(&l.kind)))
    }

    /// Where a leaf begins or ends to be an offset or a stride, it does so in the copy.
    fn metadata(&mut self, trace: &Trace<'_>, at: At, metadata: &Metadata) {
        if metadata.property & 7 == 0 {
            return;
        }
        let format = &self.schema.format;
        let records = format.sections.get(at.section).map_or(&[][..], |s| &s.records);
        for &record in records {
            let Some(r) = format.records.get(usize::from(record)) else { continue };
            if !metadata.all() && r.tag != metadata.record {
                continue;
            }
            for (leaf, _) in (0..=u8::MAX).zip(r.leaves.iter()).filter(|(_, l)| l.is_settable()) {
                if let Some(interpretation) = trace.reader().interpretation(At { record, ..at }, leaf) {
                    self.writer.keep(at.section, record, leaf, interpretation);
                    note(&mut self.strided, &self.schema, interpretation);
                }
            }
        }
    }

    fn group(&mut self) -> Result<(), Failure> {
        match self.groups {
            Groups::Keep => self.writer.start_group().map_err(Failure::Write),
            Groups::Bytes(_) => {
                self.split = true;
                for section in 0..self.schema.format.sections.len() {
                    self.writer.keep_declared(section);
                }
                Ok(())
            }
        }
    }

    fn reset(&mut self, section: usize) -> Result<(), Failure> {
        if self.schema.format.sections.get(section).is_some_and(|s| s.stream) {
            return self.writer.reset_stream(section).map_err(Failure::Write);
        }
        self.writer.keep_declared(section);
        Ok(())
    }

    /// Stream sections that leaves stride through by the DTD.
    fn note_declared(&mut self, section: usize) {
        let format = &self.schema.format;
        for &record in format.sections.get(section).map_or(&[][..], |s| &s.records) {
            for leaf in format.records.get(usize::from(record)).map_or(&[][..], |r| &r.leaves) {
                if let LeafKind::Number { interpretation, .. } = leaf.kind {
                    note(&mut self.strided, &self.schema, interpretation);
                }
            }
        }
    }

    fn user_metadata(&mut self, trace: &Trace<'_>) -> Result<(), Failure> {
        let all = trace.reader().container().user_metadata();
        for json in all.iter().skip(self.user).filter(|_| self.version != 0) {
            if let Ok(json) = std::str::from_utf8(json) {
                self.writer.user_metadata(json).map_err(Failure::Write)?;
            }
        }
        self.user = all.len();
        Ok(())
    }
}

fn note(strided: &mut [bool], schema: &Schema, interpretation: Interpretation) {
    if let Interpretation::SectionStride(number, _) = interpretation
        && let Some(slot) = schema.format.section_index(number).and_then(|i| strided.get_mut(i))
    {
        *slot = true;
    }
}
