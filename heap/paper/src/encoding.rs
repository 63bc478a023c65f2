//! Conversion between raw records and files in one of the encodings.

use metatf::Change;
use metatf::container::{Reader, WriteOptions};
use metatf::dynamic::{Item, OwnedRecord, Schema, Trace, Writer};
use metatf::format::Interpretation;
use metatf::reader::Event;
use metatf_tools::recode::{Options, Plan, PlannedWriter};

use super::column::{Column, Packing};
use super::simple::{self, RECORD};
use super::{split_addr, tools};
use hatf_trace::event::{EventSink, copy};
use hatf_trace::forms::{EventWriter as _, RawSink, RawSource};
use hatf_trace::heap::{HeapOptions, HeapReader, HeapWriter};
use hatf_trace::{Error, Result};

/// Records per block of a plan, and per group of `heap.dtd`.
const BLOCK: usize = 1 << 20;
/// Bytes per argument in HATF 1.0's metadata records.
const LONG: u8 = 8;
/// The stream of differences in `heap-split.dtd`.
const STEPS: u8 = 3;

/// The files of a trace, which are one file or two independently compressed streams.
pub(super) type Files = Vec<Vec<u8>>;

/// The encoding of a column.
pub(super) struct Encoding {
    column: Column,
    fields: Option<Fields>,
}

/// The mapping from raw records to the records of a DTD.
struct Fields {
    schema: Schema,
    /// The index of the section.
    section: usize,
    /// For each raw tag from 1 on, the index of the DTD's record, and the raw field for each leaf of that record.
    records: Vec<(u16, Vec<usize>)>,
}

impl Encoding {
    pub(super) fn new(column: Column) -> Result<Self> {
        let text = match column {
            Column::Simple | Column::Simple32 | Column::Ascii | Column::Heap | Column::Parquet => None,
            Column::Hatf(_) | Column::HatfLong(_) | Column::SplitAddr => Some(include_str!("hatf.dtd")),
            Column::SplitStream => Some(include_str!("split-stream.dtd")),
            Column::AddressSection => Some(include_str!("address-section.dtd")),
            Column::Split => Some(include_str!("../../../dtds/heap-split.dtd")),
            Column::Values => Some(include_str!("../../../dtds/heap-values.dtd")),
        };
        Ok(Self { column, fields: text.map(Fields::new).transpose()? })
    }

    /// Encodes raw records as files. Returns `None` if the compressor is not installed or if the fields are too wide
    /// for the encoding.
    pub(super) fn write(&self, raw: &[u8], packing: Packing) -> Result<Option<Files>> {
        let write = packing.write_options();
        if let (Column::SplitAddr, Some(fields)) = (self.column, &self.fields) {
            let best = fields.planned(raw, &Packing::Raw.write_options(), Plan::Best, 1)?;
            let streams = split_addr::split(&fields.schema.format, &best)?;
            return streams.into_iter().map(|stream| simple::pack(stream, packing)).collect();
        }
        let file = match (self.column, &self.fields) {
            (Column::Ascii, _) => simple::pack(simple::to_ascii(raw), packing),
            (Column::Heap, _) => heap(raw, write).map(Some),
            (Column::Parquet, _) => tools::parquet(raw, packing),
            (Column::Simple32, _) => simple::narrow(raw).map_or(Ok(None), |narrow| simple::pack(narrow, packing)),
            (_, None) => simple::pack(raw.to_vec(), packing),
            (Column::Split, Some(fields)) => fields.split(raw, &write).map(Some),
            (Column::Values | Column::SplitStream, Some(fields)) => fields.write(raw, &write, false).map(Some),
            (Column::Hatf(plan), Some(fields)) => fields.planned(raw, &write, plan, 1).map(Some),
            (Column::HatfLong(plan), Some(fields)) => fields.planned(raw, &write, plan, LONG).map(Some),
            (_, Some(fields)) => fields.planned(raw, &write, Plan::Best, 1).map(Some),
        };
        Ok(file?.map(|file| vec![file]))
    }

    /// Decodes files to raw records. Returns `None` if the command that created the files has already checked them, or
    /// if no check is required.
    pub(super) fn read(&self, files: &[Vec<u8>], packing: Packing) -> Result<Option<Vec<u8>>> {
        let mut raw = Vec::new();
        if let (Column::SplitAddr, Some(fields), [rest, addresses]) = (self.column, &self.fields, files) {
            let rest = simple::unpacked(rest, packing)?;
            let addresses = simple::unpacked(addresses, packing)?;
            let best = split_addr::merge(&fields.schema.format, [&rest, &addresses])?;
            fields.read(&best, &mut raw)?;
            return Ok(Some(raw));
        }
        let [file] = files else { return Err(Error::Trace("unexpected number of files".into())) };
        match (self.column, &self.fields) {
            (Column::Parquet, _) => return Ok(None),
            (Column::Simple, _) if packing == Packing::Xz => return Ok(None),
            (Column::Heap, _) => {
                let mut sink = Box::new(RawSink::<_, RECORD>::new(&mut raw));
                let all: &mut dyn EventSink = &mut *sink;
                copy(&mut HeapReader::of(Reader::from_slice(file).map_err(failed)?)?, all)?;
                sink.finish()?;
            }
            (_, Some(fields)) => fields.read(file, &mut raw)?,
            (Column::Ascii, None) => simple::from_ascii(&simple::unpacked(file, packing)?, &mut raw)?,
            (Column::Simple32, None) => raw = simple::widen(&simple::unpacked(file, packing)?),
            (_, None) => raw = simple::unpacked(file, packing)?,
        }
        Ok(Some(raw))
    }
}

