//! Random access to the chunks of a version 1 file, on disk or in memory, using its index (spec 5.2).

use std::sync::Arc;

use super::chunk::{self, ChunkHeader, Probe};
use super::decode::Decoder;
use super::header::Header;
use super::index::{self, ChunkInfo};
use super::order::Sequence;
use super::part::{Content, Part};
use super::read::{Body, Reader};
use super::read_v0::Extents;
use super::read_v1::{self, Chunks};
use super::source::Source;
use super::times::{GroupTimes, TimeRange};
use crate::{Error, ErrorKind, Result};

impl Reader<'_> {
    /// Returns all chunks of a version 1 file, on disk or in memory. They are taken from the index if it is valid,
    /// otherwise from the chunk headers. Index entries are verified when they are used.
    ///
    /// # Errors
    /// Returns an error if the input is not a version 1 file on disk or in memory, or if a chunk header is invalid. If
    /// a header is invalid, the file can only be read in order.
    pub fn chunks(&mut self) -> Result<&[ChunkInfo]> {
        let Body::Chunks(chunks) = &mut self.body else {
            return Err(usage("only version 1 has chunks"));
        };
        let all = match chunks.all.take() {
            Some(all) => all,
            None => match listed(&mut self.source, &self.header)? {
                Some(all) => all.into(),
                None => walked(&mut self.source, &self.header)?.into(),
            },
        };
        Ok(chunks.all.insert(all))
    }

    /// Positions the reader so that `next_part` continues at chunk `n`, which must be the first chunk of a group. If
    /// `n` is the number of chunks, `next_part` continues at the end and checks the index and the footer. Not available
    /// when salvaging.
    ///
    /// # Errors
    /// As for [`Reader::chunks`]. Also returns an error if chunk `n` is not the first chunk of a group.
    pub fn seek_chunk(&mut self, n: usize) -> Result<()> {
        let all = self.chunks()?;
        let pos = match all.get(n) {
            Some(chunk) if chunk.is_group_start() => Some(chunk.offset),
            None if n == all.len() => all.last().map(ChunkInfo::end),
            _ => return Err(usage("reading can only begin at the first chunk of a group")),
        };
        if self.salvage.is_some() {
            return Err(usage("salvaging requires reading in file order"));
        }
        if let Body::Chunks(chunks) = &mut self.body {
            chunks.pos = pos.unwrap_or(self.header.start);
            chunks.sequence.jump_to(n as u64);
            chunks.jumped = true;
            chunks.done = false;
            self.failed = false;
        }
        Ok(())
    }

    /// Returns the times of the groups of a version 1 file, on disk or in memory, or `None` if the file does not contain
    /// them.
    ///
    /// # Errors
    /// As for [`Reader::chunks`]. Also returns an error if the chunk with the times is invalid.
    pub fn group_times(&mut self) -> Result<Option<GroupTimes>> {
        if !matches!(self.body, Body::Chunks(_)) {
            return Ok(None);
        }
        let chunks = self.chunks()?;
        let Some(n) = chunks.iter().rposition(|chunk| chunk.kind == chunk::TIMES) else { return Ok(None) };
        let groups = |chunks: &[ChunkInfo]| chunks.iter().filter(|chunk| chunk.is_group_start()).count();
        let (before, all) = (groups(chunks.get(..n).unwrap_or_default()), groups(chunks));
        let (_, start, content) = self.chunk(n)?;
        let mut times = GroupTimes::parse(self.bytes(&content), start, before as u64)?;
        // A writer that does not know this kind of chunk may have added groups.
        times.groups.resize(all, TimeRange::ALL);
        Ok(Some(times))
    }

    /// Skips chunks. `skipped` contains an entry for each [chunk](Reader::chunks), which is the number of data records
    /// in a chunk to skip. Complete groups must be skipped, and reading must not have begun. Readers of
    /// [groups](Reader::split) skip the same chunks. Has no effect when salvaging.
    #[doc(hidden)]
    pub fn skip_chunks(&mut self, skip: Arc<[Option<u32>]>) {
        if let Body::Chunks(chunks) = &mut self.body {
            chunks.skipped = Some(skip).filter(|_| self.salvage.is_none());
        }
    }

    /// Returns the number of data records that were skipped since the last call.
    #[doc(hidden)]
    pub fn take_skipped_records(&mut self) -> u64 {
        match &mut self.body {
            Body::Chunks(chunks) => std::mem::take(&mut chunks.skipped_records),
            _ => 0,
        }
    }

    /// Returns the filter number of chunk `n`. It is read from the chunk's header, because the index does not contain
    /// it.
    ///
    /// # Errors
    /// As for [`Reader::chunks`]. Also returns an error if there is no chunk header.
    pub fn filter_of(&mut self, n: usize) -> Result<u8> {
        let Some(start) = self.chunks()?.get(n).map(|chunk| chunk.offset) else {
            return Err(usage("the trace has no such chunk"));
        };
        let header = ChunkHeader::parse(self.source.view(start, chunk::LEN)?);
        Ok(header.ok_or(Error::at(start, ErrorKind::Truncated("a chunk")))?.filter)
    }

    /// Reads data chunk `n` without changing the reader's position, for shared tables.
    ///
    /// # Errors
    /// As for [`Reader::chunks`]. Also returns an error if the chunk is invalid or contains no data.
    pub fn read_chunk(&mut self, n: usize) -> Result<Part> {
        let (header, start, content) = self.chunk(n)?;
        if header.kind != chunk::DATA {
            return Err(usage("the chunk is not a data chunk"));
        }
        Ok(read_v1::part(&header, start, content))
    }

    /// Returns all user metadata of a version 1 file, on disk or in memory, regardless of the reader's position; see
    /// [`Reader::user_metadata`].
    ///
    /// # Errors
    /// As for [`Reader::chunks`]. Also returns an error if a metadata chunk is invalid or the total exceeds 64 MiB.
    pub fn scan_user_metadata(&mut self) -> Result<Vec<Vec<u8>>> {
        if !matches!(self.body, Body::Chunks(_)) {
            return Ok(Vec::new());
        }
        let user = |(n, chunk): (usize, &ChunkInfo)| (chunk.kind == chunk::USER).then_some(n);
        let numbers: Vec<usize> = self.chunks()?.iter().enumerate().filter_map(user).collect();
        let mut texts = Vec::new();
        let mut total = 0;
        for n in numbers {
            let (_, start, content) = self.chunk(n)?;
            let text = self.bytes(&content).to_vec();
            total += text.len();
            if total > super::part::MAX_RAW_LEN {
                return Err(Error::at(start, ErrorKind::Limit("64 MiB of user metadata")));
            }
            texts.push(text);
        }
        Ok(texts)
    }

    /// Reads a chunk by its number, checking it individually and against its index entry.
    fn chunk(&mut self, n: usize) -> Result<(ChunkHeader, u64, Content)> {
        let Some(info) = self.chunks()?.get(n).copied() else { return Err(usage("the trace has no such chunk")) };
        let start = info.offset;
        let header = match chunk::probe(&mut self.source, start)? {
            Probe::Whole(header) => header,
            Probe::Bad(error) => return Err(error),
            Probe::End => return Err(Error::at(start, ErrorKind::Truncated("a chunk"))),
        };
        header.check(start, &self.header)?;
        if header.kind == chunk::TIMES {
            header.check_fields(start)?;
        }
        if ChunkInfo::of(&header, start) != info || u64::from(header.sequence) != n as u64 {
            let what = "the chunk's number in the index";
            let expected = "an entry that matches it";
            return Err(Error::at(start, ErrorKind::Invalid { what, found: n as u64, expected }));
        }
        let Body::Chunks(chunks) = &mut self.body else { return Err(usage("only version 1 has chunks")) };
        let content = read_v1::content(&mut self.source, &mut chunks.decoder, &header, start)?;
        Ok((header, start, content))
    }

    /// Creates another reader for the same file or memory, starting at the beginning and sharing the list of chunks,
    /// for reading groups in parallel. Returns `None` for streams.
    #[must_use]
    pub fn fork(&self) -> Option<Reader<'_>> {
        let source = self.source.share()?.open();
        let body = match &self.body {
            Body::Extents(_) => Body::Extents(Extents::new(&self.header)),
            Body::Raw { section, parts, .. } => {
                Body::Raw { section: *section, left: parts.iter().rev().cloned().collect(), parts: parts.clone() }
            }
            Body::Chunks(chunks) => Body::Chunks(Box::new(Chunks {
                pos: self.header.start,
                sequence: Sequence::new(),
                decoder: Decoder::default(),
                dtd: chunks.dtd.clone(),
                user: Vec::new(),
                user_len: 0,
                seen: Vec::new(),
                all: chunks.all.as_ref().map(Arc::clone),
                jumped: false,
                skipped: chunks.skipped.as_ref().map(Arc::clone),
                skipped_records: 0,
                until: None,
                done: false,
                keeps_columns: false,
            })),
        };
        Some(Reader::with(source, self.header.clone(), body))
    }
}

