//! The writer for version 1 traces, which consist of chunks, an index and a footer (spec 5.2).

use super::chunk::{self, ChunkHeader};
#[cfg(feature = "parallel")]
use super::chunk_pipeline::ChunkPipeline;
use super::codec::Codec;
use super::columns::Rows;
use super::encode::{Encoded, Encoder};
use super::existing::ExistingTrace;
use super::feature_names;
use super::header::{Class, Header, INTS_AT};
use super::index::{self, ChunkInfo};
use super::options::{Filter, WriteOptions, representable};
use super::part::MAX_RAW_LEN;
use super::raw_content::RawContent;
use super::sink::Sink;
use super::times::{GroupTimes, TimeLeaf, TimeRange};
use super::trial::{Found, How};
use crate::{Error, ErrorKind, Result};

/// Maximum length of a DTD that is stored uncompressed, so that it can be found in the file with any tool.
const PLAIN_DTD: usize = 4 << 10;

/// A data chunk without its content.
///
/// See the [crate's example](crate#examples).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkSpec {
    /// Number of the section.
    pub section: u8,
    /// Whether the state is reset here. Must be set for a section's first chunk in a group and for shared tables.
    pub reset: bool,
    /// Whether this is the first chunk of its group.
    pub group_start: bool,
    /// Whether this is a chunk of a shared table. If so, `group` must be 0, and the chunk neither starts a group nor
    /// belongs to one.
    pub shared: bool,
    /// The stored width of the leaf in a stream section of single numbers, or 0 in any other section.
    pub width: u8,
    /// Number of data records or stream elements in the chunk.
    pub records: u32,
    /// Number of the chunk's group.
    pub group: u32,
    /// Element size for the filter if `width` is 0; 0 if the elements differ in size.
    pub element: u8,
}

/// A writer for a version 1 trace. The output is consistent after each call. A trace that is never finished contains no
/// index and no footer, and reading it produces a warning.
///
/// The [crate's example](crate#examples) writes a complete trace.
///
/// # Examples
///
/// Chunks that were flushed before the program died remain readable:
///
/// ```
/// use metatf_container::{ChunkSpec, ChunkWriter, Reader, Warning, WriteOptions};
///
/// let mut file = Vec::new();
/// let mut writer = ChunkWriter::new(&mut file, &WriteOptions::default(), b"section log 1 { }")?;
/// let spec = ChunkSpec { section: 1, reset: true, group_start: true, records: 1, ..ChunkSpec::default() };
/// writer.data(spec, b"one")?;
/// writer.flush()?;
/// drop(writer); // The program dies before `finish`.
///
/// let mut reader = Reader::from_slice(&file)?;
/// assert_eq!(reader.next_part()?.and_then(|part| part.records), Some(1));
/// assert!(reader.next_part()?.is_none());
/// assert_eq!(reader.warnings(), [Warning::NotClosed]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ChunkWriter<S: Sink> {
    chunks: Chunks,
    sink: S,
}

impl<S: Sink> ChunkWriter<S> {
    /// Starts a trace by writing the header and, if it is to be embedded, the DTD. Both are flushed immediately.
    /// Continues the trace in an [`AppendFile`](crate::AppendFile).
    ///
    /// # Errors
    /// Returns an error if writing fails, if the URL or the DTD is too long, if a codec is not built in, or if the trace
    /// to be continued has another DTD.
    pub fn new(mut sink: S, options: &WriteOptions, dtd: &[u8]) -> Result<Self> {
        Ok(Self { chunks: Chunks::new(&mut sink, options, dtd, &|existing| existing == dtd)?, sink })
    }

    /// Writes a data chunk.
    ///
    /// # Errors
    /// Returns an error if writing fails, if `raw` exceeds 64 MiB or does not consist of complete elements, if there
    /// are already 2^32 chunks, or if the flags in `spec` contradict each other.
    pub fn data(&mut self, spec: ChunkSpec, raw: &[u8]) -> Result<()> {
        self.data_records(spec, raw, &[])
    }

    /// Writes a data chunk whose records, including metadata records and comments, end at `ends`. The ends must be in
    /// ascending order, and the last end must be the end of `raw`. Filter 2 requires the ends.
    ///
    /// # Errors
    /// As for [`data`](Self::data).
    pub fn data_records(&mut self, spec: ChunkSpec, raw: &[u8], ends: &[u32]) -> Result<()> {
        self.chunks.data_records(&mut self.sink, spec, raw, ends, None)
    }

