//! Call stacks as a tree of return addresses, in a shared file next to the spool.
//!
//! A stack is identified by the number of its innermost node. Each node contains a return address and its caller's
//! node, or 0 if there is none. Nodes are added and never changed, so a number keeps its meaning even if a process is
//! killed.
//!
//! The file has its full length from the start, with memory for the first level only. When a level is full, the next
//! level is allocated, up to the length of the file. Nodes are added to the last level and searched for in all levels.
//!
//! A node is claimed by its first word, which contains the address and the low bits of the caller. The second word
//! contains the complete caller and is written afterwards. A reader that finds a first word without a second word
//! treats it as a different node; at worst, a node exists twice.

use crate::sync::{AtomicU64, Ordering};
use core::ops::Range;

use crate::layout::SharedSlot;

/// The first word of the file.
pub const STACKS_MAGIC: u64 = u64::from_le_bytes(*b"HATFSTKS");
/// The first node of each level. A table ends at the end of a level.
const LEVELS: [usize; 11] =
    [0, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24, 1 << 25, 1 << 26];
/// The number of levels in the smallest table.
const LEVELS_LEAST: usize = 4;
/// The number of nodes allocated from the start if memory cannot be added later, unless the table is smaller.
const WHOLE_NODES: usize = 1 << 20;
/// The number of slots before the first node. They contain the magic number, the depth, the number of nodes that did
/// not fit, and the number of allocated levels after the first.
const HEAD: usize = 2;
/// The number of positions probed for a node. It is small because full levels are probed for all later nodes.
const PROBES: usize = 8;
/// The number of positions probed in the last level.
const LAST_PROBES: usize = 64;
/// The number of bits in an address.
const ADDRESS_BITS: u32 = 48;

/// A stack table in mapped memory.
///
/// # Examples
///
/// ```
/// use std::alloc::{Layout, alloc_zeroed};
/// use hatf_record::{StackTable, stacks_bytes, stacks_head};
///
/// let bytes = stacks_bytes(0);
/// let layout = Layout::from_size_align(bytes, 16)?;
/// // SAFETY: the memory is zeroed, has the required size and alignment, and is never freed.
/// let table = unsafe {
///     let memory = alloc_zeroed(layout);
///     memory.cast::<[u64; 4]>().write(stacks_head(64, bytes, true));
///     StackTable::attach(memory, bytes)
/// };
/// let table = table.ok_or("not a stack table")?;
/// let main = table.insert(0, 0x4010, |_| false).ok_or("no room")?;
/// let parse = table.insert(main, 0x5020, |_| false).ok_or("no room")?;
/// assert_eq!((table.get(parse), table.get(main)), (Some((main, 0x5020)), Some((0, 0x4010))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct StackTable<'m>(&'m [SharedSlot]);

impl<'m> StackTable<'m> {
    /// Returns a view of a table, or `None` if the memory does not contain a table.
    ///
    /// # Safety
    /// `memory` must be aligned to 16 bytes, valid for reads and writes for `'m` up to `bytes`, and accessed through
    /// tables only.
    pub unsafe fn attach(memory: *mut u8, bytes: usize) -> Option<Self> {
        let nodes = *LEVELS[1..].iter().find(|nodes| bytes_of(**nodes) == bytes)?;
        // SAFETY: by the caller's promise.
        unsafe { Self::of_power(memory, nodes.trailing_zeros() as usize) }
    }

    /// Returns a view of a table with `1 << power` nodes.
    ///
    /// # Safety
    /// The requirements are the same as for [`attach`](Self::attach), with the length of such a table.
    #[inline]
    pub unsafe fn of_power(memory: *mut u8, power: usize) -> Option<Self> {
        // SAFETY: by the caller's promise: atomics, for which every bit pattern is a valid value.
        let table = unsafe { Self(core::slice::from_raw_parts(memory.cast(), HEAD + (1 << power))) };
        (table.word(0, 0)?.load(Ordering::Acquire) == STACKS_MAGIC).then_some(table)
    }

    /// Returns the binary logarithm of the number of nodes.
    #[must_use]
    pub fn power(&self) -> usize {
        self.nodes().trailing_zeros() as usize
    }

    /// Returns the maximum number of nodes.
    fn nodes(&self) -> usize {
        self.0.len() - HEAD
    }

    /// Returns the number of the last level.
    fn last_level(&self) -> u64 {
        LEVELS.iter().filter(|start| **start < self.nodes()).count() as u64 - 1
    }

