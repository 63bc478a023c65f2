//! How a trace is to be written.

use std::collections::BTreeMap;
use std::time::Duration;

use super::codec::Codec;
use super::header::{Class, Header, Order};
use crate::{Error, ErrorKind, Result};

/// What is done to a chunk's content before it is compressed (spec 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Never.
    None,
    /// 1: elements are transposed, where all of a chunk have one size of 2 to 255 bytes.
    Transpose,
    /// 2: records that stand in a chunk more than once become a byte or two, in sections of tagged records.
    RecordDictionary,
    /// 3: as 2, except for the last byte of each record; these bytes are sorted by what is before them.
    SplitSuffix,
    /// All that can be done are tried on a section's first chunk, and now and then on later ones; the shortest is kept. Of a long
    /// chunk, a sample is tried, unless a [`Trial`] has no slack.
    Auto,
}

impl Filter {
    /// The name of the filter with this number in a chunk header.
    #[must_use]
    pub fn name_of(number: u8) -> Option<&'static str> {
        ["none", "transpose", "record-dictionary", "split-suffix"].get(usize::from(number)).copied()
    }
}

/// Codecs that are tried on a section's first chunk, and now and then on later ones, with the filters that the options
/// allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The codecs, those that are faster to read first; stored is tried, too.
    pub codecs: Vec<Codec>,
    /// The first is taken that is at most this many per cent longer than the shortest. With 0, long chunks are tried whole in
    /// place of a sample.
    pub slack: u8,
}

/// How an allocator rounds sizes: a model of the heap takes objects whose sizes round to the same number as one class, and
/// the next object of a stretch of fresh memory begins that many bytes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SizeRule {
    /// 8 bytes of header, multiples of 16, at least 32: glibc and other descendants of Doug Lea's allocator.
    #[default]
    Header,
    /// Multiples of 16 up to 128, then four classes to every power of two: jemalloc, mimalloc, tcmalloc.
    Classes,
}

/// When a writer of records hands what it holds to its sink, and flushes that, without being asked: how much a program
/// loses at most when it dies.
///
/// Where time matters, one thread of the program tells all writers when it has passed. Each flush ends a chunk, and in formats with stream sections a group. So the trace is larger the more often it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushEvery {
    /// When this many bytes of content (before compression) are held. `None`: any number may be.
    pub bytes: Option<usize>,
    /// With the first record that is written when so much time has passed since the last such flush. `None`: time does not
    /// matter.
    pub time: Option<Duration>,
}

impl FlushEvery {
    /// Only when the writer is asked, and at the end: for files that are of no use until they are whole.
    pub const NEVER: Self = Self { bytes: None, time: None };
}

impl Default for FlushEvery {
    /// 1 MiB or one second, whichever comes first.
    fn default() -> Self {
        Self { bytes: Some(1 << 20), time: Some(Duration::from_secs(1)) }
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

/// How a trace is to be written.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// 1: chunks (spec 5.2). 0: the paper's layout (spec 5.1).
    pub version: u8,
    /// Version 0: the content of one section alone, without a header, which is a raw stream (spec 5.4). There is no metadata in it: a
    /// value that does not fit the DTD's encoding is an error.
    pub raw: bool,
    /// 32 or 64 bit.
    pub class: Class,
    /// Byte order of content.
    pub order: Order,
    /// URL of the DTD, at most 255 bytes.
    pub dtd_url: String,
    /// Whether a version 1 file carries its DTD.
    pub embed_dtd: bool,
    /// How chunks are compressed.
    pub codec: Codec,
    /// Codecs that are tried on the chunks of data, in place of `codec`. Sections of `section_options` have theirs.
    pub trial: Option<Trial>,
    /// What is done before.
    pub filter: Filter,
    /// Sections, by number, that are compressed differently.
    pub section_options: BTreeMap<u8, (Codec, Filter)>,
    /// How the allocator rounds sizes, for sections with a model of the heap; `None`: as its first objects tell.
    pub size_rule: Option<SizeRule>,
    /// Bytes of content after which a chunk is closed.
    pub chunk_size: usize,
    /// Bytes of content after which a group is closed, at the end of a chunk; those of a stream section count at once.
    pub group_size: usize,
    /// When the writer flushes by itself. A version 0 trace is not flushed, nor a sink that is volatile.
    pub flush: FlushEvery,
    /// Threads that compress chunks, and plan; with 0 or 1, the default, the caller's does (and without the feature
    /// `parallel`). What is written is the same with any number. Each thread has some chunks in memory.
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
    /// Sets when the writer flushes by itself: a number of bytes, a [`Duration`], or [`FlushEvery::NEVER`].
    #[must_use]
    pub fn flush_every(self, flush: impl Into<FlushEvery>) -> Self {
        Self { flush: flush.into(), ..self }
    }

    /// Codec and filter of a section.
    #[must_use]
    pub fn of_section(&self, number: u8) -> (Codec, Filter) {
        self.section_options.get(&number).copied().unwrap_or((self.codec, self.filter))
    }

    /// Whether a filter may want to know where the records of a section end.
    #[must_use]
    pub fn wants_ends(&self, number: u8) -> bool {
        let (codec, filter) = self.of_section(number);
        match filter {
            Filter::None | Filter::Transpose => false,
            Filter::RecordDictionary | Filter::SplitSuffix => self.version == 1,
            // What is stored as it is takes no filter, unless a codec is looked for.
            Filter::Auto => {
                let trial = self.trial.is_some() && !self.section_options.contains_key(&number);
                self.version == 1 && (codec != Codec::Stored || trial)
            }
        }
    }

    /// Refuses codecs that were not built in.
    pub(crate) fn check_codecs(&self) -> Result<()> {
        let of_sections = self.section_options.values().map(|&(codec, _)| codec);
        let tried = self.trial.iter().flat_map(|trial| trial.codecs.iter().copied());
        of_sections.chain(tried).chain([self.codec]).try_for_each(Codec::check)
    }

    /// The file header, without a section table.
    pub(crate) fn header(&self, version: u8) -> Result<Header> {
        if self.dtd_url.len() > 255 {
            return Err(Error::at(0, ErrorKind::Limit("the DTD's URL has at most 255 bytes")));
        }
        let len = (super::header::INTS_AT + 3 * self.class.int_size() + self.dtd_url.len()) as u64;
        Ok(Header {
            class: self.class,
            order: self.order,
            version,
            start: len,
            nrecords: 0,
            dtd_url: self.dtd_url.clone(),
            sections: Vec::new(),
            len,
        })
    }
}

/// `nrecords` as the header can hold it: 0 where it is not representable (spec 5.1).
pub(crate) fn representable(class: Class, nrecords: u64) -> u64 {
    if class == Class::Bits32 && u32::try_from(nrecords).is_err() { 0 } else { nrecords }
}
