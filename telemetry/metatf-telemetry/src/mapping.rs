//! The mapped buffers of this process.

use crate::sync::AtomicU64;
use crate::sync::Ordering::{Acquire, Relaxed, Release};

use crate::clock::{Clock, Line, Moment, monotonic};
use crate::layout::{BYTE_ORDER, Header, MAGIC, RingHead, STRINGS_BYTES, TEXTS_AT, VERSION, ring_at};
use crate::ring::{FREE, LEFT, OwnRing, RingPart};
use crate::settings::Policy;
use crate::strings::STRINGS;
use crate::sys;
use crate::table::Table;

/// The shape of the buffers. It is stored here and never read from the mapping, because other processes may write to
/// the mapping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) rings: u32,
    /// Number of small rings, which follow the rings of `ring_bytes`; 0 if no event is rare.
    pub(crate) rare_rings: u32,
    pub(crate) ring_bytes: u64,
    pub(crate) rings_at: u64,
    /// Offset of the interned strings, which extend up to the rings; 0 if the buffers contain no strings.
    pub(crate) strings_at: u64,
    pub(crate) policy: Policy,
}

impl Shape {
    /// Returns the shape of buffers for the events of a table. `texts` is the total size of the strings in bytes.
    pub(crate) fn new(rings: u32, ring_bytes: u64, texts: u64, table: &Table, policy: Policy) -> Self {
        let behind = (TEXTS_AT + texts).next_multiple_of(4096);
        let (strings_at, strings_bytes) = if table.intern.is_some() { (behind, STRINGS_BYTES) } else { (0, 0) };
        let rare_rings = if table.has_rare { rings } else { 0 };
        Self { rings, rare_rings, ring_bytes, rings_at: behind + strings_bytes, strings_at, policy }
    }

    /// Returns the size of a file of this shape in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.ring_at(self.all_rings()).0
    }

    /// Returns the number of rings, including small ones.
    pub(crate) fn all_rings(&self) -> u32 {
        self.rings + self.rare_rings
    }

    /// Returns the offset of a ring and the size of its events in bytes.
    fn ring_at(&self, index: u32) -> (u64, u64) {
        ring_at(self.rings_at, self.ring_bytes, self.rings, index)
    }
}

/// The strings in a buffers file, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Texts<'t> {
    pub(crate) dtd: &'t [u8],
    pub(crate) table: &'t [u8],
    pub(crate) name: &'t [u8],
    pub(crate) trace: &'t [u8],
}

/// Mapped buffers, which stay mapped until the process ends.
#[derive(Clone, Copy)]
pub(crate) struct Mapping {
    pub(crate) base: *mut u8,
    own: *mut OwnRing,
    pub(crate) shape: Shape,
}

impl Mapping {
    /// Creates an instance for an existing mapping.
    ///
    /// # Safety
    /// `base` must be the start of a permanent mapping that is page-aligned and has at least the size of the shape.
    /// `own` must point to the private state of all rings in the shape, which must also be permanent.
    pub(crate) unsafe fn new(base: *mut u8, own: *mut OwnRing, shape: Shape) -> Self {
        Self { base, own, shape }
    }

