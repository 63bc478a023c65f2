//! Filling columns.
//!
//! Where records lie is found first, by their tags and the lengths that follow from the plans; then the leaves are taken, type by
//! type and leaf by leaf, each in a loop that has but one plan. Records whose leaves depend on others are read one by one.

mod note;
mod take;

use super::run::{Run, tag};
use super::{Event, Metadata, RecordReader};
use crate::columns::{Columns, RECORDS};
use crate::container::Order;
use crate::error::{Error, Result};
use crate::format::{self, Format, METADATA, Record};
use crate::grade::{COLUMNS, bit};
use crate::state::State;
use note::{Entry, Section, What};
use take::Type;

/// What is known of the records of all sections, and those that were found and not yet taken.
#[derive(Debug, Default)]
pub(super) struct Filler {
    sections: Vec<Section>,
    /// Places are counted from here.
    base: usize,
}

/// Why there are no more records to note.
enum End {
    /// The columns are full.
    Full,
    /// Metadata comes next.
    Metadata,
    /// Something else.
    Other,
}

impl RecordReader<'_> {
    /// Fills columns with the data records that come next: at most [`RECORDS`], fewer where a record is
    /// very large, an error follows, or the trace ends. False where none is left. Records read one by one and by
    /// columns may alternate.
    ///
    /// # Errors
    /// The first thing that is wrong with the trace, once the records before it were given.
    pub fn next_columns(&mut self, columns: &mut Columns) -> Result<bool> {
        columns.begin(&self.format, self.records);
        let mut filler = self.filler.take().unwrap_or_default();
        let result = self.fill(columns, &mut filler);
        self.filler = Some(filler);
        match result {
            Ok(()) => Ok(!columns.is_empty()),
            Err(error) if columns.is_empty() => Err(error),
            Err(error) => {
                self.hold(error);
                Ok(true)
            }
        }
    }

    /// An error that is told next, after which nothing comes.
    pub(crate) fn hold(&mut self, error: Error) {
        self.finished = true;
        self.held = Some(error);
    }

    fn fill(&mut self, columns: &mut Columns, filler: &mut Filler) -> Result<()> {
        while columns.room() > 0 {
            match self.note(columns, filler)? {
                End::Full => continue,
                // What was noted can wait: the plans it is taken by are copies.
                End::Metadata => self.keep_previous(filler),
                End::Other => self.take_noted(columns, filler),
            }
            match self.next_event() {
                Ok(Some(Event::Metadata(at, metadata))) => self.learn(columns, filler, at.section, &metadata),
                Ok(Some(Event::Record(at))) => self.add(columns, at.section, at.record)?,
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => {
                    self.take_noted(columns, filler);
                    return Err(error);
                }
            }
        }
        self.take_noted(columns, filler);
        Ok(())
    }

    /// A record that was announced.
    fn add(&mut self, columns: &mut Columns, section: usize, record: u16) -> Result<()> {
        let listed = self.format.sections.get(section).map(|s| &s.records);
        let position = listed.and_then(|records| records.iter().position(|&r| r == record)).unwrap_or(usize::MAX);
        let format = self.format.clone();
        self.decode(|row| Ok(columns.push(&format, section, position, row)?))
    }

    /// Notes the records that come next.
    fn note(&mut self, columns: &mut Columns, filler: &mut Filler) -> Result<End> {
        if !self.is_idle() {
            return Ok(End::Other);
        }
        let Some((mut run, mut end)) = self.start_run() else { return Ok(End::Other) };
        if run.order == Order::Big {
            return Ok(End::Other);
        }
        let why = filler.note(end.section(), &mut run, columns);
        let (position, count) = (run.position, run.count);
        end.tell(position, count, why.is_err());
        match why {
            Ok(why) => Ok(why),
            Err(()) => {
                self.take_noted(columns, filler);
                self.stopped().map_or(Ok(End::Other), Err)
            }
        }
    }

    /// A metadata record comes next.
    fn keep_previous(&self, filler: &mut Filler) {
        let section = self.current.as_ref().map(|current| current.section);
        let found = section.and_then(|index| Some((filler.sections.get_mut(index)?, self.states.get(index)?)));
        if let Some((section, state)) = found {
            section.types.iter_mut().for_each(|known| known.keep_previous(state));
        }
    }

    /// A metadata record was read.
    fn learn(&mut self, columns: &mut Columns, filler: &mut Filler, index: usize, metadata: &Metadata) {
        let data = self.current.as_ref().map_or(&[][..], |current| self.container.bytes(&current.content));
        // Where nothing was ever noted there is nothing to learn yet.
        if let Some(state) = self.states.get_mut(index)
            && filler.sections.get(index).is_some_and(|section| !section.types.is_empty())
        {
            filler.refresh(&self.format, data, state, columns, Some(metadata));
        }
    }

    /// Takes what was noted of the part in hand.
    fn take_noted(&mut self, columns: &mut Columns, filler: &mut Filler) {
        let Some(current) = &self.current else { return };
        let data = self.container.bytes(&current.content);
        if let Some(state) = self.states.get_mut(current.section) {
            filler.take(current.section, data, state, columns);
        }
    }
}

