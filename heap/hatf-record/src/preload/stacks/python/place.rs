//! Numbers for locations in Python code. A location consists of a function, its file and a line. The numbers replace
//! return addresses in stacks, and a location is recorded when it first occurs.
//!
//! A location is found directly by its code object and instruction or, if it has not been seen there before, by its
//! contents. The memory of a code object may be reused, so the key is not just the address but a hash of everything
//! that the location depends on, including the strings and the beginning of the line table.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::layout::{BYTES, CODE_FILE, CODE_LINES, CODE_NAME, Layout, SIZE, STRING_HASH, STRING_STATE, TYPE};
use super::lines::line_of;
use super::text;
use crate::event::{Kind, PYTHON_FRAMES, SpoolEvent, TEXT_MAX};
use crate::preload::spool::push;
use crate::preload::spool::session::Session;
use crate::preload::stacks::python_memory::Log;

/// The addresses of the types of code objects and strings.
#[derive(Clone, Copy)]
pub(super) struct Types {
    pub(super) code: usize,
    pub(super) string: usize,
}

/// The number of entries in the hash table of known locations.
const PLACES: usize = 1 << 16;
/// The number of entries probed for a hash.
const PROBES: usize = 8;
/// Bits of a number. The rest of the word contains bits of the hash.
const NUMBER_BITS: u32 = 24;
/// The maximum number of bytes read from strings.
const STRING_MAX: usize = 1 << 12;
/// The maximum number of bytes read from the line table.
const TABLE_MAX: usize = 1 << 20;
/// The number of line table bytes included in a hash.
const TABLE_HASHED: usize = 64;
/// The maximum number of recorded bytes of a file path. The rest is reserved for the function name.
const FILE_MAX: usize = 600;

static KNOWN: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
static NEXT: AtomicU32 = AtomicU32::new(1);
/// A count of sessions, because locations recorded by an earlier session are not in the trace of this one.
static SESSIONS: AtomicU64 = AtomicU64::new(0);

/// Discards the recorded locations.
pub(super) fn forget() {
    SESSIONS.fetch_add(1, Ordering::Relaxed);
}

/// A code object that a walk has met, with the hash of everything that its locations depend on.
#[derive(Clone, Copy, Default)]
pub(super) struct Code {
    address: usize,
    hash: u64,
}

impl Code {
    /// Reads a code object. Returns `None` if there is none at this address.
    #[inline]
    pub(super) fn read(log: &mut Log<'_>, layout: &Layout, types: Types, address: usize) -> Option<Self> {
        if log.word(address.wrapping_add(TYPE))? != types.code {
            return None;
        }
        let mut member = |offset: usize| log.word(address.wrapping_add(offset));
        let (file, name, lines) = (member(CODE_FILE)?, member(CODE_NAME)?, member(CODE_LINES)?);
        let first_line = log.half(address.wrapping_add(layout.first_line))?;
        let lines_length = log.word(lines.wrapping_add(SIZE))?;
        let head = log.bytes(lines.wrapping_add(BYTES), lines_length.min(TABLE_HASHED))?;
        let mut hash = Hash::new();
        for [one, other] in [[address, first_line as usize], [file, name], [lines, lines_length]] {
            hash.add_two(one as u64, other as u64);
        }
        hash.add_two(string_hash(log, layout, types, file)?, string_hash(log, layout, types, name)?);
        hash.add_bytes(head);
        Some(Self { address, hash: hash.0 })
    }

    pub(super) fn is_at(&self, address: usize) -> bool {
        self.address == address
    }

    /// Returns the frame number for an instruction.
    #[inline]
    pub(super) fn frame(&self, session: &Session, layout: &Layout, types: Types, at: usize) -> Option<usize> {
        let mut hash = Hash(self.hash);
        hash.add(at as u64);
        let hash = hash.finish();
        match find(hash) {
            Some(number) => Some(frame(number)),
            None => self.new_frame(session, layout, types, at, hash),
        }
    }

    /// Returns the frame number for an instruction that is met for the first time.
    #[cold]
    #[inline(never)]
    fn new_frame(&self, session: &Session, layout: &Layout, types: Types, at: usize, hash: u64) -> Option<usize> {
        let (mut log, code) = (Log::none(), self.address);
        let mut member = |offset: usize| log.word(code.wrapping_add(offset));
        let (file, name, lines) = (member(CODE_FILE)?, member(CODE_NAME)?, member(CODE_LINES)?);
        let first_line = log.half(code.wrapping_add(layout.first_line))?;
        let lines_length = log.word(lines.wrapping_add(SIZE))?;
        let instruction = at.wrapping_sub(code.wrapping_add(layout.instructions)) / 2;
        let table = log.bytes(lines.wrapping_add(BYTES), lines_length.min(TABLE_MAX))?;
        // A frame that has not started is before its first instruction.
        let line = if instruction < table.len() * 8 { line_of(table, first_line, instruction) } else { first_line };
        let number = record(session, layout, types, (file, name), line)?;
        keep(hash, number);
        Some(frame(number))
    }
}

fn frame(number: u32) -> usize {
    // This code is used only on 64-bit architectures.
    usize::try_from(PYTHON_FRAMES | u64::from(number)).unwrap_or_default()
}

