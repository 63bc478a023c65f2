//! Splits a trace into blocks and the steps between them.

use super::block::Block;
use super::block_sink::BlockSink;
use super::failure::Failure;
use super::write_block::Report;
use super::{Groups, Options, block_pipeline, writer};
use metatf::container::{Error, ErrorKind, Sink, WriteOptions};
use metatf::dynamic::{Schema, Trace};
use metatf::format::{Interpretation, LeafKind};
use metatf::reader::{At, Event, Metadata};

/// Writes an entire trace again with a planned encoding. `step` is called for every record. With several threads, one
/// thread reads, another writes, and the remaining threads help the writer; the output is the same.
///
/// # Errors
/// Returns an error if the trace is malformed, the sink fails, or an offset into a stream section would no longer refer
/// to its element.
pub fn recode<S: Sink + Send>(
    trace: &mut Trace<'_>,
    sink: S,
    write: &WriteOptions,
    options: Options,
    mut step: impl FnMut(),
) -> Result<(S, Report), Failure> {
    let schema = trace.schema().clone();
    // A block ends with its group, and passing a small block to another thread takes longer than writing it.
    let split = trace.reader().container().split().filter(|_| options.groups == Groups::Keep);
    let threads = if split.is_some_and(|split| split.has_small_groups()) { 1 } else { write.threads };
    let write = &WriteOptions { threads, ..write.clone() };
    trace.reader_mut().set_all(true);
    let (block, mut writer) = writer::begin(sink, &schema, write, &options).map_err(Failure::Write)?;
    let copy = Copy::new(schema, block, options.groups, write.version);
    // In version 0, a block depends on the state after the planned block before it.
    let (writer, copied) = if write.threads > 1 && write.version != 0 {
        block_pipeline::write_beside(writer, &options, |to| copy.all(trace, to, &mut step))
    } else {
        let copied = copy.all(trace, &mut writer, &mut step);
        (writer, copied)
    };
    match copied {
        Ok(()) => writer.finish().map_err(Failure::Write),
        Err(failure) => {
            writer.abandon();
            Err(failure)
        }
    }
}

/// The copier from a trace to blocks.
pub(super) struct Copy {
    block: Block,
    schema: Schema,
    groups: Groups,
    version: u8,
    /// Number of user metadata objects copied.
    user: usize,
    /// For each stream section, whether records stride through it.
    strided: Vec<bool>,
    /// For each section, whether offsets in the DTD refer to it.
    pointed_at: Vec<bool>,
    /// Whether the trace's groups were joined or split.
    split: bool,
}

impl Copy {
    pub(super) fn new(schema: Schema, block: Block, groups: Groups, version: u8) -> Self {
        let sections = schema.format.sections.len();
        Self {
            block,
            groups,
            user: 0,
            strided: vec![false; sections],
            pointed_at: (0..sections).map(|section| is_pointed_at(&schema, section)).collect(),
            schema,
            version,
            split: false,
        }
    }

    /// Passes all blocks of the trace and the steps between them to `to`. The trace must return
    /// [everything](metatf::reader::RecordReader::set_all) it contains.
    pub(super) fn all(
        mut self,
        trace: &mut Trace<'_>,
        to: &mut impl BlockSink,
        step: &mut impl FnMut(),
    ) -> Result<(), Failure> {
        let mut first = true;
        loop {
            while self.block.push_run(trace.reader_mut(), step).map_err(Failure::Read)? {
                to.block(&mut self.block)?;
            }
            let Some(event) = trace.reader_mut().next_event().map_err(Failure::Read)? else { break };
            if std::mem::take(&mut first) {
                self.user_metadata(trace, to)?;
                for section in 0..self.schema.format.sections.len() {
                    self.note_declared(section);
                }
            }
            match event {
                Event::Record(at) | Event::Comment(at) => {
                    self.record(trace, to, at)?;
                    step();
                }
                Event::Element(at, shared) => self.element(trace, to, (at, shared))?,
                Event::Metadata(at, metadata) => self.metadata(trace, at, &metadata),
                Event::Group(_) => self.group(to)?,
                Event::Reset(section) => self.reset(to, section)?,
                Event::Section(..) => {}
            }
        }
        // User metadata that was read late is always written at the end, so that recoding the trace again changes
        // nothing.
        self.user_metadata(trace, to)?;
        to.block(&mut self.block)
    }

    fn record(&mut self, trace: &mut Trace<'_>, to: &mut impl BlockSink, at: At) -> Result<(), Failure> {
        let block = &mut self.block;
        let read = trace.reader_mut().decode(|row| block.push(at.section, at.record, row));
        let full = read.map_err(Failure::Read)?;
        if full { to.block(block) } else { Ok(()) }
    }

