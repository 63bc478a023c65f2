//! Random access to the chunks of a version 1 file, or one in memory, by its index (spec 5.2).

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
use crate::{Error, ErrorKind, Result};

impl Reader<'_> {
    /// All chunks of a version 1 file, or one in memory: by the index if it checks out, else by walking
    /// the headers. Entries of the index are checked when they are followed.
    ///
    /// # Errors
    /// Not such a file, or the walk meets something that is not a chunk: then only reading in file order will do.
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

    /// Makes the next `next_part` begin at chunk `n`, the first of a group, or at the end (`n` is the number of
    /// chunks), from where index and footer are checked. Not for salvage.
    ///
    /// # Errors
    /// What [`Reader::chunks`] reports; chunk `n` is not the first of a group.
    pub fn seek_chunk(&mut self, n: usize) -> Result<()> {
        let all = self.chunks()?;
        let pos = match all.get(n) {
            Some(chunk) if chunk.is_group_start() => Some(chunk.offset),
            None if n == all.len() => all.last().map(end_of_chunk),
            _ => return Err(usage("reading can only begin at the first chunk of a group")),
        };
        if self.salvage.is_some() {
            return Err(usage("salvage reads in file order"));
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

    /// The number of the filter of chunk `n`, by its header (the index does not have it).
    ///
    /// # Errors
    /// What [`Reader::chunks`] reports; there is no chunk header.
    pub fn filter_of(&mut self, n: usize) -> Result<u8> {
        let Some(start) = self.chunks()?.get(n).map(|chunk| chunk.offset) else {
            return Err(usage("there is no such chunk"));
        };
        let header = ChunkHeader::parse(self.source.view(start, chunk::LEN)?);
        Ok(header.ok_or(Error::at(start, ErrorKind::Truncated("a chunk")))?.filter)
    }

    /// Reads data chunk `n` by itself and leaves alone where reading stands: for shared tables.
    ///
    /// # Errors
    /// What [`Reader::chunks`] reports; the chunk is wrong, or no data.
    pub fn read_chunk(&mut self, n: usize) -> Result<Part> {
        let (header, start, content) = self.chunk(n)?;
        if header.kind != chunk::DATA {
            return Err(usage("not a data chunk"));
        }
        Ok(read_v1::part(&header, start, content))
    }

    /// All user metadata of a version 1 file, or one in memory, wherever reading stands; see
    /// [`Reader::user_metadata`].
    ///
    /// # Errors
    /// What [`Reader::chunks`] reports; a metadata chunk is wrong, or all are over 64 MiB.
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

    /// A chunk by its number, checked by itself and against its entry.
    fn chunk(&mut self, n: usize) -> Result<(ChunkHeader, u64, Content)> {
        let Some(info) = self.chunks()?.get(n).copied() else { return Err(usage("there is no such chunk")) };
        let start = info.offset;
        let header = match chunk::probe(&mut self.source, start)? {
            Probe::Whole(header) => header,
            Probe::Bad(error) => return Err(error),
            Probe::End => return Err(Error::at(start, ErrorKind::Truncated("a chunk"))),
        };
        header.check(start, &self.header)?;
        if ChunkInfo::of(&header, start) != info || u64::from(header.sequence) != n as u64 {
            let what = "the chunk's number in the index";
            let expected = "an entry that agrees with it";
            return Err(Error::at(start, ErrorKind::Invalid { what, found: n as u64, expected }));
        }
        let Body::Chunks(chunks) = &mut self.body else { return Err(usage("only version 1 has chunks")) };
        let content = read_v1::content(&mut self.source, &mut chunks.decoder, &header, start)?;
        Ok((header, start, content))
    }

    /// Another reader of the same file or memory, from the start, that shares the list of chunks: for reading
    /// groups in parallel. `None` for streams.
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
                until: None,
                done: false,
            })),
        };
        Some(Reader::with(source, self.header.clone(), body))
    }
}

fn usage(why: &'static str) -> Error {
    Error::at(0, ErrorKind::Usage(why))
}

fn end_of_chunk(chunk: &ChunkInfo) -> u64 {
    chunk.offset.saturating_add(chunk::LEN as u64).saturating_add(chunk.stored_len.into())
}

/// The chunks by the index: the footer leads to it, its CRC holds, and its entries lie one behind the other from the
/// header to the index.
fn listed(source: &mut Source<'_>, file: &Header) -> Result<Option<Vec<ChunkInfo>>> {
    let Some(len) = source.len() else {
        return Err(usage("a stream is read in file order"));
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
        at = end_of_chunk(entry);
    }
    Ok((at == start).then_some(entries))
}

/// The chunks by their headers. Payloads are not looked at, so CRCs are left to those who follow an entry.
fn walked(source: &mut Source<'_>, file: &Header) -> Result<Vec<ChunkInfo>> {
    let mut chunks = Vec::new();
    let mut at = file.start;
    let len = source.len().unwrap_or(0);
    loop {
        let head = source.view(at, chunk::LEN)?;
        if head.is_empty() {
            return Ok(chunks);
        }
        let Some(header) = ChunkHeader::parse(head) else {
            let kind = ErrorKind::Invalid { what: "the chunk's sync", found: 0, expected: "a whole chunk header" };
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
