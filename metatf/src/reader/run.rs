//! Records that come one after the other without ado, decoded in one loop that keeps in registers where it is.
//!
//! What is out of the ordinary (metadata, a comment, an unknown tag, the last bytes of a part) ends the run, before the
//! record that it is about; the reader's other way takes it from there.
//!
//! What reads one record is no part of the loop in a debug build, where all that is in line has room of its own on the stack:
//! of a format with many records, megabytes.
//!
//! Longer than other files: the ways to read a record, one for each grade, differ in little and are chosen from here.

use super::RecordReader;
use crate::container::{Order, Origin};
use crate::error::Error;
use crate::format::{Format, METADATA};
use crate::grade::{FORMULA, GATHERED, GENERAL, STORED, bit};
use crate::row::{Bytes, ContentRow, Row, Stopped};
use crate::row_expected::{ExpectedRow, window};
use crate::row_foretold::ForetoldRow;
use crate::row_gathered::GatheredRow;
use crate::row_shaped::ShapedRow;
use crate::state::{Listed, Plan, State};
use crate::streams::Streams;
use crate::typed::{Known, ReadFields, SectionFamily};
use std::marker::PhantomData;
use std::ops::ControlFlow;

/// The records of a part from its next on.
pub(crate) struct Run<'r> {
    pub(super) format: &'r Format,
    pub(crate) data: &'r [u8],
    pub(super) position: usize,
    pub(crate) state: &'r mut State,
    pub(crate) streams: &'r mut Streams,
    source: &'r dyn Bytes,
    origin: Origin,
    /// What stands before the part in its section, or in the file.
    pub(super) base: u64,
    pub(super) order: Order,
    /// Bytes of a metadata value that does not say how many it has.
    pub(super) word: usize,
    /// Records read.
    pub(super) count: u64,
    stopped: &'r mut Option<Error>,
}

/// Reads records of a section, one or many.
pub trait Reads<'r> {
    /// Gives records of a section, which has `PLANS` plans, to `each`.
    fn section<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, C>(
        &mut self,
        each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C>;
}

/// Gives the records that come next, fields and all.
pub trait Rows<'r> {
    /// The tag of the next record; none at the end.
    fn tag(&self, width: usize) -> Option<u32>;

    /// The fields of the next record, which is an `S`; none where it cannot be had here.
    fn read<S: Known, T: ReadFields<'r>>(&mut self) -> Option<T>;
}

/// What has to be told of the end of a run.
pub(crate) struct End<'t> {
    section: usize,
    position: &'t mut usize,
    found: &'t mut u64,
    records: &'t mut u64,
    finished: &'t mut bool,
}

impl End<'_> {
    #[inline(always)]
    pub(super) fn section(&self) -> usize {
        self.section
    }

    #[inline(always)]
    pub(super) fn tell(&mut self, position: usize, count: u64, stopped: bool) {
        *self.position = position;
        *self.found += count;
        *self.records += count;
        *self.finished = stopped;
    }
}

