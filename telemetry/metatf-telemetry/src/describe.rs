//! Formats events for debuggers: `print (char *)metatf_describe((long)metatf_last(0))` in a stopped process.
//!
//! This module neither allocates nor locks nor trusts the bytes of a ring. It stores the text in its own buffer, which
//! the next call overwrites.

use core::cell::UnsafeCell;
#[cfg(feature = "drain")]
use core::ffi::CStr;
use core::ffi::{c_char, c_uint};
use core::fmt::{self, Write as _};
use core::sync::atomic::Ordering::Relaxed;
#[cfg(feature = "drain")]
use core::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

use crate::clock::{Line, Moment};
use crate::layout::{DROPPED, NOTE, PAD, THREAD, of_head};
use crate::mapping::Mapping;
use crate::ring::RingPart;
use crate::running::all;
#[cfg(feature = "drain")]
use crate::running::install_panic_hook;
use crate::sys;
use crate::table::{Machine, Source};
use crate::tail::{CUT, MARK};

/// Maximum length of a text in bytes, including the terminating zero.
const TEXT_BYTES: usize = 2048;

struct Text(UnsafeCell<[u8; TEXT_BYTES]>);

// SAFETY: callers of `describe` promise that only one thread at a time uses it.
unsafe impl Sync for Text {}

static TEXT: Text = Text(UnsafeCell::new([0; TEXT_BYTES]));

/// A text in a fixed-size buffer, truncated if it is too long.
struct Out<'o> {
    bytes: &'o mut [u8; TEXT_BYTES],
    length: usize,
}

impl Out<'_> {
    fn push(&mut self, byte: u8) {
        // The last byte remains zero.
        if let Some(place) = self.bytes[..TEXT_BYTES - 1].get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }
}

impl fmt::Write for Out<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(|byte| self.push(byte));
        Ok(())
    }
}

/// Describes the record, kind and fields of an event in a buffer of this process. `event` is an address in a ring, as
/// returned by `metatf_last`, or the tag of a record. In a debugger:
/// `print (char *)metatf_describe((long)metatf_last(0))`.
///
/// # Safety
/// No other thread may call this function at the same time. The next call overwrites the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metatf_describe(event: usize) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    unsafe { describe(event, known()) }
}

/// Returns the address of an event of the calling thread. `back` is 0 for the last event, 1 for the event before it,
/// and so on. Returns 0 if there is no such event. Considers only the telemetry that was started last.
#[unsafe(no_mangle)]
pub extern "C" fn metatf_last(back: c_uint) -> usize {
    let known = known().find_map(|known| known.mapping.map(|mapping| (known, mapping)));
    known.and_then(|(known, mapping)| last(back, &known, &mapping)).unwrap_or(0)
}

/// Describes the last events of the calling thread, newest first, up to `most` events. Returns an empty list while
/// another thread calls this function.
#[cfg(feature = "drain")]
fn last_events(most: u32) -> Vec<String> {
    static BUSY: AtomicBool = AtomicBool::new(false);
    if BUSY.swap(true, Acquire) {
        return Vec::new();
    }
    let mut texts = Vec::new();
    for back in 0..most {
        let event = metatf_last(back);
        if event == 0 {
            break;
        }
        // SAFETY: `BUSY` ensures that only one thread does this at a time, and debuggers stop all threads. The text
        // ends with a zero.
        let text = unsafe { CStr::from_ptr(metatf_describe(event)) };
        texts.push(text.to_string_lossy().into_owned());
    }
    BUSY.store(false, Release);
    texts
}

/// Installs a panic hook like [`install_panic_hook`](crate::install_panic_hook), which also prints up to `events` of
/// the panicking thread's last events, newest first, after the output of the program's own hook.
#[cfg(feature = "drain")]
pub fn install_panic_backtrace(events: u32) {
    install_panic_hook();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // Writing all events would emit further events.
        let last = last_events(events);
        before(info);
        if !last.is_empty() {
            eprintln!("last events of this thread, newest first:");
            last.iter().for_each(|event| eprintln!("  {event}"));
        }
    }));
}

fn known() -> impl Iterator<Item = Known> {
    all().map(|telemetry| Known { mapping: telemetry.mapping(), table: telemetry.table })
}