    /// Returns the address of the table.
    #[must_use]
    pub fn memory(&self) -> *mut u8 {
        self.0.as_ptr().cast_mut().cast()
    }

    /// Returns the length of the table in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(self.0)
    }

    /// Returns the number of bytes up to the end of the levels in use.
    #[must_use]
    pub fn used_bytes(&self) -> usize {
        let last = self.more_levels().load(Ordering::Acquire).min(self.last_level());
        level_bytes(last).map_or(self.bytes(), |bytes| bytes.end)
    }

    /// Returns the maximum number of frames in a stack.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.word(0, 1).map_or(0, |word| usize::try_from(word.load(Ordering::Relaxed)).unwrap_or(usize::MAX))
    }

    /// Finds or adds a node. Returns `None` if there is no room. Addresses have 48 bits. `grow` allocates memory for a
    /// range of bytes in the file and returns whether it succeeded.
    pub fn insert(&self, caller: u32, address: u64, mut grow: impl FnMut(Range<usize>) -> bool) -> Option<u32> {
        let first = first_word(caller, address)?;
        loop {
            // The word is in shared memory, so its value must not extend the loop beyond the last level.
            let last = self.more_levels().load(Ordering::Acquire).min(self.last_level());
            for level in 0..=last {
                if let Some(node) = self.insert_in(level, caller, first, address, level == last) {
                    return Some(node);
                }
            }
            // If two threads add the level simultaneously, one of them succeeds. Memory that is already allocated is
            // not allocated again.
            if last >= self.last_level() || !level_bytes(last + 1).is_some_and(&mut grow) {
                self.word(1, 0)?.fetch_add(1, Ordering::Relaxed);
                return None;
            }
            let _ = self.more_levels().compare_exchange(last, last + 1, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// Finds a node in a level, or adds it there if `adds` is set. Returns `None` if the level does not contain it.
    fn insert_in(&self, level: u64, caller: u32, first: u64, address: u64, adds: bool) -> Option<u32> {
        let (start, end) = level_nodes(level)?;
        let second = u64::from(caller) + 1;
        let mut place = place_of(caller, address, end - start);
        let probes = if end == self.nodes() { LAST_PROBES } else { PROBES };
        for _ in 0..probes {
            let node = start + place % (end - start);
            let claimed = self.word(HEAD + node, 0)?;
            let found = match claimed.load(Ordering::Acquire) {
                0 if !adds => return None,
                0 => claimed.compare_exchange(0, first, Ordering::AcqRel, Ordering::Acquire).err(),
                found => Some(found),
            };
            let rest = self.word(HEAD + node, 1)?;
            match found {
                None => {
                    rest.store(second, Ordering::Release);
                    return number(node);
                }
                Some(found) if found == first && rest.load(Ordering::Acquire) == second => return number(node),
                Some(_) => place += 1,
            }
        }
        None
    }

    /// Returns the number of allocated levels after the first.
    fn more_levels(&self) -> &'m AtomicU64 {
        // A table always has its head.
        static NONE: AtomicU64 = AtomicU64::new(0);
        self.word(1, 1).unwrap_or(&NONE)
    }

    /// Returns the number of nodes for which there was no room.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.word(1, 0).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Returns the caller and the address of a node.
    #[inline]
    #[must_use]
    pub fn get(&self, node: u32) -> Option<(u32, u64)> {
        let place = usize::try_from(node).ok()?.checked_sub(1)? + HEAD;
        let word = |word| self.word(place, word).map(|word| word.load(Ordering::Relaxed));
        stack_node([word(0)?, word(1)?])
    }

    /// Returns the caller of a node if the node has this address.
    #[inline]
    #[must_use]
    pub fn caller(&self, node: u32, address: u64) -> Option<u32> {
        let [first, second] = &self.0.get((node as usize).wrapping_sub(1).wrapping_add(HEAD))?.words;
        let caller = second.load(Ordering::Relaxed).wrapping_sub(1);
        let same = first.load(Ordering::Relaxed) == address | caller << ADDRESS_BITS;
        if same { u32::try_from(caller).ok() } else { None }
    }

    #[inline]
    fn word(&self, slot: usize, word: usize) -> Option<&'m AtomicU64> {
        self.0.get(slot)?.words.get(word)
    }
}

/// Returns the size in bytes of the largest table whose nodes need at most this many bytes. The smallest table has
/// 262,144 nodes, and the largest table has 67 million nodes.
#[must_use]
pub fn stacks_bytes(most: usize) -> usize {
    let fits = |nodes: &&usize| **nodes * size_of::<SharedSlot>() <= most;
    bytes_of(*LEVELS.iter().skip(LEVELS_LEAST).rev().find(fits).unwrap_or(&LEVELS[LEVELS_LEAST - 1]))
}

