//! Filter 2, record dictionary, replaces records that occur more than once in a chunk with one or two bytes. Filter 3,
//! split suffix, first splits off the last byte of each record. The split-off bytes are stored at the end, sorted by
//! the bytes that precede them. (Section 5.2 of the specification calls a dictionary entry a phrase, and a split-off
//! byte a tail.)
//!
//! The filtered bytes consist of:
//!
//! - three integers in LEB128: the number m of repeated entries, the number s of single entries, and the number t of
//!   tokens;
//! - the lengths of the m + s entries, one byte each;
//! - the bytes of the entries in columns (the first byte of every entry that has one, then the second, ..), with the
//!   repeated entries before the single ones;
//! - t tokens of one byte each;
//! - the second bytes of the tokens that require one.
//!
//! Token 255 represents the next single entry. A token less than `ones(m)` represents the repeated entry of that rank.
//! Any other token, along with its second byte, represents one of the remaining repeated entries. The most frequent
//! entries have the lowest ranks, so their tokens are one byte long.
//!
//! With filter 3, t suffixes follow: first the suffixes of all records with the first entry, in record order, then the
//! suffixes of all records with the second entry, and so on. The end of a record is predicted best by its beginning:
//! after a tag and a size, for example, the code is often the same as for the previous object of that size.

use super::leb128;
use hashbrown::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// The token of the next single entry.
pub(super) const SINGLE: u8 = 255;
/// Maximum number of repeated entries, if each of the 255 other tokens has a second byte.
pub(super) const MOST: usize = 255 * 256;
/// Maximum length of an entry. Longer records are split.
const LONGEST: usize = 255;
/// Size of the key of a short entry in bytes, including one byte for the length.
const KEY: usize = 8;

/// Returns the number of ranks represented by a single-byte token.
pub(super) fn ones(repeated: usize) -> usize {
    if repeated <= 255 { repeated } else { (MOST - repeated) / 255 }
}

/// Memory for filtering a chunk, reused for later chunks.
#[derive(Default)]
pub(crate) struct Memory {
    all: Vec<Entry>,
    tokens: Vec<u32>,
    suffixes: Vec<u8>,
    table: Vec<Slot>,
    order: Vec<u32>,
    ranks: Vec<u32>,
}

/// Filters content whose records end at `ends`; the last record must end at the end of the content. If `split` is set,
/// splits off suffixes. Returns whether the suffixes differ.
pub(crate) fn filter(raw: &[u8], ends: &[u32], split: bool, memory: &mut Memory, out: &mut Vec<u8>) -> bool {
    out.clear();
    let (mut order, mut token) = (std::mem::take(&mut memory.order), std::mem::take(&mut memory.ranks));
    let entries = Entries::of(raw, ends, split, memory);
    entries.order(&mut order);
    let all_repeated = order.len();
    let repeated = all_repeated.min(MOST);
    if !split {
        entries.group(order.get_mut(..repeated).unwrap_or_default());
    }
    token.clear();
    token.resize(entries.all.len(), u32::MAX);
    for (rank, &id) in (0..).zip(order.iter().take(repeated)) {
        if let Some(token) = token.get_mut(id as usize) {
            *token = rank;
        }
    }
    let single = |id: &u32| token.get(*id as usize) == Some(&u32::MAX);
    let mut listed: Vec<&[u8]> = order.iter().take(repeated).map(|&id| entries.bytes(id)).collect();
    if all_repeated > repeated {
        listed.extend(entries.tokens.iter().copied().filter(single).map(|id| entries.bytes(id)));
    } else {
        // Single entries occur only once, so their order of appearance is the order of their numbers.
        listed.extend((0..).take(entries.all.len()).filter(single).map(|id| entries.bytes(id)));
    }
    for number in [repeated, listed.len() - repeated, entries.tokens.len()] {
        leb128::write(number as u64, out);
    }
    out.extend(listed.iter().map(|entry| u8::try_from(entry.len()).unwrap_or(u8::MAX)));
    write_columns(&listed, out);
    write_tokens(&entries.tokens, &token, repeated, out);
    if split {
        let repeated = order.get(..repeated).unwrap_or_default();
        write_suffixes(&entries, repeated, &token, out);
    }
    let differ = entries.suffixes.iter().any(|suffix| entries.suffixes.first() != Some(suffix));
    let Entries { all, tokens, suffixes, .. } = entries;
    *memory = Memory { all, tokens, suffixes, table: std::mem::take(&mut memory.table), order, ranks: token };
    differ
}

