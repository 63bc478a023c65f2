//! Finds the blocks that a call passes to uninstrumented code: the blocks that its arguments point to, and all blocks
//! reachable from these.
//!
//! Every word that may be an address is treated as an address. The scan covers the first 4 KiB of a block, and 256
//! bytes of variables and of the caller's stack; it follows at most 16 of the blocks that an earlier call had reached.
//!
//! Memory is read directly only if it is known to stay mapped: live blocks, variables of modules while no module is
//! being unloaded, and the used part of a stack whose end is known. All other memory is copied by the kernel, which
//! knows the mappings. If the kernel must not be called, all blocks count as reached.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering};

use super::block::{Block, EPOCH};
use super::known;
use super::scans::while_blocks_stay;
use crate::preload::platform::memory;
use crate::preload::platform::thread_state::known_stack;

static SCAN: AtomicU32 = AtomicU32::new(0);

/// The maximum number of blocks that one call can reach. If there are more, all blocks count as reached.
const MOST: usize = 1024;
/// The maximum number of followed blocks per call that an earlier call had already reached.
const EARLIER: usize = 16;
/// The number of bytes scanned in an object if a call is not deep. A C++ string object fits into this size.
const OBJECT: usize = 32;
/// The number of bytes scanned in a block.
const OF_BLOCK: usize = 4096;
/// The number of bytes scanned in variables and in the stack.
const OF_OTHERS: usize = 256;
/// The number of stack bytes, starting at the call, into which an argument may point.
const STACK: usize = 1 << 16;

/// Processes the arguments of a call, which are on the caller's stack. If `words` is null, the arguments are unknown,
/// so all blocks count as reached. If the call is not `deep`, it reaches only the blocks to which the arguments and the
/// objects at these addresses point.
pub(super) unsafe extern "C" fn reach(words: *const usize, count: usize, deep: i32) {
    if words.is_null() {
        EPOCH.fetch_add(1, Ordering::Relaxed);
        return;
    }
    // SAFETY: the caller's array.
    let words = unsafe { core::slice::from_raw_parts(words, count) };
    while_blocks_stay(|| scan(words, deep != 0));
}

/// The blocks found but not scanned yet, as addresses and lengths.
struct Found {
    blocks: [MaybeUninit<(usize, usize)>; MOST],
    count: usize,
    number: u32,
    /// The number of blocks already reached by an earlier call. These are followed as well, but only a few of them,
    /// because a call in a loop would follow all of them again.
    earlier: usize,
    /// Whether further blocks may be reached, because the maximum number was exceeded or memory could not be read.
    is_full: bool,
}

impl Found {
    fn word(&mut self, word: usize) {
        let Some(block) = Block::around(word) else { return };
        if !block.meet(self.number) {
            return;
        }
        if block.reach() {
            self.earlier += 1;
            if self.earlier > EARLIER {
                return;
            }
        }
        match self.blocks.get_mut(self.count) {
            Some(place) => drop(place.write((block.address, block.size().min(OF_BLOCK)))),
            None => self.is_full = true,
        }
        self.count = (self.count + 1).min(MOST);
    }

    /// Scans the target of an argument that may be a variable, or may be on the stack of a call whose arguments are at
    /// `arguments`.
    fn other(&mut self, word: usize, most: usize, arguments: usize) {
        if word >= arguments && word - arguments < STACK {
            match known_stack() {
                // SAFETY: the used part of the current stack, up to its end.
                Some(stack) => unsafe { self.memory(word, most.min(stack.end.saturating_sub(word))) },
                None => self.copied(word, most),
            }
        } else if let Some(variables) = known::variables(word) {
            let bytes = most.min(variables.bytes);
            if variables.stay {
                // SAFETY: variables of a module that is not unloaded during a scan.
                unsafe { self.memory(word, bytes) };
            } else {
                self.copied(word, bytes);
            }
        }
    }

    /// Scans memory that may be unmapped.
    fn copied(&mut self, start: usize, bytes: usize) {
        let mut words = [0; OF_OTHERS / size_of::<usize>()];
        let first = start.next_multiple_of(size_of::<usize>());
        let count = start.saturating_add(bytes).saturating_sub(first) / size_of::<usize>();
        let words = words.get_mut(..count).unwrap_or_default();
        match memory::copy(first, words) {
            Some(copied) => words.iter().take(copied).for_each(|word| self.word(*word)),
            None => self.is_full = true,
        }
    }

    /// Marks all blocks as reached if some memory could not be scanned.
    fn finish(&self) {
        if self.is_full {
            EPOCH.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// # Safety
    /// The bytes must be readable.
    unsafe fn memory(&mut self, start: usize, bytes: usize) {
        let first = start.next_multiple_of(size_of::<usize>());
        let end = start.saturating_add(bytes);
        for at in (first..end.saturating_sub(size_of::<usize>() - 1)).step_by(size_of::<usize>()) {
            // SAFETY: by the caller's promise. Other threads may be writing to this memory: any value is acceptable.
            self.word(unsafe { core::ptr::read_volatile(at as *const usize) });
        }
    }
}

#[inline(never)]
fn scan(words: &[usize], is_deep: bool) {
    let number = SCAN.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    let mut found =
        Found { blocks: [const { MaybeUninit::uninit() }; MOST], count: 0, number, earlier: 0, is_full: false };
    let stack = words.as_ptr() as usize;
    for &word in words {
        found.word(word);
        if !is_deep && let Some(block) = Block::around(word) {
            let end = block.address + block.size();
            // SAFETY: inside of a live block.
            unsafe { found.memory(word, OBJECT.min(end - word)) };
        }
        found.other(word, if is_deep { OF_OTHERS } else { OBJECT }, stack);
    }
    if !is_deep {
        return found.finish();
    }
    let mut next = 0;
    while let Some(place) = found.blocks.get(next).filter(|_| next < found.count) {
        // SAFETY: the first `count` entries are initialized.
        let (start, bytes) = unsafe { place.assume_init() };
        // SAFETY: a live block, which does not end before the scan does.
        unsafe { found.memory(start, bytes) };
        next += 1;
    }
    found.finish();
}
