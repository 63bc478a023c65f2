//! Reads version 1 traces: chunks in file order, the index and the footer (spec 5.2).

use std::sync::Arc;

use super::chunk::{self, ChunkHeader, GROUP, Probe, RESET, SHARED, TRANSPOSE};
use super::content::KeptColumns;
use super::decode::Decoder;
use super::header::Header;
use super::index::{self, ChunkInfo};
use super::order::Sequence;
use super::part::{Content, MAX_RAW_LEN, Origin, Part};
use super::source::Source;
use super::warning::{Warning, Warnings};
use crate::{Error, ErrorKind, Result};

/// The state of reading a version 1 file.
pub(crate) struct Chunks {
    /// Offset of the next chunk.
    pub(crate) pos: u64,
    pub(crate) sequence: Sequence,
    pub(crate) decoder: Decoder,
    pub(crate) dtd: Option<Arc<[u8]>>,
    pub(crate) user: Vec<Vec<u8>>,
    pub(crate) user_len: usize,
    /// The chunks so far, to be compared with the index; complete unless `jumped`.
    pub(crate) seen: Vec<ChunkInfo>,
    /// All chunks, once they have been requested.
    pub(crate) all: Option<Arc<[ChunkInfo]>>,
    /// Whether a jump left the file order, after which chunks are compared with `all` instead of being collected in
    /// `seen`.
    pub(crate) jumped: bool,
    /// For each chunk that is skipped, the number of its data records.
    pub(crate) skipped: Option<Arc<[Option<u32>]>>,
    /// Number of data records in chunks that were skipped.
    pub(crate) skipped_records: u64,
    /// Offset at which reading ends, or `None` for the end of the file.
    pub(crate) until: Option<u64>,
    pub(crate) done: bool,
    /// Whether the columns of chunks are not turned into content.
    pub(crate) keeps_columns: bool,
}

impl Chunks {
    /// Starts at the first chunk and reads it if it contains the DTD. If the chunk is invalid, the error is returned
    /// here and again by the first `next`.
    pub(crate) fn open(source: &mut Source<'_>, file: &Header) -> Result<(Self, Option<Error>)> {
        let mut chunks = Self {
            pos: file.start,
            sequence: Sequence::new(),
            decoder: Decoder::default(),
            dtd: None,
            user: Vec::new(),
            user_len: 0,
            seen: Vec::new(),
            all: None,
            jumped: false,
            skipped: None,
            skipped_records: 0,
            until: None,
            done: false,
            keeps_columns: false,
        };
        let first = match chunk::probe(source, file.start)? {
            Probe::Whole(header) if header.kind == chunk::DTD => chunks.take(source, file, &header).map(|_| ()),
            Probe::Bad(error) => Err(error),
            Probe::Whole(_) | Probe::End => Ok(()),
        };
        Ok((chunks, first.err()))
    }

    /// Returns the next data chunk, or `None` at the end.
    pub(crate) fn next(
        &mut self,
        source: &mut Source<'_>,
        file: &Header,
        warnings: &mut Warnings,
    ) -> Result<Option<Part>> {
        while !self.done {
            self.skip();
            if self.until == Some(self.pos) {
                break;
            }
            match chunk::probe(source, self.pos)? {
                Probe::Bad(error) => return Err(error),
                Probe::End if self.is_listed() => {
                    return Err(Error::at(self.pos, ErrorKind::Truncated("a chunk that was listed")));
                }
                Probe::End => {
                    self.done = true;
                    warnings.push(Warning::NotClosed);
                }
                Probe::Whole(header) if header.kind == chunk::INDEX => self.end(source, file, &header, warnings)?,
                Probe::Whole(header) => {
                    let part = self.take(source, file, &header)?;
                    source.release(self.pos);
                    if part.is_some() {
                        return Ok(part);
                    }
                }
            }
        }
        Ok(None)
    }

    /// Advances past chunks that are to be skipped.
    fn skip(&mut self) {
        let (Some(skipped), Some(all)) = (&self.skipped, &self.all) else { return };
        let first = self.number();
        let rest = skipped.iter().zip(all.iter()).skip(first);
        let run = rest.map_while(|(records, chunk)| Some(*records)?.filter(|_| self.until != Some(chunk.offset)));
        let (count, records) = run.fold((0, 0), |(n, sum), records| (n + 1, sum + u64::from(records)));
        if count > 0 {
            self.skipped_records += records;
            // The end of the last skipped chunk.
            self.pos = all.get(first + count - 1).map_or(self.pos, index::ChunkInfo::end);
            self.sequence.jump_to((first + count) as u64);
            self.jumped = true;
        }
    }