/// Keeps the functions for debuggers in every program with telemetry.
#[used]
static FOR_DEBUGGERS: (unsafe extern "C" fn(usize) -> *const c_char, extern "C" fn(c_uint) -> usize) =
    (metatf_describe, metatf_last);

/// The parts of a telemetry needed to describe its events.
struct Known {
    mapping: Option<Mapping>,
    table: &'static str,
}

/// Describes an event, given its address in a ring or the tag of its record. `all` are the telemetries of the process,
/// starting with the one that was started last.
///
/// # Safety
/// No other thread may call this function at the same time, and the text of the last call must no longer be in use.
unsafe fn describe(event: usize, all: impl Iterator<Item = Known>) -> *const c_char {
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { &mut *TEXT.0.get() };
    bytes.fill(0);
    let mut out = Out { bytes, length: 0 };
    // Truncation is not an error.
    let _ = match u16::try_from(event) {
        Ok(0) => out.write_str("no event"),
        Ok(tag) => of_tag(&mut out, tag, all),
        Err(_) => at_address(&mut out, event, all),
    };
    TEXT.0.get().cast()
}

fn of_tag(out: &mut Out<'_>, tag: u16, mut all: impl Iterator<Item = Known>) -> fmt::Result {
    let Some(known) = all.next() else { return out.write_str("no telemetry was started") };
    match rows(known.table).find(|row| row.tag == u32::from(tag)) {
        Some(row) => {
            write!(out, "{} ({}), tag {tag}:", row.name, kind(known.table, row.kind))?;
            row.fields().filter(|(name, _)| !name.is_empty()).try_for_each(|(name, _)| write!(out, " {name}"))
        }
        None => write!(out, "no event has the tag {tag}"),
    }
}

fn at_address(out: &mut Out<'_>, event: usize, all: impl Iterator<Item = Known>) -> fmt::Result {
    for known in all {
        let Some((mapping, ring)) = known.mapping.and_then(|mapping| Some((mapping, ring_of(&mapping, event)?))) else {
            continue;
        };
        let at = (event - ring.events.addr()) as u64;
        let found = ring.word(at);
        // The head contains the event's position and so shows whether this is an event.
        let position = found >> 32 << 3;
        let Some((number, count)) = of_head(found, position).filter(|_| position % ring.bytes == at) else {
            break;
        };
        let words = |index: u64| ring.word(at + 8 + 8 * index);
        return match number {
            PAD => write!(out, "end of a block"),
            THREAD => write!(out, "thread {} continues here", words(0)),
            DROPPED => write!(out, "{} events were dropped here", words(0)),
            NOTE => {
                out.write_str("note ")?;
                tail(out, &words, 2, length_of(words(0)), true)
            }
            _ => match rows(known.table).nth(usize::from(number)) {
                Some(row) if row.words <= u64::from(count) => {
                    let thread = thread_at(&ring, position);
                    row.describe(out, known.table, &mapping, thread, &words)
                }
                _ => break,
            },
        };
    }
    out.write_str("there is no event at this address")
}

/// Returns the ring that contains this address.
fn ring_of(mapping: &Mapping, address: usize) -> Option<RingPart> {
    let is_in = |ring: &RingPart| {
        let at = address.checked_sub(ring.events.addr());
        at.is_some_and(|at| (at as u64) < ring.bytes && at % 8 == 0)
    };
    mapping.rings().find(is_in)
}

/// Returns the address of an event of the calling thread, counted backwards from the last one. Events of its two rings
/// are ordered by their stamps. Rare events always have a stamp. An ordinary event without a stamp is treated as newer
/// than all rare events.
fn last(back: u32, known: &Known, mapping: &Mapping) -> Option<usize> {
    let thread = sys::thread();
    let mut rings = mapping.rings().filter(|ring| ring.own.is_of(thread));
    let mut rings = [rings.next(), rings.next()].map(|ring| (ring, 0));
    let address = |ring: &RingPart, at: u64| Some(ring.events.addr() + usize::try_from(at & (ring.bytes - 1)).ok()?);
    if let [(Some(ring), _), (None, _)] = rings {
        return address(&ring, last_of(&ring, thread, u64::from(back))?);
    }
    let mut found = None;
    for _ in 0..=back {
        let ends = rings.map(|(ring, back)| ring.and_then(|ring| last_of(&ring, thread, back).map(|at| (ring, at))));
        let stamps = ends.map(|end| end.map(|(ring, at)| stamp_of(known.table, &ring, at)));
        let newest = usize::from(stamps[1] > stamps[0]);
        let (ring, at) = ends[newest]?;
        rings[newest].1 += 1;
        found = address(&ring, at);
    }
    found
}

