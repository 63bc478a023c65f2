//! Recording of an allocator that the program has linked in, at the beginnings of its functions.
//!
//! `hatf record` says which functions those are, and what stands at their beginnings: see [`crate::linked`]. Each gets a jump to a piece of code near it, which
//! pushes the address of what is known of the function, and goes on to [`entry`]. That records the call, and calls the function's first instructions elsewhere,
//! behind which is a jump to the rest of them.
//!
//! This is done before the program's own code runs, while there is one thread, and for all functions or none. The file is to be that from which the program was loaded, and
//! each beginning what the file has. Where anything is otherwise, nothing is changed.
//!
//! It is long because a call's registers are kept and given back instruction by instruction, in one function of assembly.

use core::ffi::{c_int, c_void};
use core::mem::offset_of;
use core::ops::Range;
use core::ptr::with_exposed_provenance_mut;
use core::sync::atomic::{AtomicBool, Ordering};

use super::attach::session;
use super::log::{self, Begun, Block, Call};
use super::session::Session;
use super::thread_state::{self, current};
use super::{cxx, follow, mapping, memory, segments};
use crate::event::Kind;
use crate::linked::{Fix, JUMP_BYTES, MOVED_MAX, PATCH_BYTES, PATCHES_MAX, Patch, Role, SOURCE_BYTES, Source};
use crate::names;

const PAGE: usize = 4096;
/// Bytes of the file, at most.
const FILE_MAX: usize = SOURCE_BYTES + PATCHES_MAX * PATCH_BYTES;

/// A function, and the code that stands near it.
#[repr(C)]
struct Site {
    /// Pushes what `this` has, and jumps to where `entry` says.
    code: [u8; 16],
    /// Where this is.
    this: usize,
    /// Where `moved` is.
    original: usize,
    /// Where [`entry`] is.
    entry: usize,
    /// What is behind the instructions that were moved.
    behind: usize,
    /// The function's first instructions, and a jump to what is behind them.
    moved: [u8; MOVED_MAX + JUMP_BYTES],
    role: u8,
    skipped: u8,
    _end: [u8; 1],
}

const _: () = assert!(size_of::<Site>() == 104);

/// Has the calls of the program's own allocator recorded, where it has one, and that can be.
pub(crate) fn begin(session: &Session) {
    let patched = patch().unwrap_or(0);
    if patched > 0 {
        session.spool.header().linked.store(u32::try_from(patched).unwrap_or(u32::MAX), Ordering::Relaxed);
    }
}

/// Returns how many functions were changed.
fn patch() -> Option<usize> {
    let path = follow::events()?.folder()?.with(names::LINKED.as_bytes())?;
    let file = Pages::new(FILE_MAX)?;
    // SAFETY: fresh pages of that size, which nobody else has.
    let bytes = unsafe { core::slice::from_raw_parts_mut(file.at.cast::<u8>(), FILE_MAX) };
    let (source, patches) = Source::split(follow::read(path.as_c(), bytes)?)?;
    let (patches, rest) = patches.as_chunks::<PATCH_BYTES>();
    if !rest.is_empty() || patches.is_empty() || Some(source) != own_file() || threads() != Some(1) {
        return None;
    }
    let program = Program::find()?;
    // All of them are looked at before anything is changed.
    if !patches.iter().all(|bytes| Patch::from_bytes(bytes).is_some_and(|patch| program.has(&patch))) {
        return None;
    }
    note_registers();
    let bytes = patches.len() * size_of::<Site>();
    let sites = program.near(bytes)?;
    let prepare = || {
        for (number, bytes) in patches.iter().enumerate() {
            let at = sites + number * size_of::<Site>();
            let site = program.site(&Patch::from_bytes(bytes)?, at)?;
            // SAFETY: inside of the pages made just now, aligned for it.
            unsafe { with_exposed_provenance_mut::<Site>(at).write(site) };
        }
        protect(&pages_of(sites..sites + bytes), libc::PROT_READ | libc::PROT_EXEC)
    };
    let changed = prepare().and_then(|()| program.redirect(patches, sites));
    if changed.is_none() {
        // SAFETY: the pages made just now, to which nothing leads.
        unsafe { memory::unmap(sites as *mut c_void, bytes) };
    }
    changed.map(|()| patches.len())
}

