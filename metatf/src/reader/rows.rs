//! The loops over the records of a run: specialized, planned, and mixed, where each record goes by its own tier.
//!
//! What reads one record is not part of the loop in a debug build, where all that is in line has room of its own on the stack:
//! of a format with many records, megabytes.
//!
//! Longer than other files: the loops differ in little, and are chosen from here.

use super::RecordReader;
use crate::decode::{DecodedBy, Decoding, Placed, PlannedRow, Run, SpecializedRow, StatefulRow, WINDOW, log, tag};
use crate::formula::{Plan, window};
use crate::record::{Known, OneRow, ReadFields, Reads, ReadsOne, Rows, SectionFamily, Source};
use crate::state::bit;
use metatf_container::Order;
use std::marker::PhantomData;
use std::ops::ControlFlow;

/// Observes or overrides decoding. Each default does nothing. `count` is how many records the run has read before.
pub(super) trait Observer<'r> {
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

    /// Decodes an `S` from a row; `CHANGED`: a default of the DTD may have been changed. Keeps nothing where that fails.
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
impl Observer<'_> for () {}

impl<'r> Reads<'r> for Run<'r> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn section<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, C>(
        &mut self,
        each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C> {
        if F::CAN_SPECIALIZE && self.are_specialized() {
            return self.specialized::<F, B, C, _>(&mut (), each);
        }
        if self.are_planned() {
            return self.planned::<F, B, PLANS, C, _>(&mut (), each);
        }
        self.mixed::<F, B, PLANS, C, _>(&mut (), each)
    }
}

impl<'r> Run<'r> {
    /// Whether all data records are stored as generated code is specialized for.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn are_specialized(&self) -> bool {
        self.state.encoding.tiers.are_specialized() && self.order == Order::Little
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn are_planned(&self) -> bool {
        self.state.encoding.tiers.are_planned() && self.order == Order::Little
    }

    /// Records of a section that are all specialized.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn specialized<F: SectionFamily, B: From<&'r [u8]>, C, K: Observer<'r>>(
        &mut self,
        observer: &mut K,
        each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C> {
        let (data, position, count) = (self.data, self.position, self.count);
        let mut rows = InLine { data, position, count, tier: Specialized, observer };
        let flow = F::rows(&mut rows, each);
        (self.position, self.count) = (rows.position, rows.count);
        flow
    }

    /// Records of a section that are all planned.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn planned<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, C, K: Observer<'r>>(
        &mut self,
        observer: &mut K,
        each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C> {
        let Some(plans) = self.state.encoding.plans.first_chunk() else { return ControlFlow::Continue(()) };
        let (data, position, count, tier) = (self.data, self.position, self.count, Planned::<PLANS> { plans });
        let mut rows = InLine { data, position, count, tier, observer };
        let flow = F::rows(&mut rows, each);
        (self.position, self.count) = (rows.position, rows.count);
        flow
    }

    /// Records of any tier.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn mixed<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, C, K: Observer<'r>>(
        &mut self,
        observer: &mut K,
        each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C> {
        let (data, position, count) = (self.data, self.position, self.count);
        // Out of the loop's own struct, as its address is given to what is not in line.
        let mut decoding = self.decoding();
        let Some(tier) = Mixed::<PLANS>::new(&mut decoding) else { return ControlFlow::Continue(()) };
        let mut rows = InLine { data, position, count, tier, observer };
        let flow = F::rows(&mut rows, each);
        let InLine { position, count, .. } = rows;
        (self.position, self.count) = (position, count);
        flow
    }
}

/// What decodes records of one tier, or of any.
trait DecodeTier<'r> {
    /// The tag at a position; none at the end.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn tag(&self, data: &[u8], position: usize, width: usize) -> Option<u32> {
        tag(data, position, width, Order::Little)
    }

    /// The fields of the record at a position, and where the next begins. Places are not references: their address would be known
    /// outside of the loop, which then keeps them in memory.
    fn read<S: Known, T: ReadFields<'r>>(
        &mut self,
        data: &'r [u8],
        position: usize,
        observer: &mut impl Observer<'r>,
        count: u64,
    ) -> Option<(T, usize)>;
}

/// See [`Run::specialized`].
struct Specialized;

impl<'r> DecodeTier<'r> for Specialized {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn tag(&self, data: &[u8], position: usize, width: usize) -> Option<u32> {
        // The one comparison with the end: what is asked again for the fields, the compiler knows.
        tag(window::<WINDOW>(data, position)?, 0, width, Order::Little)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<S: Known, T: ReadFields<'r>>(
        &mut self,
        data: &'r [u8],
        position: usize,
        observer: &mut impl Observer<'r>,
        count: u64,
    ) -> Option<(T, usize)> {
        let mut row = SpecializedRow::<S>::new(data, position);
        let fields = observer.read::<S, T, _, false>(&mut row, count).ok()?;
        log(DecodedBy::Specialized);
        Some((fields, row.position()))
    }
}

