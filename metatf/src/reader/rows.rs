//! The ways to read the records of a run, one for each tier.
//!
//! What reads one record is no part of the loop in a debug build, where all that is in line has room of its own on the stack:
//! of a format with many records, megabytes.
//!
//! Longer than other files: the ways differ in little, and are chosen from here.

use super::run::End;
use crate::container::Order;
use crate::decode::{Placed, PlannedRow, SpecializedRow, StatefulRow, StreamedRow, window};
use crate::decode::{Run, tag};
use crate::formula::Plan;
use crate::record::{Known, OneRow, ReadFields, Reads, ReadsOne, Rows, SectionFamily, Source};
use crate::state::{FORMULA, GATHERED, GENERAL, STORED, bit};
use crate::streams::Streams;
use std::marker::PhantomData;
use std::ops::ControlFlow;

/// Takes part in the decoding of records: in no way, where it does not say how. It is told how many the run has read before.
pub(super) trait Sink<'r> {
    /// Whether there is room for one more.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn has_room(&self, _count: u64) -> bool {
        true
    }

    /// Whether it takes an `S`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn takes<S: Known>(&self) -> bool {
        true
    }

    /// Decodes an `S` from a row; `CHANGED`: of whose fields some may not be what by the DTD they always are. Nothing of it is
    /// kept where that fails.
    ///
    /// # Errors
    /// The row's.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<S: Known, T: ReadFields<'r>, R: Source<'r>, const CHANGED: bool>(
        &mut self,
        row: &mut R,
        _count: u64,
    ) -> Result<T, R::Error> {
        T::read_fields(row, 0)
    }
}

/// Records are decoded, and that is all.
impl Sink<'_> for () {}

impl<'r> Reads<'r> for Run<'r> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn section<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, C>(
        &mut self,
        each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C> {
        let tier = self.tier();
        if F::CAN_SPECIALIZE && self.are_specialized() {
            return self.expected::<F, B, C, _>(&mut (), each);
        }
        if tier == GATHERED && F::HAS_STREAMED {
            return self.gathered::<F, B, PLANS, C, _>(&mut (), each);
        }
        match tier {
            STORED => self.straight::<F, B, PLANS, false, C, _>(&mut (), each),
            FORMULA => self.straight::<F, B, PLANS, true, C, _>(&mut (), each),
            _ => self.mixed::<F, B, PLANS, C, _>(&mut (), each),
        }
    }
}

impl<'r> Run<'r> {
    /// Whether all data records are stored as generated code expects it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn are_specialized(&self) -> bool {
        self.state.tiers.are_specialized() && self.order == Order::Little
    }

    /// The tier of all data records.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn tier(&self) -> u8 {
        if self.order == Order::Little { self.state.tiers.of_all() } else { GENERAL }
    }

    /// Records of a section whose leaves are all stored as is expected.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn expected<F: SectionFamily, B: From<&'r [u8]>, C, K: Sink<'r>>(
        &mut self,
        sink: &mut K,
        each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C> {
        in_line::<F, B, C, _, _>(self.data, (&mut self.position, &mut self.count), Expected, sink, each)
    }

    /// Records of a section none of which is of a worse tier than `STORED` or, with bases, `FORMULA`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn straight<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, const WITH_BASE: bool, C, K: Sink<'r>>(
        &mut self,
        sink: &mut K,
        each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C> {
        let Some(plans) = self.state.plans.first_chunk() else { return ControlFlow::Continue(()) };
        let way = Straight::<PLANS, WITH_BASE> { plans };
        in_line::<F, B, C, _, _>(self.data, (&mut self.position, &mut self.count), way, sink, each)
    }

    /// Records of a section none of which is of a worse tier than `GATHERED`, and none foretold.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn gathered<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, C, K: Sink<'r>>(
        &mut self,
        sink: &mut K,
        each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C> {
        let Some(plans) = self.state.plans.first_chunk() else { return ControlFlow::Continue(()) };
        let way = Gathered::<PLANS> { plans, streams: self.streams };
        in_line::<F, B, C, _, _>(self.data, (&mut self.position, &mut self.count), way, sink, each)
    }

    /// Records of any tier.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn mixed<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, C, K: Sink<'r>>(
        &mut self,
        sink: &mut K,
        each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C> {
        let tiers = Tiered::new(self);
        F::rows(&mut Mixed::<PLANS, K> { run: self, tiers, sink }, each)
    }

    /// The next record, whose tier is `FORETOLD`, `GATHERED` or `TOLD`, or else `CHANGED`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn told<S: Known, T: ReadFields<'r>, const PLANS: usize, const CHANGED: bool>(
        &mut self,
        sink: &mut impl Sink<'r>,
    ) -> Option<T> {
        let at = self.position + S::TAG_WIDTH;
        let count = self.count;
        let mut row = StatefulRow::<S, PLANS, CHANGED> { run: self, at, previous: 0, shape: PhantomData };
        let fields = sink.read::<S, T, _, CHANGED>(&mut row, count);
        let at = row.at;
        self.position = at;
        self.count += u64::from(fields.is_ok());
        fields.ok()
    }

    /// The next record, of tier `CHANGED`: slow from the loop, whose registers it would take.
    #[inline(never)]
    fn changed<S: Known, T: ReadFields<'r>, const PLANS: usize>(&mut self, sink: &mut impl Sink<'r>) -> Option<T> {
        self.told::<S, T, PLANS, true>(sink)
    }

    /// The next record, leaf by leaf, slow from the loop, whose registers it would take.
    #[inline(never)]
    fn general<S: Known, T: ReadFields<'r>>(&mut self, sink: &mut impl Sink<'r>) -> Option<T> {
        let count = self.count;
        let mut row = self.row(S::RECORD, S::FIRST, self.position + S::TAG_WIDTH)?;
        let fields = sink.read::<S, T, _, true>(&mut row, count).and_then(|fields| row.finish().map(|()| fields));
        let at = row.position;
        self.position = at;
        self.count += u64::from(fields.is_ok());
        fields.ok()
    }
}