/// Pages that are given back.
struct Pages {
    at: *mut c_void,
    bytes: usize,
}

impl Pages {
    fn new(bytes: usize) -> Option<Self> {
        mapping::pages(bytes).map(|at| Self { at, bytes })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the pages that were made, which nobody uses any more.
        unsafe { memory::unmap(self.at, self.bytes) };
    }
}

/// Returns what the system says of a file.
fn status(path: &core::ffi::CStr) -> Option<libc::stat> {
    let mut found = core::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: a C string, and room for the answer, which is whole where the call succeeds.
    unsafe { (libc::stat(path.as_ptr(), found.as_mut_ptr()) == 0).then(|| found.assume_init()) }
}

/// Returns which file the program was loaded from.
fn own_file() -> Option<Source> {
    let found = status(c"/proc/self/exe")?;
    let number = |number: i64| u64::try_from(number).ok();
    let changed = (number(found.st_mtime)?, number(found.st_mtime_nsec)?);
    Some(Source { device: found.st_dev, inode: found.st_ino, bytes: number(found.st_size)?, changed })
}

/// Returns how many threads there are: each is a folder here, and two more are counted.
fn threads() -> Option<u64> {
    status(c"/proc/self/task")?.st_nlink.checked_sub(2)
}

/// The program as it is loaded.
struct Program {
    base: usize,
    segments: &'static [libc::Elf64_Phdr],
}