impl RecordReader<'_> {
    /// Gives the records that come next, and the index of their section, to `read`: once more behind metadata, until it breaks.
    #[inline(always)]
    pub(crate) fn run<'t, T>(
        &'t mut self,
        mut read: impl FnMut(usize, &mut Run<'t>) -> ControlFlow<T>,
    ) -> Option<ControlFlow<T>> {
        if !self.is_idle() {
            return None;
        }
        let (mut run, mut end) = self.start_run()?;
        let result = loop {
            let result = read(end.section, &mut run);
            if result.is_break() || run.stopped.is_some() || run.apply_metadata().is_none() {
                break result;
            }
        };
        end.tell(run.position, run.count, run.stopped.is_some());
        Some(result)
    }

    /// The section of the part in hand, by its index.
    #[inline]
    pub(crate) fn section(&self) -> Option<usize> {
        self.current.as_ref().map(|current| current.section)
    }

    /// Whether a data record comes next without ado.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.next_listed().is_some_and(|listed| listed.record > METADATA)
    }

    /// The record that comes next without ado, data or not.
    #[inline(always)]
    pub(super) fn next_listed(&self) -> Option<Listed> {
        let current = self.current.as_ref().filter(|current| !current.is_element && self.is_idle())?;
        let data = self.container.bytes(&current.content);
        let tag = tag(data, current.position, usize::from(self.format.tag_width), self.order);
        self.states.get(current.section)?.listed(tag?)
    }

    /// What decodes the next data record, where it comes without ado.
    #[inline(always)]
    pub(crate) fn one(&mut self) -> Option<One<'_>> {
        if !self.is_idle() {
            return None;
        }
        self.start_run().map(|(run, end)| One { run, end })
    }

    /// Decodes the record that [`is_plain`](Self::is_plain) found, leaf by leaf. Should it stop, it gives the place where the
    /// error is; see [`why`](super::why).
    pub(crate) fn one_apart<'t, T>(
        &'t mut self,
        read: impl FnOnce(usize, &mut Apart<'_, 't>) -> ControlFlow<T>,
    ) -> Result<T, Option<&'t mut Option<Error>>> {
        let (mut run, mut end) = self.start_run().ok_or(None)?;
        match read(end.section, &mut Apart(&mut run)) {
            ControlFlow::Break(record) => {
                end.tell(run.position, 1, false);
                Ok(record)
            }
            ControlFlow::Continue(()) => {
                *end.finished = true;
                Err(Some(run.stopped))
            }
        }
    }

    /// The reader once more, to go on where a first try with it has given nothing: what the borrow checker cannot see.
    ///
    /// # Safety
    /// Of the reader that this gives nothing may be alive when `self` is used again.
    #[inline(always)]
    pub(crate) unsafe fn once_more<'t>(&mut self) -> &'t mut Self {
        // SAFETY: the caller sees to it that there is one user at a time.
        unsafe { &mut *std::ptr::from_mut(self) }
    }

    /// Nothing was announced, and nothing waits.
    #[inline(always)]
    pub(super) fn is_idle(&self) -> bool {
        !(self.finished | self.is_ahead) && self.pending.is_none() && self.found.is_none() && self.queue.is_empty()
    }

    #[inline(always)]
    pub(super) fn start_run(&mut self) -> Option<(Run<'_>, End<'_>)> {
        let word = self.word();
        let current = self.current.as_mut().filter(|current| !current.is_element)?;
        let section = current.section;
        let run = Run {
            format: &self.format,
            data: self.container.bytes(&current.content),
            position: current.position,
            state: self.states.get_mut(section)?,
            streams: &mut self.streams,
            source: &self.container,
            origin: current.origin,
            base: current.base,
            order: self.order,
            word,
            count: 0,
            stopped: &mut self.stopped,
        };
        let (position, found) = (&mut current.position, &mut current.found);
        Some((run, End { section, position, found, records: &mut self.records, finished: &mut self.finished }))
    }

    /// Why the last run stopped, if it was an error.
    pub(crate) fn stopped(&mut self) -> Option<Error> {
        self.stopped.take()
    }
}

impl<'r> Reads<'r> for Run<'r> {
    #[inline(always)]
    fn section<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, C>(
        &mut self,
        each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C> {
        let grade = if self.order == Order::Little { self.state.grades.of_all() } else { GENERAL };
        let (data, position) = (self.data, self.position);
        if F::IS_EXPECTABLE && self.state.grades.are_expected() && self.order == Order::Little {
            let mut rows = Expected { data, position, count: 0 };
            let flow = F::rows(&mut rows, each);
            self.position = rows.position;
            self.count += rows.count;
            return flow;
        }
        if grade == GATHERED
            && F::GATHERS
            && let Some(plans) = self.state.plans.first_chunk::<PLANS>()
        {
            let mut rows = Gathered::<PLANS> { data, position, plans, streams: self.streams, count: 0 };
            let flow = F::rows(&mut rows, each);
            let (position, count) = (rows.position, rows.count);
            self.position = position;
            self.count += count;
            return flow;
        }
        if grade <= FORMULA
            && let Some(plans) = self.state.plans.first_chunk::<PLANS>()
        {
            let (flow, position, count) = if grade == STORED {
                let mut rows = Straight::<PLANS, false> { data, position, plans, count: 0 };
                (F::rows(&mut rows, each), rows.position, rows.count)
            } else {
                let mut rows = Straight::<PLANS, true> { data, position, plans, count: 0 };
                (F::rows(&mut rows, each), rows.position, rows.count)
            };
            self.position = position;
            self.count += count;
            return flow;
        }
        let grades = Graded::new(self);
        let mut rows = Mixed::<PLANS> { run: self, grades };
        F::rows(&mut rows, each)
    }
}

