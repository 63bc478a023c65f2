//! Filter 2, record dictionary: records that stand in a chunk more than once become one byte, or two. Filter 3, split
//! suffix: the same of records without the last byte of each, which are stored behind, sorted by what is before them.
//! (Section 5.2 of the specification calls an entry of the dictionary a phrase, and the byte split off a tail.)
//!
//! The filtered bytes are, in this order, integers in LEB128: the number m of repeated entries, the number s of single
//! ones, the number t of tokens; then m + s lengths of a byte each; the entries in columns (the first byte of every entry
//! that has one, then the second, ..), the repeated ones by falling frequency, then the single ones in order; t tokens of a
//! byte; and the second bytes of tokens that have one. Of the 256 tokens, 255 stands for the next single entry, those under
//! `ones(m)` for the entry of that rank, and the others, with their second byte, for the rest.
//!
//! With filter 3 there follow t suffixes: those behind the first entry, wherever it stands, in order, then those behind the
//! second, and so on. What a record ends in is predicted best by how it begins: behind a tag and a size there is a code that is
//! often that of the object of that size before.

use crate::memory;
use hashbrown::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// The token of the next single entry.
pub(super) const SINGLE: u8 = 255;
/// Repeated entries at most: 255 tokens with a second byte each.
pub(super) const MOST: usize = 255 * 256;
/// The longest entry; longer records are cut.
const LONGEST: usize = 255;
/// Bytes of the key of a short entry, one of them for the length.
const KEY: usize = 16;

/// How many ranks are a token by themselves.
pub(super) fn ones(repeated: usize) -> usize {
    if repeated <= 255 { repeated } else { (MOST - repeated) / 255 }
}

/// Memory that filtering a chunk takes, for the chunks behind it.
#[derive(Default)]
pub(crate) struct Memory {
    all: Vec<Entry>,
    tokens: Vec<u32>,
    suffixes: Vec<u8>,
    ids: Vec<u32>,
    order: Vec<u32>,
    ranks: Vec<u32>,
}

