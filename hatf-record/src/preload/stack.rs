//! The stacks of calls, and the modules that their frames are in.

use core::ffi::{CStr, c_int, c_void};
use core::mem::MaybeUninit;
use core::ops::{ControlFlow, Range};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use super::frame::{DEPTH_MAX, Found, Frame, Visitor};
use super::memo::Memo;
use super::path::Path;
use super::session::{self, Session};
use super::unwind::{self, Here};
use super::{follow, mapping, memory, push, python, real, thread_state};
use crate::conditions::Conditions;
use crate::event::{Event, Kind, TEXT_MAX};
use crate::names;
use crate::stack_table::{STACKS_BYTES, STACKS_FIRST_BYTES, StackTable, stacks_head};

/// Bytes of a page.
const PAGE: usize = 4096;
/// Nodes of the table that are kept by their hash.
const KEPT: usize = 1 << 15;
/// Modules that are known at once.
const MODULES: usize = 1 << 10;

/// The table, if stacks are recorded.
static TABLE: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
/// The most frames of a stack.
static DEPTH: AtomicUsize = AtomicUsize::new(0);
/// This library's own code, whose frames are left out.
static OWN: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
/// Nodes that were met, by the hash of caller and address; 0: none. Of another process's table they are not what is looked for.
static MET: [AtomicU32; KEPT] = [const { AtomicU32::new(0) }; KEPT];
/// Where modules begin that were recorded; 1 where one was taken out.
static LOADED: [AtomicUsize; MODULES] = [const { AtomicUsize::new(0) }; MODULES];
const TAKEN_OUT: usize = 1;
/// Threads that are about to record modules.
static RECORDING: AtomicU32 = AtomicU32::new(0);

