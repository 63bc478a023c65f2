//! Filter 2, phrases: records that stand in a chunk more than once become one byte, or two.
//!
//! The filtered bytes are, in this order, integers in LEB128: the number m of repeated phrases, the number s of single
//! ones, the number t of tokens; then m + s lengths of a byte each; the phrases in columns (the first byte of every phrase
//! that has one, then the second, ..), the repeated ones by falling frequency, then the single ones in order; t tokens of a
//! byte; and the second bytes of tokens that have one. Of the 256 tokens, 255 stands for the next single phrase, those under
//! `ones(m)` for the phrase of that rank, and the others, with their second byte, for the rest.

use hashbrown::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// The token of the next single phrase.
const SINGLE: u8 = 255;
/// Repeated phrases at most: 255 tokens with a second byte each.
const MOST: usize = 255 * 256;
/// The longest phrase; longer records are cut.
const LONGEST: usize = 255;
/// Bytes of the key of a short phrase, one of them for the length.
const KEY: usize = 16;

/// How many ranks are a token by themselves.
fn ones(repeated: usize) -> usize {
    if repeated <= 255 { repeated } else { (MOST - repeated) / 255 }
}

/// Filters content whose records end at `ends`, the last of them at its own end.
pub(crate) fn filter(raw: &[u8], ends: &[u32], out: &mut Vec<u8>) {
    out.clear();
    let phrases = Phrases::of(raw, ends);
    let order = phrases.order();
    let repeated = order.iter().take_while(|&&id| phrases.count(id) > 1).count().min(MOST);
    let mut token = vec![u32::MAX; order.len()];
    for (rank, &id) in (0..).zip(order.iter().take(repeated)) {
        if let Some(token) = token.get_mut(id as usize) {
            *token = rank;
        }
    }
    let single = |id: u32| token.get(id as usize) == Some(&u32::MAX);
    let singles = phrases.tokens.iter().copied().filter(|&id| single(id));
    let listed: Vec<&[u8]> = order.iter().take(repeated).copied().chain(singles).map(|id| phrases.bytes(id)).collect();
    for number in [repeated, listed.len() - repeated, phrases.tokens.len()] {
        write_number(number, out);
    }
    out.extend(listed.iter().map(|phrase| u8::try_from(phrase.len()).unwrap_or(u8::MAX)));
    write_columns(&listed, out);
    write_tokens(&phrases.tokens, &token, repeated, out);
}

fn write_columns(listed: &[&[u8]], out: &mut Vec<u8>) {
    let longest = listed.iter().map(|phrase| phrase.len()).max().unwrap_or(0);
    for column in 0..longest {
        out.extend(listed.iter().filter_map(|phrase| phrase.get(column)));
    }
}

/// Writes the tokens, given the rank of each phrase; those without one are single.
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

/// The bits of so many bytes.
const MASKS: [u128; KEY] = {
    let mut masks = [0; KEY];
    let mut length = 1;
    while length < KEY {
        masks[length] = masks[length - 1] << 8 | 0xFF;
        length += 1;
    }
    masks
};

/// A phrase of under 16 bytes as a number: its bytes, and its length on top. `None`: it is longer.
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

/// The different phrases of a content, numbered as they come.
struct Phrases<'r> {
    raw: &'r [u8],
    all: Vec<Phrase>,
    tokens: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Phrase {
    /// Its bytes as a number, where it is short; else 0.
    key: u128,
    /// Where it stands first.
    start: u32,
    length: u32,
    /// How often it comes.
    count: u32,
}

impl<'r> Phrases<'r> {
    fn of(raw: &'r [u8], ends: &[u32]) -> Self {
        let mut phrases = Self { raw, all: Vec::new(), tokens: Vec::with_capacity(ends.len()) };
        let (mut short, mut long) = (Short::new(), HashMap::<&[u8], u32>::new());
        let mut start = 0;
        for &end in ends {
            let record = raw.get(start as usize..end as usize).unwrap_or_default();
            match key(raw, start as usize, record.len()) {
                Some(key) if !record.is_empty() => phrases.add_short(&mut short, key, start, end - start),
                _ => phrases.add_long(&mut short, &mut long, start, record),
            }
            start = end;
        }
        phrases
    }

