//! Options for writing a trace.

use std::collections::BTreeMap;
use std::time::Duration;

use super::codec::Codec;
use super::feature_names;
use super::header::{Class, Header, Order};
use crate::{Error, ErrorKind, Result};

/// The filter applied to a chunk's content before compression (spec 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// No filter.
    None,
    /// Filter 1: transposes the elements of a chunk if all of them have the same size of 2 to 255 bytes.
    Transpose,
    /// Filter 2: replaces records that occur more than once in a chunk with one or two bytes, in sections of tagged
    /// records.
    RecordDictionary,
    /// Filter 3: like filter 2, but splits off the last byte of each record. The split-off bytes are sorted by the
    /// bytes that precede them.
    SplitSuffix,
    /// Filter 4: stores each leaf in its own streams, in sections of tagged records, so that readers
    /// can leave out leaves that nobody asked for. Other sections are stored as with [`Auto`](Self::Auto). Readers need
    /// the feature `columns`, so a continued trace is stored with this filter only if it was started with it.
    Columns,
    /// Tries all applicable filters on a section's first chunk, and occasionally on later chunks, and keeps the filter
    /// with the shortest result. For a long chunk, a sample is tried unless the slack of a [`Trial`] is 0.
    Auto,
}

impl Filter {
    /// Returns the name of the filter with this number in a chunk header.
    #[must_use]
    pub fn name_of(number: u8) -> Option<&'static str> {
        ["none", "transpose", "record-dictionary", "split-suffix", "columns"].get(usize::from(number)).copied()
    }
}

/// The codecs to try on a section's first chunk, and occasionally on later chunks, with the filters that the options
/// allow.
///
/// # Examples
///
/// Without slack, LZ4 is chosen only for content that it shortens:
///
#[cfg_attr(feature = "lz4", doc = "```")]
#[cfg_attr(not(feature = "lz4"), doc = "```ignore")]
/// use metatf_container::{ChunkSpec, ChunkWriter, Codec, Reader, Trial, WriteOptions};
///
/// let trial = Some(Trial { codecs: vec![Codec::Lz4], slack: 0 });
/// let options = WriteOptions { trial, ..WriteOptions::default() };
/// let mut writer = ChunkWriter::new(Vec::new(), &options, b"section log 1 { }")?;
/// let spec = ChunkSpec { section: 1, reset: true, group_start: true, records: 1, ..ChunkSpec::default() };
/// writer.data(spec, &[7; 1000])?;
/// writer.data(ChunkSpec { section: 2, group_start: false, ..spec }, b"once")?;
/// let file = writer.finish(2)?;
///
/// let mut reader = Reader::from_slice(&file)?;
/// let data = reader.chunks()?.iter().filter(|chunk| chunk.is_data());
/// let codecs: Vec<u8> = data.map(|chunk| chunk.codec).collect();
/// assert_eq!(codecs, [Codec::Lz4.number(), Codec::Stored.number()]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The codecs, fastest to decode first. Storing is always tried, too.
    pub codecs: Vec<Codec>,
    /// Maximum percentage by which the result of the chosen codec may exceed the shortest result. The first codec
    /// within this limit is chosen. With 0, long chunks are tried completely instead of by sample.
    pub slack: u8,
}

/// The rule by which an allocator rounds sizes. A heap model treats objects with the same rounded size as one class,
/// and predicts that the next object in fresh memory starts at the end of the previous object's rounded size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SizeRule {
    /// An 8-byte header, then multiples of 16 with a minimum of 32, as in glibc and other descendants of Doug Lea's
    /// allocator.
    #[default]
    Header,
    /// Multiples of 16 up to 128, then four classes per power of two, as in jemalloc, mimalloc and tcmalloc.
    Classes,
}