/// The grades of a section's records, by position.
#[derive(Clone, Copy)]
struct Graded {
    /// Decoded in a straight line.
    straight: u64,
    told: u64,
    changed: u64,
}

impl Graded {
    #[inline(always)]
    fn new(run: &Run<'_>) -> Self {
        let grades = &run.state.grades;
        match run.order {
            Order::Little => {
                Self { straight: grades.straight(), told: grades.told(), changed: grades.changed_defaults() }
            }
            Order::Big => Self { straight: 0, told: 0, changed: 0 },
        }
    }

    /// Decodes an `S` that is not of one of the straight grades, where it is of one of the others that are decoded by shape.
    #[inline(always)]
    fn read<'r, S: Known, T: ReadFields<'r>, const PLANS: usize>(self, run: &mut Run<'r>) -> Option<Option<T>> {
        if !S::TOLD {
            return None;
        }
        if self.told & const { bit(S::POSITION) } != 0 {
            return Some(run.told::<S, T, PLANS, false>());
        }
        if self.changed & const { bit(S::POSITION) } != 0 {
            return Some(run.changed::<S, T, PLANS>());
        }
        None
    }
}

#[cfg(feature = "dynamic")]
impl<'r> Run<'r> {
    /// Gives the records that come next to `each`, by their positions in the section and leaf by leaf, until it has had
    /// enough. What stops it is told when the run ends.
    #[inline(always)]
    pub(crate) fn rows(
        &mut self,
        mut each: impl FnMut(u16, &mut ContentRow<'_, 'r>) -> Result<ControlFlow<()>, Stopped>,
    ) {
        let width = usize::from(self.format.tag_width);
        let Some(record) = self.format.records.first() else { return };
        let (mut position, mut count) = (self.position, 0);
        // One row for all records: what they have in common stays where it is.
        let mut row = ContentRow {
            format: self.format,
            record,
            data: self.data,
            position,
            start: position,
            origin: self.origin,
            order: self.order,
            first: 0,
            state: self.state,
            streams: self.streams,
            source: self.source,
            items: 0,
            stopped: self.stopped,
        };
        while let Some(tag) = tag(row.data, position, width, row.order) {
            let Some(listed) = row.state.listed(tag).filter(|listed| listed.record > METADATA) else { break };
            let Some(record) = row.format.records.get(usize::from(listed.record)) else { break };
            (row.record, row.first, row.items) = (record, listed.first as usize, 0);
            (row.start, row.position) = (position, position + width);
            let flow = each(listed.position, &mut row).and_then(|flow| row.finish().map(|()| flow));
            position = row.position;
            count += 1;
            if !matches!(flow, Ok(ControlFlow::Continue(()))) {
                break;
            }
        }
        self.position = position;
        self.count += count;
    }
}

