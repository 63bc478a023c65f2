//! The emitters of a DTD, which generated code calls.
//!
//! This module neither allocates nor locks. It makes system calls only to acquire a ring, to wake the drain, or to
//! wait.
//!
//! This file exceeds 400 lines to keep the code path of an event, and all code that a signal may interrupt, in one
//! place.

use crate::sync::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use crate::sync::{AtomicPtr, AtomicU32, AtomicU64, compiler_fence, fence};
use std::ffi::CString;
use std::path::PathBuf;

use crate::clock::{Clock, Moment, monotonic};
use crate::control::Change;
use crate::layout::{DROPPED, NOTE, PAD, THREAD};
use crate::mapping::{Mapping, Shape, Texts};
use crate::ring::{OwnRing, RingPart};
use crate::settings::{Place, Policy, Settings};
use crate::slot::{Slot, store};
use crate::sys::{self, PathText};
use crate::tail::{array, text};

/// State of telemetry that has not been started.
pub(crate) const IDLE: u32 = 0;
/// State of telemetry while it is being started.
pub(crate) const STARTING: u32 = 1;
/// State of running telemetry.
pub(crate) const RUNNING: u32 = 2;
/// State of telemetry that has ended.
pub(crate) const ENDED: u32 = 3;

/// Size in bytes of an event that identifies a thread.
const THREAD_BYTES: u64 = 32;
/// Size in bytes of an event that reports dropped events.
const DROPPED_BYTES: u64 = 24;

/// A function that passes the calling thread's [`Slot`]s for a DTD to a callback: the slot of ordinary events and, if
/// the DTD has rare events, a second slot for rare events.
pub type Slots = fn(&mut dyn FnMut(&[Slot]));

/// The telemetry of a DTD. Generated code declares one as `TELEMETRY`. See the [crate] documentation for an example.
#[repr(C)]
pub struct Telemetry {
    /// A bit for each kind of event, set if the kind is enabled.
    control: AtomicU64,
    clock: AtomicU32,
    pub(crate) state: AtomicU32,
    base: AtomicPtr<u8>,
    own: AtomicPtr<OwnRing>,
    rings: AtomicU32,
    rare_rings: AtomicU32,
    policy: AtomicU32,
    ring_bytes: AtomicU64,
    rings_at: AtomicU64,
    strings_at: AtomicU64,
    /// The number of events lost before the buffers existed.
    pub(crate) lost: AtomicU64,
    /// A counter on which the drain waits. It changes when a thread advances to another block.
    pub(crate) wake: AtomicU32,
    pub(crate) sleeping: AtomicU32,
    /// A counter on which threads wait. It changes after events are drained or a ring is released.
    moved: AtomicU32,
    /// The number of waiting threads.
    waiting: AtomicU32,
    /// Set to 1 while a forked child creates its buffers, at its first event.
    making: AtomicU32,
    pub(crate) name: &'static str,
    pub(crate) dtd: &'static str,
    pub(crate) table: &'static str,
    pub(crate) slots: Slots,
    chosen: AtomicPtr<Chosen>,
    /// The creation time of this process's buffers, which is part of their file name.
    made: AtomicU64,
    pub(crate) next: AtomicPtr<Telemetry>,
    #[cfg(feature = "drain")]
    pub(crate) drain: crate::drain_lock::DrainLock,
}

/// The settings chosen at the start. They also apply to child processes.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// The directory of the buffers; `None` if they are not in a file.
    pub(crate) folder: Option<CString>,
    /// The trace of the process that started telemetry.
    pub(crate) trace: PathBuf,
    /// The ID of the process that started telemetry.
    pub(crate) process: u32,
    /// Whether a separate thread drains the rings.
    pub(crate) drains: bool,
    /// Maximum time in nanoseconds that `block` waits.
    patience: u64,
    /// Whether to suppress the message about dropped events.
    #[cfg(feature = "drain")]
    pub(crate) quiet: bool,
}