    #[inline]
    fn add_short(&mut self, short: &mut Short, key: u128, start: u32, length: u32) {
        let (slot, id) = short.find(key, &self.all);
        if let Some(phrase) = self.all.get_mut(id as usize) {
            phrase.count += 1;
            self.tokens.push(id);
            return;
        }
        let id = self.add(Phrase { key, start, length, count: 1 });
        short.note(slot, id, &self.all);
    }

    /// A new phrase, which is the next token, too: its number.
    fn add(&mut self, phrase: Phrase) -> u32 {
        let id = u32::try_from(self.all.len()).unwrap_or(NO_PHRASE);
        self.all.push(phrase);
        self.tokens.push(id);
        id
    }

    /// A record that is no short phrase: one phrase or more.
    #[cold]
    fn add_long(&mut self, short: &mut Short, long: &mut HashMap<&'r [u8], u32>, start: u32, record: &'r [u8]) {
        let mut start = start;
        for bytes in record.chunks(LONGEST) {
            let length = u32::try_from(bytes.len()).unwrap_or(0);
            if let Some(key) = key(self.raw, start as usize, bytes.len()) {
                self.add_short(short, key, start, length);
            } else if let Some(phrase) = long.get(bytes).and_then(|&id| self.all.get_mut(id as usize)) {
                phrase.count += 1;
                self.tokens.extend(long.get(bytes));
            } else {
                let id = self.add(Phrase { key: 0, start, length, count: 1 });
                long.insert(bytes, id);
            }
            start += length;
        }
    }

    fn bytes(&self, id: u32) -> &'r [u8] {
        let Some(phrase) = self.all.get(id as usize) else { return &[] };
        self.raw.get(phrase.start as usize..(phrase.start + phrase.length) as usize).unwrap_or_default()
    }

    fn count(&self, id: u32) -> u32 {
        self.all.get(id as usize).map_or(0, |phrase| phrase.count)
    }

    /// All phrases, the most frequent first; of equally frequent ones the one that came first.
    fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..u32::try_from(self.all.len()).unwrap_or(u32::MAX)).collect();
        order.sort_by_key(|&id| std::cmp::Reverse(self.count(id)));
        order
    }
}

/// No phrase has this number.
const NO_PHRASE: u32 = u32::MAX;

/// Short phrases by their keys: a table of numbers, in which those that meet go on to the next place. It stays half empty.
struct Short {
    /// A power of two of them.
    ids: Vec<u32>,
    used: usize,
    /// What goes into a key's hash: nobody can foresee which keys meet.
    seeds: [u64; 2],
}

impl Short {
    fn new() -> Self {
        let seeds = [0, 1].map(|seed: u64| RandomState::new().hash_one(seed));
        Self { ids: vec![NO_PHRASE; 1 << 10], used: 0, seeds }
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "both halves of a number, and less than the length")]
    fn hash(&self, key: u128) -> usize {
        let [low, high] = [key as u64 ^ self.seeds[0], (key >> 64) as u64 ^ self.seeds[1]];
        let product = u128::from(low) * u128::from(high);
        ((product >> 64) as u64 ^ product as u64) as usize & (self.ids.len() - 1)
    }

    /// Where a key is, or would be, and the number of its phrase.
    #[inline]
    fn find(&self, key: u128, all: &[Phrase]) -> (usize, u32) {
        let mut slot = self.hash(key);
        loop {
            let id = self.ids.get(slot).copied().unwrap_or(NO_PHRASE);
            if all.get(id as usize).is_none_or(|phrase| phrase.key == key) {
                return (slot, id);
            }
            slot = (slot + 1) & (self.ids.len() - 1);
        }
    }

    /// Notes a new phrase where it would be.
    fn note(&mut self, slot: usize, id: u32, all: &[Phrase]) {
        if let Some(place) = self.ids.get_mut(slot) {
            *place = id;
        }
        self.used += 1;
        if self.used * 2 <= self.ids.len() {
            return;
        }
        let more = vec![NO_PHRASE; self.ids.len() * 4];
        let known = std::mem::replace(&mut self.ids, more);
        for id in known {
            let Some(phrase) = all.get(id as usize) else { continue };
            let (slot, _) = self.find(phrase.key, all);
            if let Some(place) = self.ids.get_mut(slot) {
                *place = id;
            }
        }
    }
}