/// Returns the number of bytes allocated from the start in a file of this size. `whole` means that the file cannot
/// grow.
#[must_use]
pub fn stacks_first_bytes(bytes: usize, whole: bool) -> usize {
    bytes_of(if whole { WHOLE_NODES } else { LEVELS[1] }).min(bytes)
}

/// Returns the first words in the file of an empty table of this size; all other words are zero. `whole` means that the
/// file cannot grow.
#[must_use]
pub fn stacks_head(depth: usize, bytes: usize, whole: bool) -> [u64; 4] {
    let first = stacks_first_bytes(bytes, whole);
    let more = LEVELS.iter().filter(|start| **start > 0 && bytes_of(**start) < first).count();
    [STACKS_MAGIC, depth as u64, 0, more as u64]
}

/// Returns the size in bytes of a file with room for this many nodes.
const fn bytes_of(nodes: usize) -> usize {
    (HEAD + nodes) * size_of::<SharedSlot>()
}

/// Returns the first node of a level and the first node after it.
fn level_nodes(level: u64) -> Option<(usize, usize)> {
    let level = usize::try_from(level).ok()?;
    Some((*LEVELS.get(level)?, *LEVELS.get(level + 1)?))
}

/// Returns the bytes of a level in the file.
fn level_bytes(level: u64) -> Option<Range<usize>> {
    let (start, end) = level_nodes(level)?;
    Some(bytes_of(start)..bytes_of(end))
}

/// Decodes the two words of a node into its caller and its address. Returns `None` if the words are not a node.
#[inline]
fn stack_node([first, second]: [u64; 2]) -> Option<(u32, u64)> {
    let caller = u32::try_from(second.checked_sub(1)?).ok()?;
    let address = first & ((1 << ADDRESS_BITS) - 1);
    (first_word(caller, address) == Some(first)).then_some((caller, address))
}

fn first_word(caller: u32, address: u64) -> Option<u64> {
    (address >> ADDRESS_BITS == 0 && address != 0).then_some(address | u64::from(caller) << ADDRESS_BITS)
}

fn number(place: usize) -> Option<u32> {
    u32::try_from(place + 1).ok()
}

