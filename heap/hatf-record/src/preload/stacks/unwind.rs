//! Walks the call stack using the unwind tables of the modules (`.eh_frame`).
//!
//! A [`Row`] describes how to find the caller's frame for an instruction. Rows are parsed once and kept in a table by
//! instruction address. This code does not lock or allocate, so a signal handler may interrupt it anywhere and may
//! itself allocate. `_dl_find_object` from glibc 2.35 finds the tables under the same conditions.
//!
//! The stack ends at code without a table, such as code generated at run time. Rows may be wrong, so memory is read
//! only if it is readable.

use core::arch::asm;
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::ops::Range;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, NativeEndian, Register, RegisterRule, UnwindContext,
    UnwindContextStorage, UnwindSection as _, UnwindTableRow, X86_64,
};

use super::frame::{DEPTH_MAX, Frame, Start, Visitor};
use super::memo::Memo;
use super::own_stack;
use crate::preload::elf::found::Found;
use crate::preload::elf::{real, segments};
use crate::preload::platform::thread_state;

/// The number of kept rows.
const ROWS: usize = 1 << 14;
/// The maximum distance between consecutive frames in bytes.
const FAR: usize = 64 << 20;

type Find = unsafe extern "C" fn(*mut c_void, *mut Found) -> c_int;

static FIND: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// The address range of this library's own code.
static OWN: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Enables stack walking. Returns `None` if that is impossible. Forked children call this function as well, so it looks
/// up no symbols.
pub(crate) fn begin() -> Option<()> {
    FIND.store(real::pointers::_dl_find_object.load(Ordering::Acquire), Ordering::Release);
    let found = find(begin as fn() -> Option<()> as usize)?;
    OWN[0].store(found.start, Ordering::Relaxed);
    OWN[1].store(found.end, Ordering::Relaxed);
    Some(())
}

/// Returns whether stack walking is or was enabled.
pub(crate) fn is_on() -> bool {
    !FIND.load(Ordering::Relaxed).is_null()
}

/// Returns the address range of this library's own code, whose frames are omitted.
#[inline]
pub(crate) fn own() -> Range<usize> {
    OWN[0].load(Ordering::Relaxed)..OWN[1].load(Ordering::Relaxed)
}

/// Returns the module that contains an address.
pub(crate) fn find(address: usize) -> Option<Found> {
    // SAFETY: null, which is `None`, or the C library's function with this name.
    let find = unsafe { transmute::<*mut c_void, Option<Find>>(FIND.load(Ordering::Relaxed)) }?;
    let mut found = Found {
        flags: 0,
        start: 0,
        end: 0,
        link: core::ptr::null(),
        eh_frame_header: core::ptr::null(),
        reserved: [0; 7],
    };
    // SAFETY: a place for the result; any address can be queried.
    let is_there = unsafe { find(address as *mut c_void, &raw mut found) } == 0;
    (is_there && found.end > found.start).then(|| segments::whole(found))
}

/// The rule for finding a frame's caller, in one word.
#[derive(Clone, Copy)]
enum Row {
    /// There is no caller, or it is unknown.
    End,
    /// The frame's address is `rsp` or `rbp` plus an offset, or is stored at that location. The caller's `rbp` is saved
    /// at an offset from the frame's address.
    Frame { by_rbp: bool, indirect: bool, offset: i32, saved_rbp: Option<i32> },
    /// A signal frame, in which the kernel has stored all registers.
    Signal,
}