/// Writes the suffixes, grouped by entry, given the repeated entries in order of rank and the rank of each entry.
fn write_suffixes(entries: &Entries<'_>, repeated: &[u32], rank: &[u32], out: &mut Vec<u8>) {
    // The position of the next suffix for each rank, followed by the position for the next single entry.
    let mut next = Vec::with_capacity(repeated.len());
    let mut single = 0;
    for &id in repeated {
        next.push(single);
        single += entries.count(id) as usize;
    }
    let base = out.len();
    out.resize(base + entries.suffixes.len(), 0);
    for (&id, &suffix) in entries.tokens.iter().zip(&entries.suffixes) {
        let rank = rank.get(id as usize).map_or(usize::MAX, |&rank| rank as usize);
        let next = next.get_mut(rank).unwrap_or(&mut single);
        if let Some(place) = out.get_mut(base + *next) {
            *place = suffix;
        }
        *next += 1;
    }
}

fn write_columns(listed: &[&[u8]], out: &mut Vec<u8>) {
    let longest = listed.iter().map(|entry| entry.len()).max().unwrap_or(0);
    for column in 0..longest {
        out.extend(listed.iter().filter_map(|entry| entry.get(column)));
    }
}

/// Writes the tokens, given the rank of each entry. Entries without a rank are single.
#[allow(clippy::cast_possible_truncation, reason = "the rank is less than 65,280")]
fn write_tokens(tokens: &[u32], rank: &[u32], repeated: usize, out: &mut Vec<u8>) {
    let ones = ones(repeated);
    let bytes = |&rank: &u32| match rank as usize {
        rank if rank < ones => (rank as u8, 0),
        rank if rank < repeated => ((ones + (rank - ones) / 256) as u8, (rank - ones) as u8),
        _ => (SINGLE, 0),
    };
    let bytes: Vec<(u8, u8)> = rank.iter().map(bytes).collect();
    let mut seconds = Vec::new();
    out.extend(tokens.iter().map(|&id| {
        let (first, second) = bytes.get(id as usize).copied().unwrap_or((SINGLE, 0));
        if usize::from(first) >= ones && first != SINGLE {
            seconds.push(second);
        }
        first
    }));
    out.extend(seconds);
}

/// Masks for the low bytes of a number, indexed by the number of bytes.
const MASKS: [u64; KEY] = {
    let mut masks = [0; KEY];
    let mut length = 1;
    while length < KEY {
        masks[length] = masks[length - 1] << 8 | 0xFF;
        length += 1;
    }
    masks
};

/// Returns an entry of fewer than 8 bytes as a number that contains its bytes and, in the top byte, its length. Returns
/// `None` for a longer entry.
#[inline(always)]
fn key(raw: &[u8], at: usize, length: usize) -> Option<u64> {
    let mask = MASKS.get(length)?;
    let bytes = match raw.get(at..at + KEY).and_then(<[u8]>::first_chunk) {
        Some(bytes) => u64::from_le_bytes(*bytes) & mask,
        None => last_key(raw, at, length)?,
    };
    Some(bytes | (length as u64) << 56)
}

/// Returns the key of an entry at the end of the content.
#[cold]
fn last_key(raw: &[u8], at: usize, length: usize) -> Option<u64> {
    let mut bytes = [0; KEY];
    bytes.get_mut(..length)?.copy_from_slice(raw.get(at..at + length)?);
    Some(u64::from_le_bytes(bytes))
}