/// Undoes the filter; `out` is as long as the content is said to be. The error says what is wrong.
pub(crate) fn restore(filtered: &[u8], out: &mut [u8]) -> Result<(), &'static str> {
    let mut rest = filtered;
    let (repeated, singles, tokens) = (read_number(&mut rest)?, read_number(&mut rest)?, read_number(&mut rest)?);
    if repeated > MOST {
        return Err("more phrases than two bytes can tell apart");
    }
    let phrases = repeated.checked_add(singles).filter(|&n| n <= rest.len()).ok_or("phrases without a length")?;
    let (lengths, rest) = rest.split_at(phrases);
    let dictionary = Dictionary::read(repeated, lengths, rest).ok_or("phrases without bytes")?;
    let rest = rest.get(dictionary.length..).unwrap_or_default();
    let (first, second) = rest.split_at_checked(tokens).ok_or("fewer tokens than there should be")?;
    expand(&dictionary, (repeated, phrases), first, second, out)
}

/// Bytes that are copied at once; phrases are seldom longer.
const COPIED: usize = 16;

fn expand(
    dictionary: &Dictionary,
    (repeated, phrases): (usize, usize),
    first: &[u8],
    second: &[u8],
    out: &mut [u8],
) -> Result<(), &'static str> {
    let ones = ones(repeated);
    let mut second = second.iter();
    let mut next_single = repeated;
    let mut at = 0;
    for &token in first {
        let token = usize::from(token);
        let phrase = if token < ones {
            token
        } else if token == usize::from(SINGLE) {
            next_single += 1;
            next_single - 1
        } else {
            let low = *second.next().ok_or("a token without its second byte")?;
            Some(ones + (token - ones) * 256 + usize::from(low)).filter(|&p| p < repeated).ok_or("an unknown token")?
        };
        // Most tokens: of a short phrase, where there is room for more than that.
        if let Some((bytes, length)) = dictionary.short.get(phrase)
            && let Some(out) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut)
        {
            *out = *bytes;
            at += usize::from(*length);
            continue;
        }
        let bytes =
            dictionary.phrase(phrase).filter(|_| phrase < phrases).ok_or("more single phrases than there are")?;
        let out = out.get_mut(at..at + bytes.len()).ok_or("more content than there should be")?;
        out.copy_from_slice(bytes);
        at += bytes.len();
    }
    match (at == out.len(), second.next(), next_single == phrases) {
        (true, None, true) => Ok(()),
        (false, ..) => Err("less content than there should be"),
        _ => Err("phrases or tokens left over"),
    }
}

/// The phrases, one behind the other.
struct Dictionary {
    bytes: Vec<u8>,
    /// Where each begins, and its length.
    places: Vec<(u32, u8)>,
    /// The first ones, as far as they fit the bytes that are copied at once, with their lengths.
    short: Vec<([u8; COPIED], u8)>,
    /// Bytes of all of them.
    length: usize,
}