impl Row {
    fn pack(self) -> u64 {
        let low = |number: i32| u64::from(number.cast_unsigned() & 0xfff_ffff);
        match self {
            Self::End => 1,
            Self::Signal => 2,
            Self::Frame { by_rbp, indirect, offset, saved_rbp } => {
                let flags = u64::from(by_rbp) << 2 | u64::from(indirect) << 3 | u64::from(saved_rbp.is_some()) << 4;
                3 | flags | low(offset) << 8 | low(saved_rbp.unwrap_or(0)) << 36
            }
        }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the values are fields of a word")]
    fn unpack(word: u64) -> Self {
        let number = |shift: u32| ((word >> shift) as i32) << 4 >> 4;
        match word & 3 {
            2 => Self::Signal,
            3 => Self::Frame {
                by_rbp: word & 4 != 0,
                indirect: word & 8 != 0,
                offset: number(8),
                saved_rbp: (word & 16 != 0).then(|| number(36)),
            },
            _ => Self::End,
        }
    }
}

/// Rows by instruction. The first word is the address combined with the second word, so a pair written by two threads
/// matches nothing.
static KNOWN: [[AtomicU64; 2]; ROWS] = [const { [const { AtomicU64::new(0) }; 2] }; ROWS];
/// A count of unloaded modules. It is part of the key, so older rows match nothing.
static UNLOADED: AtomicU64 = AtomicU64::new(0);

/// Discards all rows because modules were unloaded.
pub(crate) fn forget() {
    let count = UNLOADED.fetch_add(1, Ordering::SeqCst).wrapping_add(1);
    // Only the low bits of the count are part of the key, so rows from one full cycle earlier would match again.
    if count.is_multiple_of(1 << 16) {
        KNOWN.iter().for_each(|[_, word]| word.store(0, Ordering::SeqCst));
    }
}

/// Returns the number of times that modules were unloaded.
pub(crate) fn unloaded() -> u64 {
    UNLOADED.load(Ordering::Relaxed)
}

/// A count of events after which former stack memory may have become unreadable.
static UNMAPPED: AtomicU64 = AtomicU64::new(0);

/// Discards the knowledge of readable memory because some memory was unmapped. For example, a coroutine's stack may be
/// gone although the next stack is adjacent to it.
pub(crate) fn forget_memory() {
    UNMAPPED.fetch_add(1, Ordering::SeqCst);
}

/// Returns a number that changes whenever modules are unloaded or memory is unmapped. It is the sum of two counts that
/// only grow.
#[inline(always)]
pub(crate) fn changes() -> u64 {
    unloaded().wrapping_add(UNMAPPED.load(Ordering::Relaxed))
}

/// Returns the row of an instruction. If the row was not known yet, reports the module to the visitor.
#[inline]
fn row(instruction: usize, visitor: &mut impl Visitor) -> Row {
    let key = instruction as u64 ^ unloaded() << 48;
    let place = (instruction as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - ROWS.trailing_zeros());
    let Some([tag, word]) = KNOWN.get(usize::try_from(place).unwrap_or_default()) else { return Row::End };
    let known = word.load(Ordering::Relaxed);
    if known != 0 && tag.load(Ordering::Relaxed) ^ known == key {
        return Row::unpack(known);
    }
    let look = || {
        let found = find(instruction)?;
        visitor.module(&found);
        parse(instruction, &found)
    };
    // Parsing needs more space than small stacks provide.
    let memo = Memo::of(thread_state::current());
    // If there is no room for parsing now, the row is not stored, so it may be found later.
    let Some(row) = own_stack::apart(memo.map(|memo| &memo.own_stack), look) else { return Row::End };
    let row = row.unwrap_or(Row::End);
    let packed = row.pack();
    word.store(packed, Ordering::Relaxed);
    tag.store(key ^ packed, Ordering::Relaxed);
    row
}

/// Storage for parsing, on the stack.
struct Store;

impl UnwindContextStorage<usize> for Store {
    type Rules = [(Register, RegisterRule<usize>); 20];
    type Stack = [UnwindTableRow<usize, Self>; 3];
}

/// Parses the row of an instruction.
#[cold]
#[inline(never)]
fn parse(instruction: usize, found: &Found) -> Option<Row> {
    let header = found.eh_frame_header;
    let bytes = |at: usize| {
        let end = segments::end_of(found, at)?;
        // SAFETY: as the loader reports, the module's tables are mapped from here, and are before their segment's end.
        // Bytes after them are not read, unless lengths in them are wrong.
        Some(unsafe { core::slice::from_raw_parts(at as *const u8, end - at) })
    };
    let bases = BaseAddresses::default().set_eh_frame_hdr(header as u64);
    let parsed = EhFrameHdr::new(bytes(header as usize)?, NativeEndian).parse(&bases, 8).ok()?;
    let tables = usize::try_from(parsed.eh_frame_ptr().direct().ok()?).ok()?;
    let bases = bases.set_eh_frame(tables as u64);
    let frames = EhFrame::new(bytes(tables)?, NativeEndian);
    type Bytes = EndianSlice<'static, NativeEndian>;
    let at = instruction as u64;
    let entry = parsed.table()?.fde_for_address(&frames, &bases, at, |section: &EhFrame<Bytes>, bases, offset| {
        section.cie_from_offset(bases, offset)
    });
    let entry = entry.ok().filter(|entry| entry.contains(at))?;
    if entry.is_signal_trampoline() {
        return Some(Row::Signal);
    }
    let mut context = UnwindContext::<usize, Store>::new_in();
    let row = entry.unwind_info_for_address(&frames, &bases, &mut context, at).ok()?;
    // All compilers store the return address at this position; without this rule, the frame is the outermost one.
    if row.register(X86_64::RA) != Some(RegisterRule::Offset(-8)) {
        return Some(Row::End);
    }
    let small = |number: i64| i32::try_from(number).ok().filter(|number| *number << 4 >> 4 == *number);
    let saved_rbp = match row.register(X86_64::RBP) {
        Some(RegisterRule::Offset(offset)) => Some(small(offset)?),
        None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => None,
        _ => return Some(Row::End),
    };
    let (register, indirect, offset) = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => (*register, false, *offset),
        // The expression in functions that align their stack: DW_OP_breg6 N, DW_OP_deref.
        CfaRule::Expression(expression) => match expression.get(&frames).ok()?.0.slice() {
            [0x76, number @ 0..=0x7f, 0x06] => (X86_64::RBP, true, i64::from((number << 1).cast_signed() >> 1)),
            _ => return Some(Row::End),
        },
    };
    let by_rbp = match register {
        X86_64::RBP => true,
        X86_64::RSP => false,
        _ => return Some(Row::End),
    };
    Some(Row::Frame { by_rbp, indirect, offset: small(offset)?, saved_rbp })
}

