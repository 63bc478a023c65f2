//! Writing version 1: chunks, index, footer (spec 5.2).

use super::chunk::{self, ChunkHeader};
#[cfg(feature = "parallel")]
use super::chunk_pipeline::ChunkPipeline;
use super::codec::Codec;
use super::encode::{Encoded, Encoder};
use super::header::{Class, Header, INTS_AT};
use super::index::{self, ChunkInfo};
use super::options::{Filter, WriteOptions, representable};
use super::part::MAX_RAW_LEN;
use super::raw_content::RawContent;
use super::sink::Sink;
use super::trial::{Found, How};
use crate::{Error, ErrorKind, Result};

/// A DTD up to this length is stored as it is, so that people find it in the file with any tool.
const PLAIN_DTD: usize = 4 << 10;

/// A data chunk without its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkSpec {
    /// Number of the section.
    pub section: u8,
    /// State is reset here; set for a section's first chunk in a group, and for shared tables.
    pub reset: bool,
    /// First chunk of its group.
    pub group_start: bool,
    /// A chunk of a shared table; then `group` is 0, and it neither starts a group nor belongs to one.
    pub shared: bool,
    /// In a stream section of one numeric leaf: the leaf's stored width here; else 0.
    pub width: u8,
    /// Data records or stream elements in it.
    pub records: u32,
    /// Number of its group.
    pub group: u32,
    /// Size of the elements for the filter where `width` is 0; 0: they have no one size.
    pub element: u8,
}

/// Writes a version 1 trace. What is written is whole after each call: a trace that is never finished has no index
/// and no footer, and is read with a warning.
pub struct ChunkWriter<S: Sink> {
    sink: S,
    /// Where the trace begins in the sink, if it can be overwritten.
    mark: Option<u64>,
    options: WriteOptions,
    header: Header,
    encoder: Encoder,
    /// What was found out about each section.
    found: Box<[Found; 256]>,
    /// Threads that compress, where there are some.
    #[cfg(feature = "parallel")]
    pipeline: Option<ChunkPipeline>,
    /// Offset of the next chunk.
    pos: u64,
    entries: Vec<ChunkInfo>,
    bases: Box<[u64; 256]>,
}

impl<S: Sink> ChunkWriter<S> {
    /// Begins a trace: header, and the DTD if it is to be embedded. Both are handed on to where the sink takes them.
    ///
    /// # Errors
    /// Writing failed; the URL or the DTD is too long; a codec was not built in.
    pub fn new(mut sink: S, options: &WriteOptions, dtd: &[u8]) -> Result<Self> {
        options.check_codecs()?;
        let header = options.header(1)?;
        let mark = sink.mark();
        sink.write_all(&header.emit(0))?;
        let pos = header.len;
        let mut writer = Self {
            sink,
            mark,
            options: options.clone(),
            header,
            encoder: Encoder::new(),
            found: Box::new([Found::default(); 256]),
            #[cfg(feature = "parallel")]
            pipeline: ChunkPipeline::new(options.threads),
            pos,
            entries: Vec::new(),
            bases: Box::new([0; 256]),
        };
        if options.embed_dtd {
            let codec = if dtd.len() > PLAIN_DTD { options.codec } else { Codec::Stored };
            let header = ChunkHeader { kind: chunk::DTD, ..ChunkHeader::default() };
            writer.chunk(header, &How::of_text(codec), &RawContent { raw: dtd, element: 0, ends: &[] })?;
        }
        // From here on a trace is there, whatever becomes of the program.
        writer.flush()?;
        Ok(writer)
    }

    /// Writes a data chunk.
    ///
    /// # Errors
    /// Writing failed; `raw` is over 64 MiB or not a whole number of elements; there are 2^32 chunks; the spec's flags
    /// do not go together.
    pub fn data(&mut self, spec: ChunkSpec, raw: &[u8]) -> Result<()> {
        self.data_records(spec, raw, &[])
    }

    /// Writes a data chunk whose records (metadata records and comments counted) end at `ends`, in ascending order, the
    /// last at the end of `raw`; filter 2 needs them.
    ///
    /// # Errors
    /// As [`data`](Self::data).
    pub fn data_records(&mut self, spec: ChunkSpec, raw: &[u8], ends: &[u32]) -> Result<()> {
        if ends.last().is_some_and(|&end| end as usize != raw.len()) || !ends.is_sorted() {
            return Err(Error::at(self.pos, ErrorKind::Usage("records that do not end where their chunk does")));
        }
        let header = self.data_header(spec)?;
        let element = if spec.width > 0 { spec.width } else { spec.element };
        let content = RawContent { raw, element, ends };
        let how = self.how(spec.section);
        self.chunk(header, &how, &content)?;
        self.bases[usize::from(spec.section)] += raw.len() as u64;
        Ok(())
    }

