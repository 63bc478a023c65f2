//! The modules that contain frames. Each module is recorded when it first occurs and when it is unloaded.

use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use super::{python, unwind};
use crate::event::{Kind, SpoolEvent, TEXT_MAX};
use crate::preload::elf::found::Found;
use crate::preload::elf::{real, segments};
use crate::preload::platform::process;
use crate::preload::spool::push;
use crate::preload::spool::session::{self, Session};

/// The maximum number of modules known simultaneously.
const MODULES: usize = 1 << 10;
/// The start addresses of recorded modules; 1 for a removed entry.
static MET: [AtomicUsize; MODULES] = [const { AtomicUsize::new(0) }; MODULES];
const TAKEN_OUT: usize = 1;
/// The number of threads that are recording modules.
static RECORDING: AtomicU32 = AtomicU32::new(0);
/// Whether the allocator's module has been searched for.
static ALLOCATOR: AtomicBool = AtomicBool::new(false);

/// Discards the modules of the parent process.
pub(crate) fn leave() {
    for module in &MET {
        module.store(0, Ordering::Relaxed);
    }
    RECORDING.store(0, Ordering::Relaxed);
    ALLOCATOR.store(false, Ordering::Relaxed);
}

/// Records the module of an allocator other than the C library's. The allocator does not occur in any stack, because
/// the recorder calls it, and stacks begin at the recorder's caller.
#[cold]
fn note_allocator(session: &Session) {
    let module = |function: usize| unwind::find(function).filter(|_| function != 0);
    let allocator = module(real::pointers::malloc.load(Ordering::Relaxed) as usize);
    let libc = module(libc::getpid as *const () as usize).map(|found| found.start);
    if let Some(found) = allocator.filter(|found| Some(found.start) != libc) {
        note(session, &found);
    }
}

/// Records a module unless it has been recorded. The module counts as known only afterwards: two threads may both
/// record it, but no thread relies on a record that another has yet to write.
pub(crate) fn note(session: &Session, found: &Found) {
    let start = found.start;
    let is_known = || MET.iter().any(|place| place.load(Ordering::Acquire) == start);
    if start == unwind::own().start || is_known() {
        return;
    }
    if !ALLOCATOR.swap(true, Ordering::Relaxed) {
        note_allocator(session);
    }
    RECORDING.fetch_add(1, Ordering::Relaxed);
    push_module(session, found);
    python::note_module(session, found);
    for place in &MET {
        let free = place.load(Ordering::Acquire);
        let taken =
            free <= TAKEN_OUT && place.compare_exchange(free, start, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if taken || free == start {
            break;
        }
    }
    RECORDING.fetch_sub(1, Ordering::Relaxed);
}

#[cold]
fn push_module(session: &Session, found: &Found) {
    let mut text = Text { bytes: [0; TEXT_MAX], length: 0 };
    build_id(found, &mut text);
    text.put(b" ");
    // SAFETY: the loader's description of the module, whose beginning is public; its name is a C string, empty for the
    // program itself.
    let (bias, name) = unsafe {
        let Some(link) = found.link.as_ref() else { return };
        (link.bias, if link.name.is_null() { c"" } else { CStr::from_ptr(link.name) })
    };
    if name.is_empty() {
        text.put(process::program());
    } else {
        text.put(name.to_bytes());
    }
    let event = SpoolEvent {
        address: found.start as u64,
        old: bias as u64,
        extra: found.end as u64,
        ..SpoolEvent::new(Kind::ModuleLoad, push::thread_number(session), session.clock.now())
    };
    push::event(session, event, text.get());
}

struct Text {
    bytes: [u8; TEXT_MAX],
    length: usize,
}

impl Text {
    fn put(&mut self, more: &[u8]) {
        for (to, from) in self.bytes.iter_mut().skip(self.length).zip(more) {
            *to = *from;
            self.length += 1;
        }
    }

    fn get(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// Adds the build ID of a module in hexadecimal digits, or `-`. It is in a note of the module's ELF file.
fn build_id(found: &Found, text: &mut Text) {
    const NOTE: u32 = 4;
    const BUILD_ID: u32 = 3;
    // SAFETY: inside of a segment of the module that is loaded.
    let word = |at: usize| unsafe { (at as *const u32).read_unaligned() };
    // SAFETY: as in `push_module`.
    let bias = unsafe { found.link.as_ref() }.map_or(0, |link| link.bias);
    let find = || -> Option<(usize, usize)> {
        let notes = segments::of(found)?.iter().filter(|segment| segment.p_type == NOTE);
        for place in notes.map(|segment| segments::place(bias, segment)) {
            let end = place.end.min(segments::end_of(found, place.start)?);
            let mut at = place.start;
            while at.checked_add(12).is_some_and(|head| head <= end) {
                let (name, length, kind) = (word(at) as usize, word(at + 4) as usize, word(at + 8));
                let content = at + 12 + name.checked_next_multiple_of(4)?;
                if kind == BUILD_ID && name == 4 && length <= 64 && content + length <= end {
                    return Some((content, length));
                }
                at = content.checked_add(length.checked_next_multiple_of(4)?)?;
            }
        }
        None
    };
    let Some((at, length)) = find() else { return text.put(b"-") };
    for byte in at..at + length {
        // SAFETY: inside of the note.
        let byte = unsafe { *(byte as *const u8) };
        let digit = |digit: u8| *b"0123456789abcdef".get(usize::from(digit)).unwrap_or(&b'?');
        text.put(&[digit(byte >> 4), digit(byte & 15)]);
    }
}

/// Records the unloading of modules that are gone.
#[cold]
pub(crate) fn note_unloaded() {
    unwind::forget();
    let Some(session) = session::current() else { return };
    for place in &MET {
        let start = place.load(Ordering::Acquire);
        if start <= TAKEN_OUT || unwind::find(start).is_some_and(|found| found.start == start) {
            continue;
        }
        // A module being recorded may already be at the same address.
        if RECORDING.load(Ordering::Relaxed) == 0
            && place.compare_exchange(start, TAKEN_OUT, Ordering::AcqRel, Ordering::Acquire).is_ok()
        {
            let mut event = SpoolEvent::new(Kind::ModuleUnload, push::thread_number(session), session.clock.now());
            event.address = start as u64;
            push::numbers(session, &event);
        }
    }
}