/// The distinct entries of a content, numbered in order of appearance.
struct Entries<'r> {
    raw: &'r [u8],
    all: Vec<Entry>,
    tokens: Vec<u32>,
    /// The byte after each entry, with filter 3.
    suffixes: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Entry {
    /// Start of the entry's first occurrence.
    start: u32,
    length: u32,
    /// Number of occurrences of the entry.
    count: u32,
}

impl<'r> Entries<'r> {
    fn of(raw: &'r [u8], ends: &[u32], split: bool, memory: &mut Memory) -> Self {
        let Memory { mut all, mut tokens, mut suffixes, table, .. } = std::mem::take(memory);
        all.clear();
        resize(&mut tokens, ends.len());
        resize(&mut suffixes, if split { ends.len() } else { 0 });
        let mut entries = Self { raw, all, tokens, suffixes };
        let mut short = ShortEntries::new(table);
        if split {
            entries.read::<1>(ends, &mut short);
        } else {
            entries.read::<0>(ends, &mut short);
        }
        for slot in short.table.iter().filter(|slot| slot.count > 0) {
            if let Some(entry) = entries.all.get_mut(slot.id as usize) {
                entry.count = slot.count;
            }
        }
        memory.table = short.table;
        entries
    }

    /// Finds the entry of every record. The last `SUFFIX` bytes of a record do not belong to its entry.
    #[inline(never)]
    fn read<const SUFFIX: usize>(&mut self, ends: &[u32], short: &mut ShortEntries) {
        let Self { raw, all, tokens, suffixes } = self;
        let raw = *raw;
        let mut long = HashMap::<&[u8], u32>::new();
        let (mut start, mut count) = (0, 0);
        for (&end, token) in ends.iter().zip(tokens.iter_mut()) {
            let end = end as usize;
            let length = end.wrapping_sub(start).wrapping_sub(SUFFIX);
            *token = match key(raw, start, length) {
                Some(key) => short.count(key, start, all),
                None if length <= LONGEST => count_long(raw, start, length, &mut long, all),
                None => break,
            };
            if SUFFIX > 0
                && let (Some(suffix), Some(byte)) = (suffixes.get_mut(count), raw.get(end - 1))
            {
                *suffix = *byte;
            }
            count += 1;
            start = end;
        }
        tokens.truncate(count);
        suffixes.truncate(count * SUFFIX);
        // Continue with the first record that is empty or too long for one entry.
        for &end in ends.get(count..).unwrap_or_default() {
            let record = raw.get(start..end as usize).unwrap_or_default();
            for run in record.chunks(LONGEST + SUFFIX) {
                let length = run.len() - SUFFIX;
                tokens.push(match key(raw, start, length) {
                    Some(key) => short.count(key, start, all),
                    None => count_long(raw, start, length, &mut long, all),
                });
                suffixes.extend(run.get(length..).unwrap_or_default());
                start += run.len();
            }
        }
    }

    fn bytes(&self, id: u32) -> &'r [u8] {
        let Some(entry) = self.all.get(id as usize) else { return &[] };
        self.raw.get(entry.start as usize..(entry.start + entry.length) as usize).unwrap_or_default()
    }

    fn count(&self, id: u32) -> u32 {
        self.all.get(id as usize).map_or(0, |entry| entry.count)
    }

    /// Lists the repeated entries from most to least frequent. Entries with the same frequency are ordered by first
    /// occurrence.
    fn order(&self, order: &mut Vec<u32>) {
        order.clear();
        order.extend((0..).zip(&self.all).filter(|(_, entry)| entry.count > 1).map(|(id, _)| id));
        order.sort_by_key(|&id| std::cmp::Reverse(self.count(id)));
    }

    /// Sorts the entries by length and then by their bytes, separately for entries with one-byte tokens and for the
    /// rest. Codecs compress columns and tokens better if similar entries have similar numbers. (Suffixes are stored by
    /// entry, so the order does not matter for them.)
    fn group(&self, order: &mut [u32]) {
        let ones = ones(order.len()).min(order.len());
        let (head, tail) = order.split_at_mut(ones);
        for part in [head, tail] {
            part.sort_unstable_by_key(|&id| (self.bytes(id).len(), self.bytes(id)));
        }
    }
}