/// Hashes a caller and an address to a position below `places`.
fn place_of(caller: u32, address: u64, places: usize) -> usize {
    let mixed = (address ^ u64::from(caller).wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    usize::try_from(((mixed >> 32) * places as u64) >> 32).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of nodes in the tables of these tests.
    const STACK_NODES: usize = 1 << 22;
    const STACKS_BYTES: usize = bytes_of(STACK_NODES);

    fn memory() -> Vec<[AtomicU64; 2]> {
        let memory: Vec<_> = (0..STACKS_BYTES / 16).map(|_| [AtomicU64::new(0), AtomicU64::new(0)]).collect();
        for (word, value) in memory.iter().flatten().zip(stacks_head(64, STACKS_BYTES, false)) {
            word.store(value, Ordering::Relaxed);
        }
        memory
    }

    fn never(_: Range<usize>) -> bool {
        panic!("the table need not grow")
    }

    fn grows(_: Range<usize>) -> bool {
        true
    }

    fn table(memory: &[[AtomicU64; 2]]) -> StackTable<'_> {
        // SAFETY: atomics of that length. Vectors of 16 MiB are aligned to more than 16 bytes.
        unsafe { StackTable::attach(memory.as_ptr().cast_mut().cast(), STACKS_BYTES) }.unwrap()
    }

    #[test]
    fn nodes_are_there_once() {
        let memory = memory();
        let table = table(&memory);
        assert_eq!(table.depth(), 64);
        let mut nodes = Vec::new();
        for number in 0..10_000_u64 {
            let caller = nodes.last().copied().filter(|_| number % 20 != 0).unwrap_or(0);
            let address = 0x7fff_0000_0000 + number % 700 * 16;
            let node = table.insert(caller, address, grows).unwrap();
            assert_eq!(table.insert(caller, address, never), Some(node));
            assert_eq!(table.get(node), Some((caller, address)));
            assert_eq!((table.caller(node, address), table.caller(node, address + 1)), (Some(caller), None));
            let at = HEAD + node as usize - 1;
            assert_eq!(
                stack_node([0, 1].map(|word| memory[at][word].load(Ordering::Relaxed))),
                Some((caller, address))
            );
            nodes.push(node);
        }
        assert_eq!((table.insert(0, 1 << 48, never), table.insert(0, 0, never)), (None, None));
        assert_eq!((table.get(0), table.get(u32::MAX)), (None, None));
    }

    /// A node that another thread has claimed but not yet written counts as a different node.
    #[test]
    fn a_claim_alone_is_no_node() {
        let memory = memory();
        let table = table(&memory);
        let node = table.insert(0, 16, never).unwrap();
        let at = HEAD + node as usize - 1;
        memory[at][1].store(0, Ordering::Relaxed);
        assert_eq!(table.get(node), None);
        let other = table.insert(0, 16, never).unwrap();
        assert_ne!(node, other);
        assert_eq!(table.get(other), Some((0, 16)));
    }

    #[test]
    fn a_full_table_says_so() {
        let memory = memory();
        let table = table(&memory);
        let mut grown = Vec::new();
        let mut grow = |bytes: Range<usize>| {
            grown.push(bytes);
            true
        };
        let full =
            (1..5 * STACK_NODES as u64 / 4).filter(|address| table.insert(0, *address, &mut grow).is_none()).count();
        assert!(full > STACK_NODES / 4 && full < STACK_NODES / 2, "{full}");
        assert_eq!(memory[1][0].load(Ordering::Relaxed), full as u64);
        // Each part of the file is allocated once, except for the part that was allocated from the start.
        assert_eq!(
            (grown[0].start, grown[4].end, grown.len()),
            (stacks_first_bytes(STACKS_BYTES, false), STACKS_BYTES, 5)
        );
        assert!(grown.windows(2).all(|pair| pair[0].end == pair[1].start));
    }

    /// If another process has written into the head, every walk still ends, and nothing is written out of bounds.
    #[test]
    fn a_head_of_another_s() {
        let memory = memory();
        let table = table(&memory);
        for levels in [u64::MAX, 1 << 63, 6, 7, 5] {
            memory[1][1].store(levels, Ordering::Relaxed);
            let node = table.insert(0, levels | 1, |_| false);
            assert_eq!(node.and_then(|node| table.get(node)), (levels >> ADDRESS_BITS == 0).then_some((0, levels | 1)));
            assert_eq!(table.insert(7, 9, |_| false).and_then(|node| table.get(node)), Some((7, 9)));
        }
    }

    /// If no memory is available, the first level stays and nothing after it is touched.
    #[test]
    fn a_table_that_cannot_grow() {
        let memory = memory();
        let table = table(&memory);
        let nodes: Vec<_> = (1..100_000).filter_map(|address| table.insert(0, address, |_| false)).collect();
        assert!(nodes.len() > LEVELS[1] / 2 && nodes.iter().all(|node| *node as usize <= LEVELS[1]), "{}", nodes.len());
        assert!(memory[HEAD + LEVELS[1]..].iter().flatten().all(|word| word.load(Ordering::Relaxed) == 0));
        // Existing nodes are still found.
        assert_eq!(table.insert(0, 1, never), Some(nodes[0]));
        assert_eq!(stacks_head(7, STACKS_BYTES, true)[3], 3);
    }

    /// A table is as large as the available room permits, and any other length is rejected.
    #[test]
    fn lengths() {
        let lengths: Vec<_> = [0, 1 << 23, (256 << 20) - 1, 256 << 20, usize::MAX].map(stacks_bytes).to_vec();
        assert_eq!(lengths, [1 << 18, 1 << 18, 1 << 23, 1 << 24, 1 << 26].map(bytes_of));
        assert_eq!(stacks_first_bytes(bytes_of(1 << 18), true), bytes_of(1 << 18));
        assert_eq!(stacks_head(7, bytes_of(1 << 18), true)[3], 2);
        let memory = memory();
        for bytes in [0, 16, 32, 48, STACKS_BYTES - 16, bytes_of(8)] {
            // SAFETY: a part of that memory.
            assert!(unsafe { StackTable::attach(memory.as_ptr().cast_mut().cast(), bytes) }.is_none(), "{bytes}");
        }
    }
}

#[cfg(all(loom, test))]
mod models {
    use super::*;
    use crate::sync::model::{Share as _, model, spawn};
    use crate::sync::{AtomicBool, AtomicU32};

    const NODES: usize = 1 << 16;

