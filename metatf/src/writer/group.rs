//! Writes the chunks of a group to the file: shared tables first, then stream sections, then the records that stride
//! through them (spec 5.2).

use crate::encode::{GivenElements, Numbers};
use crate::formula::{Plan, bytes_for, bytes_of, fits, history, note};
use crate::state::State;
use crate::writer::{FileWriter, RecordCore};
use metatf_container::columns::Rows;
use metatf_container::{ChunkSpec, Error, ErrorKind, MAX_RAW_LEN, Order, Result, Sink, TimeRange};

/// A finished chunk of a tagged section.
pub(crate) struct Chunk {
    pub(crate) section: usize,
    spec: ChunkSpec,
    pub(crate) raw: Vec<u8>,
    ends: Vec<u32>,
    rows: Option<Rows>,
}

/// Memory of written chunks, for reuse.
#[derive(Default)]
pub(crate) struct ChunkPool {
    chunks: Vec<(Vec<u8>, Vec<u32>)>,
    /// Memory for the numbers of a stream section.
    numbers: Vec<u8>,
}

impl ChunkPool {
    fn put(&mut self, raw: Vec<u8>, ends: Vec<u32>) {
        self.chunks.push((raw, ends));
    }

    /// Returns memory for content, whose bytes are arbitrary, and for the ends of records.
    fn take(&mut self) -> (Vec<u8>, Vec<u32>) {
        let (raw, mut ends) = self.chunks.pop().unwrap_or_default();
        ends.clear();
        (raw, ends)
    }
}