    fn element(
        &mut self,
        trace: &mut Trace<'_>,
        to: &mut impl BlockSink,
        (at, shared): (At, bool),
    ) -> Result<(), Failure> {
        trace.decode(Event::Element(at, shared)).map_err(Failure::Read)?;
        let format = &self.schema.format;
        let number = format.sections.get(at.section).map_or(0, |s| s.number);
        if format.models.iter().any(|model| model.section == number) {
            // The models of the copy write their own misses.
            return Ok(());
        }
        let strided = self.strided.get(at.section) == Some(&true);
        if strided && matches!(self.groups, Groups::Bytes(_)) {
            // The records that consume the element write it again.
            return Ok(());
        }
        if !shared && self.split {
            let why = "a stream section contains elements of a group, so the new trace must keep the groups";
            return Err(Failure::Write(Error::at(0, ErrorKind::Usage(why))));
        }
        to.block(&mut self.block)?;
        let chunks = self.version == 1 && trace.reader().container().header().version == 1;
        let kept = chunks && self.pointed_at.get(at.section) == Some(&true);
        to.element((at.section, shared), kept.then_some(at.offset), trace.record())
    }

    /// Makes leaves in the copy become or cease to be an offset or a stride at the same point as in the trace.
    fn metadata(&mut self, trace: &Trace<'_>, at: At, metadata: &Metadata) {
        if metadata.property & 7 == 0 {
            return;
        }
        let format = &self.schema.format;
        let listed = format.sections.get(at.section).map_or(&[][..], |s| &s.records);
        let records = || listed.iter().filter_map(|&record| Some((record, format.records.get(usize::from(record))?)));
        // A tag that no other record uses denotes the catch-all record.
        let is_catch_all = records().all(|(_, r)| r.is_catch_all() || r.tag != metadata.record);
        for (record, r) in records() {
            let is_named = r.tag == metadata.record || is_catch_all && r.is_catch_all();
            if !metadata.all() && !is_named {
                continue;
            }
            for (leaf, _) in (0..=u8::MAX).zip(r.leaves.iter()).filter(|(_, l)| l.is_settable()) {
                if let Some(interpretation) = trace.reader().interpretation(At { record, ..at }, leaf) {
                    self.block.keep(at.section, record, leaf, interpretation);
                    note(&mut self.strided, &self.schema, interpretation);
                }
            }
        }
    }

    fn group(&mut self, to: &mut impl BlockSink) -> Result<(), Failure> {
        match self.groups {
            Groups::Keep => {
                to.block(&mut self.block)?;
                to.start_group()?;
            }
            Groups::Bytes(_) => self.split = true,
        }
        self.block.start_group();
        Ok(())
    }

    fn reset(&mut self, to: &mut impl BlockSink, section: usize) -> Result<(), Failure> {
        if self.schema.format.sections.get(section).is_some_and(|s| s.stream) {
            to.block(&mut self.block)?;
            return to.reset_stream(section);
        }
        self.block.keep_declared(section);
        Ok(())
    }

    /// Marks the stream sections that leaves stride through according to the DTD.
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

    fn user_metadata(&mut self, trace: &Trace<'_>, to: &mut impl BlockSink) -> Result<(), Failure> {
        let all = trace.reader().container().user_metadata();
        for json in all.iter().skip(self.user).filter(|_| self.version != 0) {
            if let Ok(json) = std::str::from_utf8(json) {
                to.user_metadata(json)?;
            }
        }
        self.user = all.len();
        Ok(())
    }
}

/// Returns whether offsets in the DTD refer to a stream section. Returns false for sections of single numbers, because
/// each of their chunks uses its own width.
fn is_pointed_at(schema: &Schema, section: usize) -> bool {
    let format = &schema.format;
    let Some(s) = format.sections.get(section) else { return false };
    let element = s.records.first().and_then(|&r| format.records.get(usize::from(r)));
    let points = |kind: &LeafKind| match kind {
        LeafKind::Number { interpretation: Interpretation::SectionOffset(n), .. } => *n == s.number,
        _ => false,
    };
    element.is_some_and(|r| r.single_number().is_none())
        && format.records.iter().any(|r| r.leaves.iter().any(|l| points(&l.kind)))
}

fn note(strided: &mut [bool], schema: &Schema, interpretation: Interpretation) {
    if let Interpretation::SectionStride(number, _) = interpretation
        && let Some(slot) = schema.format.section_index(number).and_then(|i| strided.get_mut(i))
    {
        *slot = true;
    }
}