/// Resizes the vector, whose contents become arbitrary.
fn resize<T: Copy + Default>(vec: &mut Vec<T>, length: usize) {
    if vec.capacity() < length {
        *vec = Vec::new(); // Free the old memory first.
        *vec = vec![T::default(); length.saturating_add(length / 8)];
    }
    vec.resize(length, T::default());
}

/// Adds an entry and returns its number.
fn add(all: &mut Vec<Entry>, start: usize, length: usize) -> u32 {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX); // Content is at most 64 MiB long.
    all.push(Entry { start: number(start), length: number(length), count: 0 });
    number(all.len() - 1)
}

/// Counts an occurrence of a long entry and returns its number.
#[inline(never)]
fn count_long<'r>(
    raw: &'r [u8],
    start: usize,
    length: usize,
    long: &mut HashMap<&'r [u8], u32>,
    all: &mut Vec<Entry>,
) -> u32 {
    let bytes = raw.get(start..start + length).unwrap_or_default();
    let id = *long.entry(bytes).or_insert_with(|| add(all, start, length));
    if let Some(entry) = all.get_mut(id as usize) {
        entry.count += 1;
    }
    id
}

/// A slot in the table of short entries.
#[derive(Clone, Copy)]
struct Slot {
    key: u64,
    id: u32,
    /// Number of occurrences; 0 for an empty slot.
    count: u32,
}

/// An empty slot, whose key belongs to no entry.
const EMPTY: Slot = Slot { key: u64::MAX, id: 0, count: 0 };

/// A hash table of short entries by key, with linear probing. At least half of its slots are empty.
struct ShortEntries {
    /// The slots, whose number is a power of two.
    table: Vec<Slot>,
    used: usize,
    /// Random seeds for hashing keys, so that hostile input cannot cause collisions on purpose.
    seeds: [u64; 2],
}