    /// Writes a JSON object as user metadata, without validating it. Like the header, it is flushed immediately, so
    /// that the trace identifies its origin even if the writer is killed.
    ///
    /// # Errors
    /// Returns an error if writing fails, if `json` exceeds 64 MiB, or if there are already 2^32 chunks.
    pub fn user_metadata(&mut self, json: &str) -> Result<()> {
        self.chunks.user_metadata(&mut self.sink, json)
    }

    /// Returns the chunks written so far, including those of a trace that is being [continued](crate::AppendFile).
    #[must_use]
    pub fn chunks(&self) -> &[ChunkInfo] {
        &self.chunks.entries
    }

    /// Returns the trace's class.
    #[must_use]
    pub fn class(&self) -> Class {
        self.chunks.header.class
    }

    /// Returns the number of bytes written so far, excluding chunks that threads are still compressing.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.chunks.pos
    }

    /// Writes all pending chunks and flushes the sink.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn flush(&mut self) -> Result<()> {
        self.chunks.flush(&mut self.sink)
    }

    /// Writes the finished chunks and flushes the sink, without waiting for chunks that threads are still compressing.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn flush_written(&mut self) -> Result<()> {
        self.chunks.flush_written(&mut self.sink)
    }

    /// Writes the index and the footer. Also writes `nrecords` to the header if the sink can be overwritten and the
    /// class can represent the number.
    ///
    /// # Errors
    /// Returns an error if writing fails or there are more chunks than an index can hold.
    pub fn finish(mut self, nrecords: u64) -> Result<S> {
        self.chunks.finish(&mut self.sink, nrecords)?;
        Ok(self.sink)
    }
}

/// The state of a [`ChunkWriter`] without its sink, which is an argument of its methods. They are compiled once rather than
/// for each type of sink.
#[doc(hidden)]
pub struct Chunks {
    /// Start of the trace in the sink, if the sink can be overwritten.
    mark: Option<u64>,
    options: WriteOptions,
    header: Header,
    encoder: Encoder,
    /// The findings about each section.
    found: Box<[Found; 256]>,
    /// The compression threads, if any.
    #[cfg(feature = "parallel")]
    pipeline: Option<ChunkPipeline>,
    /// Offset of the next chunk.
    pos: u64,
    entries: Vec<ChunkInfo>,
    bases: Box<[u64; 256]>,
    /// The times of the groups that have ended.
    times: GroupTimes,
}