impl Filler {
    /// Notes the records that come next, or reads them. Where one cannot be read, the run's row knows why.
    fn note(&mut self, index: usize, run: &mut Run<'_>, columns: &mut Columns) -> Result<End, ()> {
        if run.state.grades.has_changed(COLUMNS) {
            self.refresh(run.format, run.data, run.state, columns, None);
        }
        let Self { sections, base } = self;
        let (Some(section), format) = (sections.get_mut(index), run.format) else { return Ok(End::Other) };
        let width = usize::from(format.tag_width);
        if section.types.iter().all(|t| t.count == 0) {
            *base = run.position;
        }
        loop {
            let room = columns.room();
            if room == 0 {
                return Ok(End::Full);
            }
            let entry = section.pass(run, *base, width, room, columns.split(index));
            match entry.map_or(What::Other, |entry| entry.what) {
                What::Note => {}
                What::Read => {
                    let position = entry.map_or(0, |entry| entry.position.into());
                    let record = format.sections.get(index).and_then(|s| s.records.get(position)).copied().ok_or(())?;
                    let first = run.state.plans_of(position);
                    let mut row = run.row(record, first, run.position + width).ok_or(())?;
                    let pushed = columns.push(format, index, position, &mut row);
                    run.position = row.position;
                    run.count += 1;
                    pushed.map_err(|_| ())?;
                }
                What::Other => {
                    let tag = tag(run.data, run.position, width, Order::Little);
                    let listed = tag.and_then(|tag| run.state.listed(tag));
                    let is_metadata = listed.is_some_and(|listed| listed.record == METADATA);
                    return Ok(if is_metadata { End::Metadata } else { End::Other });
                }
            }
        }
    }

    /// Learns the plans that have changed, by a metadata record if there was one right before.
    #[inline(never)]
    fn refresh(
        &mut self,
        format: &Format,
        data: &[u8],
        state: &mut State,
        columns: &mut Columns,
        metadata: Option<&Metadata>,
    ) {
        let index = state.section;
        if self.sections.len() < format.sections.len() {
            self.sections.resize_with(format.sections.len(), Section::default);
        }
        let (Some(section), Some(listed)) = (self.sections.get_mut(index), format.sections.get(index)) else { return };
        let mut changed = state.grades.take_changed(COLUMNS);
        if section.types.is_empty() {
            section.entries = vec![Entry::default(); 256];
            section.types.extend(listed.records.iter().map(|&record| Type::new(format, record)));
            changed = u64::MAX;
        }
        let (first, records, ..) = columns.split(index);
        for (position, &number) in listed.records.iter().enumerate() {
            if changed & bit(position) == 0 && (position < 64 || changed != u64::MAX) || number <= METADATA {
                continue;
            }
            let found = section.types.get_mut(position).zip(format.records.get(usize::from(number)));
            let Some((known, record)) = found else { continue };
            let is_set =
                |leaf: u8| metadata.is_some_and(|metadata| sets_previous(format, listed, metadata, record, leaf));
            let entry = known.learn(format, record, state, position, is_set);
            if let Some(columns) = records.get_mut(first + position).filter(|_| entry.what != What::Note) {
                let cells = state.cells.clone();
                known.take(&section.starts, data, self.base, state, columns);
                // What the metadata record has set stays.
                for leaf in (0..=u8::MAX).take(record.leaves.len()).filter(|&leaf| is_set(leaf)) {
                    let cell =
                        state.plan(state.plans_of(position) + usize::from(leaf)).map_or(0, |plan| plan.write as usize);
                    if let (Some(cell), Some(&set)) = (state.cells.get_mut(cell), cells.get(cell)) {
                        *cell = set;
                    }
                }
            }
            if entry.what == What::Note && known.first == usize::MAX {
                known.first = section.starts.len();
                section.starts.resize(known.first + RECORDS, 0);
            }
            if let Some(slot) = section.entries.get_mut(record.tag as usize) {
                *slot = entry;
            }
        }
    }

    fn take(&mut self, index: usize, data: &[u8], state: &mut State, columns: &mut Columns) {
        let Some(section) = self.sections.get_mut(index) else { return };
        let (first, records, ..) = columns.split(index);
        for (known, columns) in section.types.iter_mut().zip(records.get_mut(first..).unwrap_or_default()) {
            known.take(&section.starts, data, self.base, state, columns);
        }
        section.rank();
    }
}

/// Whether a metadata record of a section gives a leaf another previous value: it makes it `delta` or `stride` (spec 4.1).
fn sets_previous(format: &Format, section: &format::Section, metadata: &Metadata, record: &Record, leaf: u8) -> bool {
    if !matches!(metadata.property & 7, 3 | 6) {
        return false;
    }
    if !metadata.all() {
        return metadata.record == record.tag && metadata.field == leaf;
    }
    let mut listed = section.records.iter().filter_map(|&record| format.records.get(usize::from(record)));
    let of = listed.find(|record| record.tag == metadata.record);
    let field = |record: &'_ Record, leaf: u8| record.leaves.get(usize::from(leaf)).map(|leaf| leaf.field.clone());
    of.is_some_and(|of| field(of, metadata.field) == field(record, leaf))
}
