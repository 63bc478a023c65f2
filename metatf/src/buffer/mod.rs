//! Buffers for records to be added to a chunk. Memory is reserved past the bytes in use, so storing a leaf requires a
//! single check and does not update the vector's length.
//!
//! Records are written in one of two ways. [`SpareCapacity`], which need not be initialized, is for records whose
//! maximum size is known in advance. [`Prefilled`], a vector filled in advance, is for all other records.

mod spare;

use spare::RESERVE;
pub(crate) use spare::{RawWriter, SpareCapacity};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of bytes filled in advance at a time. It is smaller for Miri, which fills byte by byte.
const AHEAD: usize = if cfg!(miri) { 64 } else { 16 << 10 };

/// A buffer of encoded records.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// The bytes in use and the memory after them. The vector's length may lag behind, because records in spare
    /// capacity are counted only when necessary. Its capacity never shrinks.
    bytes: Vec<u8>,
    /// Start of the bytes in use. It is greater than 0 if the memory is borrowed from a sink that already contains
    /// data.
    start: usize,
    /// End of the bytes in use. Never exceeds the capacity, and all bytes before it are initialized.
    used: usize,
    /// The position at which no further record may start; see [`open`](Self::open).
    until: Until,
}

/// The position in a buffer at or after which no record may start. It is 0, or `until + RESERVE` is at most the
/// buffer's capacity.
///
/// Only the buffer raises this limit, but any thread with a clone may set it to 0, which closes the buffer.
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

    /// Prevents records from starting until the buffer is opened again.
    pub(crate) fn close(&self) {
        self.set(0);
    }
}

impl Buffer {
    pub(crate) fn is_empty(&self) -> bool {
        self.used == self.start
    }

    /// Returns the number of bytes in use.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.used - self.start
    }

    /// Returns the start of the bytes in use.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Returns the end of the bytes in use.
    #[inline]
    pub(crate) fn end(&self) -> usize {
        self.used
    }

    pub(crate) fn in_use(&mut self) -> &[u8] {
        let (start, end) = (self.start, self.used);
        self.vec().get(start..end).unwrap_or_default()
    }

    /// Returns the bytes from the start of the buffer to the end of the used range.
    #[inline]
    pub(crate) fn written(&mut self) -> &mut [u8] {
        let end = self.used;
        self.vec().get_mut(..end).unwrap_or_default()
    }

    /// Allows records to start while fewer than `most` bytes are in use and memory is available. At least one record
    /// always has memory.
    pub(crate) fn open(&mut self, most: usize) {
        if self.used >= self.limit() {
            self.vec().reserve(RESERVE + AHEAD);
        }
        self.until.set(self.start.saturating_add(most).min(self.limit()));
    }

    /// Returns the limit on the start of a record that follows from the memory available.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn limit(&self) -> usize {
        self.bytes.capacity().saturating_sub(RESERVE)
    }

    /// Prevents records from starting in spare capacity until the buffer is opened.
    #[inline]
    pub(crate) fn close(&mut self) {
        self.until.close();
    }

    /// Returns a handle with which another thread can close the buffer.
    pub(crate) fn until(&self) -> Until {
        self.until.clone()
    }

    /// Returns the memory after the bytes in use, which accepts no record if the buffer is closed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn spare(&mut self) -> SpareCapacity<'_> {
        SpareCapacity::new(self)
    }

    /// Closes the buffer, and returns its memory filled in advance together with the end of the bytes in use.
    #[inline]
    pub(crate) fn prefilled(&mut self) -> (Prefilled<'_>, usize) {
        self.close();
        let end = self.used;
        (Prefilled(self.vec()), end)
    }

    /// Sets the end of the bytes in use, but not past the filled memory.
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

    /// Takes the used bytes, leaving the buffer empty.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let end = self.used;
        self.vec().truncate(end);
        let bytes = std::mem::take(&mut self.bytes);
        self.reuse(Vec::new());
        bytes
    }

    /// Uses a vector's memory, discarding its contents.
    pub(crate) fn reuse(&mut self, bytes: Vec<u8>) {
        self.close();
        (self.bytes, self.start, self.used) = (bytes, 0, 0);
    }

    /// Uses a vector's memory after its contents.
    pub(crate) fn continue_in(&mut self, bytes: Vec<u8>) {
        self.close();
        let start = bytes.len();
        (self.bytes, self.start, self.used) = (bytes, start, start);
    }
}

/// A vector that is filled in advance and never shortened.
pub(crate) struct Prefilled<'b>(&'b mut Vec<u8>);

impl<'b> Prefilled<'b> {
    pub(crate) fn of(bytes: &'b mut Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Reborrows the vector.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn reborrow(&mut self) -> Prefilled<'_> {
        Prefilled(self.0)
    }

    /// Returns all filled bytes from `at` on.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn tail(&mut self, at: usize) -> Option<&mut [u8]> {
        self.0.get_mut(at..)
    }

    /// Returns `length` bytes from `at` on, filling them if necessary.
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