impl Chunks {
    /// As for [`ChunkWriter::new`]. If the sink contains a trace, `is_same` decides whether the text of its DTD has the
    /// same meaning as `dtd`.
    ///
    /// # Errors
    /// As for [`ChunkWriter::new`].
    pub fn new(
        sink: &mut dyn Sink,
        options: &WriteOptions,
        dtd: &[u8],
        is_same: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Self> {
        options.check_codecs()?;
        if let Some(existing) = sink.existing() {
            if !is_same(&existing.dtd) {
                let why = "the DTD of the trace to be continued has another meaning than that of the writer";
                return Err(Error::at(existing.header.start, ErrorKind::Mismatch(why)));
            }
            return Ok(Self::resume(existing, sink.mark(), options));
        }
        let header = options.header(1)?;
        let mark = sink.mark();
        sink.write_all(&header.emit(0))?;
        let mut writer = Self::at(header.len, mark, header, options);
        if options.embed_dtd {
            let codec = if dtd.len() > PLAIN_DTD { options.codec } else { Codec::Stored };
            let header = ChunkHeader { kind: chunk::DTD, ..ChunkHeader::default() };
            writer.chunk(
                sink,
                header,
                &How::of_text(codec),
                &RawContent { raw: dtd, element: 0, ends: &[], rows: None },
            )?;
        }
        // From now on, the file is a valid trace even if the program dies.
        writer.flush(sink)?;
        Ok(writer)
    }

    /// Continues a trace with another group.
    fn resume(existing: ExistingTrace, mark: Option<u64>, options: &WriteOptions) -> Self {
        let mut writer = Self::at(existing.end, mark, existing.header, options);
        for chunk in existing.chunks.iter().filter(|chunk| chunk.is_data()) {
            writer.bases[usize::from(chunk.section)] = chunk.base + u64::from(chunk.raw_len);
        }
        writer.entries = existing.chunks;
        writer.times = existing.times.unwrap_or_default();
        writer
    }

    fn at(pos: u64, mark: Option<u64>, header: Header, options: &WriteOptions) -> Self {
        Self {
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
            times: GroupTimes::default(),
        }
    }

    /// Sets the leaves that contain times. The times of groups that already exist are kept if they are times of the same
    /// leaves.
    #[doc(hidden)]
    pub fn set_time_leaves(&mut self, leaves: Vec<TimeLeaf>) {
        if self.times.leaves != leaves {
            self.times = GroupTimes { leaves, groups: Vec::new() };
        }
        let groups = self.groups();
        self.times.groups.resize(groups, TimeRange::ALL);
    }

    /// Ends a group whose first chunk has been written, and states the times of its records.
    #[doc(hidden)]
    pub fn end_group(&mut self, times: TimeRange) {
        if !self.times.leaves.is_empty() {
            self.times.groups.push(times);
        }
    }

    /// Returns the number of groups written so far.
    fn groups(&self) -> usize {
        self.entries.iter().filter(|chunk| chunk.is_group_start()).count()
    }

    /// Writes the times of the groups, unless they are unknown or the trace has only one group, so that there is nothing
    /// to skip.
    fn write_times(&mut self, sink: &mut dyn Sink) -> Result<()> {
        let GroupTimes { leaves, groups } = &self.times;
        let is_known = groups.iter().any(|times| *times != TimeRange::ALL);
        if leaves.is_empty() || !is_known || groups.len() < 2 || groups.len() != self.groups() {
            return Ok(());
        }
        let content = self.times.emit();
        if content.len() > MAX_RAW_LEN {
            return Ok(());
        }
        let codec = if content.len() > PLAIN_DTD { self.options.codec } else { Codec::Stored };
        let header = ChunkHeader { kind: chunk::TIMES, ..ChunkHeader::default() };
        self.chunk(
            sink,
            header,
            &How::of_text(codec),
            &RawContent { raw: &content, element: 0, ends: &[], rows: None },
        )?;
        self.drain(sink)
    }

    /// Returns the header and the chunks written so far.
    #[doc(hidden)]
    #[must_use]
    pub fn written(&self) -> (&Header, &[ChunkInfo]) {
        (&self.header, &self.entries)
    }

    /// As for [`ChunkWriter::data_records`]. Filter 4 requires the rows.
    ///
    /// # Errors
    /// As for [`ChunkWriter::data`].
    pub fn data_records(
        &mut self,
        sink: &mut dyn Sink,
        spec: ChunkSpec,
        raw: &[u8],
        ends: &[u32],
        rows: Option<&Rows>,
    ) -> Result<()> {
        if ends.last().is_some_and(|&end| end as usize != raw.len()) || !ends.is_sorted() {
            return Err(Error::at(self.pos, ErrorKind::Usage("the last record must end at the end of its chunk")));
        }
        let header = self.data_header(spec)?;
        let element = if spec.width > 0 { spec.width } else { spec.element };
        let rows = rows.filter(|_| self.header.features & feature_names::COLUMNS != 0);
        let content = RawContent { raw, element, ends, rows };
        let how = self.how(spec.section);
        self.chunk(sink, header, &how, &content)?;
        self.bases[usize::from(spec.section)] += raw.len() as u64;
        Ok(())
    }

    /// Returns the header of a data chunk with the fields that describe its content.
    fn data_header(&self, spec: ChunkSpec) -> Result<ChunkHeader> {
        if spec.shared && (spec.group_start || !spec.reset || spec.group != 0) || spec.group_start && !spec.reset {
            return Err(Error::at(self.pos, ErrorKind::Usage("the chunk's flags contradict each other")));
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

    /// Returns the sink's memory with space for a chunk header at its end, so that content of a section can be appended
    /// to it. Returns `None` if the sink is not memory or if the content may be compressed or filtered. Nothing can be
    /// written until the memory is [returned](Self::return_memory).
    #[doc(hidden)]
    pub fn borrow_memory(&mut self, sink: &mut dyn Sink, section: u8) -> Option<Vec<u8>> {
        let how = self.how(section);
        let plain =
            how.codec == Codec::Stored && matches!(how.filter, Filter::None | Filter::Auto) && how.trial.is_none();
        #[cfg(feature = "parallel")]
        let plain = plain && self.pipeline.is_none();
        let mut memory = std::mem::take(sink.memory().filter(|_| plain)?);
        memory.resize(memory.len() + chunk::LEN, 0);
        Some(memory)
    }

    /// Hands borrowed memory back to the sink, with a data chunk whose content extends from `start` to the end of the
    /// memory. If `spec` is `None`, or on an error, the space for the chunk header is removed.
    ///
    /// # Errors
    /// As for [`ChunkWriter::data`].
    #[doc(hidden)]
    pub fn return_memory(
        &mut self,
        sink: &mut dyn Sink,
        spec: Option<ChunkSpec>,
        mut memory: Vec<u8>,
        start: usize,
    ) -> Result<()> {
        let laid = spec.map(|spec| self.head_in_place(spec, &mut memory, start));
        if !matches!(laid, Some(Ok(()))) {
            memory.truncate(start.saturating_sub(chunk::LEN));
        }
        if let Some(place) = sink.memory() {
            *place = memory;
        }
        laid.unwrap_or(Ok(()))
    }

    /// Writes the header of a chunk in borrowed memory.
    fn head_in_place(&mut self, spec: ChunkSpec, memory: &mut [u8], start: usize) -> Result<()> {
        let header = self.data_header(spec)?;
        let nothing = Error::at(self.pos, ErrorKind::Usage("the memory was not borrowed"));
        let (head, payload) = memory.split_at_mut_checked(start).ok_or(nothing)?;
        let header = ChunkHeader { raw_len: self.raw_len(payload)?, ..header };
        let header = self.complete(header, &Encoded::plain(payload), 0, payload)?;
        *head.last_chunk_mut().ok_or(nothing)? = header.emit(payload);
        self.bases[usize::from(spec.section)] += payload.len() as u64;
        self.laid(&header);
        Ok(())
    }

    /// Returns the options for storing a chunk of a section.
    fn how(&self, section: u8) -> How {
        let (codec, filter) = self.options.of_section(section);
        let own = self.options.section_options.contains_key(&section);
        How { codec, filter, trial: self.options.trial.clone().filter(|_| !own) }
    }

    /// As for [`ChunkWriter::user_metadata`].
    ///
    /// # Errors
    /// As for [`ChunkWriter::user_metadata`].
    pub fn user_metadata(&mut self, sink: &mut dyn Sink, json: &str) -> Result<()> {
        let codec = if json.len() > PLAIN_DTD { self.options.codec } else { Codec::Stored };
        let header = ChunkHeader { kind: chunk::USER, ..ChunkHeader::default() };
        self.chunk(
            sink,
            header,
            &How::of_text(codec),
            &RawContent { raw: json.as_bytes(), element: 0, ends: &[], rows: None },
        )?;
        self.flush_written(sink)
    }

    /// As for [`ChunkWriter::flush`].
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn flush(&mut self, sink: &mut dyn Sink) -> Result<()> {
        self.drain(sink)?;
        Ok(sink.flush()?)
    }

    /// As for [`ChunkWriter::flush_written`].
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub fn flush_written(&mut self, sink: &mut dyn Sink) -> Result<()> {
        #[cfg(feature = "parallel")]
        while self.lay_first(sink, false)? {}
        Ok(sink.flush()?)
    }

    /// As for [`ChunkWriter::finish`].
    ///
    /// # Errors
    /// As for [`ChunkWriter::finish`].
    pub fn finish(mut self, sink: &mut dyn Sink, nrecords: u64) -> Result<()> {
        self.drain(sink)?;
        self.write_times(sink)?;
        let mut entries = Vec::with_capacity(self.entries.len() * index::ENTRY);
        self.entries.iter().for_each(|entry| entry.emit(&mut entries));
        let too_many = |_| Error::at(self.pos, ErrorKind::Limit("an index of 4 GiB"));
        let len = u32::try_from(entries.len()).map_err(too_many)?;
        let header = ChunkHeader { kind: chunk::INDEX, stored_len: len, raw_len: len, ..self.common()? };
        sink.write_all(&header.emit(&entries))?;
        sink.write_all(&entries)?;
        sink.write_all(&index::footer(self.pos))?;
        let nrecords = representable(self.header.class, nrecords);
        if let Some(mark) = self.mark.filter(|_| nrecords > 0) {
            let int = self.header.class.int_size();
            let mut bytes = Vec::with_capacity(int);
            self.header.order.write(nrecords, int, &mut bytes);
            sink.overwrite(mark + (INTS_AT + 2 * int) as u64, &bytes)?;
        }
        Ok(sink.flush()?)
    }

    /// Returns the fields that all chunk headers have in common.
    fn common(&self) -> Result<ChunkHeader> {
        let too_many = |_| Error::at(self.pos, ErrorKind::Limit("2^32 chunks"));
        Ok(ChunkHeader {
            class: self.header.class.number(),
            order: self.header.order.number(),
            sequence: u32::try_from(self.entries.len()).map_err(too_many)?,
            ..ChunkHeader::default()
        })
    }

    /// Writes a chunk or hands it to a thread. Only the fields of `header` that describe the content are used; the
    /// fields that describe its storage are ignored.
    fn chunk(&mut self, sink: &mut dyn Sink, header: ChunkHeader, how: &How, content: &RawContent<'_>) -> Result<()> {
        let header = ChunkHeader { raw_len: self.raw_len(content.raw)?, ..header };
        #[cfg(feature = "parallel")]
        if self.pipeline.is_some() {
            return self.give(sink, header, how, content);
        }
        // Text belongs to no section, so no earlier chunks provide findings.
        let mut text = Found::default();
        let found = if header.kind == chunk::DATA { &mut self.found[usize::from(header.section)] } else { &mut text };
        let encoded = self.encoder.encode(found, how, content)?;
        let encoder = std::mem::replace(&mut self.encoder, Encoder::new());
        let laid = self.lay(sink, header, &encoded, content.element, encoder.payload(&encoded, content.raw));
        self.encoder = encoder;
        laid
    }

    fn raw_len(&self, raw: &[u8]) -> Result<u32> {
        let limit = Error::at(self.pos, ErrorKind::Limit("64 MiB of content in a chunk"));
        u32::try_from(raw.len()).ok().filter(|_| raw.len() <= MAX_RAW_LEN).ok_or(limit)
    }

    /// Hands a chunk to a thread and writes finished chunks.
    #[cfg(feature = "parallel")]
    fn give(&mut self, sink: &mut dyn Sink, header: ChunkHeader, how: &How, content: &RawContent<'_>) -> Result<()> {
        while self.pipeline.as_ref().is_some_and(ChunkPipeline::is_full) {
            self.lay_first(sink, true)?;
        }
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.give(header, how, content);
        }
        while self.lay_first(sink, false)? {}
        Ok(())
    }

    /// Writes the first pending chunk. Returns false if no chunks are pending, or if the first one is not finished and
    /// `wait` is not set.
    #[cfg(feature = "parallel")]
    fn lay_first(&mut self, sink: &mut dyn Sink, wait: bool) -> Result<bool> {
        let Some(chunk) = self.pipeline.as_mut().and_then(|pipeline| pipeline.first(wait)) else { return Ok(false) };
        let encoded = chunk.encoded?;
        self.lay(sink, chunk.header, &encoded, chunk.element, chunk.payload())?;
        if let Some(pipeline) = &mut self.pipeline {
            pipeline.reuse(chunk);
        }
        Ok(true)
    }

    /// Waits for all pending chunks and writes them.
    #[cfg_attr(not(feature = "parallel"), allow(unused_variables, reason = "only threads leave chunks pending"))]
    fn drain(&mut self, sink: &mut dyn Sink) -> Result<()> {
        #[cfg(feature = "parallel")]
        while self.lay_first(sink, true)? {}
        Ok(())
    }

    /// Writes a chunk to the file.
    fn lay(
        &mut self,
        sink: &mut dyn Sink,
        header: ChunkHeader,
        encoded: &Encoded,
        element: u8,
        payload: &[u8],
    ) -> Result<()> {
        let header = self.complete(header, encoded, element, payload)?;
        sink.write_all(&header.emit(payload))?;
        sink.write_all(payload)?;
        self.laid(&header);
        Ok(())
    }

    /// Returns a chunk's header with its storage fields filled in.
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

    /// Updates the writer's state after a chunk has been written to the file.
    fn laid(&mut self, header: &ChunkHeader) {
        self.entries.push(ChunkInfo::of(header, self.pos));
        self.pos += header.total_len();
    }
}