    /// The header of a data chunk: the fields that describe its content.
    fn data_header(&self, spec: ChunkSpec) -> Result<ChunkHeader> {
        if spec.shared && (spec.group_start || !spec.reset || spec.group != 0) || spec.group_start && !spec.reset {
            return Err(Error::at(self.pos, ErrorKind::Usage("a chunk's flags do not go together")));
        }
        let flag = |on: bool, bit: u8| if on { bit } else { 0 };
        Ok(ChunkHeader {
            section: spec.section,
            kind: chunk::DATA,
            flags: flag(spec.reset, chunk::RESET)
                | flag(spec.group_start, chunk::GROUP)
                | flag(spec.shared, chunk::SHARED),
            width: spec.width,
            nrecords: spec.records,
            group: spec.group,
            base: self.bases[usize::from(spec.section)],
            ..ChunkHeader::default()
        })
    }

    /// The sink's memory, with place for a chunk header at its end, for content of a section to be put behind. None where the sink is not
    /// memory, or the content may be stored in another form. Nothing can be written until it is [given
    /// back](Self::return_memory).
    #[doc(hidden)]
    pub fn borrow_memory(&mut self, section: u8) -> Option<Vec<u8>> {
        let how = self.how(section);
        let plain =
            how.codec == Codec::Stored && matches!(how.filter, Filter::None | Filter::Auto) && how.trial.is_none();
        #[cfg(feature = "parallel")]
        let plain = plain && self.pipeline.is_none();
        let mut memory = std::mem::take(self.sink.memory().filter(|_| plain)?);
        memory.resize(memory.len() + chunk::LEN, 0);
        Some(memory)
    }

    /// Gives borrowed memory back, with a data chunk whose content begins at `start` and goes on to the end; with none, without
    /// the place for its header. So it is on an error.
    ///
    /// # Errors
    /// As [`data`](Self::data).
    #[doc(hidden)]
    pub fn return_memory(&mut self, spec: Option<ChunkSpec>, mut memory: Vec<u8>, start: usize) -> Result<()> {
        let laid = spec.map(|spec| self.head_in_place(spec, &mut memory, start));
        if !matches!(laid, Some(Ok(()))) {
            memory.truncate(start.saturating_sub(chunk::LEN));
        }
        if let Some(sink) = self.sink.memory() {
            *sink = memory;
        }
        laid.unwrap_or(Ok(()))
    }

    /// Writes the header of a chunk in borrowed memory.
    fn head_in_place(&mut self, spec: ChunkSpec, memory: &mut [u8], start: usize) -> Result<()> {
        let header = self.data_header(spec)?;
        let nothing = Error::at(self.pos, ErrorKind::Usage("memory that was not borrowed"));
        let (head, payload) = memory.split_at_mut_checked(start).ok_or(nothing)?;
        let header = ChunkHeader { raw_len: self.raw_len(payload)?, ..header };
        let header = self.complete(header, &Encoded::plain(payload), 0, payload)?;
        *head.last_chunk_mut().ok_or(nothing)? = header.emit(payload);
        self.bases[usize::from(spec.section)] += payload.len() as u64;
        self.laid(&header);
        Ok(())
    }

    /// How a chunk of a section is to be stored.
    fn how(&self, section: u8) -> How {
        let (codec, filter) = self.options.of_section(section);
        let own = self.options.section_options.contains_key(&section);
        How { codec, filter, trial: self.options.trial.clone().filter(|_| !own) }
    }

    /// Writes user metadata: a JSON object, which is not checked. It is handed on at once, as the header is: where its writer is killed,
    /// an unfinished trace says where it comes from.
    ///
    /// # Errors
    /// Writing failed; `json` is over 64 MiB; there are 2^32 chunks.
    pub fn user_metadata(&mut self, json: &str) -> Result<()> {
        let codec = if json.len() > PLAIN_DTD { self.options.codec } else { Codec::Stored };
        let header = ChunkHeader { kind: chunk::USER, ..ChunkHeader::default() };
        self.chunk(header, &How::of_text(codec), &RawContent { raw: json.as_bytes(), element: 0, ends: &[] })?;
        self.flush_written()
    }

    /// The trace's class.
    #[must_use]
    pub fn class(&self) -> Class {
        self.header.class
    }