impl RecordCore<dyn Sink + '_> {
    /// Closes the chunk of a section unless it is empty.
    pub(crate) fn close_chunk(&mut self, section: usize) -> Result<()> {
        let Some(writer) = self.sections.get_mut(section).filter(|s| !s.out.is_empty()) else { return Ok(()) };
        let spec = ChunkSpec {
            section: self.format.sections.get(section).map_or(0, |s| s.number),
            reset: writer.reset,
            records: writer.records,
            group: self.group,
            ..ChunkSpec::default()
        };
        self.records += u64::from(writer.records);
        self.group_bytes += writer.out.len();
        writer.out.close();
        writer.reset = false;
        writer.closed += 1;
        writer.aged &= self.waits;
        writer.records = 0;
        if self.in_place == Some(section) {
            let spec = ChunkSpec { group_start: std::mem::take(&mut self.group_start), ..spec };
            return self.close_in_place(section, spec);
        }
        let rows = writer.take_rows(&self.format, self.order);
        let (raw, ends) = (writer.out.take(), std::mem::take(&mut writer.ends));
        if self.waits {
            self.waiting.push(Chunk { section, spec, raw, ends, rows });
        } else {
            self.put_part(spec, &raw, &ends, rows.as_ref())?;
            self.pool.put(raw, ends);
        }
        if let Some(writer) = self.sections.get_mut(section) {
            let (raw, ends) = self.pool.take();
            writer.out.reuse(raw);
            writer.ends = ends;
        }
        Ok(())
    }

    /// Passes a chunk of the group to the container. The first chunk also starts the group.
    fn put_part(&mut self, spec: ChunkSpec, raw: &[u8], ends: &[u32], rows: Option<&Rows>) -> Result<()> {
        self.end_in_place();
        let group_start = !spec.shared && std::mem::take(&mut self.group_start);
        match &mut self.layout {
            Some(FileWriter::Chunks(chunks)) => {
                chunks.data_records(&mut self.sink, ChunkSpec { group_start, ..spec }, raw, ends, rows)
            }
            Some(FileWriter::Extents(extents)) => extents.extent(&mut self.sink, spec.section, raw),
            None => Ok(()),
        }
    }

    /// Ends the current group.
    pub(crate) fn next_group(&mut self) -> Result<()> {
        if self.streams.fixed || self.group_is_empty() {
            return Ok(());
        }
        self.end_group()?;
        if !self.group_start {
            self.group = self.group.checked_add(1).ok_or(Error::at(0, ErrorKind::Limit("2^32 groups")))?;
        }
        self.group_start = true;
        self.group_bytes = 0;
        self.streams.start_group();
        for writer in &mut self.sections {
            writer.restart_group(&self.format);
        }
        Ok(())
    }

    /// Returns whether the current group is empty. New elements of shared tables are ignored, because they are written
    /// together with the group that needs them.
    fn group_is_empty(&self) -> bool {
        let no_stream = self.streams.streams.iter().all(|s| s.put.is_empty() && s.given.iter().all(|g| g.count == 0));
        self.group_start && self.waiting.is_empty() && no_stream && self.sections.iter().all(|s| s.out.is_empty())
    }

    fn end_group(&mut self) -> Result<()> {
        for section in 0..self.sections.len() {
            self.close_chunk(section)?;
            self.carry_live_set(section);
        }
        for section in 0..self.sections.len() {
            self.put_table(section)?;
        }
        for section in 0..self.sections.len() {
            self.put_stream(section)?;
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        for chunk in waiting.drain(..) {
            self.put_part(chunk.spec, &chunk.raw, &chunk.ends, chunk.rows.as_ref())?;
            self.pool.put(chunk.raw, chunk.ends);
        }
        self.waiting = waiting;
        let times = std::mem::replace(&mut self.attempt.times, TimeRange::EMPTY);
        if let Some(FileWriter::Chunks(chunks)) = &mut self.layout
            && !self.group_start
        {
            chunks.end_group(times);
        }
        Ok(())
    }

    /// Writes the part of a shared table that is not in the file yet. Every chunk resets its state.
    pub(super) fn put_table(&mut self, section: usize) -> Result<()> {
        let Some(stream) = self.streams.streams.get_mut(section).filter(|s| s.table_count > 0) else { return Ok(()) };
        let raw = std::mem::take(&mut stream.table);
        let records = std::mem::take(&mut stream.table_count);
        if raw.len() > MAX_RAW_LEN {
            return Err(Error::at(0, ErrorKind::Limit("a table element exceeds 32 MiB")));
        }
        let width = self.single_width(section).unwrap_or(0);
        let spec = ChunkSpec {
            section: self.format.sections.get(section).map_or(0, |s| s.number),
            reset: true,
            shared: true,
            width,
            element: width,
            records,
            ..ChunkSpec::default()
        };
        if let Some(writer) = self.sections.get_mut(section) {
            writer.state.reset(&self.format);
        }
        self.put_part(spec, &raw, &[], None)
    }

    /// Returns the DTD's width for the leaf of a section of single numbers.
    fn single_width(&self, section: usize) -> Option<u8> {
        let record = self.format.sections.get(section).filter(|s| s.stream)?.records.first()?;
        let leaf = self.format.records.get(usize::from(*record))?.single_number()?;
        Some(leaf.width())
    }

    fn put_stream(&mut self, section: usize) -> Result<()> {
        let Some(stream) = self.streams.streams.get_mut(section) else { return Ok(()) };
        let put = std::mem::take(&mut stream.put);
        let given = std::mem::take(&mut stream.given);
        if put.is_empty() && given.is_empty() {
            return Ok(());
        }
        match self.single_width(section) {
            Some(_) => {
                let number = self.format.sections.get(section).map_or(0, |s| s.number);
                let predicted = self.format.models.iter().any(|model| model.section == number);
                let segments = agree(put, given, predicted)?;
                for (i, segment) in segments.iter().enumerate() {
                    self.put_numbers(section, segment, i == 0)?;
                }
                let values = segments.into_iter().next().map(|segment| segment.values);
                if let Some((stream, values)) = self.streams.streams.get_mut(section).zip(values) {
                    stream.put.reuse(values);
                }
                Ok(())
            }
            None => {
                for (i, segment) in given.into_iter().enumerate() {
                    self.put_elements(section, &segment, i == 0)?;
                }
                Ok(())
            }
        }
    }

    fn put_elements(&mut self, section: usize, segment: &GivenElements, first: bool) -> Result<()> {
        if segment.raw.len() > MAX_RAW_LEN {
            return Err(Error::at(0, ErrorKind::Limit("a stream section grew by more than 64 MiB within a group")));
        }
        if segment.raw.is_empty() && !first {
            return Ok(());
        }
        if let Some(stream) = self.streams.streams.get_mut(section) {
            stream.local_length += segment.raw.len() as u64;
        }
        let number = self.format.sections.get(section).map_or(0, |s| s.number);
        let spec = ChunkSpec {
            section: number,
            reset: true,
            records: segment.count,
            group: self.group,
            ..ChunkSpec::default()
        };
        self.put_part(spec, &segment.raw, &[], None)
    }

    /// Encodes numbers chunk by chunk. Each chunk uses the smallest width that holds all its numbers; in version 0, the
    /// width is always that of the DTD.
    fn put_numbers(&mut self, section: usize, segment: &GivenElements, first: bool) -> Result<()> {
        if segment.values.is_empty() && !first {
            return Ok(());
        }
        let format = self.format.clone();
        let record = format.sections.get(section).and_then(|s| s.records.first()).copied().unwrap_or(0);
        let leaf = format.records.get(usize::from(record)).and_then(|r| r.single_number());
        let (Some(leaf), Some(writer)) = (leaf, self.sections.get_mut(section)) else { return Ok(()) };
        let fixed = matches!(self.layout, Some(FileWriter::Extents(_))).then_some(leaf.width());
        let number = format.sections.get(section).map_or(0, |s| s.number);
        writer.state.reset(&format);
        let mut reset = true;
        for values in segment.values.chunks((self.chunk_size / 8).max(1)) {
            let Some(writer) = self.sections.get_mut(section) else { return Ok(()) };
            let width = fixed.unwrap_or_else(|| least_width(writer, values));
            writer.state.set_chunk_width(&format, leaf, width);
            let mut out = std::mem::take(&mut self.pool.numbers);
            encode(&mut writer.state, values, self.order, &mut out).map_err(|value| {
                let mut error = Error::at(0, ErrorKind::DoesNotFit { value, width });
                error.place.section = Some(number);
                error.place.leaf = Some(0);
                error
            })?;
            if let Some(stream) = self.streams.streams.get_mut(section) {
                stream.local_length += out.len() as u64;
            }
            #[allow(clippy::cast_possible_truncation, reason = "a chunk holds at most 32 MiB")]
            let records = values.len() as u32;
            let spec = ChunkSpec {
                section: number,
                reset: std::mem::take(&mut reset),
                width,
                element: width,
                records,
                group: self.group,
                ..ChunkSpec::default()
            };
            self.put_part(spec, &out, &[], None)?;
            self.pool.numbers = out;
        }
        Ok(())
    }

    /// Writes the remaining data, the index and the footer.
    pub(super) fn finish(&mut self) -> Result<()> {
        let ended = self.end_group();
        self.end_in_place();
        let layout = self.layout.take();
        ended?;
        match layout {
            Some(FileWriter::Chunks(chunks)) => chunks.finish(&mut self.sink, self.records),
            Some(FileWriter::Extents(extents)) => extents.finish(&mut self.sink, self.records),
            None => Err(Error::at(0, ErrorKind::Usage("the writer is already finished"))),
        }
    }
}

