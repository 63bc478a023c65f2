//! Filling columns.
//!
//! The records are located first. Then the leaves are decoded, type by type and leaf by leaf, with one loop for all
//! values of a leaf, which need only a single plan. If metadata changes the plans of one type, the located records of
//! other types need not be decoded yet. Records whose leaves depend on other leaves are read one by one.

mod known;
mod pick;
mod take;

use super::batch::{Batch, Type, Types};
use super::{Event, Next, RecordReader};
use crate::columns::{Columns, RECORDS, RecordColumns};
use crate::decode::Run;
use crate::format::METADATA;
use crate::state::{COLUMNS, Listed, State};
use metatf_container::{Error, Order, Result};
use pick::Picker;
use take::Progress;

/// The layouts of the records of all sections, and the records located but not yet decoded.
#[derive(Debug, Default)]
pub(super) struct ColumnFiller {
    sections: Vec<NotedSection>,
    /// Located records of one section.
    batch: Batch,
    /// The selection of leaves for which the pickers were made.
    selection: u64,
}

/// The record types of a section.
#[derive(Debug, Default)]
struct NotedSection {
    types: Types,
    /// The progress by position.
    progress: Vec<Progress>,
    /// For each position, the way to pick leaves of records that are read one by one, if not all leaves are requested.
    pickers: Vec<Option<Picker>>,
}

/// The reason why no more records can be located.
enum NoteEnd {
    /// The columns are full.
    Full,
    /// Anything else, such as another event or the end of the part.
    Other,
}

impl RecordReader<'_> {
    /// Fills columns with up to [`RECORDS`] of the next data records. There are fewer if a record is very large, an
    /// error follows, or the trace ends. Returns false if no records remain. Reading by columns and reading records one
    /// by one can be mixed.
    ///
    /// # Errors
    /// Returns the first error in the trace, after the records before it have been returned.
    pub fn next_columns(&mut self, columns: &mut Columns) -> Result<bool> {
        columns.begin(&self.format, self.records_read());
        let mut filler = self.filler.take().unwrap_or_default();
        if std::mem::replace(&mut filler.selection, columns.selection()) != columns.selection() {
            self.states.iter_mut().for_each(|state| state.encoding.tiers.all_changed(COLUMNS));
        }
        self.container.keep_columns(columns.is_partial());
        let filled = self.fill(columns, &mut filler);
        self.container.keep_columns(false);
        self.filler = Some(filler);
        self.filled(columns, filled)
    }

    /// Returns whether the columns contain any records. An error is held back until the records before it have been
    /// returned.
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

    /// Stores an error to be reported next. After the error, nothing more is returned.
    pub(crate) fn hold(&mut self, error: Error) {
        self.next = Next::Finished;
        self.held = Some(error);
    }

    fn fill(&mut self, columns: &mut Columns, filler: &mut ColumnFiller) -> Result<()> {
        while columns.room() > 0 {
            // An event that precedes the part comes first.
            let is_next = columns.is_partial() && self.queue.is_empty();
            if is_next && self.fill_projected(columns)? {
                continue;
            }
            if is_next && self.keep_next()? {
                if columns.is_empty() {
                    // Groups may have been skipped.
                    columns.set_first(self.records_read());
                }
                continue;
            }
            match self.note(columns, filler)? {
                NoteEnd::Full => continue,
                NoteEnd::Other => self.take_noted(columns, filler),
            }
            if columns.room() == 0 {
                break;
            }
            match self.next_event()? {
                Some(Event::Record(at)) => {
                    if columns.is_empty() {
                        // Groups may have been skipped.
                        columns.set_first(self.records_read() - 1);
                    }
                    self.add(columns, at.section, at.record)?;
                }
                // The records in columns are consecutive.
                Some(Event::Group(_)) if self.skips && !columns.is_empty() => break,
                Some(_) => {}
                None => break,
            }
        }
        self.take_noted(columns, filler);
        Ok(())
    }

    /// Decodes the announced record and adds it to the columns.
    fn add(&mut self, columns: &mut Columns, section: usize, record: u16) -> Result<()> {
        let listed = self.format.sections.get(section).map(|s| &s.records);
        let position = listed.and_then(|records| records.iter().position(|&r| r == record)).unwrap_or(usize::MAX);
        let format = self.format.clone();
        self.decode(|row| Ok(columns.push(&format, section, position, row)?))
    }

    /// Locates the next records.
    fn note(&mut self, columns: &mut Columns, filler: &mut ColumnFiller) -> Result<NoteEnd> {
        if !self.is_idle() {
            return Ok(NoteEnd::Other);
        }
        let Some((mut run, mut end)) = self.start_run() else { return Ok(NoteEnd::Other) };
        if run.order == Order::Big {
            return Ok(NoteEnd::Other);
        }
        let why = filler.note(&mut run, columns);
        let (position, count) = (run.position, run.count);
        end.tell(position, count, why.is_err());
        match why {
            Ok(why) => Ok(why),
            Err(()) => {
                self.take_noted(columns, filler);
                self.stopped().map_or(Ok(NoteEnd::Other), Err)
            }
        }
    }

    /// Decodes the located records of the current part.
    fn take_noted(&mut self, columns: &mut Columns, filler: &mut ColumnFiller) {
        if let Some((mut run, _)) = self.start_run() {
            filler.take(&mut run, columns);
        }
    }
}