/// Returns the position of an event of a thread in its ring, counted backwards from the last one.
fn last_of(ring: &RingPart, thread: u32, mut back: u64) -> Option<u64> {
    let (mut end, oldest) = (ring.whole(), ring.own.oldest.load(Relaxed));
    // Events can be found only from the start of a block.
    while end > oldest {
        let begin = ((end - 1) / ring.block() * ring.block()).max(oldest);
        let own = || events(ring, begin, end).filter(|event| event.thread == thread && event.is_one());
        let count = own().count() as u64;
        if let Some(index) = count.checked_sub(back + 1) {
            return own().nth(usize::try_from(index).ok()?).map(|event| event.at);
        }
        back -= count;
        end = begin;
    }
    None
}

/// Returns the stamp of the event at a position, or the maximum if the event has no stamp.
fn stamp_of(table: &str, ring: &RingPart, at: u64) -> u64 {
    let word = match of_head(ring.word(at), at) {
        Some((DROPPED | NOTE, _)) => Some(1),
        Some((event, _)) => rows(table).nth(usize::from(event)).and_then(|row| row.stamp()),
        None => None,
    };
    word.map_or(u64::MAX, |word| ring.word(at + 8 + 8 * u64::from(word)))
}

/// An event of a ring.
struct Found {
    at: u64,
    event: u16,
    thread: u32,
}

impl Found {
    /// Returns whether this is neither padding nor an event that identifies a thread.
    fn is_one(&self) -> bool {
        !matches!(self.event, PAD | THREAD)
    }
}

/// Finds the events between two positions. The first position must be the start of a block.
fn events(ring: &RingPart, from: u64, to: u64) -> impl Iterator<Item = Found> {
    let (mut at, mut thread) = (from, 0);
    core::iter::from_fn(move || {
        let head = (at < to).then(|| ring.word(at))?;
        let (event, words) = of_head(head, at)?;
        if event == THREAD {
            thread = u32::try_from(ring.word(at.wrapping_add(8))).unwrap_or(0);
        }
        let found = Found { at, event, thread };
        at = at.wrapping_add(8 + 8 * u64::from(words));
        Some(found)
    })
}

/// Returns the thread of an event. `position` is the lower part of its position.
fn thread_at(ring: &RingPart, position: u64) -> u32 {
    let begin = position / ring.block() * ring.block();
    events(ring, begin, position + 8).last().map_or(0, |event| event.thread)
}

/// A row of the event table, as text.
struct Row<'t> {
    name: &'t str,
    tag: u32,
    kind: usize,
    words: u64,
    fields: &'t str,
}

/// Returns the rows of the event table.
fn rows(table: &str) -> impl Iterator<Item = Row<'_>> {
    table.lines().filter_map(|line| line.strip_prefix("event ")).filter_map(|line| {
        let mut parts = line.splitn(6, ' ');
        let name = parts.next()?;
        let _section = parts.next()?;
        let (tag, kind, words) =
            (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Row { name, tag, kind, words, fields: parts.next().unwrap_or_default() })
    })
}

/// Returns the name of a kind.
fn kind(table: &str, bit: usize) -> &str {
    let kinds = table.lines().find_map(|line| line.strip_prefix("kinds "));
    kinds.and_then(|kinds| kinds.split(' ').nth(bit)).unwrap_or("?")
}