impl Chosen {
    pub(crate) fn new(settings: &Settings, trace: PathBuf, drains: bool) -> Self {
        let folder = match &settings.place {
            Place::Core => None,
            Place::SharedMemory if std::path::Path::new("/dev/shm").is_dir() => Some(PathBuf::from("/dev/shm")),
            Place::SharedMemory => Some(std::env::temp_dir()),
            Place::Folder(folder) => Some(std::path::absolute(folder).unwrap_or_else(|_| folder.clone())),
        };
        let folder = folder.and_then(|folder| CString::new(folder.into_os_string().into_encoded_bytes()).ok());
        Self {
            folder,
            trace,
            process: sys::process(),
            drains,
            patience: u64::try_from(settings.patience.as_nanos()).unwrap_or(u64::MAX),
            #[cfg(feature = "drain")]
            quiet: settings.quiet,
        }
    }
}

impl Telemetry {
    /// Creates the telemetry of a DTD. For generated code.
    #[must_use]
    pub const fn new(name: &'static str, dtd: &'static str, table: &'static str, slots: Slots) -> Self {
        Self {
            control: AtomicU64::new(0),
            clock: AtomicU32::new(Clock::Monotonic as u32),
            state: AtomicU32::new(IDLE),
            base: AtomicPtr::new(core::ptr::null_mut()),
            own: AtomicPtr::new(core::ptr::null_mut()),
            rings: AtomicU32::new(0),
            rare_rings: AtomicU32::new(0),
            policy: AtomicU32::new(0),
            ring_bytes: AtomicU64::new(0),
            rings_at: AtomicU64::new(0),
            strings_at: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            wake: AtomicU32::new(0),
            sleeping: AtomicU32::new(0),
            moved: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            making: AtomicU32::new(0),
            name,
            dtd,
            table,
            slots,
            chosen: AtomicPtr::new(core::ptr::null_mut()),
            made: AtomicU64::new(0),
            next: AtomicPtr::new(core::ptr::null_mut()),
            #[cfg(feature = "drain")]
            drain: crate::drain_lock::DrainLock::new(),
        }
    }

    /// Returns whether the kind with this bit is enabled.
    #[inline(always)]
    pub fn is_on(&self, kind: u8) -> bool {
        !cfg!(feature = "off") && self.control.load(Relaxed) & (1 << kind) != 0
    }

    /// Returns the control word, with a bit for each enabled kind.
    pub fn control(&self) -> u64 {
        self.control.load(Relaxed)
    }

    /// Returns a reference to the control word, for debuggers.
    pub(crate) fn control_word(&self) -> &AtomicU64 {
        &self.control
    }

    /// Sets the control word.
    pub fn set_control(&self, word: u64) {
        self.control.store(word, Relaxed);
        self.show_control();
    }

    /// Changes the control word atomically, so that concurrent changes by other threads are not lost.
    pub fn change_control(&self, change: Change) {
        let _ = self.control.fetch_update(Relaxed, Relaxed, |word| Some(change.of(word)));
        self.show_control();
    }

    /// Publishes the control word for other processes.
    fn show_control(&self) {
        if let Some(mapping) = self.mapping() {
            mapping.header().control.store(self.control(), Relaxed);
        }
    }

    pub(crate) fn clock(&self) -> Clock {
        Clock::from_number(self.clock.load(Relaxed)).unwrap_or(Clock::Monotonic)
    }

    /// Returns a stamp for an event.
    #[inline(always)]
    pub fn stamp(&self) -> u64 {
        if self.clock.load(Relaxed) == Clock::Cycles as u32 { Clock::Cycles.now() } else { monotonic() }
    }

    /// Emits an event without a tail. Only the common path is inlined, because a function without calls need not save
    /// registers.
    #[inline(always)]
    pub fn emit<const W: usize>(&'static self, slot: &Slot, event: u16, words: [u64; W]) {
        if !slot.enter() {
            return self.interrupted(slot);
        }
        if !slot.has_room(8 + 8 * W as u64) {
            // Pass a copy, so that the original words can stay in registers.
            return self.emit_behind(slot, event, words.map(core::convert::identity));
        }
        // SAFETY: there is room, and the thread has entered.
        unsafe { slot.put(event, words) };
        slot.leave();
    }