/// The tiers of a section's records, by position.
#[derive(Clone, Copy)]
struct Tiered {
    /// Decoded in a straight line.
    straight: u64,
    told: u64,
    changed: u64,
}

impl Tiered {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn new(run: &Run<'_>) -> Self {
        let tiers = &run.state.tiers;
        match run.order {
            Order::Little => Self { straight: tiers.planned(), told: tiers.told(), changed: tiers.changed_defaults() },
            Order::Big => Self { straight: 0, told: 0, changed: 0 },
        }
    }

    /// Decodes an `S` that is not of one of the straight tiers, where it is of one of the others that are decoded by shape.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<'r, S: Known, T: ReadFields<'r>, const PLANS: usize>(
        self,
        run: &mut Run<'r>,
        sink: &mut impl Sink<'r>,
    ) -> Option<Option<T>> {
        if !S::TOLD {
            return None;
        }
        if self.told & const { bit(S::POSITION) } != 0 {
            return Some(run.told::<S, T, PLANS, false>(sink));
        }
        if self.changed & const { bit(S::POSITION) } != 0 {
            return Some(run.changed::<S, T, PLANS>(sink));
        }
        None
    }
}

/// A way to decode records, all of them, from what is in registers.
trait Way<'r> {
    /// The leaves of an `S`.
    type Row<'a, S: Known>: Source<'r> + Placed
    where
        Self: 'a;

    /// The tag at a position; none at the end.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn tag(data: &[u8], position: usize, width: usize) -> Option<u32> {
        tag(data, position, width, Order::Little)
    }

    /// The record that begins at a position.
    fn row<S: Known>(&mut self, data: &'r [u8], position: usize) -> Self::Row<'_, S>;
}

/// See [`Run::expected`].
struct Expected;

impl<'r> Way<'r> for Expected {
    type Row<'a, S: Known> = SpecializedRow<'r, S>;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn tag(data: &[u8], position: usize, width: usize) -> Option<u32> {
        // The one comparison with the end: what is asked again for the fields, the compiler knows.
        tag(window(data, position)?, 0, width, Order::Little)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn row<S: Known>(&mut self, data: &'r [u8], position: usize) -> SpecializedRow<'r, S> {
        SpecializedRow::new(data, position)
    }
}

/// See [`Run::straight`].
struct Straight<'p, const PLANS: usize, const WITH_BASE: bool> {
    plans: &'p [Plan; PLANS],
}

impl<'p, 'r, const PLANS: usize, const WITH_BASE: bool> Way<'r> for Straight<'p, PLANS, WITH_BASE> {
    type Row<'a, S: Known>
        = PlannedRow<'p, 'r, S, PLANS, WITH_BASE>
    where
        Self: 'a;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn row<S: Known>(&mut self, data: &'r [u8], position: usize) -> PlannedRow<'p, 'r, S, PLANS, WITH_BASE> {
        PlannedRow::new(data, position + S::TAG_WIDTH, self.plans)
    }
}

/// See [`Run::gathered`].
struct Gathered<'p, 's, const PLANS: usize> {
    plans: &'p [Plan; PLANS],
    streams: &'s mut Streams,
}

impl<'p, 'r, const PLANS: usize> Way<'r> for Gathered<'p, '_, PLANS> {
    type Row<'a, S: Known>
        = StreamedRow<'p, 'a, 'r, S, PLANS>
    where
        Self: 'a;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn row<S: Known>(&mut self, data: &'r [u8], position: usize) -> StreamedRow<'p, '_, 'r, S, PLANS> {
        StreamedRow::new(data, position + S::TAG_WIDTH, self.plans, self.streams)
    }
}

/// Records that are all decoded in one way, by a loop that has where it is in registers.
struct InLine<'k, 'r, W, K> {
    data: &'r [u8],
    position: usize,
    count: u64,
    way: W,
    sink: &'k mut K,
}