/// Computes the smallest width that holds all `values` under the section's interpretation. The section's state is not
/// changed.
fn least_width(writer: &crate::writer::SectionWriter, values: &[u64]) -> u8 {
    let Some(plan) = writer.state.encoding.plan(0) else { return 8 };
    let mut bits = 0;
    each_raw(plan, history(plan, &writer.state.history.cells), values, |raw, _| {
        // Folds negative numbers as `bytes_for` does.
        bits |= if plan.sign != 0 { (raw << 1) ^ 0_u64.wrapping_sub(raw >> 63) } else { raw };
    });
    bytes_for(bits, false)
}

/// Encodes the numbers of one chunk into `out` according to the plan of their leaf. The error is a number that does not
/// fit.
fn encode(state: &mut State, values: &[u64], order: Order, out: &mut Vec<u8>) -> Result<(), u64> {
    out.clear();
    let Some(plan) = state.encoding.plans.first() else { return Ok(()) };
    let previous = history(plan, &state.history.cells);
    let width = plan.width.bytes();
    // All eight bytes of each number are stored; the next number overwrites the excess bytes.
    out.resize(values.len() * width + 8, 0);
    let (mut at, mut all_fit) = (0, true);
    each_raw(plan, previous, values, |raw, _| {
        all_fit &= fits(raw, plan);
        if let Some(place) = out.get_mut(at..).and_then(|tail| tail.first_chunk_mut()) {
            *place = bytes_of(raw, plan, order);
        }
        at += width;
    });
    out.truncate(values.len() * width);
    let mut misfit = None;
    if !all_fit {
        each_raw(plan, previous, values, |raw, value| misfit = misfit.or((!fits(raw, plan)).then_some(value)));
    }
    if let Some(&last) = values.last() {
        note(last, plan, &mut state.history.cells);
    }
    misfit.map_or(Ok(()), Err)
}

/// Calls `each` with the stored integer of every value, before truncation to its width, and with the value itself.
/// `previous` is the history added to the first value. The history of every later value is simply the preceding value,
/// because the section has no other leaf.
#[inline(always)]
fn each_raw(plan: &Plan, mut previous: u64, values: &[u64], mut each: impl FnMut(u64, u64)) {
    for &value in values {
        each(value.wrapping_sub(plan.base).wrapping_sub(previous), value);
        previous = value & plan.history;
    }
}

/// Chooses the elements of a stream of numbers, which are supplied by the caller or produced by strides and models. In
/// the latter case, a skipped element repeats the value before it. Both must agree. If models produced the values, the
/// caller's elements come from a different writer and are ignored.
fn agree(put: Numbers, given: Vec<GivenElements>, predicted: bool) -> Result<Vec<GivenElements>> {
    if given.is_empty() {
        return Ok(vec![GivenElements { values: put.into_values(), ..GivenElements::default() }]);
    }
    let mut elements = given.iter().flat_map(|s| &s.values);
    let agrees = put.iter().all(|value| {
        let element = elements.next();
        value.is_none() || element.copied() == value
    });
    if agrees {
        return Ok(given);
    }
    if !predicted {
        let why = "the elements supplied for a stream section differ from the values its records take from it";
        return Err(Error::at(0, ErrorKind::Usage(why)));
    }
    let values = put.into_values();
    Ok(vec![GivenElements { values, ..GivenElements::default() }])
}