    /// Finds room for an event that the thread has already started, and emits it.
    #[cold]
    #[inline(never)]
    fn emit_behind<const W: usize>(&'static self, slot: &Slot, event: u16, words: [u64; W]) {
        if self.refill(slot, 8 + 8 * W as u64) {
            // SAFETY: there is room, and the thread has entered.
            unsafe { slot.put(event, words) };
        }
        slot.leave();
    }

    /// Emits an event with a tail. The words contain the lengths of its parts.
    #[inline(always)]
    pub fn emit_tail<const W: usize, const T: usize>(
        &'static self,
        slot: &Slot,
        event: u16,
        words: [u64; W],
        tail: [&[u8]; T],
    ) {
        if !slot.enter() {
            return self.interrupted(slot);
        }
        let count = W + tail.iter().map(|part| part.len().div_ceil(8)).sum::<usize>();
        let bytes = 8 + 8 * count as u64;
        if slot.has_room(bytes) || self.refill(slot, bytes) {
            let place = slot.place();
            let mut at = place.1;
            let mut put = |word| {
                // SAFETY: there is room for the counted number of words, and the thread has entered.
                unsafe {
                    at = at.add(1);
                    store(at, word);
                }
            };
            words.into_iter().for_each(&mut put);
            for part in tail {
                let (whole, rest) = part.as_chunks::<8>();
                whole.iter().for_each(|bytes| put(u64::from_ne_bytes(*bytes)));
                if !rest.is_empty() {
                    let mut last = [0; 8];
                    last[..rest.len()].copy_from_slice(rest);
                    put(u64::from_ne_bytes(last));
                }
            }
            // SAFETY: as above. A block has fewer than 65,536 words.
            #[allow(clippy::cast_possible_truncation)]
            unsafe {
                slot.publish(place, event, count as u16);
            }
        }
        slot.leave();
    }

    /// Emits a note: an event outside of the DTD that consists of a name and bytes and becomes a comment in the trace.
    /// The highest bit of the control word, which `all` and `notes` set, enables notes.
    pub fn note(&'static self, name: &str, bytes: &[u8]) {
        if self.is_on(63) {
            let (name_length, name) = text(name);
            let (bytes_length, bytes) = array(bytes);
            let words = [name_length | bytes_length << 16, self.stamp()];
            (self.slots)(&mut |slots| {
                slots.iter().take(1).for_each(|slot| self.emit_tail(slot, NOTE, words, [name, bytes]))
            });
        }
    }

    /// Counts the event of a signal handler as dropped, because the handler interrupted another event of its thread.
    #[cold]
    fn interrupted(&self, slot: &Slot) {
        if slot.busy.load(Relaxed) & MUTED != 0 {
            return;
        }
        let count = match (slot.part(), self.mapping()) {
            (Some(ring), _) => &ring.head.dropped,
            (None, Some(mapping)) => &mapping.header().refused,
            (None, None) => &self.lost,
        };
        count.fetch_add(1, Relaxed);
    }

    /// Finds room for an event if the block is full or the thread has no ring.
    #[cold]
    #[inline(never)]
    fn refill(&'static self, slot: &Slot, bytes: u64) -> bool {
        let errno = sys::errno();
        let found = self.find_room(slot, bytes);
        sys::set_errno(errno);
        found
    }

    fn find_room(&'static self, slot: &Slot, bytes: u64) -> bool {
        // No ring is assigned before a start has succeeded, so a failed start need not revoke any rings.
        let is_running = self.state.load(Acquire) == RUNNING;
        let mapping = if is_running { self.mapping().or_else(|| self.make_again()) } else { None };
        let Some(mapping) = mapping else {
            self.lost.fetch_add(1, Relaxed);
            return false;
        };
        // The ring of a slot belongs to one telemetry, so events of another telemetry must not be written to it.
        let has_ring = slot.is_of(self) || (slot.is_detached() && self.attach(&mapping, slot));
        let Some(ring) = slot.part().filter(|_| has_ring) else {
            mapping.header().refused.fetch_add(1, Relaxed);
            return false;
        };
        // In addition to the event, there must be room for an event that reports dropped events, and for two that
        // identify threads.
        if bytes + DROPPED_BYTES + 2 * THREAD_BYTES > ring.block() {
            ring.head.dropped.fetch_add(1, Relaxed);
            return false;
        }
        if slot.introduced.load(Relaxed) == 0 {
            if slot.has_room(bytes + DROPPED_BYTES + 2 * THREAD_BYTES) {
                self.introduce(slot, &ring);
            } else {
                self.fill_block(slot);
            }
        }
        while !slot.has_room(bytes) {
            self.fill_block(slot);
            if !self.next_block(mapping.shape.policy, slot, &ring) {
                ring.head.dropped.fetch_add(1, Relaxed);
                return false;
            }
            self.introduce(slot, &ring);
        }
        true
    }