/// Maps the table beside the spool of a process, and makes it where there is none; `None` where that cannot be, and no stacks are recorded.
pub(crate) fn begin(events: &Path, depth: u32) -> Option<()> {
    let path = events.folder()?.with(names::STACKS.as_bytes())?;
    let depth = usize::try_from(depth).unwrap_or_default().min(DEPTH_MAX);
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a C string, and system calls with valid arguments whose results are checked. The mapping is never undone.
    let memory = unsafe {
        let opened = libc::open(path.as_c().as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        let file = if opened < 0 { create(&path, depth) } else { Some(opened) };
        let file = file?;
        let length = libc::lseek(file, 0, libc::SEEK_END);
        let memory = memory::map(core::ptr::null_mut(), STACKS_BYTES, access, libc::MAP_SHARED, file, 0);
        libc::close(file);
        let is_there = memory != libc::MAP_FAILED && usize::try_from(length) == Ok(STACKS_BYTES);
        if !is_there || StackTable::attach(memory.cast()).is_none() {
            return None;
        }
        memory
    };
    let ours = leave as fn() as usize;
    if !unwind::begin() {
        return None;
    }
    let own = unwind::find(ours)?;
    OWN[0].store(own.start, Ordering::Relaxed);
    OWN[1].store(own.end, Ordering::Relaxed);
    TABLE.store(memory.cast(), Ordering::Release);
    DEPTH.store(depth, Ordering::Release);
    Some(())
}

/// There was no memory for the table to grow. It is not asked for again: what there is is for events.
static CANNOT_GROW: AtomicBool = AtomicBool::new(false);
/// A thread has it grow. Another's call has no stack meanwhile.
static GROWING: AtomicBool = AtomicBool::new(false);

/// Gives memory to bytes of the table; `false` if there is none. Keeps `errno`.
#[cold]
fn grow(table: &StackTable<'_>, bytes: Range<usize>) -> bool {
    if CANNOT_GROW.load(Ordering::Relaxed) || GROWING.swap(true, Ordering::Acquire) {
        return false;
    }
    // Whole pages: the one that bytes before these are in is there.
    let (start, end) = (bytes.start.next_multiple_of(PAGE), bytes.end.next_multiple_of(PAGE));
    // SAFETY: `errno` of this thread, and pages of the mapping that nobody uses yet. Where only some could be had they are given back.
    unsafe {
        let errno = *libc::__errno_location();
        let pages = table.memory().byte_add(start).cast();
        let grown = memory::advise(pages, end - start, libc::MADV_POPULATE_WRITE) == 0;
        if !grown {
            CANNOT_GROW.store(true, Ordering::Relaxed);
            memory::advise(pages, end - start, libc::MADV_REMOVE);
        }
        *libc::__errno_location() = errno;
        GROWING.store(false, Ordering::Release);
        grown
    }
}

/// Makes the file of an empty table, of whose memory the first part is present, or all where it cannot grow: touching a page that a full
/// disk cannot give would end the program.
fn create(path: &Path, depth: usize) -> Option<c_int> {
    let file = follow::create(path.as_c())?;
    let whole = !can_grow();
    let head = stacks_head(depth, whole);
    let place = |bytes: usize| libc::off_t::try_from(bytes).ok();
    let first = place(if whole { STACKS_BYTES } else { STACKS_FIRST_BYTES })?;
    // SAFETY: an open file, and words with their length.
    let made = unsafe {
        libc::ftruncate(file, place(STACKS_BYTES)?) == 0
            && libc::posix_fallocate(file, 0, first) == 0
            && libc::write(file, head.as_ptr().cast(), size_of_val(&head)).cast_unsigned() == size_of_val(&head)
    };
    if !made {
        // SAFETY: the file that was opened.
        unsafe { libc::close(file) };
        return None;
    }
    Some(file)
}

/// Returns whether the kernel gives memory to pages that nobody touches: it does from 5.14 on, and then takes nothing as that.
fn can_grow() -> bool {
    // SAFETY: no bytes.
    unsafe { memory::advise(core::ptr::null_mut(), 0, libc::MADV_POPULATE_WRITE) == 0 }
}

/// Forgets the stacks and modules of the process that this one was forked from. Its table stays mapped, as the rest of an interrupted hook
/// may write there.
pub(crate) fn leave() {
    DEPTH.store(0, Ordering::Relaxed);
    TABLE.store(core::ptr::null_mut(), Ordering::Relaxed);
    for module in &LOADED {
        module.store(0, Ordering::Relaxed);
    }
    RECORDING.store(0, Ordering::Relaxed);
    CANNOT_GROW.store(false, Ordering::Relaxed);
    GROWING.store(false, Ordering::Relaxed);
    python::leave();
    // A module is recorded when a row of its is looked up.
    unwind::forget();
}

/// Forgets all stacks, and gives their memory back. Other threads may be in the middle of a walk: what they still write reaches nobody.
pub(crate) fn retire() {
    let memory = TABLE.load(Ordering::Acquire);
    if !memory.is_null() {
        mapping::replace_by_zeros(memory, STACKS_BYTES);
    }
    leave();
}

/// Returns the number of the calling thread's stack, from the program's call on; 0 if it is not known. Records the modules that are in
/// it for the first time.
#[inline(always)]
pub(crate) fn capture(session: &Session) -> u32 {
    let here = Here::new();
    let with_python = session.conditions().has(Conditions::PYTHON);
    if with_python && let Some(chain) = python::chain() {
        return walk_python(session, here, chain);
    }
    let memo = thread_state::current().memo();
    if let Some(stack) = memo.and_then(|memo| memo.find(here.start())) {
        return stack;
    }
    let stack = walk(session, here, memo);
    // The walk has met the interpreter.
    match with_python.then(python::chain).flatten() {
        Some(chain) => walk_python(session, here, chain),
        None => stack,
    }
}

/// Returns the innermost frame of a stack.
pub(crate) fn innermost(stack: u32) -> Option<usize> {
    let (_, address) = table().filter(|_| stack != 0)?.get(stack)?;
    usize::try_from(address).ok()
}

/// A walk that takes frames, as far as there is room.
struct Frames<'f> {
    session: &'f Session,
    frames: &'f mut [MaybeUninit<usize>],
    /// Where each begins on the stack, as far as there is room for that.
    starts: &'f mut [MaybeUninit<usize>],
    count: usize,
}

impl Visitor for Frames<'_> {
    fn module(&mut self, found: &Found) {
        note_module(self.session, found);
    }

    #[inline(always)]
    fn frame(&mut self, frame: &Frame) -> ControlFlow<()> {
        let Some(place) = self.frames.get_mut(self.count) else { return ControlFlow::Break(()) };
        place.write(frame.instruction);
        if let Some(start) = self.starts.get_mut(self.count) {
            start.write(frame.rsp);
        }
        self.count += 1;
        ControlFlow::Continue(())
    }
}