/// Returns the number of a location, which is recorded if necessary.
#[cold]
#[inline(never)]
fn record(session: &Session, layout: &Layout, types: Types, (file, name): (usize, usize), line: u32) -> Option<u32> {
    let mut log = Log::none();
    let mut text = text::Text::<TEXT_MAX>::new();
    text.put(&string(&mut log, layout, types, file)?, FILE_MAX);
    text.end();
    text.put(&string(&mut log, layout, types, name)?, TEXT_MAX);
    let mut hash = Hash::new();
    hash.add(u64::from(line));
    hash.add_bytes(text.get());
    let hash = hash.finish();
    if let Some(number) = find(hash) {
        return Some(number);
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    if number >> NUMBER_BITS != 0 {
        NEXT.store(1 << NUMBER_BITS, Ordering::Relaxed);
        return None;
    }
    let event = SpoolEvent::new(Kind::PythonFrame, push::thread_number(session), session.clock.now());
    let event = SpoolEvent { address: frame(number) as u64, extra: u64::from(line), ..event };
    push::event(session, event, text.get());
    // The location counts as known only after it is recorded: two threads may both record it, but no thread relies on a
    // record that another has yet to write.
    keep(hash, number);
    Some(number)
}

/// Returns a one-word hash of a string's contents.
#[inline]
fn string_hash(log: &mut Log<'_>, layout: &Layout, types: Types, object: usize) -> Option<u64> {
    let mut member = |offset: usize| log.word(object.wrapping_add(offset));
    let (kind, length, hash) = (member(TYPE)?, member(SIZE)?, member(STRING_HASH)?);
    if kind != types.string {
        return None;
    }
    // Use Python's own hash if it has been computed.
    if hash != usize::MAX {
        return Some((hash ^ length) as u64);
    }
    let mut own = Hash::new();
    own.add_bytes(string(log, layout, types, object)?.bytes);
    Some(own.finish())
}

/// Returns the characters of a string.
fn string<'a>(log: &mut Log<'_>, layout: &Layout, types: Types, object: usize) -> Option<text::Characters<'a>> {
    const COMPACT: u32 = 1 << 5;
    const ASCII: u32 = 1 << 6;
    let (state, length) = (log.half(object.wrapping_add(STRING_STATE))?, log.word(object.wrapping_add(SIZE))?);
    if log.word(object.wrapping_add(TYPE))? != types.string || state & COMPACT == 0 {
        return None;
    }
    let width = usize::try_from(state >> 2 & 7).ok().filter(|width| matches!(width, 1 | 2 | 4))?;
    let offset = if state & ASCII != 0 { layout.ascii } else { layout.characters };
    let length = length.min(STRING_MAX).checked_mul(width)?;
    Some(text::Characters { width, bytes: log.bytes(object.wrapping_add(offset), length)? })
}

/// Returns the first index to probe for a hash, and the part of the hash stored in the word.
fn place(hash: u64) -> (usize, u64) {
    (usize::try_from(hash >> 48).unwrap_or_default(), hash << NUMBER_BITS)
}

#[inline]
fn find(hash: u64) -> Option<u32> {
    let (place, tag) = place(hash);
    for probe in 0..PROBES {
        let word = KNOWN.get((place + probe) % PLACES)?.load(Ordering::Acquire);
        if word == 0 {
            return None;
        }
        if word & !NUMBERS == tag {
            return u32::try_from(word & NUMBERS).ok();
        }
    }
    None
}

const NUMBERS: u64 = (1 << NUMBER_BITS) - 1;

fn keep(hash: u64, number: u32) {
    let (place, tag) = place(hash);
    let word = tag | u64::from(number);
    for probe in 0..PROBES {
        let Some(known) = KNOWN.get((place + probe) % PLACES) else { return };
        if known.compare_exchange(0, word, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            return;
        }
    }
    // Evict one of the existing entries. If its location occurs again, it is recorded again.
    if let Some(known) = KNOWN.get(place) {
        known.store(word, Ordering::Release);
    }
}

/// A 64-bit hash of the session and the added words.
struct Hash(u64);

impl Hash {
    fn new() -> Self {
        Self(SESSIONS.load(Ordering::Relaxed))
    }

    #[inline]
    fn add(&mut self, word: u64) {
        self.add_two(word, 0x9e37_79b9_7f4a_7c15);
    }

    /// Adds two words by a single multiplication, and combines the halves of the product.
    #[inline]
    fn add_two(&mut self, one: u64, other: u64) {
        let wide = u128::from(self.0 ^ one) * u128::from(other ^ 0xf39c_c060_5ced_c835);
        #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
        let (low, high) = (wide as u64, (wide >> 64) as u64);
        // If a factor is 0, the sum preserves the other factor.
        self.0 = (low ^ high).wrapping_add(one.rotate_left(32) ^ other);
    }

    #[inline]
    fn add_bytes(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        let (pairs, odd) = words.as_chunks::<2>();
        for [one, other] in pairs {
            self.add_two(u64::from_le_bytes(*one), u64::from_le_bytes(*other));
        }
        for word in odd {
            self.add(u64::from_le_bytes(*word));
        }
        self.add(rest.iter().fold(bytes.len() as u64, |word, byte| word << 8 | u64::from(*byte)));
    }

    fn finish(mut self) -> u64 {
        self.add(0);
        self.0
    }
}
