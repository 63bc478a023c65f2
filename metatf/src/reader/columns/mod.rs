//! Filling columns.
//!
//! Where records lie is found first, by their tags and the lengths that follow from the plans; then the leaves are taken, type by
//! type and leaf by leaf, each in a loop that has but one plan. Records whose leaves depend on others are read one by one.

mod known;
mod note;
mod take;

use super::{Event, Metadata, RecordReader};
use crate::columns::{Columns, RECORDS};
use crate::container::Order;
use crate::decode::Run;
use crate::error::{Error, Result};
use crate::format::{self, Format, METADATA, Record};
use crate::state::{COLUMNS, Listed, State};
use note::{Entry, Section, What};
use take::Type;

/// What is known of the records of all sections, and those that were found and not yet taken.
#[derive(Debug, Default)]
pub(super) struct Filler {
    sections: Vec<Section>,
    /// Places are counted from here.
    base: usize,
    /// Metadata records that were read and not yet learnt from.
    metadata: Vec<Metadata>,
}

/// Why there are no more records to note.
enum End {
    /// The columns are full.
    Full,
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
        columns.begin(&self.format, self.records_read());
        let mut filler = self.filler.take().unwrap_or_default();
        let filled = self.fill(columns, &mut filler);
        self.filler = Some(filler);
        self.filled(columns, filled)
    }

    /// Whether columns were filled. An error waits until the records before it were given.
    fn filled(&mut self, columns: &Columns, filled: Result<()>) -> Result<bool> {
        match filled {
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
                End::Other => self.take_noted(columns, filler),
            }
            match self.next_event()? {
                Some(Event::Record(at)) => self.add(columns, at.section, at.record)?,
                Some(_) => {}
                None => break,
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

    /// Takes what was noted of the part in hand.
    fn take_noted(&mut self, columns: &mut Columns, filler: &mut Filler) {
        let Some(current) = &self.current else { return };
        let data = self.container.bytes(&current.content);
        if let Some(state) = self.states.get_mut(current.section) {
            filler.take(current.section, data, state, columns);
        }
    }
}

impl Run<'_> {
    /// Reads the data record that comes next, and is listed so, leaf by leaf. None where it cannot be read; the run knows why.
    fn push(&mut self, columns: &mut Columns, section: usize, listed: Listed) -> Option<()> {
        let (format, at) = (self.format, self.position + usize::from(self.format.tag_width));
        let mut row = self.row((listed.record, listed.first as usize), self.position, at)?;
        let pushed = columns.push(format, section, listed.position.into(), &mut row);
        self.position = row.position;
        self.count += 1;
        pushed.ok()
    }
}

impl Filler {
    /// Notes the records that come next, or reads them. Where one cannot be read, the run's row knows why.
    fn note(&mut self, index: usize, run: &mut Run<'_>, columns: &mut Columns) -> Result<End, ()> {
        if run.state.tiers.has_changed(COLUMNS) {
            self.metadata.clear();
            self.refresh(run.format, run.data, run.state, columns);
        }
        let width = usize::from(run.format.tag_width);
        if self.sections.get(index).is_some_and(Section::is_taken) {
            self.base = run.position;
        }
        loop {
            let room = columns.room();
            if room == 0 {
                return Ok(End::Full);
            }
            let Some(section) = self.sections.get_mut(index) else { return Ok(End::Other) };
            let entry = section.pass(run, self.base, width, room, columns.split(index));
            match entry.map_or(What::Other, |entry| entry.what) {
                What::Note => {}
                What::Read => {
                    let listed = run.next_listed().ok_or(())?;
                    run.push(columns, index, listed).ok_or(())?;
                }
                // What was noted can wait: it is known by which plans it is taken.
                What::Other if !self.apply_metadata(run, columns) => return Ok(End::Other),
                What::Other => {}
            }
        }
    }

    /// Applies metadata records that come next, and learns from them. False where none does that is as it should be.
    fn apply_metadata(&mut self, run: &mut Run<'_>, columns: &mut Columns) -> bool {
        if run.next_listed().is_none_or(|listed| listed.record != METADATA) {
            return false;
        }
        if let Some(section) = self.sections.get_mut(run.state.section) {
            section.types.iter_mut().for_each(|known| known.keep_previous(run.state));
        }
        self.metadata.clear();
        // More than these need not be learnt from at once.
        while self.metadata.len() < 64
            && let Some(metadata) = run.apply_metadata()
        {
            self.metadata.push(metadata);
        }
        self.refresh(run.format, run.data, run.state, columns);
        !self.metadata.is_empty()
    }