/// The limits after which a record writer automatically passes its buffered data to the sink and flushes the sink. They
/// limit the amount of data lost if the program dies.
///
/// If there is a time limit, a single thread notifies all writers of the program when the time has passed. A flush ends
/// a chunk and, in formats with stream sections, a group, and smaller chunks compress worse. A chunk or group that is
/// filled within a third of the time limit is therefore never cut by it, so that the size of a trace does not depend on
/// how busy the machine is. If filling takes longer, a shorter time limit makes the trace larger.
///
/// # Examples
///
/// ```
/// use metatf_container::{FlushEvery, WriteOptions};
/// use std::time::Duration;
///
/// // A single limit replaces both default limits.
/// let every_100_ms = WriteOptions::default().flush_every(Duration::from_millis(100));
/// assert_eq!(every_100_ms.flush, FlushEvery { bytes: None, time: Some(Duration::from_millis(100)) });
/// let every_64_kib = WriteOptions::default().flush_every(65_536_usize);
/// assert_eq!(every_64_kib.flush, FlushEvery { bytes: Some(65_536), time: None });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushEvery {
    /// Flush when this many bytes of content (before compression) are buffered, or `None` for no limit.
    pub bytes: Option<usize>,
    /// Flush records that are about to become older than this, when the next record is written, or `None` for no time
    /// limit.
    pub time: Option<Duration>,
}

impl FlushEvery {
    /// Flush only on request and at the end, for files that are useless until they are complete.
    pub const NEVER: Self = Self { bytes: None, time: None };

    /// Flush every second and every 1 MiB, for output that another program reads while it is written.
    pub const LIVE: Self = Self { bytes: Some(1 << 20), time: Some(Duration::from_secs(1)) };
}

impl Default for FlushEvery {
    /// Returns limits of 1 MiB and ten seconds, whichever is reached first.
    fn default() -> Self {
        Self { time: Some(Duration::from_secs(10)), ..Self::LIVE }
    }
}

impl From<Duration> for FlushEvery {
    fn from(time: Duration) -> Self {
        Self { bytes: None, time: Some(time) }
    }
}

impl From<usize> for FlushEvery {
    fn from(bytes: usize) -> Self {
        Self { bytes: Some(bytes), time: None }
    }
}

/// Options for writing a trace.
///
/// # Examples
///
/// ```
/// use metatf_container::{ChunkWriter, Codec, Filter, Order, Reader, WriteOptions};
///
/// let mut options = WriteOptions { order: Order::Big, dtd_url: "log.dtd".to_owned(), ..WriteOptions::default() };
/// options.section_options.insert(2, (Codec::Stored, Filter::None));
/// assert_eq!(options.of_section(2), (Codec::Stored, Filter::None));
/// assert_eq!(options.of_section(1), (Codec::default(), Filter::Auto));
///
/// let file = ChunkWriter::new(Vec::new(), &options, b"section log 1 { }")?.finish(0)?;
/// let reader = Reader::from_slice(&file)?;
/// assert_eq!((reader.header().order, reader.header().dtd_url.as_str()), (Order::Big, "log.dtd"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// The format version: 1 for chunks (spec 5.2), 0 for the paper's layout (spec 5.1).
    pub version: u8,
    /// Writes a raw stream (version 0): only the content of one section, without a header (spec 5.4). It contains no
    /// metadata, so a value that does not fit in the DTD's encoding is an error.
    pub raw: bool,
    /// The class, 32 or 64 bits.
    pub class: Class,
    /// The byte order of content.
    pub order: Order,
    /// The URL of the DTD, at most 255 bytes.
    pub dtd_url: String,
    /// Whether a version 1 file embeds its DTD.
    pub embed_dtd: bool,
    /// The codec that compresses chunks.
    pub codec: Codec,
    /// Codecs to try on data chunks instead of `codec`. Sections in `section_options` are not affected.
    pub trial: Option<Trial>,
    /// The filter applied before compression.
    pub filter: Filter,
    /// Codecs and filters of individual sections, by section number.
    pub section_options: BTreeMap<u8, (Codec, Filter)>,
    /// The allocator's size rule, for sections with a heap model. With `None`, the rule is derived from the first
    /// objects.
    pub size_rule: Option<SizeRule>,
    /// Number of content bytes after which a chunk is closed.
    pub chunk_size: usize,
    /// Number of content bytes after which a group is closed, at the end of a chunk. Bytes of stream sections count as
    /// soon as they are written, not only when their chunk is closed.
    pub group_size: usize,
    /// Limits for automatic flushing. Version 0 traces and volatile sinks are not flushed.
    pub flush: FlushEvery,
    /// Number of threads for compressing and planning. With 0 or 1, the default, and without the `parallel` feature,
    /// the caller's thread does this work. The output does not depend on the number. Each thread keeps a few chunks in
    /// memory.
    pub threads: usize,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            version: 1,
            raw: false,
            class: Class::Bits64,
            order: Order::Little,
            dtd_url: String::new(),
            embed_dtd: true,
            codec: Codec::default(),
            trial: None,
            filter: Filter::Auto,
            section_options: BTreeMap::new(),
            size_rule: None,
            chunk_size: 1 << 20,
            group_size: 16 << 20,
            flush: FlushEvery::default(),
            threads: 1,
        }
    }
}