impl Program {
    fn find() -> Option<Self> {
        unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, base: *mut c_void) -> c_int {
            // SAFETY: the loader's structure, and the number of `find`. The program comes first.
            unsafe { *base.cast::<Option<u64>>() = Some((*info).dlpi_addr) };
            1
        }
        let mut base = None::<u64>;
        // SAFETY: a function of this signature, and what it expects.
        unsafe { libc::dl_iterate_phdr(Some(first), (&raw mut base).cast()) };
        Some(Self { base: usize::try_from(base?).ok()?, segments: segments::of_program()? })
    }

    fn address(&self, of_file: u64) -> Option<usize> {
        Some(self.base.wrapping_add(usize::try_from(of_file).ok()?))
    }

    fn loaded(&self) -> impl Iterator<Item = (&libc::Elf64_Phdr, Range<usize>)> {
        let loaded = self.segments.iter().filter(|segment| segment.p_type == libc::PT_LOAD);
        loaded.map(|segment| (segment, segments::place(self.base, segment)))
    }

    /// Returns whether a function begins as its patch says, in code that is not written to.
    fn has(&self, patch: &Patch) -> bool {
        let Some(original) = patch.original.get(..usize::from(patch.taken)) else { return false };
        let Some(start) = self.address(patch.address) else { return false };
        let end = start.saturating_add(original.len());
        let is_code = |(segment, place): (&libc::Elf64_Phdr, Range<usize>)| {
            segment.p_flags == libc::PF_R | libc::PF_X && place.start <= start && end <= place.end
        };
        // SAFETY: inside of a readable segment of the program, which stays.
        self.loaded().any(is_code)
            && unsafe { core::slice::from_raw_parts(start as *const u8, original.len()) } == original
    }

    /// Makes fresh pages below the program, where its heap does not grow to: as near as there is room.
    fn near(&self, bytes: usize) -> Option<usize> {
        const STEP: usize = 1 << 16;
        const STEPS: usize = 256;
        /// Below it nothing may be mapped.
        const LOWEST: usize = 1 << 16;
        let lowest = self.loaded().map(|(_, place)| place.start).min()? & !(PAGE - 1);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
        let mut at = (lowest & !(STEP - 1)).checked_sub(bytes.checked_next_multiple_of(STEP)?)?;
        for step in 0..STEPS {
            if at < LOWEST {
                return None;
            }
            // SAFETY: fresh pages: where others are, the call fails, or answers with another place.
            let found = unsafe { memory::map(at as *mut c_void, bytes, access, flags, -1, 0) };
            if found as usize == at {
                return Some(at);
            }
            if found != libc::MAP_FAILED {
                // SAFETY: the pages made just now.
                unsafe { memory::unmap(found, bytes) };
            }
            // Ever farther, up to a GiB.
            at = at.checked_sub(STEP * (1 + step / 2))?;
        }
        None
    }

    /// Makes what stands near a function, at this address.
    fn site(&self, patch: &Patch, at: usize) -> Option<Site> {
        let moved_at = at + offset_of!(Site, moved);
        let mut site = Site {
            code: [0xcc; 16],
            this: at,
            original: moved_at,
            entry: entry as *const () as usize,
            behind: self.address(patch.address)?.wrapping_add(usize::from(patch.taken)),
            moved: [0xcc; MOVED_MAX + JUMP_BYTES],
            role: patch.role as u8,
            skipped: patch.skipped,
            _end: [0],
        };
        let push = distance(at + 6, at + offset_of!(Site, this))?;
        let jump = distance(at + 12, at + offset_of!(Site, entry))?;
        site.code.get_mut(..2)?.copy_from_slice(&[0xff, 0x35]);
        site.code.get_mut(2..6)?.copy_from_slice(&push);
        site.code.get_mut(6..8)?.copy_from_slice(&[0xff, 0x25]);
        site.code.get_mut(8..12)?.copy_from_slice(&jump);
        let length = usize::from(patch.moved);
        site.moved.get_mut(..length)?.copy_from_slice(patch.code.get(..length)?);
        for fix in patch.fix.get(..usize::from(patch.fixes))? {
            let (place, end) = (usize::from(fix.at), usize::from(fix.end));
            let target = match fix.target {
                Fix::BEHIND => at + offset_of!(Site, behind),
                target => self.address(target)?,
            };
            let to = distance(moved_at + end, target)?;
            site.moved.get_mut(place..place + 4)?.copy_from_slice(&to);
        }
        *site.moved.get_mut(length)? = 0xe9;
        let to = distance(moved_at + length + JUMP_BYTES, site.behind)?;
        site.moved.get_mut(length + 1..length + JUMP_BYTES)?.copy_from_slice(&to);
        Some(site)
    }

    /// Puts jumps to what was made at these addresses where the functions begin; `None` if that is refused, and nothing is changed then.
    fn redirect(&self, patches: &[[u8; PATCH_BYTES]], sites: usize) -> Option<()> {
        // Where each jump goes, and whether the distance is short enough: before the first is written.
        let jumps = || {
            patches.iter().enumerate().map(|(number, bytes)| {
                let start = self.address(Patch::from_bytes(bytes)?.address)?;
                let to = distance(start + JUMP_BYTES, sites + number * size_of::<Site>())?;
                Some((start, to))
            })
        };
        if jumps().any(|jump| jump.is_none()) {
            return None;
        }
        let open = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        let all = |access: c_int| {
            let mut pages = jumps().flatten().map(|(start, _)| pages_of(start..start + JUMP_BYTES));
            pages.all(|pages| protect(&pages, access).is_some())
        };
        let opened = all(open);
        if opened {
            for (start, [a, b, c, d]) in jumps().flatten() {
                // SAFETY: the beginning of a function, in pages that are writable now. Nobody runs there: there is one thread, which runs this.
                unsafe { with_exposed_provenance_mut::<[u8; JUMP_BYTES]>(start).write([0xe9, a, b, c, d]) };
            }
        }
        all(libc::PROT_READ | libc::PROT_EXEC);
        opened.then_some(())
    }
}

/// Returns the distance from the end of an instruction, as it has it, if it fits.
fn distance(end: usize, to: usize) -> Option<[u8; 4]> {
    let distance = i32::try_from(to.wrapping_sub(end).cast_signed()).ok()?;
    Some(distance.to_le_bytes())
}

fn pages_of(bytes: Range<usize>) -> Range<usize> {
    bytes.start & !(PAGE - 1)..bytes.end.next_multiple_of(PAGE)
}

/// Has pages be accessed so. By the system call: the program may have a function of that name.
fn protect(pages: &Range<usize>, access: c_int) -> Option<()> {
    // SAFETY: whole pages of the program's code, which stay readable and executable; or of our own.
    let result = unsafe { libc::syscall(libc::SYS_mprotect, pages.start, pages.end - pages.start, access) };
    (result == 0).then_some(())
}