/// The part of the stack known to be readable.
struct Memory {
    known: Range<usize>,
}

impl Memory {
    /// Reads a word if it is readable.
    #[inline(always)]
    fn read(&mut self, address: usize, visitor: &mut impl Visitor) -> Option<usize> {
        if !address.is_multiple_of(8) {
            return None;
        }
        if !self.known.contains(&address) {
            let state = thread_state::current();
            if !state.becomes_readable(address) {
                return None;
            }
            self.known = state.readable();
        }
        // SAFETY: aligned, and the page can be read.
        let value = unsafe { (address as *const usize).read_volatile() };
        visitor.read(address, value);
        Some(value)
    }
}

/// The location of a frame's `rbp`. The value is read only if needed, because it differs at nearly every call of our
/// own functions.
#[derive(Clone, Copy)]
enum Rbp {
    /// Still in the register.
    First(usize),
    Known(usize),
    /// On the stack.
    At(usize),
}

impl Rbp {
    #[inline(always)]
    fn get(&mut self, memory: &mut Memory, visitor: &mut impl Visitor) -> Option<usize> {
        let value = match *self {
            Self::Known(value) => return Some(value),
            Self::First(value) => {
                visitor.depends_on_rbp();
                value
            }
            Self::At(address) => memory.read(address, visitor)?,
        };
        *self = Self::Known(value);
        Some(value)
    }
}

/// The registers of a function that walks its stack.
#[derive(Clone, Copy)]
pub(crate) struct Here {
    instruction: usize,
    rsp: usize,
    rbp: usize,
}

impl Here {
    /// Returns the registers of the calling function.
    #[inline(always)]
    pub(crate) fn new() -> Self {
        let (instruction, rsp, rbp): (usize, usize, usize);
        // SAFETY: reads registers. The instruction is this one's, so its row is that of the other two.
        unsafe {
            asm!(
                "lea {}, [rip]", "mov {}, rsp", "mov {}, rbp",
                out(reg) instruction, out(reg) rsp, out(reg) rbp,
                options(nomem, nostack, preserves_flags)
            );
        }
        Self { instruction, rsp, rbp }
    }

    /// Returns the data that a walk from here depends on, except for the words on the stack.
    #[inline(always)]
    pub(crate) fn start(self) -> Start {
        Start { rsp: self.rsp, rbp: self.rbp, changes: changes() }
    }
}

/// Visits the frames of a function's callers, innermost first, except for this library's own frames.
#[inline(always)]
pub(crate) fn walk(here: Here, visitor: &mut impl Visitor) {
    let own = own();
    let Here { mut instruction, mut rsp, rbp } = here;
    let mut rbp = Rbp::First(rbp);
    let mut memory = Memory { known: thread_state::current().readable_after(changes()) };
    // A return address may be after the end of the calling function, but the call itself is inside.
    let mut is_exact = true;
    // The limit exceeds the maximum requested depth plus the maximum number of our own frames.
    for _ in 0..DEPTH_MAX + 32 {
        let from = rsp;
        match row(instruction - usize::from(!is_exact), visitor) {
            Row::End => return,
            Row::Signal => {
                // The kernel's `ucontext_t` begins at the stack pointer; its general registers are at byte 40.
                let mut register = |number: usize| memory.read(from.wrapping_add(40 + 8 * number), visitor);
                let (Some(saved_rbp), Some(saved_rsp), Some(at)) = (register(10), register(15), register(16)) else {
                    return;
                };
                (instruction, rsp, rbp, is_exact) = (at, saved_rsp, Rbp::Known(saved_rbp), true);
            }
            Row::Frame { by_rbp, indirect, offset, saved_rbp } => {
                let base = if by_rbp {
                    let Some(rbp) = rbp.get(&mut memory, visitor) else { return };
                    rbp
                } else {
                    rsp
                };
                let mut frame = base.wrapping_add_signed(offset as isize);
                if indirect {
                    let Some(stored) = memory.read(frame, visitor) else { return };
                    frame = stored;
                }
                // Callers are at higher addresses on the stack.
                if frame <= from || frame - from > FAR {
                    return;
                }
                let Some(at) = memory.read(frame.wrapping_sub(8), visitor) else { return };
                if let Some(offset) = saved_rbp {
                    rbp = Rbp::At(frame.wrapping_add_signed(offset as isize));
                }
                (instruction, rsp, is_exact) = (at, frame, false);
            }
        }
        if instruction == 0 {
            return;
        }
        if own.contains(&instruction) {
            continue;
        }
        let Some(rbp) = rbp.get(&mut memory, visitor) else { return };
        if visitor.frame(&Frame { instruction, rsp, rbp, is_exact }).is_break() {
            return;
        }
    }
}
