//! The loops over the records of a run. The specialized loop and the planned loop require all records to be in the same
//! tier; in the mixed loop, each record is decoded by its own tier.
//!
//! In a debug build, the code that reads one record is not inlined into the loop, because every inlined function uses
//! separate stack space there. For a format with many records, this would add up to megabytes.
//!
//! This file is longer than most because the loops are similar and are selected here.

use super::RecordReader;
use crate::decode::{DecodedBy, Decoding, Placed, PlannedRow, Run, SpecializedRow, StatefulRow, WINDOW, log, tag};
use crate::formula::{Plan, window};
use crate::record::{Known, ReadFields, Reads, ReadsOne, Rows, SectionFamily, Source};
use crate::state::{Encoding, bit};
use metatf_container::Order;
use std::hint::cold_path;
use std::marker::PhantomData;
use std::ops::ControlFlow;

/// Observes or overrides the decoding of records. The default methods accept and decode every record. `count` is the
/// number of records that the run has already read.
pub(super) trait Observer<'r> {
    /// Returns whether there is room for another record.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn has_room(&self, _count: u64) -> bool {
        true
    }

    /// Returns whether the observer accepts records of type `S`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn takes<S: Known>(&self) -> bool {
        true
    }

    /// Decodes an `S` from a row. If `CHANGED` is set, metadata may have changed defaults of the DTD. If decoding
    /// fails, the observer keeps no values.
    ///
    /// # Errors
    /// Returns an error from the row.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<S: Known, T: ReadFields<'r>, R: Source<'r>, const CHANGED: bool>(
        &mut self,
        row: &mut R,
        _count: u64,
    ) -> Result<T, R::Error> {
        T::read_fields(row, 0)
    }
}

/// An observer that does not interfere with decoding.
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
        if !F::IS_STATEFUL && self.are_planned() {
            return self.planned::<F, B, PLANS, C, _>(&mut (), each);
        }
        self.mixed::<F, B, PLANS, C, _>(&mut (), each)
    }
}

impl<'r> Run<'r> {
    /// Returns whether all data records are stored in the way that generated code is specialized for.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn are_specialized(&self) -> bool {
        self.state.encoding.tiers.are_specialized() && self.order == Order::Little
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn are_planned(&self) -> bool {
        self.state.encoding.tiers.are_planned() && self.order == Order::Little
    }

    /// Reads the records of a section in which every record is specialized.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn specialized<F: SectionFamily, B: From<&'r [u8]>, C, K: Observer<'r>>(
        &mut self,
        observer: &mut K,
        each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C> {
        let (data, position, count) = (self.data, self.position, self.count);
        let mut rows = InLine { data, position, count, tier: Specialized, observer };
        let flow = rows.run::<F, B, C>(each);
        (self.position, self.count) = (rows.position, rows.count);
        flow
    }

    /// Reads the records of a section in which every record is planned.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn planned<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, C, K: Observer<'r>>(
        &mut self,
        observer: &mut K,
        each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C> {
        let Some(plans) = self.state.encoding.plans.first_chunk() else { return ControlFlow::Continue(()) };
        let (data, position, count, tier) = (self.data, self.position, self.count, Planned::<PLANS> { plans });
        let mut rows = InLine { data, position, count, tier, observer };
        let flow = rows.run::<F, B, C>(each);
        (self.position, self.count) = (rows.position, rows.count);
        flow
    }

    /// Reads records of any tier.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn mixed<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, C, K: Observer<'r>>(
        &mut self,
        observer: &mut K,
        each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C> {
        let (data, position, count) = (self.data, self.position, self.count);
        // Kept outside the loop's struct, because its address is passed to functions that are not inlined.
        let mut decoding = self.decoding();
        let Some(tier) = Mixed::<PLANS>::new(&mut decoding) else { return ControlFlow::Continue(()) };
        let mut rows = InLine { data, position, count, tier, observer };
        let flow = rows.run::<F, B, C>(each);
        let InLine { position, count, .. } = rows;
        (self.position, self.count) = (position, count);
        flow
    }
}

/// Decodes the records of one tier, or of any tier.
trait DecodeTier<'r> {
    /// Returns the tag at a position, or `None` at the end.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn tag(&self, data: &[u8], position: usize, width: usize) -> Option<u32> {
        tag(data, position, width, Order::Little)
    }

    /// Reads the fields of the record at a position. Also returns the position of the next record. Positions are not
    /// passed by reference, because a known address would force the loop to keep them in memory.
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
        // This is the only comparison with the end of the data. The compiler removes the comparisons for the fields.
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

