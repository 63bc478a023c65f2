//! Bytes of records on their way into a chunk. There is memory behind those in use, so that a leaf is stored with one check and
//! no change of length.
//!
//! Records are written there by two ways. [`SpareCapacity`] need not be initialized: it is for records that know at the start how
//! much they take at most. [`Prefilled`] memory is a vector that is filled ahead, for those that do not.

mod spare;

use spare::RESERVE;
pub(crate) use spare::{RawWriter, SpareCapacity};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes filled ahead at a time. Miri fills byte by byte.
const AHEAD: usize = if cfg!(miri) { 64 } else { 16 << 10 };

/// A buffer of encoded records.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// Those in use, and memory behind them. Its length lags behind: records in spare capacity are counted when it is needed. Its
    /// capacity is never made less.
    bytes: Vec<u8>,
    /// Where those in use begin: not at 0 where the memory is borrowed from a sink.
    start: usize,
    /// Where they end. Never over the capacity, and all bytes before it are initialized.
    used: usize,
    /// Up to where records may begin, see [`open`](Self::open).
    until: Until,
}

/// Up to where records may begin in a buffer. It is 0, or `until + RESERVE` is at most the buffer's capacity.
///
/// Only the buffer sets it. Any thread that has a clone may close it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Until(Arc<AtomicUsize>);

impl Until {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, until: usize) {
        self.0.store(until, Ordering::Relaxed);
    }

    /// Lets no record begin until the buffer is opened again.
    pub(crate) fn close(&self) {
        self.set(0);
    }
}

impl Buffer {
    pub(crate) fn is_empty(&self) -> bool {
        self.used == self.start
    }

    /// How many bytes are in use.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.used - self.start
    }

    /// Where they begin.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Where they end.
    #[inline]
    pub(crate) fn end(&self) -> usize {
        self.used
    }

    pub(crate) fn in_use(&mut self) -> &[u8] {
        let (start, end) = (self.start, self.used);
        self.vec().get(start..end).unwrap_or_default()
    }

    /// All bytes up to the end of those in use.
    #[inline]
    pub(crate) fn written(&mut self) -> &mut [u8] {
        let end = self.used;
        self.vec().get_mut(..end).unwrap_or_default()
    }

    /// Lets records begin where fewer than `most` bytes are in use, as far as there is memory: for one there is.
    pub(crate) fn open(&mut self, most: usize) {
        if self.used >= self.limit() {
            self.vec().reserve(RESERVE + AHEAD);
        }
        self.until.set(self.start.saturating_add(most).min(self.limit()));
    }

    /// Gives the place before which a record may begin as far as memory goes.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn limit(&self) -> usize {
        self.bytes.capacity().saturating_sub(RESERVE)
    }

    /// Lets no record begin in spare capacity until the buffer is opened.
    #[inline]
    pub(crate) fn close(&mut self) {
        self.until.close();
    }

    /// Gives a handle by which another thread may close the buffer.
    pub(crate) fn until(&self) -> Until {
        self.until.clone()
    }

    /// Gives the memory behind the bytes in use, none where the buffer is closed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn spare(&mut self) -> SpareCapacity<'_> {
        SpareCapacity::new(self)
    }

    /// Gives memory that is filled ahead, and where bytes in use end. The buffer is closed.
    #[inline]
    pub(crate) fn prefilled(&mut self) -> (Prefilled<'_>, usize) {
        self.close();
        let end = self.used;
        (Prefilled(self.vec()), end)
    }

    /// Sets the end of the bytes in use, as far as memory is filled.
    #[inline]
    pub(crate) fn keep(&mut self, end: usize) {
        self.used = end.min(self.vec().len());
    }

    /// Appends bytes.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        let (mut memory, end) = self.prefilled();
        if let Some(place) = memory.at(end, bytes.len()) {
            place.copy_from_slice(bytes);
            self.keep(end + bytes.len());
        }
    }

    /// The bytes up to the last one in use; the buffer is empty then.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let end = self.used;
        self.vec().truncate(end);
        let bytes = std::mem::take(&mut self.bytes);
        self.reuse(Vec::new());
        bytes
    }

    /// Takes over a vector's memory, empty.
    pub(crate) fn reuse(&mut self, bytes: Vec<u8>) {
        self.close();
        (self.bytes, self.start, self.used) = (bytes, 0, 0);
    }

    /// Takes over a vector's memory, behind what is in it.
    pub(crate) fn continue_in(&mut self, bytes: Vec<u8>) {
        self.close();
        let start = bytes.len();
        (self.bytes, self.start, self.used) = (bytes, start, start);
    }
}

/// A vector that is filled ahead, and made no shorter.
pub(crate) struct Prefilled<'b>(&'b mut Vec<u8>);

impl<'b> Prefilled<'b> {
    pub(crate) fn of(bytes: &'b mut Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Borrows it once more.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn reborrow(&mut self) -> Prefilled<'_> {
        Prefilled(self.0)
    }

    /// Gives all that is filled from `at` on.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn tail(&mut self, at: usize) -> Option<&mut [u8]> {
        self.0.get_mut(at..)
    }

    /// Gives `length` bytes from `at` on, and fills them where they are not.
    #[inline]
    pub(crate) fn at(&mut self, at: usize, length: usize) -> Option<&mut [u8]> {
        if self.0.len().saturating_sub(at) < length {
            self.fill(at, length);
        }
        self.0.get_mut(at..)?.get_mut(..length)
    }

    #[cold]
    #[inline(never)]
    fn fill(&mut self, at: usize, length: usize) {
        self.0.resize(at.saturating_add(length).saturating_add(AHEAD), 0);
    }
}