impl Dictionary {
    fn read(repeated: usize, lengths: &[u8], columns: &[u8]) -> Option<Self> {
        let length: usize = lengths.iter().map(|&length| usize::from(length)).sum();
        let columns = columns.get(..length)?;
        let mut bytes = vec![0; length + COPIED];
        let mut places = Vec::with_capacity(lengths.len());
        let mut start = 0_u32;
        for &length in lengths {
            places.push((start, length));
            start = start.checked_add(length.into())?;
        }
        // Where the next byte of each column is. Phrase by phrase, so that they are written in order.
        let mut next = column_starts(lengths);
        let mut phrase = bytes.as_mut_slice();
        for &length in lengths {
            let (these, rest) = phrase.split_at_mut_checked(length.into())?;
            for (byte, next) in these.iter_mut().zip(&mut next) {
                *byte = *columns.get(*next)?;
                *next += 1;
            }
            phrase = rest;
        }
        let fits = places.iter().take(repeated).take_while(|(_, length)| usize::from(*length) <= COPIED);
        let short = fits.filter_map(|&(start, length)| Some((*bytes.get(start as usize..)?.first_chunk()?, length)));
        let short = short.collect();
        Some(Self { bytes, places, short, length })
    }

    fn phrase(&self, phrase: usize) -> Option<&[u8]> {
        let &(start, length) = self.places.get(phrase)?;
        self.bytes.get(start as usize..)?.get(..length.into())
    }
}

/// Where the columns of phrases of these lengths begin.
fn column_starts(lengths: &[u8]) -> [usize; 256] {
    let mut longer = [0; 256];
    for &length in lengths {
        longer[usize::from(length)] += 1;
    }
    // The first column has a byte of every phrase that has one.
    let mut next = [0; 256];
    let (mut start, mut count) = (0, lengths.len());
    for (next, ends) in next.iter_mut().zip(longer) {
        count -= ends;
        *next = start;
        start += count;
    }
    next
}

#[allow(clippy::cast_possible_truncation, reason = "seven bits at a time")]
fn write_number(mut number: usize, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn read_number(bytes: &mut &[u8]) -> Result<usize, &'static str> {
    let mut number = 0_usize;
    for shift in (0..35).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or("it ends in a number")?;
        *bytes = rest;
        number |= usize::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err("a number over 2^35")
}

#[cfg(test)]
mod tests {
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
        let mut filtered = Vec::new();
        filter(&raw, &ends, &mut filtered);
        let mut back = vec![0; raw.len()];
        assert_eq!(restore(&filtered, &mut back), Ok(()));
        assert_eq!(back, raw);
        for length in [raw.len() + 1, raw.len().saturating_sub(1)] {
            if length != raw.len() {
                assert!(restore(&filtered, &mut vec![0; length]).is_err());
            }
        }
        filtered.len()
    }

    #[test]
    fn phrases_and_back() {
        assert_eq!(there_and_back(&[]), 3);
        let record =
            |i: usize| [1, 2, 3, u8::try_from(i % 251).unwrap(), u8::try_from(i / 251 % 251).unwrap()].to_vec();
        // Few, many with two bytes, all single, and more than two bytes can tell apart.
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
        // Around the length of a short phrase's key; twice, so that each is looked up.
        let all: Vec<Vec<u8>> = (0..2).flat_map(|_| (0..40).map(|length| vec![0; length])).collect();
        there_and_back(&all);
    }

    #[test]
    fn long_records_are_cut() {
        let long: Vec<u8> = (0..=255_u8).cycle().take(10_000).collect();
        there_and_back(&[long.clone(), vec![7; 255], vec![7; 256], Vec::new(), vec![1], long]);
    }

    #[test]
    fn damage_is_told() {
        let records: Vec<Vec<u8>> = (0..2000_u32).map(|i| (i % 300).to_le_bytes().to_vec()).collect();
        let raw = records.concat();
        let ends: Vec<u32> = (1..=2000).map(|i| i * 4).collect();
        let mut filtered = Vec::new();
        filter(&raw, &ends, &mut filtered);
        let mut back = vec![0; raw.len()];
        for cut in 0..filtered.len() {
            assert!(restore(&filtered[..cut], &mut back).is_err(), "cut at {cut}");
        }
        for at in 0..filtered.len() {
            let mut other = filtered.clone();
            other[at] ^= 0x80;
            let _ = restore(&other, &mut back);
        }
    }
}