    /// Learns the plans that have changed, by metadata records if some were right before.
    #[inline(never)]
    fn refresh(&mut self, format: &Format, data: &[u8], state: &mut State, columns: &mut Columns) {
        let index = state.section;
        if self.sections.len() < format.sections.len() {
            self.sections.resize_with(format.sections.len(), Section::default);
        }
        let (Some(section), Some(listed)) = (self.sections.get_mut(index), format.sections.get(index)) else { return };
        if section.types.is_empty() {
            section.entries = vec![Entry::default(); 256];
            section.types.extend(listed.records.iter().enumerate().map(|(at, &record)| Type::new(format, at, record)));
            state.tiers.all_changed(COLUMNS);
        }
        let refresh = Refresh { format, data, metadata: &self.metadata, section: listed, base: self.base };
        for position in state.tiers.take_changed(COLUMNS) {
            refresh.one(section, state, columns, position);
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

/// What is needed to learn plans that have changed.
struct Refresh<'f> {
    format: &'f Format,
    data: &'f [u8],
    base: usize,
    metadata: &'f [Metadata],
    section: &'f format::Section,
}

impl Refresh<'_> {
    /// Learns the plans of the record at a position.
    fn one(&self, section: &mut Section, state: &mut State, columns: &mut Columns, position: usize) {
        let Some(&number) = self.section.records.get(position).filter(|&&number| number > METADATA) else { return };
        let found = section.types.get_mut(position).zip(self.format.records.get(usize::from(number)));
        let Some((known, record)) = found else { return };
        let plans = state.plans_of(position);
        let entry = known.learn(record, state, plans, self.news(record));
        if entry.what == What::Note && known.first == usize::MAX {
            known.first = section.starts.len();
            section.starts.resize(known.first + RECORDS, 0);
        }
        if let Some(slot) = section.entries.get_mut(record.tag as usize) {
            *slot = entry;
        }
        if entry.what != What::Note && known.count > 0 {
            let cells = state.cells.clone();
            let (first, records, ..) = columns.split(state.section);
            if let Some(columns) = records.get_mut(first + position) {
                known.take(&section.starts, self.data, self.base, state, columns);
            }
            // What the metadata has set stays.
            for leaf in (0..=u8::MAX).take(record.leaves.len()).filter(|&leaf| self.news(record).is_set(leaf)) {
                let cell = state.plan(plans + usize::from(leaf)).map_or(0, |plan| plan.write as usize);
                if let (Some(cell), Some(&set)) = (state.cells.get_mut(cell), cells.get(cell)) {
                    *cell = set;
                }
            }
        }
    }

    /// What is new of a record's leaves.
    fn news<'n>(&'n self, record: &'n Record) -> News<'n> {
        let is_whole = |metadata: &Metadata| metadata.all() || metadata.record != record.tag;
        let is_whole = self.metadata.is_empty() || self.metadata.iter().any(is_whole);
        News { format: self.format, section: self.section, metadata: self.metadata, record, is_whole }
    }
}

/// What metadata records have changed of a record.
#[derive(Clone, Copy)]
struct News<'n> {
    format: &'n Format,
    section: &'n format::Section,
    metadata: &'n [Metadata],
    record: &'n Record,
    /// Any of its leaves may have changed.
    is_whole: bool,
}

impl News<'_> {
    /// The first leaf that may have changed.
    fn first(&self) -> usize {
        if self.is_whole { 0 } else { self.metadata.iter().map(|metadata| metadata.field.into()).min().unwrap_or(0) }
    }

    /// Whether a leaf may have changed.
    fn is_changed(&self, leaf: u8) -> bool {
        self.is_whole || self.metadata.iter().any(|metadata| metadata.field == leaf)
    }

    /// Whether a leaf has been given another previous value: it was made `delta` or `stride` (spec 4.1).
    fn is_set(&self, leaf: u8) -> bool {
        self.metadata.iter().any(|metadata| matches!(metadata.property & 7, 3 | 6) && self.names(metadata, leaf))
    }

    fn names(&self, metadata: &Metadata, leaf: u8) -> bool {
        if !metadata.all() {
            return metadata.record == self.record.tag && metadata.field == leaf;
        }
        let mut listed = self.section.records.iter().filter_map(|&record| self.format.records.get(usize::from(record)));
        let of = listed.find(|record| record.tag == metadata.record);
        let of = of.and_then(|record| record.leaves.get(usize::from(metadata.field)));
        of.zip(self.record.leaves.get(usize::from(leaf))).is_some_and(|(of, leaf)| of.field == leaf.field)
    }
}