/// Encodes raw records using the heap model.
fn heap(raw: &[u8], write: WriteOptions) -> Result<Vec<u8>> {
    let options = HeapOptions { write, group_records: BLOCK as u64, ..HeapOptions::default() };
    let mut trace = Vec::new();
    let mut sink = HeapWriter::new(&mut trace, &options)?;
    copy(&mut RawSource::<_, RECORD>::new(raw), &mut sink)?;
    sink.finish()?;
    Ok(trace)
}

impl Fields {
    fn new(text: &str) -> Result<Self> {
        let schema = Schema::parse("paper.dtd", text.as_bytes()).map_err(|e| Error::Trace(e.to_string().into()))?;
        let missing = || Error::Trace("a DTD for the tables lacks a record".into());
        let section = schema.dtd.section_named("heap").ok_or_else(missing)?;
        let records = ["malloc", "free", "calloc", "realloc", "memalign"].map(|name| {
            let id = section.records.iter().find(|&&id| schema.dtd.record(id).is_some_and(|r| r.name == name))?;
            let record = schema.dtd.record(*id)?;
            // The first of two addresses is the old address.
            let twice = record.leaves.iter().filter(|leaf| leaf.name == "address").count() == 2;
            let mut olds = usize::from(twice);
            let field = |name: &str| match name {
                "size" => 1,
                "old" => 3,
                _ => 2 + std::mem::take(&mut olds),
            };
            let leaves = record.leaves.iter().filter(|leaf| !leaf.is_tag()).map(|leaf| leaf.name.as_str());
            Some((u16::try_from(id.0).ok()?, leaves.map(field).collect()))
        });
        let records = records.into_iter().collect::<Option<_>>().ok_or_else(missing)?;
        let section = schema.dtd.sections.iter().position(|s| s.name.as_deref() == Some("heap")).ok_or_else(missing)?;
        Ok(Self { schema, section, records })
    }

    /// Passes each raw record to `put` as a record of the DTD.
    fn each(&self, raw: &[u8], mut put: impl FnMut(u16, &OwnedRecord) -> metatf::Result<()>) -> Result<()> {
        let mut owned = OwnedRecord::default();
        for record in raw.as_chunks::<RECORD>().0 {
            let fields = simple::fields(record);
            let index = usize::try_from(fields[0]).unwrap_or(0).wrapping_sub(1);
            let (record, leaves) =
                self.records.get(index).ok_or_else(|| Error::Trace("a raw record with an unknown tag".into()))?;
            owned.clear();
            for &leaf in leaves {
                owned.push_number(fields.get(leaf).copied().unwrap_or(0));
            }
            put(*record, &owned).map_err(failed)?;
        }
        Ok(())
    }

    fn planned(&self, raw: &[u8], write: &WriteOptions, plan: Plan, argument_bytes: u8) -> Result<Vec<u8>> {
        let options = Options { plan, block: BLOCK, argument_bytes, ..Options::default() };
        let mut writer = PlannedWriter::new(Vec::new(), &self.schema, write, options).map_err(failed)?;
        self.each(raw, |record, owned| writer.record(self.section, record, owned))?;
        Ok(writer.finish().map_err(failed)?.0)
    }

    /// Writes addresses unchanged or as differences, whichever is shorter. The choice may depend on the packing.
    fn split(&self, raw: &[u8], write: &WriteOptions) -> Result<Vec<u8>> {
        let plain = self.write(raw, write, false)?;
        let steps = self.write(raw, write, true)?;
        Ok(if steps.len() < plain.len() { steps } else { plain })
    }

    /// Writes the records. If `steps` is set, addresses go to the stream of differences.
    fn write(&self, raw: &[u8], write: &WriteOptions, steps: bool) -> Result<Vec<u8>> {
        let mut writer = Writer::new(Vec::new(), &self.schema, write).map_err(failed)?;
        if let Some((record, leaves)) = self.records.get(3).filter(|_| steps) {
            for (leaf, field) in (1..).zip(leaves) {
                if *field > 1 {
                    let change = Change::Interpretation(Interpretation::SectionStride(STEPS, 1));
                    writer.inner().set_all(self.section, *record, leaf, change).map_err(failed)?;
                }
            }
        }
        self.each(raw, |record, owned| writer.record(self.section, record, owned))?;
        writer.finish().map_err(failed)
    }

    fn read(&self, file: &[u8], raw: &mut Vec<u8>) -> Result<()> {
        let container = Reader::from_slice(file).map_err(failed)?;
        let mut trace = Trace::new(self.schema.clone(), container).map_err(failed)?;
        while let Some(entry) = trace.next_entry().map_err(failed)? {
            let Event::Record(at) = entry.event else { continue };
            let known = (1..).zip(&self.records).find(|(_, (record, _))| *record == at.record);
            let Some((tag, (_, leaves))) = known else { continue };
            let mut fields = [tag, 0, 0, 0];
            for (&leaf, item) in leaves.iter().zip(entry.record.iter()) {
                if let (Some(field), Item::Number(value)) = (fields.get_mut(leaf), item) {
                    *field = value;
                }
            }
            simple::push(fields, raw);
        }
        Ok(())
    }
}

fn failed(error: metatf::Error) -> Error {
    Error::Trace(error.to_string().into())
}