/// There are vector registers of 32 bytes.
static WIDE: AtomicBool = AtomicBool::new(false);

/// Finds out how large registers are.
fn note_registers() {
    // AVX, which the system lets programs use.
    const FEATURES: u32 = 1 << 27 | 1 << 28;
    let features = core::arch::x86_64::__cpuid(1).ecx;
    WIDE.store(features & FEATURES == FEATURES, Ordering::Relaxed);
}

/// What [`entry`] keeps of a call on the stack.
#[repr(C, align(32))]
struct Frame {
    /// The function's first instructions, elsewhere.
    original: usize,
    /// What was noted of the nesting before.
    before: usize,
    /// The arguments of the role.
    arguments: [usize; 3],
    begun: Begun,
    /// Whether the second half of a vector register was in use.
    wide: u8,
    result: usize,
    /// rcx, rdx, rsi, rdi, r8, r9, r10 and r11.
    registers: [usize; 8],
    vectors: Vectors,
}

/// Vector registers.
#[repr(C, align(32))]
struct Vectors([[u8; 32]; 16]);

/// Begins a call; returns whether it is to be recorded.
///
/// # Safety
/// `frame` is that of [`entry`], whose registers are kept.
unsafe extern "C" fn enter(site: &Site, frame: *mut Frame) -> usize {
    // SAFETY: the caller's promise.
    let [rcx, rdx, rsi, rdi, ..] = unsafe {
        (*frame).original = site.original;
        (*frame).registers
    };
    if current().is_nested() || session().is_none() {
        return 0;
    }
    let arguments = if site.skipped == 0 { [rdi, rsi, rdx] } else { [rsi, rdx, rcx] };
    let [first, second, third] = arguments;
    let begins = |size: usize| log::realloc_begins(first as *mut c_void, size);
    let mut begun = Begun::No;
    match Role::ALL.get(usize::from(site.role)) {
        Some(Role::Free) if first != 0 => log::call(Kind::Free, Call { address: first, ..Call::default() }),
        Some(Role::Realloc) => begun = begins(second),
        Some(Role::Reallocarray) => begun = begins(second.saturating_mul(third)),
        _ => {}
    }
    // SAFETY: the caller's promise.
    unsafe {
        (*frame).arguments = arguments;
        (*frame).begun = begun;
        (*frame).before = thread_state::enter(frame as usize);
    }
    1
}

/// Ends a call, and records what it returned.
///
/// # Safety
/// `frame` is that of [`entry`], which [`enter`] has filled, with the result.
unsafe extern "C" fn leave(site: &Site, frame: *const Frame) {
    // SAFETY: the caller's promise.
    let (before, arguments, begun, block) =
        unsafe { ((*frame).before, (*frame).arguments, (*frame).begun, (*frame).result) };
    thread_state::leave(before);
    let [first, second, third] = arguments;
    let call = |size: usize, extra: usize| Call { size, address: block, extra, ..Call::default() };
    let resized = |size: usize, extra: usize| Call { old: first, ..call(size, extra) };
    match Role::ALL.get(usize::from(site.role)) {
        Some(Role::Malloc) => log::call(Kind::Malloc, call(first, 0)),
        Some(Role::Zalloc) => log::call(Kind::Calloc, call(first, 1)),
        Some(Role::Calloc) => log::call(Kind::Calloc, call(first.saturating_mul(second), first)),
        Some(Role::Realloc) => log::realloc_ends(Kind::Realloc, resized(second, 0), Block::Other, begun),
        Some(Role::Reallocarray) => {
            let resized = resized(second.saturating_mul(third), second);
            log::realloc_ends(Kind::Reallocarray, resized, Block::Other, begun);
        }
        Some(Role::AlignedAlloc) => log::call(Kind::AlignedAlloc, call(second, first)),
        Some(Role::Memalign) => log::call(Kind::Memalign, call(second, first)),
        Some(Role::Aligned) => log::call(Kind::Memalign, call(first, second)),
        Some(Role::PosixMemalign) => {
            // The result is an int.
            let block = if block.cast_signed() << 32 == 0 && first != 0 {
                // SAFETY: the function has succeeded, and so has written the caller's place.
                unsafe { (first as *const usize).read() }
            } else {
                0
            };
            log::call(Kind::PosixMemalign, Call { size: third, address: block, extra: second, ..Call::default() });
        }
        Some(Role::Mallocx) if second & 63 != 0 => log::call(Kind::Memalign, call(first, 1 << (second & 63))),
        Some(Role::Mallocx) => log::call(Kind::Malloc, call(first, 0)),
        Some(Role::Valloc) => log::call(Kind::Valloc, call(first, 0)),
        Some(Role::Pvalloc) => log::call(Kind::Pvalloc, call(first, 0)),
        Some(Role::Free) | None => {}
    }
}