    /// Acquires a ring for a thread. With [`Policy::Block`], waits up to [`Settings::patience`] for a free ring.
    fn attach(&'static self, mapping: &Mapping, slot: &Slot) -> bool {
        let moved = self.moved.load(Acquire);
        // If the thread's last attempt found no free ring, and no ring has been released since, there is still no free
        // ring.
        if moved == slot.refused_at.load(Relaxed) && !mapping.header().refused.load(Relaxed).is_multiple_of(64) {
            return false;
        }
        let thread = sys::thread();
        let mut taken = mapping.take(thread, slot.is_rare);
        if taken.is_none() && mapping.shape.policy == Policy::Block && slot.gave_up.load(Relaxed) == 0 {
            taken = self.wait_for(false, || mapping.take(thread, slot.is_rare));
        }
        let Some(ring) = taken else {
            slot.refused_at.store(moved, Relaxed);
            slot.gave_up.store(1, Relaxed);
            self.call_drain();
            return false;
        };
        slot.attach(core::ptr::from_ref(self), &ring, ring.whole(), thread);
        ring.own.limit.store(slot.limit.load(Relaxed), Release);
        sys::call_at_thread_end();
        true
    }

    /// Releases the ring of this thread, which is ending.
    pub(crate) fn leave(&self, slot: &Slot) {
        let Some(ring) = slot.part().filter(|_| slot.is_of(self)) else { return };
        let before = slot.busy.swap(1, Relaxed);
        compiler_fence(SeqCst);
        if slot.introduced.load(Relaxed) != 0 {
            self.report_dropped(slot, &ring);
        }
        slot.detach();
        ring.own.leave();
        self.moved_on();
        compiler_fence(SeqCst);
        slot.busy.store(before, Relaxed);
    }

    /// Writes an event that identifies the thread of the following events, and reports the events dropped by the ring's
    /// previous thread.
    fn introduce(&self, slot: &Slot, ring: &RingPart) {
        let (thread, before) = (slot.thread.load(Relaxed), ring.own.named.load(Relaxed));
        let name = |number: u32, name: [u64; 2]| {
            // SAFETY: there is room for the event, and the thread has entered.
            unsafe { slot.put(THREAD, [u64::from(number), name[0], name[1]]) };
        };
        if before != thread && ring.unreported() != 0 && slot.has_room(THREAD_BYTES + DROPPED_BYTES) {
            name(before, [0; 2]);
            self.report_dropped(slot, ring);
        }
        ring.own.named.store(thread, Relaxed);
        name(thread, [ring.head.name[0].load(Relaxed), ring.head.name[1].load(Relaxed)]);
        slot.introduced.store(1, Relaxed);
        self.report_dropped(slot, ring);
    }

    /// Fills the rest of a block.
    fn fill_block(&self, slot: &Slot) {
        let left = slot.limit.load(Relaxed).saturating_sub(slot.position.load(Relaxed)) / 8;
        if let Some(words) = left.checked_sub(1).and_then(|words| u16::try_from(words).ok()) {
            // SAFETY: there is room for this many words up to the limit, and their content does not matter.
            unsafe { slot.publish(slot.place(), PAD, words) };
        }
    }