impl WriteOptions {
    /// Sets the limits for automatic flushing: a number of bytes, a [`Duration`], or [`FlushEvery::NEVER`].
    #[must_use]
    pub fn flush_every(self, flush: impl Into<FlushEvery>) -> Self {
        Self { flush: flush.into(), ..self }
    }

    /// Returns the codec and filter of a section.
    #[must_use]
    pub fn of_section(&self, number: u8) -> (Codec, Filter) {
        self.section_options.get(&number).copied().unwrap_or((self.codec, self.filter))
    }

    /// Returns whether a filter may need the ends of a section's records.
    #[must_use]
    pub fn wants_ends(&self, number: u8) -> bool {
        let (codec, filter) = self.of_section(number);
        match filter {
            Filter::None | Filter::Transpose => false,
            Filter::RecordDictionary | Filter::SplitSuffix | Filter::Columns => self.version == 1,
            // Stored content is not filtered, unless codecs are tried.
            Filter::Auto => {
                let trial = self.trial.is_some() && !self.section_options.contains_key(&number);
                self.version == 1 && (codec != Codec::Stored || trial)
            }
        }
    }

    /// Returns an error if the options contain a codec that is not built in.
    pub(crate) fn check_codecs(&self) -> Result<()> {
        let of_sections = self.section_options.values().map(|&(codec, _)| codec);
        let tried = self.trial.iter().flat_map(|trial| trial.codecs.iter().copied());
        of_sections.chain(tried).chain([self.codec]).try_for_each(Codec::check)
    }

    /// Returns the file header without a section table.
    pub(crate) fn header(&self, version: u8) -> Result<Header> {
        if self.dtd_url.len() > 255 {
            return Err(Error::at(0, ErrorKind::Limit("255 bytes for the DTD's URL")));
        }
        let filters = self.section_options.values().map(|&(_, filter)| filter).chain([self.filter]);
        let features = if version == 1 && filters.into_iter().any(|filter| filter == Filter::Columns) {
            feature_names::COLUMNS
        } else {
            0
        };
        let names = feature_names::size(features);
        let len = (super::header::INTS_AT + 3 * self.class.int_size() + self.dtd_url.len() + names) as u64;
        Ok(Header {
            class: self.class,
            order: self.order,
            version,
            start: len,
            nrecords: 0,
            dtd_url: self.dtd_url.clone(),
            sections: Vec::new(),
            features,
            len,
        })
    }
}

/// Returns `nrecords` as stored in the header: 0 if it is not representable (spec 5.1).
pub(crate) fn representable(class: Class, nrecords: u64) -> u64 {
    if class == Class::Bits32 && u32::try_from(nrecords).is_err() { 0 } else { nrecords }
}