impl<'r> Run<'r> {
    /// The next record, whose grade is `FORETOLD`, `GATHERED` or `TOLD`, or else `CHANGED`.
    #[inline(always)]
    fn told<S: Known, T: ReadFields<'r>, const PLANS: usize, const CHANGED: bool>(&mut self) -> Option<T> {
        let at = self.position + S::TAG_WIDTH;
        let mut row = ForetoldRow::<S, PLANS, CHANGED> { run: self, at, previous: 0, shape: PhantomData };
        let fields = T::read_fields(&mut row, 0);
        let at = row.at;
        self.position = at;
        self.count += 1;
        fields.ok()
    }

    /// The next record, of grade `CHANGED`: apart from the loop, whose registers it would take.
    #[inline(never)]
    fn changed<S: Known, T: ReadFields<'r>, const PLANS: usize>(&mut self) -> Option<T> {
        self.told::<S, T, PLANS, true>()
    }

    /// The data record that comes next, by its index in the format, and its first plan.
    pub(super) fn listed(&self) -> Option<(u16, usize)> {
        let tag = tag(self.data, self.position, usize::from(self.format.tag_width), self.order)?;
        let listed = self.state.listed(tag).filter(|listed| listed.record > METADATA)?;
        Some((listed.record, listed.first as usize))
    }

    /// The rest of the next record, from the byte at `at` on.
    #[inline(always)]
    pub(super) fn row(&mut self, record: u16, first: usize, at: usize) -> Option<ContentRow<'_, 'r>> {
        Some(ContentRow {
            format: self.format,
            record: self.format.records.get(usize::from(record))?,
            data: self.data,
            position: at,
            start: self.position,
            origin: self.origin,
            order: self.order,
            first,
            state: self.state,
            streams: self.streams,
            source: self.source,
            items: 0,
            stopped: self.stopped,
        })
    }

    /// A numeric leaf of the next record, whatever it takes: its value, and where the leaf after it begins. Its record is given by its
    /// index and that of its first plan.
    #[cold]
    #[inline(never)]
    pub(crate) fn number(
        &mut self,
        (record, first): (u16, usize),
        at: usize,
        leaf: u8,
    ) -> Result<(u64, usize), Stopped> {
        let mut row = self.row(record, first, at).ok_or(Stopped(()))?;
        let value = row.number(leaf)?;
        Ok((value, row.position))
    }

    /// A byte array, likewise.
    #[cold]
    #[inline(never)]
    pub(crate) fn bytes(
        &mut self,
        (record, first): (u16, usize),
        at: usize,
        leaf: u8,
    ) -> Result<(&'r [u8], usize), Stopped> {
        let mut row = self.row(record, first, at).ok_or(Stopped(()))?;
        let bytes = row.bytes(leaf)?;
        Ok((bytes, row.position))
    }

    /// Stops with an error of the caller's.
    #[cold]
    pub(crate) fn stop(&mut self, error: Error) -> Stopped {
        *self.stopped = Some(error);
        Stopped(())
    }

    /// The next record, leaf by leaf, apart from the loop, whose registers it would take.
    #[inline(never)]
    fn general<S: Known, T: ReadFields<'r>>(&mut self) -> Option<T> {
        let mut row = self.row(S::RECORD, S::FIRST, self.position + S::TAG_WIDTH)?;
        let fields = T::read_fields(&mut row, 0).and_then(|fields| row.finish().map(|()| fields));
        let at = row.position;
        self.position = at;
        self.count += 1;
        fields.ok()
    }
}

#[allow(clippy::cast_possible_truncation, reason = "a tag has at most 4 bytes")]
#[inline(always)]
pub(super) fn tag(data: &[u8], position: usize, width: usize, order: Order) -> Option<u32> {
    let rest = data.get(position..)?;
    match width {
        1 => rest.first().map(|&tag| tag.into()),
        _ => rest.get(..width).map(|tag| order.read(tag) as u32),
    }
}

/// Records of a section whose leaves are all stored as is expected.
struct Expected<'r> {
    data: &'r [u8],
    position: usize,
    count: u64,
}

impl<'r> Rows<'r> for Expected<'r> {
    #[inline(always)]
    fn tag(&self, width: usize) -> Option<u32> {
        // The one comparison with the end: what is asked again for the fields, the compiler knows.
        tag(window(self.data, self.position)?, 0, width, Order::Little)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<S: Known, T: ReadFields<'r>>(&mut self) -> Option<T> {
        let mut row = ExpectedRow::<S>::new(self.data, self.position);
        let fields = T::read_fields(&mut row, 0).ok()?;
        self.position = row.position();
        self.count += 1;
        Some(fields)
    }
}

/// Records of a section none of which is of a worse grade than `STORED` or, with bases, `FORMULA`.
struct Straight<'p, 'r, const PLANS: usize, const WITH_BASE: bool> {
    data: &'r [u8],
    position: usize,
    plans: &'p [Plan; PLANS],
    count: u64,
}

impl<'r, const PLANS: usize, const WITH_BASE: bool> Rows<'r> for Straight<'_, 'r, PLANS, WITH_BASE> {
    #[inline(always)]
    fn tag(&self, width: usize) -> Option<u32> {
        tag(self.data, self.position, width, Order::Little)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<S: Known, T: ReadFields<'r>>(&mut self) -> Option<T> {
        let at = self.position + S::TAG_WIDTH;
        let mut row = ShapedRow::<S, PLANS, WITH_BASE>::new(self.data, at, self.plans);
        let fields = T::read_fields(&mut row, 0).ok()?;
        self.position = row.position();
        self.count += 1;
        Some(fields)
    }
}

/// Records of a section none of which is of a worse grade than `GATHERED`, and none foretold.
struct Gathered<'p, 's, 'r, const PLANS: usize> {
    data: &'r [u8],
    position: usize,
    plans: &'p [Plan; PLANS],
    streams: &'s mut Streams,
    count: u64,
}

