//! Which blocks a call passes to code that is not instrumented: those that its arguments point to, and those that can be found from there.
//!
//! Every word counts as an address that may be one. Of a block the first 4 KiB are looked at, of variables and of the caller's stack 256 bytes; of
//! blocks that an earlier call had reached, 16 are followed.
//!
//! Memory is read directly only where it is known to stay: blocks that are live, variables of modules while none is being unloaded, and the used part of
//! a stack whose end is known. All else is copied by the kernel, which knows what is there; where it must not be asked, all blocks are reached.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering};

use super::block::{Block, EPOCH};
use super::known;
use super::scans::while_blocks_stay;
use crate::preload::platform::memory;
use crate::preload::platform::thread_state::known_stack;

static SCAN: AtomicU32 = AtomicU32::new(0);

/// Blocks that one call may reach; where there are more, all are reached.
const MOST: usize = 1024;
/// Of those, blocks that an earlier call had reached.
const EARLIER: usize = 16;
/// Bytes of an object that are looked at where a call is not deep: a string's.
const OBJECT: usize = 32;
/// Bytes of a block that are looked at.
const OF_BLOCK: usize = 4096;
/// Bytes of variables, and of the stack.
const OF_OTHERS: usize = 256;
/// Bytes of the stack, from the call on, in which an argument may point.
const STACK: usize = 1 << 16;

/// Learns the arguments of a call, which lie on the caller's stack; null: they are not known, and all blocks are reached. If it is not `deep`, it
/// reaches what arguments point to, and what the objects there do.
pub(super) unsafe extern "C" fn reach(words: *const usize, count: usize, deep: i32) {
    if words.is_null() {
        EPOCH.fetch_add(1, Ordering::Relaxed);
        return;
    }
    // SAFETY: the caller's array.
    let words = unsafe { core::slice::from_raw_parts(words, count) };
    while_blocks_stay(|| scan(words, deep != 0));
}

/// Blocks that were met and not looked at yet: addresses and lengths.
struct Found {
    blocks: [MaybeUninit<(usize, usize)>; MOST],
    count: usize,
    number: u32,
    /// Those that an earlier call had reached are followed, too, but not far: a call in a loop would follow all of them again.
    earlier: usize,
    /// Blocks may be reached that were not met: there were too many, or memory could not be read.
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

    /// Looks at what an argument points to that may be a variable, or on the stack of a call whose arguments lie at `arguments`.
    fn other(&mut self, word: usize, most: usize, arguments: usize) {
        if word >= arguments && word - arguments < STACK {
            match known_stack() {
                // SAFETY: the used part of the stack at hand, up to its end.
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

    /// Looks at memory that may not be there.
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

    /// If some memory could not be scanned, all blocks count as reached.
    fn finish(&self) {
        if self.is_full {
            EPOCH.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// # Safety
    /// The bytes can be read.
    unsafe fn memory(&mut self, start: usize, bytes: usize) {
        let first = start.next_multiple_of(size_of::<usize>());
        let end = start.saturating_add(bytes);
        for at in (first..end.saturating_sub(size_of::<usize>() - 1)).step_by(size_of::<usize>()) {
            // SAFETY: the caller's promise. Other threads may be writing there: any value is as good as another.
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
            // SAFETY: within a block that is live.
            unsafe { found.memory(word, OBJECT.min(end - word)) };
        }
        found.other(word, if is_deep { OF_OTHERS } else { OBJECT }, stack);
    }
    if !is_deep {
        return found.finish();
    }
    let mut next = 0;
    while let Some(place) = found.blocks.get(next).filter(|_| next < found.count) {
        // SAFETY: the first `count` are written.
        let (start, bytes) = unsafe { place.assume_init() };
        // SAFETY: a block that is live, and does not end before the scan does.
        unsafe { found.memory(start, bytes) };
        next += 1;
    }
    found.finish();
}
