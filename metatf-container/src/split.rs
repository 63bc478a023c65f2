//! Splits a version 1 file, on disk or in memory, into its groups, each with its own reader (spec 5.2), so that the
//! groups can be read in parallel.
//!
//! Each piece of the file extends from the first chunk of a group to the first chunk of the next group, so every chunk
//! belongs to exactly one piece. The chunks before the first group (DTD, user metadata, tables) belong to the piece of
//! the first group. Tables and user metadata between two groups belong to the piece of the preceding group. The index
//! and the footer belong to the last piece.

use std::ops::Range;
use std::sync::Arc;

use super::chunk::{self, Frame, Probe};
use super::decode::Decoder;
use super::header::Header;
use super::index::ChunkInfo;
use super::order::Sequence;
use super::part::MAX_RAW_LEN;
use super::read::{Body, Reader};
use super::read_v1::Chunks;
use super::source::{Shared, Source};
use super::warning::Warning;

/// The groups of a file. Readers for them can be created on any thread.
#[derive(Clone, Debug)]
pub struct Split<'s> {
    source: Shared<'s>,
    header: Header,
    dtd: Option<Arc<[u8]>>,
    chunks: Arc<[ChunkInfo]>,
    /// The number of each piece's first chunk. The first piece starts at chunk 0.
    starts: Vec<usize>,
    /// For each chunk that is skipped, the number of its data records.
    skipped: Option<Arc<[Option<u32>]>>,
}

/// Content length below which a group is small, because creating a reader takes as long as reading the group.
const SMALL_GROUP: usize = 1 << 10;

impl Reader<'_> {
    /// Splits the file into its groups. Returns `None` if the file must be read as a whole: for a stream, for version
    /// 0, when salvaging, if reading has already begun, or if there is only one group. Every chunk header is checked
    /// here, individually and against the headers before it, as when reading in file order. If a header is invalid, the
    /// result is also `None`, and reading in file order reports the error.
    #[must_use]
    pub fn split(&self) -> Option<Split<'_>> {
        let source = self.source.share()?;
        let Body::Chunks(body) = &self.body else { return None };
        // The DTD is read on opening.
        let begun = body.jumped || body.seen.len() > usize::from(body.dtd.is_some());
        if self.salvage.is_some() || self.failed || body.done || begun {
            return None;
        }
        let chunks = checked(&mut source.open(), &self.header)?;
        // The chunks to skip were chosen with the index, which may be wrong.
        let skipped = body.skipped.clone();
        if skipped.is_some() && body.all.as_deref() != Some(&*chunks) {
            return None;
        }
        let groups = chunks.iter().enumerate().filter(|(_, chunk)| chunk.is_group_start()).map(|(n, _)| n);
        let starts: Vec<usize> = std::iter::once(0).chain(groups.skip(1)).collect();
        let header = self.header.clone();
        (starts.len() > 1).then(|| Split {
            source,
            header,
            dtd: body.dtd.clone(),
            chunks: chunks.into(),
            starts,
            skipped,
        })
    }

    /// Ends reading. The returned decoder can serve another reader, which then need not allocate its own contexts and
    /// memory.
    #[doc(hidden)]
    pub fn end(&mut self) -> Decoder {
        self.failed = true;
        match &mut self.body {
            Body::Chunks(body) => std::mem::take(&mut body.decoder),
            _ => Decoder::default(),
        }
    }

    /// Adopts the user metadata and the warnings found while reading the groups separately, as if this reader had read
    /// all groups.
    #[doc(hidden)]
    pub fn has_been_read(&mut self, user: Vec<Vec<u8>>, warnings: Vec<Warning>) {
        warnings.into_iter().for_each(|warning| self.warn(warning));
        if let Body::Chunks(body) = &mut self.body {
            body.user_len = user.iter().map(Vec::len).sum();
            body.user = user;
            body.done = true;
        }
    }
}