/// Walks a stack that has frames of Python code, and returns its number. It is not kept with the words that were read: these frames lie elsewhere.
#[inline(never)]
fn walk_python(session: &Session, here: Here, chain: python::Chain) -> u32 {
    let Some(table) = table() else { return 0 };
    let depth = DEPTH.load(Ordering::Relaxed);
    let [mut native, mut starts, mut mixed] = [[const { MaybeUninit::uninit() }; DEPTH_MAX]; 3];
    let [native, starts, mixed] =
        [&mut native, &mut starts, &mut mixed].map(|frames| frames.get_mut(..depth).unwrap_or_default());
    let mut walk = Frames { session, frames: native, starts, count: 0 };
    unwind::walk(here, own(), &mut walk);
    let count = walk.count;
    // SAFETY: so many were written.
    let [native, starts] =
        [native, starts].map(|frames| unsafe { frames.get(..count).unwrap_or_default().assume_init_ref() });
    let count = python::mix(session, chain, native, starts, mixed);
    // SAFETY: so many were written.
    number(&table, unsafe { mixed.get(..count).unwrap_or_default().assume_init_ref() })
}

/// Walks a stack, and returns its number.
#[inline(never)]
fn walk(session: &Session, here: Here, memo: Option<&Memo>) -> u32 {
    let Some(table) = table() else { return 0 };
    let depth = DEPTH.load(Ordering::Relaxed);
    let on_new = |found: &_| note_module(session, found);
    let Some((memo, mut walk)) =
        memo.and_then(|memo| Some((memo, memo.last.begin(depth, here.start().unloaded, on_new)?)))
    else {
        return walk_whole(session, here, &table, depth);
    };
    unwind::walk(here, own(), &mut walk);
    let stack = walk.finish(|caller, address| node(&table, caller, address));
    if memo.has_seen(here.start())
        && let Some(words) = walk.words()
    {
        memo.keep(here.start(), words, stack);
    }
    stack
}

/// Walks a stack without the one before it.
#[cold]
fn walk_whole(session: &Session, here: Here, table: &StackTable<'_>, depth: usize) -> u32 {
    let mut frames = [const { MaybeUninit::uninit() }; DEPTH_MAX];
    let frames = frames.get_mut(..depth).unwrap_or_default();
    let mut walk = Frames { session, frames, starts: &mut [], count: 0 };
    unwind::walk(here, own(), &mut walk);
    let count = walk.count;
    // SAFETY: so many were written.
    number(table, unsafe { frames.get(..count).unwrap_or_default().assume_init_ref() })
}

/// Returns this library's own code, whose frames are left out.
fn own() -> Range<usize> {
    OWN[0].load(Ordering::Relaxed)..OWN[1].load(Ordering::Relaxed)
}

/// Returns the table, if stacks are recorded.
fn table() -> Option<StackTable<'static>> {
    let memory = TABLE.load(Ordering::Acquire);
    // SAFETY: null, or the mapping of `begin`, which stays.
    if memory.is_null() { None } else { unsafe { StackTable::attach(memory) } }
}

/// Returns the number of a stack, innermost frame first.
fn number(table: &StackTable<'_>, frames: &[usize]) -> u32 {
    frames.iter().rev().try_fold(0, |caller, frame| node(table, caller, *frame)).unwrap_or(0)
}