    /// Bytes written so far; chunks that threads compress are not written yet.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.pos
    }

    /// Hands what is written on to where it goes.
    ///
    /// # Errors
    /// Writing failed.
    pub fn flush(&mut self) -> Result<()> {
        self.drain()?;
        Ok(self.sink.flush()?)
    }

    /// Hands what is written on to where it goes, except for chunks that threads still compress.
    ///
    /// # Errors
    /// Writing failed.
    pub fn flush_written(&mut self) -> Result<()> {
        #[cfg(feature = "parallel")]
        while self.lay_first(false)? {}
        Ok(self.sink.flush()?)
    }

    /// Writes index and footer, and `nrecords` into the header where the sink can overwrite and the class can hold it.
    ///
    /// # Errors
    /// Writing failed; there are more chunks than an index can hold.
    pub fn finish(mut self, nrecords: u64) -> Result<S> {
        self.drain()?;
        let mut entries = Vec::with_capacity(self.entries.len() * index::ENTRY);
        self.entries.iter().for_each(|entry| entry.emit(&mut entries));
        let too_many = |_| Error::at(self.pos, ErrorKind::Limit("an index of 4 GiB"));
        let len = u32::try_from(entries.len()).map_err(too_many)?;
        let header = ChunkHeader { kind: chunk::INDEX, stored_len: len, raw_len: len, ..self.common()? };
        self.sink.write_all(&header.emit(&entries))?;
        self.sink.write_all(&entries)?;
        self.sink.write_all(&index::footer(self.pos))?;
        let nrecords = representable(self.header.class, nrecords);
        if let Some(mark) = self.mark.filter(|_| nrecords > 0) {
            let int = self.header.class.int_size();
            let mut bytes = Vec::with_capacity(int);
            self.header.order.write(nrecords, int, &mut bytes);
            self.sink.overwrite(mark + (INTS_AT + 2 * int) as u64, &bytes)?;
        }
        self.sink.flush()?;
        Ok(self.sink)
    }

    /// What every chunk header has.
    fn common(&self) -> Result<ChunkHeader> {
        let too_many = |_| Error::at(self.pos, ErrorKind::Limit("2^32 chunks"));
        Ok(ChunkHeader {
            class: self.header.class.number(),
            order: self.header.order.number(),
            sequence: u32::try_from(self.entries.len()).map_err(too_many)?,
            ..ChunkHeader::default()
        })
    }

    /// Writes a chunk, or gives it to a thread. Of `header` only the fields that describe the content count, not those for its storage.
    fn chunk(&mut self, header: ChunkHeader, how: &How, content: &RawContent<'_>) -> Result<()> {
        let header = ChunkHeader { raw_len: self.raw_len(content.raw)?, ..header };
        #[cfg(feature = "parallel")]
        if self.pipeline.is_some() {
            return self.give(header, how, content);
        }
        // Text has no section, whose chunks it would learn from.
        let mut text = Found::default();
        let found = if header.kind == chunk::DATA { &mut self.found[usize::from(header.section)] } else { &mut text };
        let encoded = self.encoder.encode(found, how, content)?;
        let encoder = std::mem::replace(&mut self.encoder, Encoder::new());
        let laid = self.lay(header, &encoded, content.element, encoder.payload(&encoded, content.raw));
        self.encoder = encoder;
        laid
    }

    fn raw_len(&self, raw: &[u8]) -> Result<u32> {
        let limit = Error::at(self.pos, ErrorKind::Limit("64 MiB of content in a chunk"));
        u32::try_from(raw.len()).ok().filter(|_| raw.len() <= MAX_RAW_LEN).ok_or(limit)
    }

    /// Gives a chunk to a thread, and lays down those that are done.
    #[cfg(feature = "parallel")]
    fn give(&mut self, header: ChunkHeader, how: &How, content: &RawContent<'_>) -> Result<()> {
        while self.pipeline.as_ref().is_some_and(ChunkPipeline::is_full) {
            self.lay_first(true)?;
        }
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.give(header, how, content);
        }
        while self.lay_first(false)? {}
        Ok(())
    }

    /// Lays down the first of the chunks that threads have; false where there is none, or none that is done.
    #[cfg(feature = "parallel")]
    fn lay_first(&mut self, wait: bool) -> Result<bool> {
        let Some(chunk) = self.pipeline.as_mut().and_then(|pipeline| pipeline.first(wait)) else { return Ok(false) };
        let encoded = chunk.encoded?;
        self.lay(chunk.header, &encoded, chunk.element, chunk.payload())?;
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.reuse(chunk);
        }
        Ok(true)
    }

    /// Waits for all chunks that threads have.
    fn drain(&mut self) -> Result<()> {
        #[cfg(feature = "parallel")]
        while self.lay_first(true)? {}
        Ok(())
    }

    /// Puts a chunk into the file.
    fn lay(&mut self, header: ChunkHeader, encoded: &Encoded, element: u8, payload: &[u8]) -> Result<()> {
        let header = self.complete(header, encoded, element, payload)?;
        self.sink.write_all(&header.emit(payload))?;
        self.sink.write_all(payload)?;
        self.laid(&header);
        Ok(())
    }

    /// A chunk's header, completed by the fields for its storage.
    fn complete(&self, header: ChunkHeader, encoded: &Encoded, element: u8, payload: &[u8]) -> Result<ChunkHeader> {
        let limit = |_| Error::at(self.pos, ErrorKind::Limit("64 MiB of content in a chunk"));
        let common = self.common()?;
        let stored_len = u32::try_from(payload.len());
        Ok(ChunkHeader {
            codec: encoded.codec,
            filter: encoded.filter,
            width: if encoded.filter == chunk::TRANSPOSE { element } else { header.width },
            filtered_len: u32::try_from(encoded.filtered_len).map_err(limit)?,
            class: common.class,
            order: common.order,
            sequence: common.sequence,
            stored_len: stored_len.map_err(|_| Error::at(self.pos, ErrorKind::Limit("a chunk of 4 GiB")))?,
            ..header
        })
    }

    /// A chunk is in the file.
    fn laid(&mut self, header: &ChunkHeader) {
        self.entries.push(ChunkInfo::of(header, self.pos));
        self.pos += header.total_len();
    }
}
