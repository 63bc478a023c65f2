//! The buffers of this process, mapped.

use crate::sync::AtomicU64;
use crate::sync::Ordering::{Acquire, Relaxed, Release};

use crate::clock::{Clock, Line, Moment, monotonic};
use crate::layout::{BYTE_ORDER, Header, MAGIC, RingHead, STRINGS_BYTES, TEXTS_AT, VERSION, ring_at};
use crate::ring::{FREE, LEFT, OwnRing, RingPart};
use crate::settings::Policy;
use crate::strings::STRINGS;
use crate::sys;
use crate::table::Table;

/// The shape of the buffers. It is known here, and never taken from the mapping, which other processes may write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) rings: u32,
    /// How many small rings stand behind them; 0: no event is rare.
    pub(crate) rare_rings: u32,
    pub(crate) ring_bytes: u64,
    pub(crate) rings_at: u64,
    /// Where the strings are, up to where the rings begin; 0: there are none.
    pub(crate) strings_at: u64,
    pub(crate) policy: Policy,
}

impl Shape {
    /// Makes the shape of buffers for the events of a table, with this many bytes of texts.
    pub(crate) fn new(rings: u32, ring_bytes: u64, texts: u64, table: &Table, policy: Policy) -> Self {
        let behind = (TEXTS_AT + texts).next_multiple_of(4096);
        let (strings_at, strings_bytes) = if table.intern.is_some() { (behind, STRINGS_BYTES) } else { (0, 0) };
        let rare_rings = if table.has_rare { rings } else { 0 };
        Self { rings, rare_rings, ring_bytes, rings_at: behind + strings_bytes, strings_at, policy }
    }

    /// Returns the bytes of a file of this shape.
    pub(crate) fn bytes(&self) -> u64 {
        self.ring_at(self.all_rings()).0
    }

    /// Returns how many rings there are, small ones and others.
    pub(crate) fn all_rings(&self) -> u32 {
        self.rings + self.rare_rings
    }

    /// Returns where a ring begins, and the bytes of its events.
    fn ring_at(&self, index: u32) -> (u64, u64) {
        ring_at(self.rings_at, self.ring_bytes, self.rings, index)
    }
}

/// The texts of a buffers file, in their order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Texts<'t> {
    pub(crate) dtd: &'t [u8],
    pub(crate) table: &'t [u8],
    pub(crate) name: &'t [u8],
    pub(crate) trace: &'t [u8],
}

/// Mapped buffers. They stay mapped as long as the process lives.
#[derive(Clone, Copy)]
pub(crate) struct Mapping {
    pub(crate) base: *mut u8,
    own: *mut OwnRing,
    pub(crate) shape: Shape,
}

impl Mapping {
    /// Takes a mapping.
    ///
    /// # Safety
    /// `base` is the beginning of a mapping with at least the bytes of the shape, which begins at a page and stays for ever. `own` are as
    /// many rings as the shape has, which stay, too.
    pub(crate) unsafe fn new(base: *mut u8, own: *mut OwnRing, shape: Shape) -> Self {
        Self { base, own, shape }
    }