/// See [`Run::planned`].
struct Planned<'p, const PLANS: usize> {
    plans: &'p [Plan; PLANS],
}

impl<'r, const PLANS: usize> DecodeTier<'r> for Planned<'_, PLANS> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<S: Known, T: ReadFields<'r>>(
        &mut self,
        data: &'r [u8],
        position: usize,
        observer: &mut impl Observer<'r>,
        count: u64,
    ) -> Option<(T, usize)> {
        let mut row = PlannedRow::<S, PLANS>::new(data, position + S::TAG_WIDTH, self.plans);
        let fields = observer.read::<S, T, _, false>(&mut row, count).ok()?;
        log(DecodedBy::Planned);
        Some((fields, row.position()))
    }
}

/// Records each of its own tier.
struct Mixed<'a, 't, 'r, const PLANS: usize> {
    decoding: &'a mut Decoding<'t, 'r>,
    plans: &'t [Plan; PLANS],
    /// By position in the section.
    planned: u64,
    stateful: u64,
    changed: u64,
}

impl<'a, 't, 'r, const PLANS: usize> Mixed<'a, 't, 'r, PLANS> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn new(decoding: &'a mut Decoding<'t, 'r>) -> Option<Self> {
        let (plans, tiers) = (decoding.encoding.plans.first_chunk()?, &decoding.encoding.tiers);
        let (planned, stateful) = match decoding.order {
            Order::Little => (tiers.planned(), tiers.stateful()),
            Order::Big => (0, 0),
        };
        Some(Self { decoding, plans, planned, stateful, changed: tiers.changed_defaults() })
    }
}

impl<'r, const PLANS: usize> DecodeTier<'r> for Mixed<'_, '_, 'r, PLANS> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn tag(&self, data: &[u8], position: usize, width: usize) -> Option<u32> {
        tag(data, position, width, self.decoding.order)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<S: Known, T: ReadFields<'r>>(
        &mut self,
        data: &'r [u8],
        position: usize,
        observer: &mut impl Observer<'r>,
        count: u64,
    ) -> Option<(T, usize)> {
        if S::STATEFUL && self.stateful & const { bit(S::POSITION) } != 0 {
            let has_defaults = self.changed & const { bit(S::POSITION) } == 0;
            let (plans, place) = (self.plans, (position, position + S::TAG_WIDTH));
            let decoding = &mut *self.decoding;
            let mut row =
                StatefulRow { decoding, plans, data, place, has_defaults, previous: 0, shape: PhantomData::<S> };
            let fields = observer.read::<S, T, _, true>(&mut row, count).ok()?;
            log(DecodedBy::Stateful);
            return Some((fields, row.place.1));
        }
        if self.planned & const { bit(S::POSITION) } != 0 {
            return Planned::<PLANS> { plans: self.plans }.read::<S, T>(data, position, observer, count);
        }
        // Taken apart, so that what the other tiers give is not put where this gives its own, in memory.
        let (fields, position) = general::<S, T>(self.decoding, position, observer, count)?;
        Some((fields, position))
    }
}

/// The fields of a record, leaf by leaf. Not in line: it would take registers from the loop.
#[inline(never)]
fn general<'r, S: Known, T: ReadFields<'r>>(
    decoding: &mut Decoding<'_, 'r>,
    position: usize,
    observer: &mut impl Observer<'r>,
    count: u64,
) -> Option<(T, usize)> {
    let mut row = decoding.reborrow().row((S::RECORD, S::FIRST), (position, position + S::TAG_WIDTH))?;
    let fields =
        observer.read::<S, T, _, true>(&mut row, count).and_then(|fields| row.finish().map(|()| fields)).ok()?;
    log(DecodedBy::General);
    Some((fields, row.position))
}

/// The loop over records: it has in registers where it is.
struct InLine<'k, 'r, D, K> {
    data: &'r [u8],
    position: usize,
    count: u64,
    tier: D,
    observer: &'k mut K,
}

impl<'r, D: DecodeTier<'r>, K: Observer<'r>> Rows<'r> for InLine<'_, 'r, D, K> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn tag(&self, width: usize) -> Option<u32> {
        if self.observer.has_room(self.count) { self.tier.tag(self.data, self.position, width) } else { None }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<S: Known, T: ReadFields<'r>>(&mut self) -> Option<T> {
        if !self.observer.takes::<S>() {
            return None;
        }
        let (fields, position) = self.tier.read::<S, T>(self.data, self.position, self.observer, self.count)?;
        self.position = position;
        self.count += 1;
        Some(fields)
    }
}