    /// Creates an empty table.
    fn table() -> StackTable<'static> {
        let memory = Box::leak((0..HEAD + NODES).map(|_| SharedSlot::default()).collect());
        let head = stacks_head(64, bytes_of(NODES), false);
        memory
            .iter()
            .flat_map(|slot| &slot.words)
            .zip(head)
            .for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        // SAFETY: slots of that length, never freed.
        unsafe { StackTable::attach(memory.as_mut_ptr().cast(), bytes_of(NODES)) }.unwrap()
    }

    /// Shares the head and, in each level, the first `places` positions at which a node is searched for.
    fn share(table: StackTable<'static>, caller: u32, address: u64, places: usize) {
        table.0[..HEAD].iter().for_each(|slot| slot.words.share());
        for (start, end) in [0, 1].map(|level| level_nodes(level).unwrap()) {
            let place = place_of(caller, address, end - start);
            for place in place..place + places {
                table.0[HEAD + start + place % (end - start)].words.share();
            }
        }
    }

    /// Returns a different caller with the same low bits, whose node for this address has the same position in the
    /// first level.
    fn neighbour(table: StackTable<'_>, caller: u32, address: u64) -> u32 {
        let place = |caller| place_of(caller, address, LEVELS[1].min(table.nodes()));
        (1..u32::MAX >> 16).map(|high| caller | high << 16).find(|other| place(*other) == place(caller)).unwrap()
    }

    /// Two threads add the same node, and a node with the same prefix at the same position; a third thread reads the
    /// numbers that they report.
    #[test]
    fn a_number_is_of_the_node_that_was_added() {
        let table = table();
        let (caller, address) = (1, 0x7fff_0000);
        let other = neighbour(table, caller, address);
        let told: &[AtomicU32; 2] = Box::leak(Box::default());
        model(2, move || {
            share(table, caller, address, 4);
            told.share();
            let add = |callers: [u32; 2], told: &'static AtomicU32| {
                move || {
                    callers.map(|caller| {
                        let node = table.insert(caller, address, |_| false).unwrap();
                        assert_eq!(table.get(node), Some((caller, address)));
                        told.store(node, Ordering::Release);
                        node
                    })
                }
            };
            let threads = [spawn(add([caller, other], &told[0])), spawn(add([other, caller], &told[1]))];
            let reader = spawn(move || {
                for told in told {
                    let node = told.load(Ordering::Acquire);
                    let found = table.get(node);
                    assert!(node == 0 || found == Some((caller, address)) || found == Some((other, address)));
                }
            });
            let [one, two] = threads.map(|thread| thread.join().unwrap());
            reader.join().unwrap();
            // At worst, a node exists twice.
            let mut nodes = [one, two].concat();
            nodes.sort_unstable();
            nodes.dedup();
            assert!(nodes.len() <= 4);
            assert_eq!(table.missed(), 0);
            assert!(nodes.contains(&table.insert(caller, address, |_| false).unwrap()), "the node is found again");
        });
    }

    /// One thread grows the table when a level is full, and no thread writes to a level without memory.
    #[test]
    fn a_level_has_memory_before_its_first_node() {
        let table = table();
        let address = 0x7fff_0000;
        // Other nodes occupy all positions that are probed in the first level.
        let place = place_of(0, address, LEVELS[1]);
        for slot in 0..PROBES {
            table.0[HEAD + (place + slot) % LEVELS[1]].words[0].store(u64::MAX, Ordering::Relaxed);
        }
        let (growing, grown): (&AtomicBool, &AtomicU32) = (Box::leak(Box::default()), Box::leak(Box::default()));
        model(3, move || {
            share(table, 0, address, PROBES);
            growing.share();
            grown.share();
            // As in `stacks/tree.rs`.
            let grow = |_| {
                let is_mine = !growing.swap(true, Ordering::Acquire);
                if is_mine {
                    grown.store(1, Ordering::Relaxed);
                    growing.store(false, Ordering::Release);
                }
                is_mine
            };
            let add = move || {
                let node = table.insert(0, address, grow);
                if node.is_some() {
                    assert_eq!(grown.load(Ordering::Relaxed), 1, "the node is in the second level");
                    assert!(node.unwrap() as usize > LEVELS[1]);
                }
                node
            };
            let nodes = [spawn(add), spawn(add)].map(|thread| thread.join().unwrap());
            assert_eq!(table.more_levels().load(Ordering::Relaxed), 1);
            assert_eq!(
                nodes.iter().filter(|node| node.is_none()).count() as u64,
                table.missed(),
                "what is lost is counted"
            );
            assert!(nodes.iter().any(Option::is_some));
        });
    }
}