/// Returns the number of the stack that a caller's becomes by a call at an address; `None` if there is no room for it.
#[inline]
fn node(table: &StackTable<'_>, caller: u32, address: usize) -> Option<u32> {
    let hash = (address as u64 ^ u64::from(caller) << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let met = MET.get(usize::try_from(hash >> (64 - KEPT.trailing_zeros())).ok()?)?;
    let known = met.load(Ordering::Relaxed);
    if known != 0 && table.caller(known, address as u64) == Some(caller) {
        return Some(known);
    }
    let node = table.insert(caller, address as u64, |bytes| grow(table, bytes))?;
    met.store(node, Ordering::Relaxed);
    Some(node)
}

/// Records a module, if it was not yet. It is known once that is done: two threads may both record it, but none goes by what another has yet
/// to write.
pub(crate) fn note_module(session: &Session, found: &Found) {
    let start = found.start;
    let is_known = || LOADED.iter().any(|place| place.load(Ordering::Acquire) == start);
    if start == OWN[0].load(Ordering::Relaxed) || is_known() {
        return;
    }
    RECORDING.fetch_add(1, Ordering::Relaxed);
    push_module(session, found);
    python::note_module(session, found);
    for place in &LOADED {
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
    // SAFETY: the loader's description of the module, whose beginning is public; its name is a C string, empty for the program itself.
    let (bias, name) = unsafe {
        let Some(link) = found.link.as_ref() else { return };
        (link.bias, if link.name.is_null() { c"" } else { CStr::from_ptr(link.name) })
    };
    if name.is_empty() {
        let mut path = [0_u8; TEXT_MAX];
        // SAFETY: a constant path, and a buffer with its length.
        let length = unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), path.as_mut_ptr().cast(), path.len()) };
        text.put(path.get(..usize::try_from(length).unwrap_or(0)).unwrap_or_default());
    } else {
        text.put(name.to_bytes());
    }
    let event = Event {
        address: found.start as u64,
        old: bias as u64,
        extra: found.end as u64,
        ..Event::new(Kind::ModuleLoad, push::thread_number(session), session.clock.now())
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

/// Puts a module's build id in hexadecimal digits, or `-`: it stands in a note of its ELF file.
fn build_id(found: &Found, text: &mut Text) {
    const NOTE: u32 = 4;
    const BUILD_ID: u32 = 3;
    // SAFETY: inside of the module, whose first page has its ELF header; what is read beyond that is checked to be inside of the module, in
    // segments that its header says are loaded.
    let word =
        |at: usize| (at >= found.start && at + 4 <= found.end).then(|| unsafe { (at as *const u32).read_unaligned() });
    let long = |at: usize| Some(u64::from(word(at)?) | u64::from(word(at + 4)?) << 32);
    let half = |at: usize| word(at).map(|word| word as usize & 0xffff);
    // SAFETY: as in `push_module`.
    let bias = unsafe { found.link.as_ref() }.map_or(0, |link| link.bias);
    let find = || -> Option<(usize, usize)> {
        if word(found.start)? != u32::from_le_bytes(*b"\x7fELF") {
            return None;
        }
        let table = found.start + usize::try_from(long(found.start + 32)?).ok()?;
        for entry in 0..half(found.start + 56)?.min(64) {
            let entry = table + entry * 56;
            if word(entry)? != NOTE {
                continue;
            }
            let mut at = bias.wrapping_add(usize::try_from(long(entry + 16)?).ok()?);
            let end = at.checked_add(usize::try_from(long(entry + 40)?).ok()?)?.min(found.end);
            while at + 12 <= end {
                let (name, length, kind) = (word(at)? as usize, word(at + 4)? as usize, word(at + 8)?);
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

/// Records that modules are gone which were unloaded.
#[cold]
fn note_unloaded() {
    unwind::forget();
    let Some(session) = session::current() else { return };
    for place in &LOADED {
        let start = place.load(Ordering::Acquire);
        if start <= TAKEN_OUT || unwind::find(start).is_some_and(|found| found.start == start) {
            continue;
        }
        // What is being recorded may be of another module by now.
        if RECORDING.load(Ordering::Relaxed) == 0
            && place.compare_exchange(start, TAKEN_OUT, Ordering::AcqRel, Ordering::Acquire).is_ok()
        {
            let mut event = Event::new(Kind::ModuleUnload, push::thread_number(session), session.clock.now());
            event.address = start as u64;
            push::numbers(session, &event);
        }
    }
}

/// # Safety
/// As the function of this name.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    let Some(dlclose) = (if real::known() { real::dlclose() } else { None }) else { return -1 };
    let paused = python::pause();
    // SAFETY: the caller's argument.
    let result = unsafe { dlclose(handle) };
    python::resume(paused);
    if DEPTH.load(Ordering::Relaxed) != 0 {
        note_unloaded();
    }
    result
}
