//! The numbers of places in Python's code: a function, its file and a line. They stand in stacks where return addresses do, and the first time that one
//! is met it is recorded what it is.
//!
//! A place is found by the code object and the instruction at once, and by what it is if it was not met there before. A code object that
//! is gone may leave its memory to another: what is compared is a hash of all that the place depends on, the strings and the beginning of the table of lines
//! among it, and not the address alone.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::layout::{BYTES, CODE_FILE, CODE_LINES, CODE_NAME, Layout, SIZE, STRING_HASH, STRING_STATE, TYPE};
use super::lines::line_of;
use super::memory::{bytes, half, word};
use super::text;
use crate::event::{Kind, PYTHON_FRAMES, SpoolEvent, TEXT_MAX};
use crate::preload::spool::push;
use crate::preload::spool::session::Session;

/// Where the types of code objects and of strings lie.
#[derive(Clone, Copy)]
pub(super) struct Types {
    pub(super) code: usize,
    pub(super) string: usize,
}

/// Places that are known, by hash.
const PLACES: usize = 1 << 16;
/// Where a hash is looked for.
const PROBES: usize = 8;
/// Bits of a number. The rest of a word is of the hash.
const NUMBER_BITS: u32 = 24;
/// Bytes of strings, and of the table of lines, that are looked at.
const STRING_MAX: usize = 1 << 12;
const TABLE_MAX: usize = 1 << 20;
/// Bytes of the table of lines that count in a hash.
const TABLE_HASHED: usize = 64;
/// Bytes of a file's path that are recorded; the others are left to the function's name.
const FILE_MAX: usize = 600;

static KNOWN: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];
static NEXT: AtomicU32 = AtomicU32::new(1);
/// Counts sessions: what an earlier one has met is not in this one's trace.
static SESSIONS: AtomicU64 = AtomicU64::new(0);

/// Forgets which places were recorded.
pub(super) fn forget() {
    SESSIONS.fetch_add(1, Ordering::Relaxed);
}

/// Returns the frame that stands for an instruction of a code object; `None` if that is none.
#[inline]
pub(super) fn frame_of(session: &Session, layout: &Layout, types: Types, code: usize, at: usize) -> Option<usize> {
    if word(code.wrapping_add(TYPE))? != types.code {
        return None;
    }
    let member = |offset: usize| word(code.wrapping_add(offset));
    let (file, name, lines) = (member(CODE_FILE)?, member(CODE_NAME)?, member(CODE_LINES)?);
    let first_line = half(code.wrapping_add(layout.first_line))?;
    let lines_length = word(lines.wrapping_add(SIZE))?;
    let head = bytes(lines.wrapping_add(BYTES), lines_length.min(TABLE_HASHED))?;
    let mut hash = Hash::new();
    for [one, other] in [[code, at], [file, name], [lines, lines_length]] {
        hash.add_two(one as u64, other as u64);
    }
    hash.add(u64::from(first_line));
    hash.add_two(string_hash(layout, types, file)?, string_hash(layout, types, name)?);
    hash.add_bytes(head);
    let hash = hash.finish();
    if let Some(number) = find(hash) {
        return Some(frame(number));
    }
    let instruction = at.wrapping_sub(code.wrapping_add(layout.instructions)) / 2;
    let table = bytes(lines.wrapping_add(BYTES), lines_length.min(TABLE_MAX))?;
    // A frame that has not begun is before its first instruction.
    let line = if instruction < table.len() * 8 { line_of(table, first_line, instruction) } else { first_line };
    let number = record(session, layout, types, (file, name), line)?;
    keep(hash, number);
    Some(frame(number))
}

fn frame(number: u32) -> usize {
    // 64-bit machines alone.
    usize::try_from(PYTHON_FRAMES | u64::from(number)).unwrap_or_default()
}

/// Returns the number of a place, which is recorded if it was not yet.
#[cold]
#[inline(never)]
fn record(session: &Session, layout: &Layout, types: Types, (file, name): (usize, usize), line: u32) -> Option<u32> {
    let mut text = text::Text::<TEXT_MAX>::new();
    text.put(&string(layout, types, file)?, FILE_MAX);
    text.end();
    text.put(&string(layout, types, name)?, TEXT_MAX);
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
    // Known once it is recorded: two threads may both do so, but none goes by what another has yet to write.
    keep(hash, number);
    Some(number)
}

/// Returns what a string is by its content, in one word.
#[inline]
fn string_hash(layout: &Layout, types: Types, object: usize) -> Option<u64> {
    let (kind, length, hash) =
        (word(object.wrapping_add(TYPE))?, word(object.wrapping_add(SIZE))?, word(object.wrapping_add(STRING_HASH))?);
    if kind != types.string {
        return None;
    }
    // Python's own, if it has needed one.
    if hash != usize::MAX {
        return Some((hash ^ length) as u64);
    }
    let mut own = Hash::new();
    own.add_bytes(string(layout, types, object)?.bytes);
    Some(own.finish())
}

/// Returns the characters of a string.
fn string<'a>(layout: &Layout, types: Types, object: usize) -> Option<text::Characters<'a>> {
    const COMPACT: u32 = 1 << 5;
    const ASCII: u32 = 1 << 6;
    let (state, length) = (half(object.wrapping_add(STRING_STATE))?, word(object.wrapping_add(SIZE))?);
    if word(object.wrapping_add(TYPE))? != types.string || state & COMPACT == 0 {
        return None;
    }
    let width = usize::try_from(state >> 2 & 7).ok().filter(|width| matches!(width, 1 | 2 | 4))?;
    let offset = if state & ASCII != 0 { layout.ascii } else { layout.characters };
    let length = length.min(STRING_MAX).checked_mul(width)?;
    Some(text::Characters { width, bytes: bytes(object.wrapping_add(offset), length)? })
}

/// Returns where a hash is looked for, and what of it stands in the word.
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
    // Of those that are there one is forgotten. Where it is met again it is recorded again.
    if let Some(known) = KNOWN.get(place) {
        known.store(word, Ordering::Release);
    }
}

/// A hash of 64 bits, of the session and what is added.
struct Hash(u64);

impl Hash {
    fn new() -> Self {
        Self(SESSIONS.load(Ordering::Relaxed))
    }

    #[inline]
    fn add(&mut self, word: u64) {
        self.add_two(word, 0x9e37_79b9_7f4a_7c15);
    }

    /// Adds two words by one product, whose halves are combined.
    #[inline]
    fn add_two(&mut self, one: u64, other: u64) {
        let wide = u128::from(self.0 ^ one) * u128::from(other ^ 0xf39c_c060_5ced_c835);
        #[expect(clippy::cast_possible_truncation, reason = "both halves")]
        let (low, high) = (wide as u64, (wide >> 64) as u64);
        // What one half loses, where a factor is 0, the sum keeps.
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
