//! Salvage, which delivers the intact data of a corrupt version 1 file (spec 5.2).
//!
//! [`Chunks`] still walks the file chunk by chunk. This module determines where to resume after corruption, which
//! chunks are missing according to the sequence numbers, and which sections have lost their state.

use super::chunk::{self, ChunkHeader, Frame, Probe};
use super::header::{Class, Header, Order};
use super::index;
use super::loss::{Loss, LossCause, LossReport};
use super::part::Part;
use super::read_v1::{self, Chunks};
use super::source::Source;
use super::sums::Sums;
use super::warning::{Warning, Warnings};
use crate::{Error, ErrorKind, Result};

/// Number of bytes searched at a time for the next sync bytes.
const SCAN: usize = 64 << 10;

/// The effects of the corruption so far.
pub(crate) struct Salvage {
    pub(crate) report: LossReport,
    /// Sections whose state has not been reset since the corruption.
    tainted: Box<[bool; 256]>,
    /// Whether chunks are missing since the last data chunk, ignoring shared tables.
    gap: bool,
    /// Whether chunks are missing since the last data chunk, including chunks of shared tables.
    gap_any: bool,
    /// Whether a chunk of the current group is missing.
    group_damaged: bool,
    sums: Sums,
}

impl Salvage {
    pub(crate) fn new() -> Self {
        Self {
            report: LossReport::default(),
            tainted: Box::new([false; 256]),
            gap: false,
            gap_any: false,
            group_damaged: false,
            sums: Sums::default(),
        }
    }