/// Decodes each record by its own tier.
struct Mixed<'a, 't, 'r, const PLANS: usize> {
    decoding: &'a mut Decoding<'t, 'r>,
    plans: &'t [Plan; PLANS],
    /// The plans for records of any tier.
    any: &'t [Plan; PLANS],
    /// The tiers by position in the section, as bit sets.
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
        let any = plans_of_any(decoding)?;
        Some(Self { decoding, plans, any, planned, stateful, changed: tiers.changed_defaults() })
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
        // Each constant is the whole condition of an `if`, so the compiler does not generate the code that it excludes.
        if S::IS_GENERAL {
            // Only the code after this `if`. In a separate function, it made the loops up to 18% longer.
        } else if S::STATEFUL {
            if (self.planned | self.stateful) & const { bit(S::POSITION) } != 0 {
                let has_defaults = self.changed & const { bit(S::POSITION) } == 0;
                let (plans, place) = (self.plans, (position, position + S::TAG_WIDTH));
                let decoding = &mut *self.decoding;
                let mut row = StatefulRow::<S, PLANS, false> {
                    decoding,
                    plans,
                    data,
                    place,
                    has_defaults,
                    previous: 0,
                    items: 0,
                    shape: PhantomData,
                };
                let fields = observer.read::<S, T, _, true>(&mut row, count).ok()?;
                log(DecodedBy::Stateful);
                return Some((fields, row.place.1));
            }
        } else if self.planned & const { bit(S::POSITION) } != 0 {
            return Planned::<PLANS> { plans: self.plans }.read::<S, T>(data, position, observer, count);
        }
        // The result is destructured so that the compiler does not store the results of the other tiers in the memory
        // slot of this one.
        let (fields, position) = general::<S, T, PLANS>(self.decoding, self.any, position, observer, count)?;
        Some((fields, position))
    }
}

/// Returns the plans for records of any tier. The bytes of a big-endian trace require a function call for each leaf.
#[cfg_attr(not(debug_assertions), inline(always))]
fn plans_of_any<'t, const PLANS: usize>(decoding: &Decoding<'t, '_>) -> Option<&'t [Plan; PLANS]> {
    match decoding.order {
        Order::Little => decoding.encoding.plans.first_chunk(),
        Order::Big => Some(const { &[Plan::UNKNOWN; PLANS] }),
    }
}

/// Reads the fields of a record of any tier. This function is not inlined, because inlining it would take registers from
/// the loop.
#[inline(never)]
fn general<'t, 'r, S: Known, T: ReadFields<'r>, const PLANS: usize>(
    decoding: &mut Decoding<'t, 'r>,
    plans: &'t [Plan; PLANS],
    position: usize,
    observer: &mut impl Observer<'r>,
    count: u64,
) -> Option<(T, usize)> {
    let mut row = StatefulRow::<S, PLANS, true> {
        data: decoding.data,
        decoding,
        plans,
        place: (position, position + S::TAG_WIDTH),
        has_defaults: false,
        previous: 0,
        items: 0,
        shape: PhantomData,
    };
    let fields =
        observer.read::<S, T, _, true>(&mut row, count).and_then(|fields| row.finish().map(|()| fields)).ok()?;
    log(DecodedBy::General);
    Some((fields, row.place.1))
}

/// The loop over records, which keeps its position in registers.
struct InLine<'k, 'r, D, K> {
    data: &'r [u8],
    position: usize,
    count: u64,
    tier: D,
    observer: &'k mut K,
}

impl<'r, D: DecodeTier<'r>, K: Observer<'r>> InLine<'_, 'r, D, K> {
    /// Reads the records of a section until another event follows.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn run<F: SectionFamily, B: From<&'r [u8]>, C>(
        &mut self,
        mut each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C> {
        while self.observer.has_room(self.count)
            && let Some(tag) = self.tier.tag(self.data, self.position, F::TAG_WIDTH)
        {
            let Some(record) = F::next::<B, Self>(tag, self) else {
                // Keeps the variables of the loop in registers, rather than the variables of the code after it.
                cold_path();
                break;
            };
            each(record)?;
        }
        ControlFlow::Continue(())
    }
}