/// What all functions jump to, with the address of their site on the stack, and behind it that to return to.
///
/// Who calls a function of its own program may know which registers that leaves as they are (GCC's `-fipa-ra`), and how the stack is aligned: so no register
/// is changed here but those that the function changes itself. Of vector registers that goes for the first sixteen, up to 32 bytes of each: the second
/// half only where it is in use, as to load it makes other instructions slow.
///
/// An exception that leaves the function ends the nesting, as it does in `cxx.rs`.
///
/// # Safety
/// Jumped to by the code of a [`Site`] alone.
#[unsafe(naked)]
unsafe extern "C" fn entry() {
    core::arch::naked_asm!(
        ".cfi_startproc",
        ".cfi_personality 0x1b, {pass}",
        ".cfi_def_cfa_offset 16",
        "push rbp",
        ".cfi_def_cfa_offset 24",
        ".cfi_offset rbp, -24",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "sub rsp, {bytes}",
        "and rsp, -32",
        "mov qword ptr [rsp + {result}], rax",
        "call 2f",
        "mov rdi, qword ptr [rbp + 8]",
        "mov rsi, rsp",
        "call {enter}",
        "test rax, rax",
        "je 7f",
        "call 4f",
        "mov rax, qword ptr [rsp + {result}]",
        "call qword ptr [rsp + {original}]",
        "mov qword ptr [rsp + {result}], rax",
        "call 8f",
        "mov rdi, qword ptr [rbp + 8]",
        "mov rsi, rsp",
        "call {leave}",
        "call 4f",
        "mov rax, qword ptr [rsp + {result}]",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_remember_state",
        ".cfi_def_cfa rsp, 16",
        ".cfi_restore rbp",
        "lea rsp, [rsp + 8]",
        ".cfi_def_cfa_offset 8",
        "ret",
        // Not recorded: goes on to the function, with nothing of ours on the stack.
        "7:",
        ".cfi_restore_state",
        ".cfi_remember_state",
        "mov rax, qword ptr [rsp + {original}]",
        "mov qword ptr [rbp + 8], rax",
        "call 4f",
        "mov rax, qword ptr [rsp + {result}]",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 16",
        ".cfi_restore rbp",
        "lea rsp, [rsp + 8]",
        ".cfi_def_cfa_offset 8",
        // Below the stack pointer the system leaves 128 bytes alone.
        "jmp qword ptr [rsp - 8]",
        // Keeps registers, in the frame above the address to return to. Vector registers first: whether their second half is in use.
        "2:",
        ".cfi_restore_state",
        "mov byte ptr [rsp + 8 + {wide}], 0",
        "cmp byte ptr [rip + {has_wide}], 0",
        "je 3f",
        "vmovups ymmword ptr [rsp + 8 + {vectors}], ymm0",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 32], ymm1",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 64], ymm2",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 96], ymm3",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 128], ymm4",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 160], ymm5",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 192], ymm6",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 224], ymm7",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 256], ymm8",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 288], ymm9",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 320], ymm10",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 352], ymm11",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 384], ymm12",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 416], ymm13",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 448], ymm14",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 480], ymm15",
        "vmovups xmm0, xmmword ptr [rsp + 8 + {vectors} + 16]",
        "vorps xmm0, xmm0, xmmword ptr [rsp + 8 + {vectors} + 48]",
        "vorps xmm0, xmm0, xmmword ptr [rsp + 8 + {vectors} + 80]",
        "vorps xmm0, xmm0, xmmword ptr [rsp + 8 + {vectors} + 112]",
        "vorps xmm0, xmm0, xmmword ptr [rsp + 8 + {vectors} + 144]",
        "vorps xmm0, xmm0, xmmword ptr [rsp + 8 + {vectors} + 176]",
        "vorps xmm0, xmm0, xmmword ptr [rsp + 8 + {vectors} + 208]",
        "vorps xmm0, xmm0, xmmword ptr [rsp + 8 + {vectors} + 240]",
        "vorps xmm0, xmm0, xmmword ptr [rsp + 8 + {vectors} + 272]",
        "vorps xmm0, xmm0, xmmword ptr [rsp + 8 + {vectors} + 304]",
        "vorps xmm0, xmm0, xmmword ptr [rsp + 8 + {vectors} + 336]",
        "vorps xmm0, xmm0, xmmword ptr [rsp + 8 + {vectors} + 368]",
        "vorps xmm0, xmm0, xmmword ptr [rsp + 8 + {vectors} + 400]",
        "vorps xmm0, xmm0, xmmword ptr [rsp + 8 + {vectors} + 432]",
        "vorps xmm0, xmm0, xmmword ptr [rsp + 8 + {vectors} + 464]",
        "vorps xmm0, xmm0, xmmword ptr [rsp + 8 + {vectors} + 496]",
        "vptest xmm0, xmm0",
        "setne byte ptr [rsp + 8 + {wide}]",
        "jmp 9f",
        // Once more, as they are when the function has returned.
        "8:",
        "cmp byte ptr [rsp + 8 + {wide}], 0",
        "je 3f",
        "vmovups ymmword ptr [rsp + 8 + {vectors}], ymm0",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 32], ymm1",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 64], ymm2",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 96], ymm3",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 128], ymm4",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 160], ymm5",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 192], ymm6",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 224], ymm7",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 256], ymm8",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 288], ymm9",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 320], ymm10",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 352], ymm11",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 384], ymm12",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 416], ymm13",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 448], ymm14",
        "vmovups ymmword ptr [rsp + 8 + {vectors} + 480], ymm15",
        "jmp 9f",
        "3:",
        "movups xmmword ptr [rsp + 8 + {vectors}], xmm0",
        "movups xmmword ptr [rsp + 8 + {vectors} + 32], xmm1",
        "movups xmmword ptr [rsp + 8 + {vectors} + 64], xmm2",
        "movups xmmword ptr [rsp + 8 + {vectors} + 96], xmm3",
        "movups xmmword ptr [rsp + 8 + {vectors} + 128], xmm4",
        "movups xmmword ptr [rsp + 8 + {vectors} + 160], xmm5",
        "movups xmmword ptr [rsp + 8 + {vectors} + 192], xmm6",
        "movups xmmword ptr [rsp + 8 + {vectors} + 224], xmm7",
        "movups xmmword ptr [rsp + 8 + {vectors} + 256], xmm8",
        "movups xmmword ptr [rsp + 8 + {vectors} + 288], xmm9",
        "movups xmmword ptr [rsp + 8 + {vectors} + 320], xmm10",
        "movups xmmword ptr [rsp + 8 + {vectors} + 352], xmm11",
        "movups xmmword ptr [rsp + 8 + {vectors} + 384], xmm12",
        "movups xmmword ptr [rsp + 8 + {vectors} + 416], xmm13",
        "movups xmmword ptr [rsp + 8 + {vectors} + 448], xmm14",
        "movups xmmword ptr [rsp + 8 + {vectors} + 480], xmm15",
        "9:",
        "mov qword ptr [rsp + 8 + {registers}], rcx",
        "mov qword ptr [rsp + 8 + {registers} + 8], rdx",
        "mov qword ptr [rsp + 8 + {registers} + 16], rsi",
        "mov qword ptr [rsp + 8 + {registers} + 24], rdi",
        "mov qword ptr [rsp + 8 + {registers} + 32], r8",
        "mov qword ptr [rsp + 8 + {registers} + 40], r9",
        "mov qword ptr [rsp + 8 + {registers} + 48], r10",
        "mov qword ptr [rsp + 8 + {registers} + 56], r11",
        "ret",
        // Puts them back.
        "4:",
        "cmp byte ptr [rsp + 8 + {wide}], 0",
        "je 5f",
        "vmovups ymm0, ymmword ptr [rsp + 8 + {vectors}]",
        "vmovups ymm1, ymmword ptr [rsp + 8 + {vectors} + 32]",
        "vmovups ymm2, ymmword ptr [rsp + 8 + {vectors} + 64]",
        "vmovups ymm3, ymmword ptr [rsp + 8 + {vectors} + 96]",
        "vmovups ymm4, ymmword ptr [rsp + 8 + {vectors} + 128]",
        "vmovups ymm5, ymmword ptr [rsp + 8 + {vectors} + 160]",
        "vmovups ymm6, ymmword ptr [rsp + 8 + {vectors} + 192]",
        "vmovups ymm7, ymmword ptr [rsp + 8 + {vectors} + 224]",
        "vmovups ymm8, ymmword ptr [rsp + 8 + {vectors} + 256]",
        "vmovups ymm9, ymmword ptr [rsp + 8 + {vectors} + 288]",
        "vmovups ymm10, ymmword ptr [rsp + 8 + {vectors} + 320]",
        "vmovups ymm11, ymmword ptr [rsp + 8 + {vectors} + 352]",
        "vmovups ymm12, ymmword ptr [rsp + 8 + {vectors} + 384]",
        "vmovups ymm13, ymmword ptr [rsp + 8 + {vectors} + 416]",
        "vmovups ymm14, ymmword ptr [rsp + 8 + {vectors} + 448]",
        "vmovups ymm15, ymmword ptr [rsp + 8 + {vectors} + 480]",
        "jmp 6f",
        "5:",
        "movups xmm0, xmmword ptr [rsp + 8 + {vectors}]",
        "movups xmm1, xmmword ptr [rsp + 8 + {vectors} + 32]",
        "movups xmm2, xmmword ptr [rsp + 8 + {vectors} + 64]",
        "movups xmm3, xmmword ptr [rsp + 8 + {vectors} + 96]",
        "movups xmm4, xmmword ptr [rsp + 8 + {vectors} + 128]",
        "movups xmm5, xmmword ptr [rsp + 8 + {vectors} + 160]",
        "movups xmm6, xmmword ptr [rsp + 8 + {vectors} + 192]",
        "movups xmm7, xmmword ptr [rsp + 8 + {vectors} + 224]",
        "movups xmm8, xmmword ptr [rsp + 8 + {vectors} + 256]",
        "movups xmm9, xmmword ptr [rsp + 8 + {vectors} + 288]",
        "movups xmm10, xmmword ptr [rsp + 8 + {vectors} + 320]",
        "movups xmm11, xmmword ptr [rsp + 8 + {vectors} + 352]",
        "movups xmm12, xmmword ptr [rsp + 8 + {vectors} + 384]",
        "movups xmm13, xmmword ptr [rsp + 8 + {vectors} + 416]",
        "movups xmm14, xmmword ptr [rsp + 8 + {vectors} + 448]",
        "movups xmm15, xmmword ptr [rsp + 8 + {vectors} + 480]",
        "6:",
        "mov rcx, qword ptr [rsp + 8 + {registers}]",
        "mov rdx, qword ptr [rsp + 8 + {registers} + 8]",
        "mov rsi, qword ptr [rsp + 8 + {registers} + 16]",
        "mov rdi, qword ptr [rsp + 8 + {registers} + 24]",
        "mov r8, qword ptr [rsp + 8 + {registers} + 32]",
        "mov r9, qword ptr [rsp + 8 + {registers} + 40]",
        "mov r10, qword ptr [rsp + 8 + {registers} + 48]",
        "mov r11, qword ptr [rsp + 8 + {registers} + 56]",
        "ret",
        ".cfi_endproc",
        pass = sym cxx::pass,
        enter = sym enter,
        leave = sym leave,
        has_wide = sym WIDE,
        bytes = const size_of::<Frame>(),
        original = const offset_of!(Frame, original),
        result = const offset_of!(Frame, result),
        registers = const offset_of!(Frame, registers),
        vectors = const offset_of!(Frame, vectors),
        wide = const offset_of!(Frame, wide),
    )
}