    /// Returns the next intact data chunk whose section's state is known. Returns an error only if reading the source
    /// fails.
    pub(crate) fn next(
        &mut self,
        chunks: &mut Chunks,
        source: &mut Source<'_>,
        file: &Header,
        warnings: &mut Warnings,
    ) -> Result<Option<Part>> {
        while !chunks.done {
            self.sums.release(source, chunks.pos)?;
            match self.sums.probe(source, chunks.pos)? {
                Probe::End => {
                    chunks.done = true;
                    warnings.push(Warning::NotClosed);
                }
                Probe::Bad(error) => self.go_on(chunks, source, file, error)?,
                Probe::Whole(header) => {
                    if let Some(part) = self.whole(chunks, source, file, &header)? {
                        return Ok(Some(part));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Processes a chunk with a valid CRC.
    fn whole(
        &mut self,
        chunks: &mut Chunks,
        source: &mut Source<'_>,
        file: &Header,
        header: &ChunkHeader,
    ) -> Result<Option<Part>> {
        let number = u64::from(header.sequence);
        let place = chunks.pos..chunks.pos + header.total_len();
        if number < chunks.sequence.next() {
            self.lose(place.clone(), LossCause::Repeated, None, None);
            chunks.pos = place.end;
            return Ok(None);
        }
        self.missing(chunks, number);
        if header.kind == chunk::INDEX && header.check(place.start, file).is_ok() {
            self.count(read_v1::payload(source, header, place.start)?, number);
            chunks.done = true;
            return self.footer(source, place).map(|()| None);
        }
        let group = chunks.sequence.group();
        match chunks.take(source, file, header) {
            Ok(None) => Ok(None),
            Ok(Some(part)) => Ok(self.judge(part, group)),
            Err(error) if matches!(error.kind, ErrorKind::Io(_)) => Err(error),
            Err(error) => {
                let data = header.kind == chunk::DATA;
                let records = data.then(|| header.nrecords.into());
                self.lose(place.clone(), LossCause::Content(error), data.then_some(header.section), records);
                if data {
                    self.damage();
                }
                chunks.sequence.skip_to(number + 1);
                chunks.pos = place.end;
                Ok(None)
            }
        }
    }

    /// Records missing chunks if `number` is not the next sequence number.
    fn missing(&mut self, chunks: &mut Chunks, number: u64) {
        let first = chunks.sequence.next();
        let count = number - first;
        if count > 0 {
            self.report.missing_chunks += count;
            self.lose(chunks.pos..chunks.pos, LossCause::Missing { first, chunks: count }, None, None);
            self.damage();
            chunks.sequence.skip_to(number);
        }
    }

    /// Marks the state of all sections as unknown from here on.
    fn damage(&mut self) {
        self.tainted.fill(true);
        (self.gap, self.gap_any) = (true, true);
    }

    /// Records in a part whether data before it was lost, or drops the part if the state of its section is lost.
    /// `group` is the group of the previous part.
    fn judge(&mut self, mut part: Part, group: Option<u32>) -> Option<Part> {
        if part.shared {
            part.damage_before = std::mem::take(&mut self.gap_any);
            return Some(part);
        }
        if part.group_start {
            self.group_damaged = false; // The missing chunks belong to earlier groups.
        } else if self.gap || group != Some(part.group) {
            self.group_damaged = true;
        }
        let tainted = &mut self.tainted[usize::from(part.section)];
        if part.reset {
            *tainted = false;
        }
        if *tainted {
            self.drop_part(&part, LossCause::StateLost);
            return None;
        }
        self.gap_any = false;
        part.damage_before = std::mem::take(&mut self.gap);
        part.group_damaged = self.group_damaged;
        Some(part)
    }

    /// Records the loss of a part.
    pub(crate) fn drop_part(&mut self, part: &Part, cause: LossCause) {
        self.lose(part.place.clone(), cause, Some(part.section), part.records.map(u64::from));
    }

    /// Handles a part with invalid records. The state of its section and the cursors of the group are lost.
    pub(crate) fn bad_content(&mut self, part: &Part, error: Error, group: Option<u32>) {
        self.bad_end(part, error, group);
        self.group_damaged |= !part.shared && group == Some(part.group);
    }

    /// Handles a part with an invalid end. The state of its section is lost, but the elements before the end are not.
    pub(crate) fn bad_end(&mut self, part: &Part, error: Error, group: Option<u32>) {
        self.lost(part, LossCause::Content(error), group);
    }

    /// Handles a part that is not delivered. The state of its section is lost.
    pub(crate) fn lost(&mut self, part: &Part, cause: LossCause, group: Option<u32>) {
        self.drop_part(part, cause);
        if !part.shared && group == Some(part.group) {
            self.tainted[usize::from(part.section)] = true;
        }
    }

    pub(crate) fn lose(
        &mut self,
        place: std::ops::Range<u64>,
        cause: LossCause,
        section: Option<u8>,
        records: Option<u64>,
    ) {
        self.report.losses.push(Loss { start: place.start, end: place.end, cause, section, records });
    }

    /// Skips the corrupt chunk at `pos` and advances to the next valid chunk.
    fn go_on(&mut self, chunks: &mut Chunks, source: &mut Source<'_>, file: &Header, error: Error) -> Result<()> {
        let start = chunks.pos;
        let next = chunks.sequence.next();
        let fits = |header: &ChunkHeader, at: u64| header.check(at, file).is_ok() && u64::from(header.sequence) >= next;
        let found = match self.behind(source, start, next, &fits)? {
            Some(at) => Ok(at),
            None => self.search(source, start + 1, &fits)?,
        };
        let end = match found {
            Ok(at) => at,
            Err(end) => {
                chunks.done = true;
                self.report.open_end = true;
                end
            }
        };
        self.lose(start..end, LossCause::Damaged(error), None, None);
        chunks.pos = end;
        Ok(())
    }

    /// Returns the chunk after a corrupt one, if the corrupt chunk's length is credible because it leads to a valid
    /// chunk with the next sequence number. This prevents bytes in a corrupt payload from being mistaken for chunks.
    fn behind(
        &mut self,
        source: &mut Source<'_>,
        start: u64,
        number: u64,
        fits: &impl Fn(&ChunkHeader, u64) -> bool,
    ) -> Result<Option<u64>> {
        let Frame::Whole(damaged) = chunk::frame(source, start)? else { return Ok(None) };
        if u64::from(damaged.sequence) != number {
            return Ok(None);
        }
        let at = start + damaged.total_len();
        match self.sums.probe(source, at)? {
            Probe::Whole(header) if fits(&header, at) && u64::from(header.sequence) == number + 1 => Ok(Some(at)),
            _ => Ok(None),
        }
    }

    /// Returns the first valid chunk at or after `from` that fits the sequence, or the end of the input.
    pub(crate) fn search(
        &mut self,
        source: &mut Source<'_>,
        from: u64,
        fits: &impl Fn(&ChunkHeader, u64) -> bool,
    ) -> Result<Result<u64, u64>> {
        let mut at = from;
        loop {
            self.sums.release(source, at)?;
            at = match next_sync(source, at)? {
                Ok(sync) => sync,
                Err(end) => return Ok(Err(end)),
            };
            match self.sums.probe(source, at)? {
                Probe::Whole(header) if fits(&header, at) => return Ok(Ok(at)),
                _ => at += 1,
            }
        }
    }

    /// Counts the records in the missing chunks with the help of an index, which must contain an entry for every chunk
    /// before it.
    fn count(&mut self, index: &[u8], number: u64) {
        if index.len() as u64 != number.saturating_mul(index::ENTRY as u64) {
            return;
        }
        for loss in &mut self.report.losses {
            let LossCause::Missing { first, chunks } = loss.cause else { continue };
            let at = |n: u64| usize::try_from(n).unwrap_or(usize::MAX).saturating_mul(index::ENTRY);
            let entries = index.get(at(first)..at(first.saturating_add(chunks))).unwrap_or(&[]);
            let data = index::entries(entries).filter(|entry| entry.is_data());
            loss.records = Some(data.map(|entry| u64::from(entry.nrecords)).sum());
        }
    }

    /// Checks the data after the index, at `place`, which must be empty or the footer. Reports any other data as a
    /// loss.
    fn footer(&mut self, source: &mut Source<'_>, place: std::ops::Range<u64>) -> Result<()> {
        let footer_at = place.end;
        let rest = source.view(footer_at, index::FOOTER + 1)?;
        // If chunks were removed from the file, the footer's offset no longer matches the index, but the footer itself
        // is intact.
        if index::parse_footer(rest).is_some() {
            return Ok(());
        }
        if let Err(error) = index::check_footer(rest, footer_at, place.start) {
            let end = end_of(source, footer_at)?;
            self.lose(footer_at..end, LossCause::Damaged(error), None, None);
        }
        Ok(())
    }
}

/// Returns the end of the input.
fn end_of(source: &mut Source<'_>, from: u64) -> Result<u64> {
    let mut at = from;
    loop {
        source.release(at);
        match source.view(at, SCAN)?.len() {
            0 => return Ok(at),
            n => at += n as u64,
        }
    }
}

/// Creates a replacement for a corrupt header with the class and byte order of the first valid chunk. Chunk headers
/// contain both for this purpose. Returns `None` if there is no such chunk.
pub(crate) fn header_from_chunks(source: &mut Source<'_>) -> Result<Option<Header>> {
    let mut sums = Sums::default();
    let mut at = 0;
    while let Ok(sync) = next_sync(source, at)? {
        if let Probe::Whole(header) = sums.probe(source, sync)?
            && let Some(made) = made_up(&header, sync)
            && header.check(sync, &made).is_ok()
        {
            return Ok(Some(made));
        }
        at = sync + 1;
    }
    Ok(None)
}

/// Returns the position of the next sync bytes (`Ok`), or the end of the input (`Err`).
fn next_sync(source: &mut Source<'_>, from: u64) -> Result<Result<u64, u64>> {
    let mut at = from;
    loop {
        let block = source.view(at, SCAN)?;
        let len = block.len();
        if len < chunk::SYNC.len() {
            return Ok(Err(at + len as u64));
        }
        match block.windows(4).position(|bytes| bytes == chunk::SYNC) {
            Some(sync) => return Ok(Ok(at + sync as u64)),
            None => at += (len - 3) as u64,
        }
    }
}

fn made_up(chunk: &ChunkHeader, at: u64) -> Option<Header> {
    Some(Header {
        class: Class::from_number(chunk.class)?,
        order: Order::from_number(chunk.order)?,
        version: 1,
        start: at,
        nrecords: 0,
        dtd_url: String::new(),
        sections: Vec::new(),
        features: 0,
        len: at,
    })
}