    /// Advances to the next block, if the policy allows it.
    fn next_block(&self, policy: Policy, slot: &Slot, ring: &RingPart) -> bool {
        let ring_bytes = ring.bytes;
        let end = slot.position.load(Relaxed) + ring.block();
        let has_room = || end <= ring.own.tail.load(Acquire).saturating_add(ring_bytes);
        let mut found = match policy {
            Policy::Overwrite => true,
            _ => {
                self.call_drain();
                has_room()
            }
        };
        if !found && policy == Policy::Block && slot.gave_up.load(Relaxed) == 0 {
            found = self.wait_for(true, || has_room().then_some(())).is_some();
        }
        if found {
            let oldest = end.saturating_sub(ring_bytes);
            ring.own.go_to(end, oldest);
            ring.head.oldest.store(oldest, SeqCst);
            // Make the new `oldest` visible to all readers before overwriting events.
            fence(SeqCst);
            slot.limit.store(end, Relaxed);
        }
        slot.gave_up.store(u32::from(!found), Relaxed);
        found
    }

    /// Sleeps until `find` returns a value, but at most for [`Settings::patience`]. With `for_drain`, this timeout
    /// restarts whenever the drain makes progress.
    fn wait_for<T>(&self, for_drain: bool, find: impl Fn() -> Option<T>) -> Option<T> {
        let patience = self.chosen()?.patience;
        let mut until = monotonic().saturating_add(patience);
        loop {
            let moved = self.moved.load(Acquire);
            if let Some(found) = find() {
                return Some(found);
            }
            if monotonic() >= until || self.state.load(Relaxed) != RUNNING {
                return None;
            }
            self.call_drain();
            self.waiting.fetch_add(1, SeqCst);
            sys::wait(&self.moved, moved, 100);
            self.waiting.fetch_sub(1, Relaxed);
            if for_drain && self.moved.load(Relaxed) != moved {
                until = monotonic().saturating_add(patience);
            }
        }
    }

    /// Wakes the waiting threads after events were drained or a ring was released.
    pub(crate) fn moved_on(&self) {
        self.moved.fetch_add(1, SeqCst);
        if self.waiting.load(SeqCst) != 0 {
            sys::wake(&self.moved);
        }
    }

    /// Writes the number of events dropped since the last report, unless it is 0.
    fn report_dropped(&self, slot: &Slot, ring: &RingPart) {
        let count = ring.unreported();
        if count != 0 && slot.has_room(DROPPED_BYTES) {
            // SAFETY: there is room for two words, and the thread has entered.
            unsafe { slot.put(DROPPED, [count, self.stamp()]) };
            ring.head.reported.fetch_add(count, Relaxed);
        }
    }

    /// Wakes the drain.
    fn call_drain(&self) {
        self.wake.fetch_add(1, Relaxed);
        if self.sleeping.load(Relaxed) != 0 {
            sys::wake(&self.wake);
        }
    }

    /// Returns the buffers.
    pub(crate) fn mapping(&self) -> Option<Mapping> {
        let base = self.base.load(Acquire);
        if base.is_null() {
            return None;
        }
        // SAFETY: the base was stored after the shape of its mapping and the rings, which are permanent.
        Some(unsafe { Mapping::new(base, self.own.load(Relaxed), self.shape()) })
    }

    fn shape(&self) -> Shape {
        Shape {
            rings: self.rings.load(Relaxed),
            rare_rings: self.rare_rings.load(Relaxed),
            ring_bytes: self.ring_bytes.load(Relaxed),
            rings_at: self.rings_at.load(Relaxed),
            strings_at: self.strings_at.load(Relaxed),
            policy: Policy::from_number(self.policy.load(Relaxed)).unwrap_or_default(),
        }
    }