/// The record that comes next, decoded by its tier.
pub(crate) struct One<'r, 'c> {
    /// It [has one](RecordReader::has_one).
    pub(crate) reader: &'r mut RecordReader<'c>,
}

impl<'r> ReadsOne<'r> for One<'r, '_> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn section(&self) -> usize {
        self.reader.section().unwrap_or(usize::MAX)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, T>(
        self,
        found: impl FnOnce(F::With<B>) -> T,
        none: impl FnOnce(Self) -> T,
    ) -> T {
        let Some(data) = self.reader.content().map(std::ptr::from_ref) else { return none(self) };
        let single = Single::<PLANS> { one: self, section: F::SECTION, data };
        F::row(single, found, |single| none(single.one))
    }
}

/// See [`One`].
struct Single<'r, 'c, const PLANS: usize> {
    one: One<'r, 'c>,
    section: usize,
    /// The content of the part, which is found once for a record. No reference: that would be one beside a reader that moves on.
    data: *const [u8],
}

impl<'r, const PLANS: usize> Single<'r, '_, PLANS> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn data(&self) -> &'r [u8] {
        // SAFETY: it is borrowed from the reader, which is borrowed for as long and has not moved on: who makes it do so has used
        // `self` up.
        unsafe { &*self.data }
    }
}

impl<'r, const PLANS: usize> OneRow<'r> for Single<'r, '_, PLANS> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn tag(&self, width: usize) -> Option<u32> {
        // For records of all tiers: the last bytes of a part are read in another way.
        Specialized.tag(self.data(), self.one.reader.current.as_ref()?.position, width)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<S: Known, T: ReadFields<'r>, R>(self, found: impl FnOnce(T) -> R, none: impl FnOnce(Self) -> R) -> R {
        let (data, section) = (self.data(), self.section);
        let reader = std::ptr::from_mut(self.one.reader);
        // SAFETY: `self` is used up, so this is the only user of the reader.
        if let Some(fields) = unsafe { &mut *reader }.next_known::<S, T, PLANS>(section, data) {
            return found(fields);
        }
        // SAFETY: nothing is left of a try that gave nothing, which the borrow checker does not see.
        if let Some(fields) = unsafe { &mut *reader }.next_unplanned::<S, T, PLANS>() {
            return found(fields);
        }
        // SAFETY: as before.
        none(Self { one: One { reader: unsafe { &mut *reader } }, section, data })
    }
}

impl RecordReader<'_> {
    /// The content of the part in hand.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn content(&self) -> Option<&[u8]> {
        self.container.bytes_of(&self.current.as_ref()?.content)
    }

    /// The fields of the record that comes next in the section's content, which is an `S`, if that is specialized or planned.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn next_known<'r, S: Known, T: ReadFields<'r>, const PLANS: usize>(
        &'r mut self,
        section: usize,
        data: &'r [u8],
    ) -> Option<T> {
        let current = self.current.as_mut()?;
        let encoding = &self.states.get(section)?.encoding;
        let (fields, position) = if S::CAN_SPECIALIZE && encoding.tiers.are_specialized() {
            Specialized.read::<S, T>(data, current.position, &mut (), 0)?
        } else if encoding.tiers.planned() & const { bit(S::POSITION) } != 0 {
            let plans = encoding.plans.first_chunk()?;
            Planned::<PLANS> { plans }.read::<S, T>(data, current.position, &mut (), 0)?
        } else {
            return None;
        };
        current.position = position;
        current.found += 1;
        Some(fields)
    }

    /// The fields of the record that comes next, which is an `S` and not planned. None where it is not decoded here: nothing
    /// has happened then, or an error has stopped the reader.
    #[inline(never)]
    fn next_unplanned<'r, S: Known, T: ReadFields<'r>, const PLANS: usize>(&'r mut self) -> Option<T> {
        let (mut run, mut end) = self.start_run()?;
        let (data, position) = (run.data, run.position);
        let read = Mixed::<PLANS>::new(&mut run.decoding())?.read::<S, T>(data, position, &mut (), 0);
        match read {
            Some((_, position)) => end.tell(position, 1, false),
            // A record whose state has changed cannot be begun again.
            None if run.has_stopped() => end.finish(),
            None => {}
        }
        read.map(|(fields, _)| fields)
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
        let position = self.0.position;
        let (fields, position) = general::<S, T>(&mut self.0.decoding(), position, &mut (), 0)?;
        self.0.position = position;
        Some(fields)
    }
}