    pub(crate) fn header(&self) -> &'static Header {
        // SAFETY: the mapping is permanent and starts with a header at a page boundary. The header consists of atomic
        // integers, for which all bit patterns are valid.
        unsafe { &*self.base.cast::<Header>() }
    }

    /// Returns whether an address is in the mapping.
    pub(crate) fn has(&self, address: usize) -> bool {
        address.checked_sub(self.base.addr()).is_some_and(|at| (at as u64) < self.shape.bytes())
    }

    /// Returns the ring with this index, if it exists.
    pub(crate) fn ring(&self, index: u32) -> Option<RingPart> {
        if index >= self.shape.all_rings() {
            return None;
        }
        let (at, bytes) = self.shape.ring_at(index);
        let at = usize::try_from(at).ok()?;
        // SAFETY: the shape has this ring, so its bytes are in the mapping. Rings start at multiples of 4,096.
        unsafe {
            let head = &*self.base.add(at).cast::<RingHead>();
            let own = &*self.own.add(usize::try_from(index).ok()?);
            Some(RingPart { head, own, events: self.base.add(at + 4096), bytes })
        }
    }

    /// Returns all rings.
    pub(crate) fn rings(&self) -> impl Iterator<Item = RingPart> + '_ {
        (0..self.shape.all_rings()).filter_map(|index| self.ring(index))
    }

    /// Returns the small rings if `is_rare`, otherwise the rings of `ring_bytes`.
    fn rings_of(&self, is_rare: bool) -> impl Iterator<Item = RingPart> + '_ {
        let all = self.shape.all_rings();
        let range = if is_rare { self.shape.rings..all } else { 0..self.shape.rings };
        range.filter_map(|index| self.ring(index))
    }

    /// Initializes a new mapping, which consists of zeros. The magic number is written last.
    pub(crate) fn fill(&self, texts: &Texts<'_>, clock: Clock, start: Moment, wall: u64, line: &Line) {
        let header = self.header();
        let mut at = usize::try_from(TEXTS_AT).unwrap_or(0);
        let length = |text: &[u8]| u32::try_from(text.len()).unwrap_or(0);
        for text in [texts.dtd, texts.table, texts.name, texts.trace] {
            // SAFETY: according to the shape, the rings start after the texts. No other code has access to the mapping
            // yet.
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

    /// Copies the strings of the process that the mapping does not contain yet.
    pub(crate) fn copy_strings(&self) {
        let Some(at) = usize::try_from(self.shape.strings_at).ok().filter(|at| *at != 0) else { return };
        let header = self.header();
        let known = header.strings.load(Relaxed).min(STRINGS_BYTES);
        // SAFETY: the shape has this area, with room for all strings.
        let end = unsafe { STRINGS.copy(self.base.add(at), known) };
        header.strings_refused.store(STRINGS.refused(), Relaxed);
        header.strings.fetch_max(end, Release);
    }

    /// Returns the end of the strings.
    pub(crate) fn strings_end(&self) -> u64 {
        if self.shape.strings_at == 0 { 0 } else { self.header().strings.load(Acquire).min(STRINGS_BYTES) }
    }

    /// Returns the words of the strings in a byte range.
    pub(crate) fn strings(&self, from: u64, to: u64) -> Vec<u64> {
        let places = (from & !7..to.min(self.strings_end())).step_by(8);
        let places = places.filter_map(|at| usize::try_from(self.shape.strings_at + at).ok());
        // SAFETY: the end is within the area for strings in the shape.
        places.map(|at| unsafe { AtomicU64::from_ptr(self.base.add(at).cast()) }.load(Relaxed)).collect()
    }

    /// Returns the number of events dropped so far. Other processes can modify the counts.
    #[cfg(feature = "drain")]
    pub(crate) fn dropped(&self) -> u64 {
        let refused = self.header().refused.load(Relaxed);
        self.rings().fold(refused, |all, ring| all.saturating_add(ring.head.dropped.load(Relaxed)))
    }

    /// Releases the rings of threads that ended without releasing them. Returns whether it found such a ring.
    pub(crate) fn find_left(&self) -> bool {
        self.rings().filter(|ring| ring.own.is_deserted() && ring.own.leave()).count() > 0
    }

    /// Acquires a ring for this thread. This is either the ring of an ended thread, in which this thread's events
    /// follow the events of the ended thread, or an unused ring if there is memory for one. A flight recorder prefers
    /// an unused ring to the ring of an ended thread, and otherwise acquires the least recently released ring.
    pub(crate) fn take(&self, thread: u32, is_rare: bool) -> Option<RingPart> {
        // If a ring still belongs to a thread with this ID, that thread must have ended, because its ID was reused.
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

    /// Returns whether the thread may search for ended threads. The search needs a system call for each ring, so it may
    /// take at most 5% of the time.
    fn may_look(&self) -> bool {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let (now, last) = (monotonic(), LAST.load(Relaxed));
        let is_time = now.saturating_sub(last) >= 8000 * u64::from(self.shape.all_rings());
        is_time && LAST.compare_exchange(last, now, Relaxed, Relaxed).is_ok()
    }

    /// Acquires the ring with the lowest `order` among the matching rings of ended threads.
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

    /// Acquires an unused ring and reserves its memory.
    fn take_new(&self, thread: u32, is_rare: bool) -> Option<RingPart> {
        let ring = self.rings_of(is_rare).find(|ring| ring.own.take(FREE, thread))?;
        let bytes = usize::try_from(ring.bytes).unwrap_or(0);
        // SAFETY: these are the events of a ring in this mapping, which start at a page boundary.
        if ring.own.reserved.load(Relaxed) == 0 && !unsafe { sys::populate(ring.events, bytes) } {
            ring.own.give_back();
            return None;
        }
        ring.own.reserved.store(1, Relaxed);
        Some(ring)
    }
}