    /// Creates the buffers. Returns the system's error number on failure.
    pub(crate) fn make(&self, shape: Shape, chosen: &Chosen, clock: Clock) -> Result<(), i32> {
        let bytes = usize::try_from(shape.bytes()).map_err(|_| libc::EFBIG)?;
        // The rings of a parent, or of a failed start, are kept, because a debugger or a signal handler may be using
        // them.
        let own: *mut OwnRing = sys::private(size_of::<OwnRing>() * shape.all_rings() as usize)?.cast();
        self.made.store(monotonic(), Relaxed);
        let base = match self.buffers_path(chosen) {
            Some(path) => sys::make(path.c_str(), bytes, usize::try_from(shape.rings_at).unwrap_or(bytes))?,
            None => sys::private(bytes)?,
        };
        // SAFETY: this is a new mapping of this length and as many rings, for which zeros are valid values.
        let mapping = unsafe { Mapping::new(base, own, shape) };
        let (start, line) = Moment::calibrate(clock);
        let trace = chosen.trace.as_os_str().as_encoded_bytes();
        let texts = Texts { dtd: self.dtd.as_bytes(), table: self.table.as_bytes(), name: self.name.as_bytes(), trace };
        let header = mapping.header();
        header.control.store(self.control(), Relaxed);
        header.refused.store(self.lost.swap(0, Relaxed), Relaxed);
        mapping.fill(&texts, clock, start, crate::clock::wall_at(start.nanoseconds), &line);
        self.clock.store(clock as u32, Relaxed);
        self.rings.store(shape.rings, Relaxed);
        self.rare_rings.store(shape.rare_rings, Relaxed);
        self.policy.store(shape.policy as u32, Relaxed);
        self.ring_bytes.store(shape.ring_bytes, Relaxed);
        self.rings_at.store(shape.rings_at, Relaxed);
        self.strings_at.store(shape.strings_at, Relaxed);
        self.own.store(own, Relaxed);
        self.show(&mapping);
        Ok(())
    }

    /// Publishes the buffers to all threads, and copies the strings of the process to them.
    fn show(&self, mapping: &Mapping) {
        self.base.store(mapping.base, Release);
        mapping.copy_strings();
    }

    /// Creates the buffers of a forked child, with the same shape as the parent's buffers.
    fn make_again(&self) -> Option<Mapping> {
        let chosen = self.chosen()?;
        if self.state.load(Acquire) != RUNNING {
            return None;
        }
        if self.making.compare_exchange(0, 1, AcqRel, Relaxed).is_ok() {
            let mut made = Err(0);
            if self.base.load(Acquire).is_null() {
                made = self.make(self.shape(), chosen, self.clock());
            }
            // After a failure, do not try again at each event.
            if made.is_ok() {
                self.making.store(0, Release);
            }
        }
        self.mapping()
    }

    /// Returns the settings at the start.
    pub(crate) fn chosen(&self) -> Option<&'static Chosen> {
        // SAFETY: it is null or points to a leaked box.
        unsafe { self.chosen.load(Acquire).as_ref() }
    }

    /// Stores the settings. They are never freed, because forked children and signal handlers use them. This leaks a
    /// few bytes per start.
    pub(crate) fn choose(&self, chosen: Chosen) -> &'static Chosen {
        let chosen: &'static Chosen = Box::leak(Box::new(chosen));
        self.chosen.store(core::ptr::from_ref(chosen).cast_mut(), Release);
        chosen
    }

    /// Returns the path of this process's buffers, if they are in a file.
    pub(crate) fn buffers_path(&self, chosen: &Chosen) -> Option<PathText> {
        let folder = chosen.folder.as_ref()?;
        let path = PathText::new().push(folder.as_bytes()).push(b"/metatf.").number(u64::from(sys::process()));
        Some(path.push(b".").number(self.made.load(Relaxed)))
    }

    /// Detaches a forked child from the parent's buffers, but keeps the shape and the clock. Also replaces the mapping
    /// with private zeros. If a signal handler forked while it interrupted an event, the child then writes the rest of
    /// that event to this private memory.
    pub(crate) fn forget(&self) {
        if let Some(mapping) = self.mapping() {
            self.base.store(core::ptr::null_mut(), Release);
            let bytes = usize::try_from(mapping.shape.bytes()).unwrap_or(0);
            // SAFETY: this is the complete mapping, which stays mapped. No other thread exists that could be using it.
            unsafe { sys::blank(mapping.base, bytes) };
        }
        self.lost.store(0, Relaxed);
        self.making.store(0, Relaxed);
        self.sleeping.store(0, Relaxed);
    }
}

/// The bit of a slot whose thread is draining. Its events are neither recorded nor counted.
pub(crate) const MUTED: u32 = 2;

#[cfg(all(loom, test))]
pub(crate) mod models;