    pub(crate) fn header(&self) -> &'static Header {
        // SAFETY: the mapping begins with a header, at a page, and stays. It is of atomic integers, for which all bytes are valid.
        unsafe { &*self.base.cast::<Header>() }
    }

    /// Whether an address is in it.
    pub(crate) fn has(&self, address: usize) -> bool {
        address.checked_sub(self.base.addr()).is_some_and(|at| (at as u64) < self.shape.bytes())
    }

    /// Returns the ring of that index, if there is one.
    pub(crate) fn ring(&self, index: u32) -> Option<RingPart> {
        if index >= self.shape.all_rings() {
            return None;
        }
        let (at, bytes) = self.shape.ring_at(index);
        let at = usize::try_from(at).ok()?;
        // SAFETY: the shape has this ring, so its bytes are in the mapping; rings begin at multiples of 4,096.
        unsafe {
            let head = &*self.base.add(at).cast::<RingHead>();
            let own = &*self.own.add(usize::try_from(index).ok()?);
            Some(RingPart { head, own, events: self.base.add(at + 4096), bytes })
        }
    }

    /// Returns the rings.
    pub(crate) fn rings(&self) -> impl Iterator<Item = RingPart> + '_ {
        (0..self.shape.all_rings()).filter_map(|index| self.ring(index))
    }

    /// Returns the small rings, or the others.
    fn rings_of(&self, is_rare: bool) -> impl Iterator<Item = RingPart> + '_ {
        let all = self.shape.all_rings();
        let range = if is_rare { self.shape.rings..all } else { 0..self.shape.rings };
        range.filter_map(|index| self.ring(index))
    }

    /// Fills a new mapping, which is all zeros. The magic number comes last.
    pub(crate) fn fill(&self, texts: &Texts<'_>, clock: Clock, start: Moment, wall: u64, line: &Line) {
        let header = self.header();
        let mut at = usize::try_from(TEXTS_AT).unwrap_or(0);
        let length = |text: &[u8]| u32::try_from(text.len()).unwrap_or(0);
        for text in [texts.dtd, texts.table, texts.name, texts.trace] {
            // SAFETY: the rings begin behind the texts, by the shape. Nobody else knows the mapping yet.
            unsafe { self.base.add(at).copy_from_nonoverlapping(text.as_ptr(), text.len()) };
            at += text.len();
        }
        header.version.store(VERSION, Relaxed);
        header.byte_order.store(BYTE_ORDER, Relaxed);
        header.bytes.store(self.shape.bytes(), Relaxed);
        header.rings_at.store(self.shape.rings_at, Relaxed);
        header.ring_bytes.store(self.shape.ring_bytes, Relaxed);
        header.rings.store(self.shape.rings, Relaxed);
        header.rare_rings.store(self.shape.rare_rings, Relaxed);
        header.clock.store(clock as u32, Relaxed);
        header.dtd_bytes.store(length(texts.dtd), Relaxed);
        header.table_bytes.store(length(texts.table), Relaxed);
        header.name_bytes.store(length(texts.name), Relaxed);
        header.trace_bytes.store(length(texts.trace), Relaxed);
        header.process.store(sys::process(), Relaxed);
        header.policy.store(self.shape.policy as u32, Relaxed);
        header.start_stamp.store(start.stamp, Relaxed);
        header.start_nanoseconds.store(start.nanoseconds, Relaxed);
        header.start_wall.store(wall, Relaxed);
        header.rate.store(line.rate(), Relaxed);
        header.strings_at.store(self.shape.strings_at, Relaxed);
        let first = &header.batches[0];
        first.stamp.store(start.stamp, Relaxed);
        first.nanoseconds.store(start.nanoseconds, Relaxed);
        header.magic.store(MAGIC, Release);
    }

    /// Copies the strings of the process that are not there yet.
    pub(crate) fn copy_strings(&self) {
        let Some(at) = usize::try_from(self.shape.strings_at).ok().filter(|at| *at != 0) else { return };
        let header = self.header();
        let known = header.strings.load(Relaxed).min(STRINGS_BYTES);
        // SAFETY: the shape has this place, with room for all.
        let end = unsafe { STRINGS.copy(self.base.add(at), known) };
        header.strings_refused.store(STRINGS.refused(), Relaxed);
        header.strings.fetch_max(end, Release);
    }

    /// Returns where the strings end.
    pub(crate) fn strings_end(&self) -> u64 {
        if self.shape.strings_at == 0 { 0 } else { self.header().strings.load(Acquire).min(STRINGS_BYTES) }
    }

    /// Returns the words of the strings in a range of bytes.
    pub(crate) fn strings(&self, from: u64, to: u64) -> Vec<u64> {
        let places = (from & !7..to.min(self.strings_end())).step_by(8);
        let places = places.filter_map(|at| usize::try_from(self.shape.strings_at + at).ok());
        // SAFETY: the end is in the place that the shape has for strings.
        places.map(|at| unsafe { AtomicU64::from_ptr(self.base.add(at).cast()) }.load(Relaxed)).collect()
    }

    /// Returns how many events were dropped so far. Other processes can write to these counts.
    #[cfg(feature = "drain")]
    pub(crate) fn dropped(&self) -> u64 {
        let refused = self.header().refused.load(Relaxed);
        self.rings().fold(refused, |all, ring| all.saturating_add(ring.head.dropped.load(Relaxed)))
    }

    /// Finds the rings whose threads have ended without a word; says whether there is one.
    pub(crate) fn find_left(&self) -> bool {
        self.rings().filter(|ring| ring.own.is_deserted() && ring.own.leave()).count() > 0
    }

    /// Takes a ring for this thread: one of a thread that has ended, behind whose events those of this one stand, or one that was never
    /// used, if there is memory for it. A flight recorder begins with the latter, and goes on where a thread ended the longest ago.
    pub(crate) fn take(&self, thread: u32, is_rare: bool) -> Option<RingPart> {
        // A thread of this number that has a ring has ended: the number was given again.
        for ring in self.rings_of(is_rare).filter(|ring| ring.own.is_of(thread)) {
            ring.own.leave();
        }
        let any = |_: &RingPart| true;
        let half = |ring: &RingPart| ring.own.held() <= ring.bytes / 2;
        let left = |fits: fn(&RingPart) -> bool, order| self.take_left(thread, is_rare, fits, order);
        let taken = match self.shape.policy {
            Policy::Overwrite => self.take_new(thread, is_rare).or_else(|| left(any, OwnRing::left)),
            _ => left(half, OwnRing::held).or_else(|| self.take_new(thread, is_rare)),
        };
        let least = || left(any, OwnRing::held);
        let ring = taken.or_else(least).or_else(|| if self.may_look() && self.find_left() { least() } else { None })?;
        let name = sys::thread_name();
        for (word, bytes) in ring.head.name.iter().zip(name.chunks_exact(8)) {
            word.store(bytes.try_into().map_or(0, u64::from_ne_bytes), Relaxed);
        }
        ring.head.thread.store(thread, Release);
        Some(ring)
    }

    /// Looking who is there is a system call for each ring: that is done at most a twentieth of the time.
    fn may_look(&self) -> bool {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let (now, last) = (monotonic(), LAST.load(Relaxed));
        let is_time = now.saturating_sub(last) >= 8000 * u64::from(self.shape.all_rings());
        is_time && LAST.compare_exchange(last, now, Relaxed, Relaxed).is_ok()
    }

    /// Takes the ring of a thread that has ended, of those that fit the one for which `order` is least.
    fn take_left(
        &self,
        thread: u32,
        is_rare: bool,
        fits: fn(&RingPart) -> bool,
        order: fn(&OwnRing) -> u64,
    ) -> Option<RingPart> {
        loop {
            let left = self.rings_of(is_rare).filter(|ring| ring.own.is_left() && fits(ring));
            let ring = left.min_by_key(|ring| order(ring.own))?;
            if ring.own.take(LEFT, thread) {
                return Some(ring);
            }
        }
    }

    /// Takes a ring that was never used, and reserves its memory.
    fn take_new(&self, thread: u32, is_rare: bool) -> Option<RingPart> {
        let ring = self.rings_of(is_rare).find(|ring| ring.own.take(FREE, thread))?;
        let bytes = usize::try_from(ring.bytes).unwrap_or(0);
        // SAFETY: the events of a ring of this mapping, which begin at a page.
        if ring.own.reserved.load(Relaxed) == 0 && !unsafe { sys::populate(ring.events, bytes) } {
            ring.own.give_back();
            return None;
        }
        ring.own.reserved.store(1, Relaxed);
        Some(ring)
    }
}