impl<'s> Split<'s> {
    /// Returns the number of groups, which is at least two.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.starts.len()
    }

    /// Returns the numbers of the groups that begin in this byte range of the file. If a file is divided into ranges,
    /// each group begins in exactly one of them.
    #[must_use]
    pub fn groups_in(&self, bytes: &Range<u64>) -> Range<usize> {
        let place = |byte: u64| {
            let before = |&chunk: &usize| self.chunks.get(chunk).is_some_and(|chunk| chunk.offset < byte);
            self.starts.partition_point(before)
        };
        place(bytes.start)..place(bytes.end).max(place(bytes.start))
    }

    /// Returns the chunks before the chunks of group `n`.
    #[must_use]
    pub fn chunks_before(&self, n: usize) -> &[ChunkInfo] {
        self.chunks.get(..self.chunks_of(n).start).unwrap_or_default()
    }

    /// Returns whether groups are so small on average that a single thread reading all of them is faster than several
    /// threads.
    #[must_use]
    pub fn has_small_groups(&self) -> bool {
        let content: usize = self.chunks.iter().map(|chunk| chunk.raw_len as usize).sum();
        content / SMALL_GROUP < self.groups()
    }

    /// Returns the numbers of the chunks of group `n`.
    #[must_use]
    pub fn chunks_of(&self, n: usize) -> Range<usize> {
        let start = |n: usize| self.starts.get(n).copied().unwrap_or(self.chunks.len());
        start(n)..start(n + 1)
    }

    /// Returns the number of content bytes in group `n` according to its chunk headers.
    #[must_use]
    pub fn content_len(&self, n: usize) -> u64 {
        let chunks = self.chunks.get(self.chunks_of(n)).unwrap_or_default();
        chunks.iter().map(|chunk| u64::from(chunk.raw_len)).sum()
    }

    /// Returns the numbers of the shared table chunks among the chunks of group `n`. The groups after it use these
    /// tables. [`Reader::read_chunk`] reads such a chunk.
    pub fn tables_of(&self, n: usize) -> impl Iterator<Item = usize> + '_ {
        self.chunks_of(n).filter(|&chunk| self.chunks.get(chunk).is_some_and(ChunkInfo::is_shared))
    }

    /// Creates a reader for group `n`, which starts at the group's first chunk and ends before the first chunk of the
    /// next group.
    #[must_use]
    pub fn reader(&self, n: usize) -> Reader<'s> {
        self.reader_with(n, Decoder::default())
    }

    /// Creates a reader like [`reader`](Self::reader), with the decoder of a reader that has [ended](Reader::end).
    #[doc(hidden)]
    #[must_use]
    pub fn reader_with(&self, n: usize, decoder: Decoder) -> Reader<'s> {
        let range = self.chunks_of(n);
        let at = |chunk: usize| self.chunks.get(chunk).map(|chunk| chunk.offset);
        let mut sequence = Sequence::new();
        if range.start > 0 {
            sequence.jump_to(range.start as u64);
        }
        let chunks = Chunks {
            pos: at(range.start).unwrap_or(self.header.start),
            sequence,
            decoder,
            dtd: self.dtd.clone(),
            user: Vec::new(),
            user_len: 0,
            seen: Vec::new(),
            all: Some(Arc::clone(&self.chunks)),
            jumped: true,
            skipped: self.skipped.clone(),
            skipped_records: 0,
            until: at(range.end),
            done: false,
            keeps_columns: false,
        };
        // The count in the header covers the records of all groups, so it does not apply to a single group.
        let header = Header { nrecords: 0, ..self.header.clone() };
        Reader::with(self.source.open(), header, Body::Chunks(Box::new(chunks)))
    }
}

/// Returns the chunks found by following their headers, without checking CRCs and contents, or `None` if a header is
/// invalid.
fn checked(source: &mut Source<'_>, file: &Header) -> Option<Vec<ChunkInfo>> {
    let mut sequence = Sequence::new();
    let (mut chunks, mut at, mut user) = (Vec::new(), file.start, 0);
    loop {
        let header = match chunk::frame(source, at).ok()? {
            Frame::Whole(header) => header,
            Frame::None(Probe::End) => return Some(chunks),
            Frame::None(_) => return None,
        };
        if header.kind == chunk::INDEX {
            return Some(chunks);
        }
        header.check(at, file).ok()?;
        sequence.check(&header, at).ok()?;
        sequence.note(&header);
        if header.kind == chunk::USER {
            user += header.raw_len as usize;
        }
        if user > MAX_RAW_LEN {
            return None;
        }
        chunks.push(ChunkInfo::of(&header, at));
        at += header.total_len();
    }
}