impl Row<'_> {
    /// Returns the names of fields and their sources.
    fn fields(&self) -> impl Iterator<Item = (&str, Option<Source>)> {
        self.fields.split(' ').map(|field| {
            let (name, source) = field.split_once(':').unwrap_or(("", field));
            (name, Source::parse(source))
        })
    }

    /// Returns the index of the word with the stamp.
    fn stamp(&self) -> Option<u16> {
        self.fields().find_map(|(_, source)| match source {
            Some(Source::Stamp { word }) => Some(word),
            _ => None,
        })
    }

    fn describe(
        &self,
        out: &mut Out<'_>,
        table: &str,
        mapping: &Mapping,
        thread: u32,
        words: &impl Fn(u64) -> u64,
    ) -> fmt::Result {
        write!(out, "{} ({})", self.name, kind(table, self.kind))?;
        let mut next = self.words;
        for (name, source) in self.fields() {
            let value = |index: u16, shift: u8| words(u64::from(index)) >> shift;
            match source {
                Some(Source::Length(_)) | None => continue,
                _ => write!(out, " {name}=")?,
            }
            match source {
                Some(Source::Bits { word, shift, machine }) => number(out, machine, machine.value(value(word, shift)))?,
                Some(Source::Stamp { word }) => time(out, mapping, value(word, 0))?,
                Some(Source::Thread) => write!(out, "{thread}")?,
                Some(Source::Process) => write!(out, "{}", sys::process())?,
                Some(Source::Constant(value)) => write!(out, "{value}")?,
                Some(Source::Tail { word, shift, text }) => {
                    let length = length_of(value(word, shift));
                    tail(out, words, next, length, text)?;
                    next += length.0.div_ceil(8);
                }
                Some(Source::Array(bytes)) => {
                    tail(out, words, next, (u64::from(bytes), false), false)?;
                    next += u64::from(bytes).div_ceil(8);
                }
                Some(Source::Length(_)) | None => {}
            }
        }
        Ok(())
    }
}

fn number(out: &mut Out<'_>, machine: Machine, value: u64) -> fmt::Result {
    match machine {
        Machine::Signed(_) => write!(out, "{}", value.cast_signed()),
        #[allow(clippy::cast_possible_truncation, reason = "the value has 32 bits")]
        Machine::Single => write!(out, "{:?}", f32::from_bits(value as u32)),
        Machine::F32 | Machine::F64 => write!(out, "{:?}", f64::from_bits(value)),
        Machine::Bool => write!(out, "{}", value != 0),
        Machine::Unsigned(_) if value > 0xffff => write!(out, "{value:#x}"),
        Machine::Unsigned(_) => write!(out, "{value}"),
    }
}

/// Prints a stamp as the time since the start.
fn time(out: &mut Out<'_>, mapping: &Mapping, stamp: u64) -> fmt::Result {
    let header = mapping.header();
    let (start, nanoseconds) = (header.start_stamp.load(Relaxed), header.start_nanoseconds.load(Relaxed));
    let line = Line::of_rate(Moment { stamp: start, nanoseconds }, header.rate.load(Relaxed));
    let since = line.at(stamp).saturating_sub(nanoseconds);
    write!(out, "{}.{:09}s", since / 1_000_000_000, since % 1_000_000_000)
}

/// Returns the length of a part of a tail, and whether the part was truncated.
fn length_of(word: u64) -> (u64, bool) {
    (word & 0xffff & !CUT, word & CUT != 0)
}

/// Prints a string or bytes that start at a word.
fn tail(
    out: &mut Out<'_>,
    words: &impl Fn(u64) -> u64,
    from: u64,
    (length, is_cut): (u64, bool),
    text: bool,
) -> fmt::Result {
    let bytes = (0..length.div_ceil(8)).flat_map(|word| words(from + word).to_ne_bytes());
    let bytes = bytes.take(usize::try_from(length).unwrap_or(0));
    if text {
        out.push(b'"');
        for byte in bytes {
            match byte {
                b'"' | b'\\' => write!(out, "\\{}", char::from(byte))?,
                0..b' ' | 0x7f => write!(out, "\\x{byte:02x}")?,
                // The bytes of a multi-byte character arrive separately.
                _ => out.push(byte),
            }
        }
        out.push(b'"');
    } else {
        bytes.into_iter().try_for_each(|byte| write!(out, "{byte:02x}"))?;
    }
    if is_cut {
        MARK.iter().for_each(|byte| out.push(*byte))
    }
    Ok(())
}