fn usage(why: &'static str) -> Error {
    Error::at(0, ErrorKind::Usage(why))
}

/// Returns the chunks listed in the index, if the footer refers to the index, its CRC is valid, and its entries are
/// contiguous from the header to the index.
fn listed(source: &mut Source<'_>, file: &Header) -> Result<Option<Vec<ChunkInfo>>> {
    let Some(len) = source.len()? else {
        return Err(usage("a stream can only be read in file order"));
    };
    let Some(footer_at) = len.checked_sub(index::FOOTER as u64) else { return Ok(None) };
    let footer = source.view(footer_at, index::FOOTER)?;
    let Some(start) = index::parse_footer(footer).filter(|start| *start < len) else { return Ok(None) };
    let Probe::Whole(header) = chunk::probe(source, start)? else { return Ok(None) };
    let right = header.kind == chunk::INDEX
        && header.check(start, file).is_ok()
        && start + header.total_len() == footer_at
        && u64::from(header.raw_len) == u64::from(header.sequence) * index::ENTRY as u64;
    if !right {
        return Ok(None);
    }
    let entries: Vec<ChunkInfo> = index::entries(read_v1::payload(source, &header, start)?).collect();
    let mut at = file.start;
    for entry in &entries {
        if entry.offset != at {
            return Ok(None);
        }
        at = entry.end();
    }
    Ok((at == start).then_some(entries))
}

/// Returns the chunks found by walking from header to header. Payloads are not read, so each chunk's CRC must be
/// checked when the chunk is used.
fn walked(source: &mut Source<'_>, file: &Header) -> Result<Vec<ChunkInfo>> {
    let mut chunks = Vec::new();
    let mut at = file.start;
    let len = source.len()?.unwrap_or(0);
    loop {
        let head = source.view(at, chunk::LEN)?;
        if head.is_empty() {
            return Ok(chunks);
        }
        let Some(header) = ChunkHeader::parse(head) else {
            let kind = ErrorKind::Invalid { what: "the chunk's sync", found: 0, expected: "a complete chunk header" };
            return Err(Error::at(at, kind));
        };
        if header.kind == chunk::INDEX {
            return Ok(chunks);
        }
        if at + header.total_len() > len {
            return Err(Error::at(at, ErrorKind::Truncated("a chunk")));
        }
        chunks.push(ChunkInfo::of(&header, at));
        at += header.total_len();
    }
}