impl<'r, const PLANS: usize> Rows<'r> for Gathered<'_, '_, 'r, PLANS> {
    #[inline(always)]
    fn tag(&self, width: usize) -> Option<u32> {
        tag(self.data, self.position, width, Order::Little)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<S: Known, T: ReadFields<'r>>(&mut self) -> Option<T> {
        let at = self.position + S::TAG_WIDTH;
        let mut row = GatheredRow::<S, PLANS>::new(self.data, at, self.plans, self.streams);
        let fields = T::read_fields(&mut row, 0).ok()?;
        self.position = row.position();
        self.count += 1;
        Some(fields)
    }
}

/// Records of any grade.
struct Mixed<'a, 'r, const PLANS: usize> {
    run: &'a mut Run<'r>,
    grades: Graded,
}

impl<'r, const PLANS: usize> Rows<'r> for Mixed<'_, 'r, PLANS> {
    #[inline(always)]
    fn tag(&self, width: usize) -> Option<u32> {
        tag(self.run.data, self.run.position, width, self.run.order)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<S: Known, T: ReadFields<'r>>(&mut self) -> Option<T> {
        let run = &mut *self.run;
        if self.grades.straight & const { bit(S::POSITION) } != 0 {
            let at = run.position + S::TAG_WIDTH;
            let mut row = ShapedRow::<S, PLANS, true>::new(run.data, at, run.state.plans.first_chunk()?);
            let fields = T::read_fields(&mut row, 0).ok()?;
            run.position = row.position();
            run.count += 1;
            return Some(fields);
        }
        self.grades.read::<S, T, PLANS>(run).unwrap_or_else(|| run.general::<S, T>())
    }
}

/// One record, in a straight line.
pub struct One<'r> {
    run: Run<'r>,
    end: End<'r>,
}

impl<'r> One<'r> {
    /// Index of the section that it is in.
    #[inline(always)]
    #[must_use]
    pub fn section(&self) -> usize {
        self.end.section
    }

    /// Decodes the record, of a section that has `PLANS` plans. Where it goes on with `none`, nothing has happened, or an error
    /// that has stopped the reader.
    #[inline(always)]
    pub fn read<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, T>(
        &mut self,
        found: impl FnOnce(F::With<B>) -> T,
        none: impl FnOnce() -> T,
    ) -> T {
        let grades = Graded::new(&self.run);
        F::row(&mut Single::<PLANS> { one: self, grades }, found, none)
    }
}

/// See [`One`].
struct Single<'a, 'r, const PLANS: usize> {
    one: &'a mut One<'r>,
    grades: Graded,
}

impl<'r, const PLANS: usize> Rows<'r> for Single<'_, 'r, PLANS> {
    #[inline(always)]
    fn tag(&self, width: usize) -> Option<u32> {
        let run = &self.one.run;
        tag(run.data, run.position, width, run.order)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<S: Known, T: ReadFields<'r>>(&mut self) -> Option<T> {
        let One { run, end } = &mut *self.one;
        if self.grades.straight & const { bit(S::POSITION) } == 0 {
            let fields = self.grades.read::<S, T, PLANS>(run).flatten();
            if fields.is_some() {
                end.tell(run.position, 1, false);
            } else {
                // A record whose values are foretold cannot be begun again.
                *end.finished = run.stopped.is_some();
            }
            return fields;
        }
        let plans = run.state.plans.first_chunk()?;
        let mut row = ShapedRow::<S, PLANS, true>::new(run.data, run.position + S::TAG_WIDTH, plans);
        let fields = T::read_fields(&mut row, 0).ok()?;
        end.tell(row.position(), 1, false);
        Some(fields)
    }
}

/// One record, leaf by leaf.
pub(crate) struct Apart<'a, 'r>(&'a mut Run<'r>);

impl<'r> Reads<'r> for Apart<'_, 'r> {
    fn section<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, C>(
        &mut self,
        each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C> {
        F::rows(self, each)
    }
}

impl<'r> Rows<'r> for Apart<'_, 'r> {
    fn tag(&self, width: usize) -> Option<u32> {
        tag(self.0.data, self.0.position, width, self.0.order)
    }

    fn read<S: Known, T: ReadFields<'r>>(&mut self) -> Option<T> {
        self.0.general::<S, T>()
    }
}