impl Run<'_> {
    /// Reads the next data record, described by `listed`, leaf by leaf. Returns `None` if the record cannot be read;
    /// the run stores the reason.
    fn push(&mut self, columns: &mut Columns, section: usize, listed: Listed) -> Option<()> {
        let (format, at) = (self.format, self.position + usize::from(self.format.tag_width));
        let mut row = self.row((listed.record, listed.first as usize), at)?;
        let pushed = columns.push(format, section, listed.position.into(), &mut row);
        self.position = row.position;
        self.count += 1;
        pushed.ok()
    }
}

impl ColumnFiller {
    /// Locates the next records, or reads records that cannot be located. If a record cannot be read, the run stores
    /// the reason.
    fn note(&mut self, run: &mut Run<'_>, columns: &mut Columns) -> Result<NoteEnd, ()> {
        if run.state.encoding.tiers.has_changed(COLUMNS) {
            self.learn(run, columns);
        }
        let index = run.state.encoding.section;
        loop {
            let room = columns.room();
            if room == 0 {
                return Ok(NoteEnd::Full);
            }
            let Self { sections, batch, .. } = self;
            let Some(NotedSection { types, pickers, .. }) = sections.get_mut(index) else {
                return Ok(NoteEnd::Other);
            };
            let stopped_by = types.scan::<false>(batch, run, room);
            let (first, _, order, weight) = columns.split(index);
            #[allow(clippy::cast_possible_truncation, reason = "the number of types fits in 32 bits")]
            order.extend(batch.order().iter().map(|position| first as u32 + position));
            *weight += std::mem::take(&mut batch.bytes);
            run.count += std::mem::take(&mut batch.len) as u64;
            let Some(position) = stopped_by else {
                if self.apply_metadata(run, columns) {
                    continue;
                }
                return Ok(NoteEnd::Other);
            };
            let known = types.types.get_mut(usize::from(position));
            if let Some(known) = known.filter(|known| known.is_batched()) {
                let first = batch.places.len();
                if known.is_allotted() || known.allot(first, 1, RECORDS).is_none() {
                    return Ok(NoteEnd::Other);
                }
                batch.places.resize(first + RECORDS, 0);
            } else {
                let listed = run.next_listed().ok_or(())?;
                let picker = pickers.get_mut(usize::from(position)).and_then(Option::as_mut);
                if picker.is_some_and(|picker| picker.pick_all(run, columns, listed)) {
                    continue;
                }
                run.push(columns, index, listed).ok_or(())?;
            }
        }
    }

    /// Applies the next metadata records and updates the plans. Returns false if no valid metadata record follows.
    fn apply_metadata(&mut self, run: &mut Run<'_>, columns: &mut Columns) -> bool {
        if run.next_listed().is_none_or(|listed| listed.record != METADATA) {
            return false;
        }
        self.each_met(run, columns, Progress::take_history);
        let mut is_applied = false;
        while run.apply_metadata().is_some() {
            is_applied = true;
        }
        self.learn(run, columns);
        is_applied
    }

    /// Updates the plans that have changed.
    #[inline(never)]
    fn learn(&mut self, run: &mut Run<'_>, columns: &mut Columns) {
        let index = run.state.encoding.section;
        if self.sections.len() < run.format.sections.len() {
            self.sections.resize_with(run.format.sections.len(), NotedSection::default);
        }
        let is_partial = columns.is_partial();
        let Some(NotedSection { types, progress, pickers }) = self.sections.get_mut(index) else { return };
        if types.types.is_empty() {
            *types = Types::new(run.format, index);
            progress.resize_with(types.types.len(), Progress::default);
            pickers.resize_with(types.types.len(), || None);
            run.state.encoding.tiers.all_changed(COLUMNS);
        }
        let (first, records, ..) = columns.split(index);
        for position in run.state.encoding.tiers.take_changed(COLUMNS) {
            if let Some(known) = types.types.get_mut(position)
                && let Some(progress) = progress.get_mut(position)
                && let Some(records) = records.get_mut(first + position)
            {
                progress.learn(known, &self.batch, run.data, run.state, (position, records));
                if let Some(picker) = pickers.get_mut(position) {
                    let is_general = is_partial && !known.is_batched();
                    *picker = is_general.then(|| picker_of(run, position, records)).flatten();
                }
            }
        }
    }

    /// Decodes the located records.
    fn take(&mut self, run: &mut Run<'_>, columns: &mut Columns) {
        self.each_met(run, columns, Progress::take);
        self.batch.met.clear();
    }

    /// Calls a function for each type with located records.
    fn each_met(
        &mut self,
        run: &mut Run<'_>,
        columns: &mut Columns,
        each: fn(&mut Progress, &mut Type, &Batch, &[u8], &mut State, &mut RecordColumns),
    ) {
        let index = run.state.encoding.section;
        let Some(NotedSection { types, progress, .. }) = self.sections.get_mut(index) else { return };
        let (first, records, ..) = columns.split(index);
        for position in self.batch.met.iter().map(|&position| usize::from(position)) {
            if let Some(known) = types.types.get_mut(position)
                && let Some(progress) = progress.get_mut(position)
                && let Some(records) = records.get_mut(first + position)
            {
                each(progress, known, &self.batch, run.data, run.state, records);
            }
        }
    }
}

/// Returns the way to pick the requested leaves of the records at a position in the section.
fn picker_of(run: &Run<'_>, position: usize, columns: &RecordColumns) -> Option<Picker> {
    let record = run.format.records.get(usize::from(columns.record()))?;
    let first = run.state.encoding.first_plan(position)?;
    Picker::new(record, run.state.encoding.plans.get(first..first + record.leaves.len())?, columns)
}