    /// Checks and reads the chunk at `pos`, whose CRC is valid, and advances past it. A data chunk becomes a part. If
    /// an error is returned, the state is unchanged.
    pub(crate) fn take(
        &mut self,
        source: &mut Source<'_>,
        file: &Header,
        header: &ChunkHeader,
    ) -> Result<Option<Part>> {
        let start = self.pos;
        header.check(start, file)?;
        self.sequence.check(header, start)?;
        self.check_listed(header, start)?;
        let content = match header.kind {
            chunk::OTHERS.. => None,
            chunk::DATA if self.keeps_columns && header.filter == chunk::COLUMNS => {
                let chunk = source.view(start, chunk::LEN + header.stored_len as usize)?.into();
                Some(Content::Columns(KeptColumns { start, chunk }))
            }
            _ => Some(content(source, &mut self.decoder, header, start)?),
        };
        if header.kind == chunk::USER && self.user_len + header.raw_len as usize > MAX_RAW_LEN {
            return Err(Error::at(start, ErrorKind::Limit("64 MiB of user metadata")));
        }
        self.sequence.note(header);
        self.list(header, start);
        self.pos = start + header.total_len();
        let Some(content) = content else {
            return Ok(None);
        };
        match header.kind {
            chunk::DATA => return Ok(Some(part(header, start, content))),
            chunk::DTD => self.dtd = bytes(source, &content).map(Arc::from),
            _ => {
                let text = bytes(source, &content).unwrap_or_default().to_vec();
                self.user_len += text.len();
                self.user.push(text);
            }
        }
        Ok(None)
    }

    /// If a jump has occurred, checks the chunk at `start` against the list used for the jump.
    fn check_listed(&self, header: &ChunkHeader, start: u64) -> Result<()> {
        let Some(listed) = self.all.as_ref().filter(|_| self.jumped).and_then(|all| all.get(self.number())) else {
            return Ok(());
        };
        let real = ChunkInfo::of(header, start);
        if *listed == real {
            return Ok(());
        }
        let what = "the chunk's number in the index";
        let kind = ErrorKind::Invalid { what, found: self.sequence.next(), expected: "an entry that matches it" };
        Err(Error::at(start, kind))
    }

    /// Returns whether the list used for a jump contains the next chunk.
    fn is_listed(&self) -> bool {
        self.jumped && self.all.as_ref().is_some_and(|all| self.number() < all.len())
    }

    fn number(&self) -> usize {
        usize::try_from(self.sequence.next()).unwrap_or(usize::MAX)
    }

    pub(crate) fn list(&mut self, header: &ChunkHeader, start: u64) {
        if !self.jumped {
            self.seen.push(ChunkInfo::of(header, start));
        }
    }

    /// Checks the index at `pos`, and that only the footer follows it.
    fn end(
        &mut self,
        source: &mut Source<'_>,
        file: &Header,
        header: &ChunkHeader,
        warnings: &mut Warnings,
    ) -> Result<()> {
        let start = self.pos;
        header.check(start, file)?;
        self.sequence.check(header, start)?;
        let seen: &[ChunkInfo] = match &self.all {
            Some(all) if self.jumped => all,
            _ => &self.seen,
        };
        index::check(payload(source, header, start)?, start, seen)?;
        let footer_at = start + header.total_len();
        let rest = source.view(footer_at, index::FOOTER + 1)?;
        if !index::check_footer(rest, footer_at, start)? {
            warnings.push(Warning::NotClosed);
        }
        self.done = true;
        Ok(())
    }
}

/// Returns the stored bytes of the chunk at `start`.
pub(crate) fn payload<'s>(source: &'s mut Source<'_>, header: &ChunkHeader, start: u64) -> Result<&'s [u8]> {
    source.view(start + chunk::LEN as u64, header.stored_len as usize)
}

/// Returns the content of the chunk at `start`, whose header is valid. Stored content is not copied if the source is
/// mapped.
pub(crate) fn content(
    source: &mut Source<'_>,
    decoder: &mut Decoder,
    header: &ChunkHeader,
    start: u64,
) -> Result<Content> {
    if header.is_plain() && source.all().is_some() {
        let from = usize::try_from(start + chunk::LEN as u64).unwrap_or(usize::MAX);
        return Ok(Content::Mapped(from..from.saturating_add(header.stored_len as usize)));
    }
    let mapped = source.is_mapped();
    Ok(Content::Owned(decoder.decode(header, start, payload(source, header, start)?, mapped)?))
}

/// Returns the bytes of content, or `None` if the content does not belong to this source.
#[inline]
pub(crate) fn bytes<'s>(source: &'s Source<'_>, content: &'s Content) -> Option<&'s [u8]> {
    match content {
        Content::Owned(bytes) => Some(bytes),
        Content::Mapped(range) => source.all()?.get(range.clone()),
        Content::Columns(_) => None,
    }
}

/// Turns a data chunk into a part.
pub(crate) fn part(header: &ChunkHeader, start: u64, content: Content) -> Part {
    let origin = if header.is_plain() { Origin::Stored(start + chunk::LEN as u64) } else { Origin::Packed(start) };
    Part {
        section: header.section,
        content,
        origin,
        base: header.base,
        reset: header.has(RESET),
        group_start: header.has(GROUP),
        shared: header.has(SHARED),
        group: header.group,
        width: header.width,
        transposed: header.filter == TRANSPOSE,
        records: Some(header.nrecords),
        follow: false,
        place: start..start + header.total_len(),
        damage_before: false,
        group_damaged: false,
    }
}