impl ShortEntries {
    /// Creates an empty table, reusing the memory of another.
    fn new(mut table: Vec<Slot>) -> Self {
        let seeds = [0, 1].map(|seed: u64| RandomState::new().hash_one(seed) | seed);
        table.clear();
        table.resize(1 << 10, EMPTY);
        Self { table, used: 0, seeds }
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation, reason = "both halves of a number, and less than the length")]
    fn hash(&self, key: u64) -> usize {
        let product = u128::from(key ^ self.seeds[0]) * u128::from(self.seeds[1]);
        ((product >> 64) as u64 ^ product as u64) as usize & (self.table.len() - 1)
    }

    /// Counts an occurrence of the entry with this key at `start` and returns its number.
    #[inline(always)]
    fn count(&mut self, key: u64, start: usize, all: &mut Vec<Entry>) -> u32 {
        let at = self.hash(key);
        match self.table.get_mut(at) {
            // The most frequent case.
            Some(slot) if slot.key == key => {
                slot.count += 1;
                slot.id
            }
            _ => self.count_elsewhere(key, at, start, all),
        }
    }

    /// Counts an occurrence like `count`, for an entry that is not in the slot given by its hash.
    #[inline(never)]
    fn count_elsewhere(&mut self, key: u64, hash: usize, start: usize, all: &mut Vec<Entry>) -> u32 {
        let at = self.find(key, hash);
        let Some(slot) = self.table.get_mut(at) else { return 0 };
        slot.count += 1;
        if slot.count > 1 {
            return slot.id;
        }
        let id = add(all, start, (key >> 56) as usize);
        (slot.key, slot.id) = (key, id);
        self.used += 1;
        if self.used * 2 > self.table.len() {
            self.grow();
        }
        id
    }

    /// Returns the slot that contains a key or would contain it.
    fn find(&self, key: u64, hash: usize) -> usize {
        let mut at = hash;
        while self.table.get(at).is_some_and(|slot| slot.count > 0 && slot.key != key) {
            at = (at + 1) & (self.table.len() - 1);
        }
        at
    }

    fn grow(&mut self) {
        let larger = vec![EMPTY; self.table.len() * 2];
        let slots = std::mem::replace(&mut self.table, larger);
        for slot in slots.into_iter().filter(|slot| slot.count > 0) {
            let at = self.find(slot.key, self.hash(slot.key));
            if let Some(place) = self.table.get_mut(at) {
                *place = slot;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record_dictionary_read::restore;
    use super::*;

    fn there_and_back(records: &[Vec<u8>]) -> usize {
        let raw = records.concat();
        let ends: Vec<u32> = records
            .iter()
            .scan(0, |end, r| {
                *end += u32::try_from(r.len()).unwrap();
                Some(*end)
            })
            .collect();
        let (mut memory, mut filtered) = (Memory::default(), Vec::new());
        for suffixes in [true, false] {
            filter(&raw, &ends, suffixes, &mut memory, &mut filtered);
            let mut back = vec![0; raw.len()];
            assert_eq!(restore(&filtered, suffixes, &mut back), Ok(()));
            assert_eq!(back, raw);
            for length in [raw.len() + 1, raw.len().saturating_sub(1)] {
                if length != raw.len() {
                    assert!(restore(&filtered, suffixes, &mut vec![0; length]).is_err());
                }
            }
        }
        filtered.len()
    }

    #[test]
    fn dictionary_and_back() {
        assert_eq!(there_and_back(&[]), 3);
        let record =
            |i: usize| [1, 2, 3, u8::try_from(i % 251).unwrap(), u8::try_from(i / 251 % 251).unwrap()].to_vec();
        // Few entries, entries with two-byte tokens, entries that occur once, and more entries than two bytes can
        // distinguish.
        for (records, different) in [(100, 3), (1000, 255), (1000, 256), (5000, 700), (500, 500), (180_000, 62_001)] {
            let all: Vec<Vec<u8>> = (0..records).map(|i| record(i * 7 % different)).collect();
            there_and_back(&all);
        }
        let wide = |i: u32| i.to_le_bytes().to_vec();
        let all: Vec<Vec<u8>> = (0..2).flat_map(|_| (0..70_000).map(wide)).collect();
        there_and_back(&all);
    }

    #[test]
    fn zeros_at_the_end_count() {
        // The lengths include the key length of a short entry. Each record occurs twice, so its entry is looked up.
        let all: Vec<Vec<u8>> = (0..2).flat_map(|_| (0..40).map(|length| vec![0; length])).collect();
        there_and_back(&all);
    }

    #[test]
    fn long_records_are_cut() {
        let long: Vec<u8> = (0..=255_u8).cycle().take(10_000).collect();
        there_and_back(&[long.clone(), vec![7; 255], vec![7; 256], Vec::new(), vec![1], long]);
    }

    #[test]
    fn damage_is_found() {
        let records: Vec<Vec<u8>> = (0..2000_u32).map(|i| (i % 300).to_le_bytes().to_vec()).collect();
        let raw = records.concat();
        let ends: Vec<u32> = (1..=2000).map(|i| i * 4).collect();
        for suffixes in [false, true] {
            let mut filtered = Vec::new();
            filter(&raw, &ends, suffixes, &mut Memory::default(), &mut filtered);
            let mut back = vec![0; raw.len()];
            for cut in 0..filtered.len() {
                assert!(restore(&filtered[..cut], suffixes, &mut back).is_err(), "cut at {cut}");
            }
            for at in 0..filtered.len() {
                let mut other = filtered.clone();
                other[at] ^= 0x80;
                let _ = restore(&other, suffixes, &mut back);
            }
        }
    }
}