/// Gives records to `each` that are all decoded in one way, from a position on; moves position and count on.
#[cfg_attr(not(debug_assertions), inline(always))]
fn in_line<'r, F: SectionFamily, B: From<&'r [u8]>, C, W: Way<'r>, K: Sink<'r>>(
    data: &'r [u8],
    (position, count): (&mut usize, &mut u64),
    way: W,
    sink: &mut K,
    each: impl FnMut(F::With<B>) -> ControlFlow<C>,
) -> ControlFlow<C> {
    let mut rows = InLine { data, position: *position, count: *count, way, sink };
    let flow = F::rows(&mut rows, each);
    (*position, *count) = (rows.position, rows.count);
    flow
}

impl<'r, W: Way<'r>, K: Sink<'r>> Rows<'r> for InLine<'_, 'r, W, K> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn tag(&self, width: usize) -> Option<u32> {
        if self.sink.has_room(self.count) { W::tag(self.data, self.position, width) } else { None }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<S: Known, T: ReadFields<'r>>(&mut self) -> Option<T> {
        if !self.sink.takes::<S>() {
            return None;
        }
        let mut row = self.way.row::<S>(self.data, self.position);
        let fields = self.sink.read::<S, T, _, false>(&mut row, self.count).ok()?;
        self.position = row.position();
        self.count += 1;
        Some(fields)
    }
}

/// See [`Run::mixed`].
struct Mixed<'a, 'r, const PLANS: usize, K> {
    run: &'a mut Run<'r>,
    tiers: Tiered,
    sink: &'a mut K,
}

impl<'r, const PLANS: usize, K: Sink<'r>> Rows<'r> for Mixed<'_, 'r, PLANS, K> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn tag(&self, width: usize) -> Option<u32> {
        if self.sink.has_room(self.run.count) {
            tag(self.run.data, self.run.position, width, self.run.order)
        } else {
            None
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<S: Known, T: ReadFields<'r>>(&mut self) -> Option<T> {
        if !self.sink.takes::<S>() {
            return None;
        }
        let run = &mut *self.run;
        if self.tiers.straight & const { bit(S::POSITION) } != 0 {
            let at = run.position + S::TAG_WIDTH;
            let mut row = PlannedRow::<S, PLANS, true>::new(run.data, at, run.state.plans.first_chunk()?);
            let fields = self.sink.read::<S, T, _, false>(&mut row, run.count).ok()?;
            run.position = row.position();
            run.count += 1;
            return Some(fields);
        }
        match self.tiers.read::<S, T, PLANS>(run, self.sink) {
            Some(fields) => fields,
            None => run.general::<S, T>(self.sink),
        }
    }
}

/// One record, in a straight line.
pub(crate) struct One<'r> {
    pub(super) run: Run<'r>,
    pub(super) end: End<'r>,
}

impl<'r> ReadsOne<'r> for One<'r> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn section(&self) -> usize {
        self.end.section()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, T>(
        self,
        found: impl FnOnce(F::With<B>) -> T,
        none: impl FnOnce(Self) -> T,
    ) -> T {
        let tiers = Tiered::new(&self.run);
        F::row(Single::<PLANS> { one: self, tiers }, found, |single| none(single.one))
    }
}

/// See [`One`].
struct Single<'r, const PLANS: usize> {
    one: One<'r>,
    tiers: Tiered,
}

impl<'r, const PLANS: usize> OneRow<'r> for Single<'r, PLANS> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn tag(&self, width: usize) -> Option<u32> {
        let run = &self.one.run;
        tag(run.data, run.position, width, run.order)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<S: Known, T: ReadFields<'r>>(mut self) -> Result<T, Self> {
        let One { run, end } = &mut self.one;
        if self.tiers.straight & const { bit(S::POSITION) } == 0 {
            let fields = self.tiers.read::<S, T, PLANS>(run, &mut ()).flatten();
            if fields.is_some() {
                end.tell(run.position, 1, false);
            } else if run.has_stopped() {
                // A record whose values are foretold cannot be begun again.
                end.finish();
            }
            return fields.ok_or(self);
        }
        let Some(plans) = run.state.plans.first_chunk() else { return Err(self) };
        let mut row = PlannedRow::<S, PLANS, true>::new(run.data, run.position + S::TAG_WIDTH, plans);
        let Ok(fields) = T::read_fields(&mut row, 0) else { return Err(self) };
        end.tell(row.position(), 1, false);
        Ok(fields)
    }
}

/// One record, leaf by leaf.
pub(crate) struct LeafByLeaf<'a, 'r>(pub(super) &'a mut Run<'r>);

impl<'r> Reads<'r> for LeafByLeaf<'_, 'r> {
    fn section<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, C>(
        &mut self,
        each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C> {
        F::rows(self, each)
    }
}

impl<'r> Rows<'r> for LeafByLeaf<'_, 'r> {
    fn tag(&self, width: usize) -> Option<u32> {
        tag(self.0.data, self.0.position, width, self.0.order)
    }

    fn read<S: Known, T: ReadFields<'r>>(&mut self) -> Option<T> {
        self.0.general::<S, T>(&mut ())
    }
}