/// Filters content whose records end at `ends`, the last of them at its own end; with or without suffixes. Whether it has suffixes
/// that differ.
pub(crate) fn filter(raw: &[u8], ends: &[u32], split: bool, memory: &mut Memory, out: &mut Vec<u8>) -> bool {
    out.clear();
    let (mut order, mut token) = (std::mem::take(&mut memory.order), std::mem::take(&mut memory.ranks));
    let entries = Entries::of(raw, ends, split, memory);
    entries.order(&mut order);
    let repeated = order.iter().take_while(|&&id| entries.count(id) > 1).count().min(MOST);
    token.clear();
    token.resize(order.len(), u32::MAX);
    for (rank, &id) in (0..).zip(order.iter().take(repeated)) {
        if let Some(token) = token.get_mut(id as usize) {
            *token = rank;
        }
    }
    let single = |id: u32| token.get(id as usize) == Some(&u32::MAX);
    let singles = entries.tokens.iter().copied().filter(|&id| single(id));
    let listed: Vec<&[u8]> = order.iter().take(repeated).copied().chain(singles).map(|id| entries.bytes(id)).collect();
    for number in [repeated, listed.len() - repeated, entries.tokens.len()] {
        write_number(number, out);
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
    *memory = Memory { all, tokens, suffixes, ids: std::mem::take(&mut memory.ids), order, ranks: token };
    differ
}

/// Writes the suffixes by entry, given the repeated ones in order, and the rank of each entry.
fn write_suffixes(entries: &Entries<'_>, repeated: &[u32], rank: &[u32], out: &mut Vec<u8>) {
    // Where the next suffix of each rank goes; behind them that of the next single entry.
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

/// Writes the tokens, given the rank of each entry; those without one are single.
#[allow(clippy::cast_possible_truncation, reason = "both bytes of a rank under 65,280")]
fn write_tokens(tokens: &[u32], rank: &[u32], repeated: usize, out: &mut Vec<u8>) {
    let ones = ones(repeated);
    let first = |&rank: &u32| match rank as usize {
        rank if rank < ones => rank as u8,
        rank if rank < repeated => (ones + (rank - ones) / 256) as u8,
        _ => SINGLE,
    };
    let firsts: Vec<u8> = rank.iter().map(first).collect();
    out.extend(tokens.iter().map(|&id| firsts.get(id as usize).copied().unwrap_or(SINGLE)));
    if ones == repeated {
        return;
    }
    let two = |rank: &u32| (ones..repeated).contains(&(*rank as usize));
    let ranks = tokens.iter().filter_map(|&id| rank.get(id as usize).copied());
    out.extend(ranks.filter(two).map(|rank| (rank as usize - ones) as u8));
}

/// The bits of this many bytes.
const MASKS: [u128; KEY] = {
    let mut masks = [0; KEY];
    let mut length = 1;
    while length < KEY {
        masks[length] = masks[length - 1] << 8 | 0xFF;
        length += 1;
    }
    masks
};

/// An entry of under 16 bytes as a number: its bytes, and its length on top. `None`: it is longer.
#[inline]
fn key(raw: &[u8], at: usize, length: usize) -> Option<u128> {
    if length >= KEY {
        return None;
    }
    let bytes = match raw.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(bytes) => u128::from_le_bytes(*bytes) & MASKS[length],
        None => {
            let mut bytes = [0; KEY];
            bytes.get_mut(..length)?.copy_from_slice(raw.get(at..at + length)?);
            u128::from_le_bytes(bytes)
        }
    };
    Some(bytes | (length as u128) << 120)
}

/// The different entries of a content, numbered as they come.
struct Entries<'r> {
    raw: &'r [u8],
    all: Vec<Entry>,
    tokens: Vec<u32>,
    /// The byte behind each, with filter 3.
    suffixes: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Entry {
    /// Its bytes as a number, where it is short; else 0.
    key: u128,
    /// Where it stands first.
    start: u32,
    length: u32,
    /// How often it comes.
    count: u32,
}

impl<'r> Entries<'r> {
    fn of(raw: &'r [u8], ends: &[u32], split: bool, memory: &mut Memory) -> Self {
        let Memory { mut all, mut tokens, mut suffixes, ids, .. } = std::mem::take(memory);
        all.clear();
        memory::reserve(&mut tokens, ends.len());
        memory::reserve(&mut suffixes, if split { ends.len() } else { 0 });
        let mut entries = Self { raw, all, tokens, suffixes };
        let (mut short, mut long) = (ShortEntries::new(ids), HashMap::<&[u8], u32>::new());
        let suffix = usize::from(split);
        let mut start = 0;
        for &end in ends {
            let record = raw.get(start as usize..end as usize).unwrap_or_default();
            match key(raw, start as usize, record.len().saturating_sub(suffix)) {
                Some(key) if !record.is_empty() => {
                    entries.add_short(&mut short, key, start, end - start - u32::from(split));
                    entries.suffixes.extend(record.last().filter(|_| split));
                }
                _ => entries.add_long(&mut short, &mut long, start, record, suffix),
            }
            start = end;
        }
        memory.ids = short.ids;
        entries
    }

    #[inline]
    fn add_short(&mut self, short: &mut ShortEntries, key: u128, start: u32, length: u32) {
        let (slot, id) = short.find(key, &self.all);
        if let Some(entry) = self.all.get_mut(id as usize) {
            entry.count += 1;
            self.tokens.push(id);
            return;
        }
        let id = self.add(Entry { key, start, length, count: 1 });
        short.note(slot, id, &self.all);
    }

    /// A new entry, which is the next token, too: its number.
    fn add(&mut self, entry: Entry) -> u32 {
        let id = u32::try_from(self.all.len()).unwrap_or(NO_ENTRY);
        self.all.push(entry);
        self.tokens.push(id);
        id
    }

    /// A record that is not a short entry: one entry or more.
    #[cold]
    fn add_long(
        &mut self,
        short: &mut ShortEntries,
        long: &mut HashMap<&'r [u8], u32>,
        mut start: u32,
        record: &'r [u8],
        suffix: usize,
    ) {
        for run in record.chunks(LONGEST + suffix) {
            let (bytes, suffixes) = run.split_at(run.len() - suffix);
            let length = u32::try_from(bytes.len()).unwrap_or(0);
            if let Some(key) = key(self.raw, start as usize, bytes.len()) {
                self.add_short(short, key, start, length);
            } else if let Some(entry) = long.get(bytes).and_then(|&id| self.all.get_mut(id as usize)) {
                entry.count += 1;
                self.tokens.extend(long.get(bytes));
            } else {
                let id = self.add(Entry { key: 0, start, length, count: 1 });
                long.insert(bytes, id);
            }
            self.suffixes.extend_from_slice(suffixes);
            start += u32::try_from(run.len()).unwrap_or(0);
        }
    }

    fn bytes(&self, id: u32) -> &'r [u8] {
        let Some(entry) = self.all.get(id as usize) else { return &[] };
        self.raw.get(entry.start as usize..(entry.start + entry.length) as usize).unwrap_or_default()
    }

    fn count(&self, id: u32) -> u32 {
        self.all.get(id as usize).map_or(0, |entry| entry.count)
    }

    /// All entries, the most frequent first; of equally frequent ones the one that came first.
    fn order(&self, order: &mut Vec<u32>) {
        order.clear();
        order.extend(0..u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        order.sort_by_key(|&id| std::cmp::Reverse(self.count(id)));
    }
}

/// No entry has this number.
const NO_ENTRY: u32 = u32::MAX;

/// Short entries by their keys: a table of numbers, in which those that meet go on to the next place. It stays half empty.
struct ShortEntries {
    /// A power of two of them.
    ids: Vec<u32>,
    used: usize,
    /// What goes into a key's hash: nobody can foresee which keys meet.
    seeds: [u64; 2],
}

impl ShortEntries {
    /// An empty table, in memory that was another's.
    fn new(mut ids: Vec<u32>) -> Self {
        let seeds = [0, 1].map(|seed: u64| RandomState::new().hash_one(seed));
        ids.clear();
        ids.resize(1 << 10, NO_ENTRY);
        Self { ids, used: 0, seeds }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "both halves of a number, and less than the length")]
    fn hash(&self, key: u128) -> usize {
        let [low, high] = [key as u64 ^ self.seeds[0], (key >> 64) as u64 ^ self.seeds[1]];
        let product = u128::from(low) * u128::from(high);
        ((product >> 64) as u64 ^ product as u64) as usize & (self.ids.len() - 1)
    }

    /// Where a key is, or would be, and the number of its entry.
    #[inline]
    fn find(&self, key: u128, all: &[Entry]) -> (usize, u32) {
        let mut slot = self.hash(key);
        loop {
            let id = self.ids.get(slot).copied().unwrap_or(NO_ENTRY);
            if all.get(id as usize).is_none_or(|entry| entry.key == key) {
                return (slot, id);
            }
            slot = (slot + 1) & (self.ids.len() - 1);
        }
    }

    /// Notes a new entry where it would be.
    fn note(&mut self, slot: usize, id: u32, all: &[Entry]) {
        if let Some(place) = self.ids.get_mut(slot) {
            *place = id;
        }
        self.used += 1;
        if self.used * 2 <= self.ids.len() {
            return;
        }
        let more = self.ids.len() * 4;
        self.ids.clear();
        self.ids.resize(more, NO_ENTRY);
        for (id, entry) in (0..).zip(all).filter(|(_, entry)| (entry.length as usize) < KEY) {
            let (slot, _) = self.find(entry.key, all);
            if let Some(place) = self.ids.get_mut(slot) {
                *place = id;
            }
        }
    }
}

#[allow(clippy::cast_possible_truncation, reason = "seven bits at a time")]
fn write_number(mut number: usize, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
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
        // Few, many with two bytes, all single, and more than two bytes can distinguish.
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
        // Around the length of a short entry's key; twice, so that each is looked up.
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