impl<'r, D: DecodeTier<'r>, K: Observer<'r>> Rows<'r> for InLine<'_, 'r, D, K> {
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

/// The next record. If `KNOWN` is set, it is decoded only if it is specialized or planned; otherwise, it is decoded in any
/// tier.
pub(crate) struct One<'r, 'c, const KNOWN: bool> {
    /// The reader, for which [`has_one`](RecordReader::has_one) must be true.
    pub(crate) reader: &'r mut RecordReader<'c>,
}

impl<'r, const KNOWN: bool> ReadsOne<'r> for One<'r, '_, KNOWN> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn section(&self) -> usize {
        self.reader.section().unwrap_or(usize::MAX)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize>(self) -> Option<F::With<B>> {
        if KNOWN { self.reader.next_known::<F, B, PLANS>() } else { self.reader.next_unplanned::<F, B, PLANS>() }
    }
}

/// The next record of a part's content, if it is specialized or planned.
struct KnownRow<'r, const PLANS: usize> {
    data: &'r [u8],
    encoding: &'r Encoding,
    position: &'r mut usize,
    found: &'r mut u64,
}

impl<'r, const PLANS: usize> Rows<'r> for KnownRow<'r, PLANS> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn read<S: Known, T: ReadFields<'r>>(&mut self) -> Option<T> {
        if S::IS_GENERAL {
            return None;
        }
        let Self { data, encoding, .. } = *self;
        let (fields, position) = if S::CAN_SPECIALIZE && encoding.tiers.are_specialized() {
            Specialized.read::<S, T>(data, *self.position, &mut (), 0)?
        } else if !S::STATEFUL && encoding.tiers.planned() & const { bit(S::POSITION) } != 0 {
            let plans = encoding.plans.first_chunk()?;
            Planned::<PLANS> { plans }.read::<S, T>(data, *self.position, &mut (), 0)?
        } else {
            return None;
        };
        *self.position = position;
        *self.found += 1;
        Some(fields)
    }
}

impl RecordReader<'_> {
    /// Returns the next record in the section's content if it is specialized or planned. Otherwise, nothing changes.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn next_known<'r, F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize>(&'r mut self) -> Option<F::With<B>> {
        let current = self.current.as_mut()?;
        let data = self.container.bytes_of(&current.content)?;
        let encoding = &self.states.get(F::SECTION)?.encoding;
        // This covers records of all tiers. The last bytes of a part are read in a different way.
        let tag = Specialized.tag(data, current.position, F::TAG_WIDTH)?;
        let (position, found) = (&mut current.position, &mut current.found);
        F::next::<B, _>(tag, &mut KnownRow::<PLANS> { data, encoding, position, found })
    }

    /// Returns the next record in any tier, or `None` if the record cannot be decoded here. If `None` is returned,
    /// either the state is unchanged, or an error has stopped the reader.
    fn next_unplanned<'r, F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize>(&'r mut self) -> Option<F::With<B>> {
        let (mut run, mut end) = self.start_run()?;
        let (data, position) = (run.data, run.position);
        let tag = Specialized.tag(data, position, F::TAG_WIDTH)?;
        let mut decoding = run.decoding();
        let tier = Mixed::<PLANS>::new(&mut decoding)?;
        let mut rows = InLine { data, position, count: 0, tier, observer: &mut () };
        let record = F::next::<B, _>(tag, &mut rows);
        let position = rows.position;
        match &record {
            Some(_) => end.tell(position, 1, false),
            // After an error, the reader cannot decode the record in another way, because the record may have changed
            // the state.
            None if run.has_stopped() => end.finish(),
            None => {}
        }
        record
    }
}

/// Reads a single record leaf by leaf.
pub(crate) struct LeafByLeaf<'a, 'r>(pub(super) &'a mut Run<'r>);

impl<'r> Reads<'r> for LeafByLeaf<'_, 'r> {
    fn section<F: SectionFamily, B: From<&'r [u8]>, const PLANS: usize, C>(
        &mut self,
        mut each: impl FnMut(F::With<B>) -> ControlFlow<C>,
    ) -> ControlFlow<C> {
        while let Some(tag) = tag(self.0.data, self.0.position, F::TAG_WIDTH, self.0.order)
            && let Some(record) = F::next::<B, _>(tag, &mut AnyRows::<PLANS>(self.0))
        {
            each(record)?;
        }
        ControlFlow::Continue(())
    }
}

/// Reads the next record of a section with `PLANS` plans.
struct AnyRows<'a, 'r, const PLANS: usize>(&'a mut Run<'r>);

impl<'r, const PLANS: usize> Rows<'r> for AnyRows<'_, 'r, PLANS> {
    fn read<S: Known, T: ReadFields<'r>>(&mut self) -> Option<T> {
        let position = self.0.position;
        let mut decoding = self.0.decoding();
        let plans = plans_of_any::<PLANS>(&decoding)?;
        let (fields, position) = general::<S, T, PLANS>(&mut decoding, plans, position, &mut (), 0)?;
        self.0.position = position;
        Some(fields)
    }
}
