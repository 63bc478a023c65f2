//! Filter 2, phrases: records that stand in a chunk more than once become one byte, or two.
//!
//! The filtered bytes are, in this order, integers in LEB128: the number m of repeated phrases, the number s of single
//! ones, the number t of tokens; then m + s lengths of a byte each; the phrases in columns (the first byte of every phrase
//! that has one, then the second, ..), the repeated ones by falling frequency, then the single ones in order; t tokens of a
//! byte; and the second bytes of tokens that have one. Of the 256 tokens, 255 stands for the next single phrase, those under
//! `ones(m)` for the phrase of that rank, and the others, with their second byte, for the rest.

use hashbrown::HashMap;

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

#[allow(clippy::cast_possible_truncation, reason = "both bytes of a rank under 65,280")]
fn write_tokens(tokens: &[u32], rank: &[u32], repeated: usize, out: &mut Vec<u8>) {
    let ones = ones(repeated);
    let mut seconds = Vec::new();
    for &id in tokens {
        match rank.get(id as usize).map_or(usize::MAX, |&rank| rank as usize) {
            rank if rank < ones => out.push(rank as u8),
            rank if rank < repeated => {
                out.push((ones + (rank - ones) / 256) as u8);
                seconds.push((rank - ones) as u8);
            }
            _ => out.push(SINGLE),
        }
    }
    out.extend_from_slice(&seconds);
}

/// A phrase of under 16 bytes as a number: its bytes, and its length on top. `None`: it is longer.
#[inline]
fn key(raw: &[u8], at: usize, length: usize) -> Option<u128> {
    if length >= KEY {
        return None;
    }
    let bits = 8 * u32::try_from(length).ok()?;
    let bytes = match raw.get(at..).and_then(|rest| rest.first_chunk()) {
        Some(bytes) => u128::from_le_bytes(*bytes) & ((1 << bits) - 1),
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
    /// For each phrase where it stands first, and how often it comes.
    all: Vec<(u32, u32, u32)>,
    tokens: Vec<u32>,
}

impl<'r> Phrases<'r> {
    fn of(raw: &'r [u8], ends: &[u32]) -> Self {
        let mut phrases = Self { raw, all: Vec::new(), tokens: Vec::with_capacity(ends.len()) };
        let (mut short, mut long) = (HashMap::<u128, u32>::new(), HashMap::<&[u8], u32>::new());
        let mut start = 0;
        for &end in ends {
            let record = raw.get(start as usize..end as usize).unwrap_or_default();
            let mut at = start;
            for phrase in record.chunks(LONGEST) {
                let length = u32::try_from(phrase.len()).unwrap_or(0);
                let next = u32::try_from(phrases.all.len()).unwrap_or(0);
                let id = match key(raw, at as usize, phrase.len()) {
                    Some(key) => *short.entry(key).or_insert(next),
                    None => *long.entry(phrase).or_insert(next),
                };
                if id == next {
                    phrases.all.push((at, length, 0));
                }
                if let Some(phrase) = phrases.all.get_mut(id as usize) {
                    phrase.2 += 1;
                }
                phrases.tokens.push(id);
                at += length;
            }
            start = end;
        }
        phrases
    }

    fn bytes(&self, id: u32) -> &'r [u8] {
        let (start, length, _) = self.all.get(id as usize).copied().unwrap_or_default();
        self.raw.get(start as usize..(start + length) as usize).unwrap_or_default()
    }

    fn count(&self, id: u32) -> u32 {
        self.all.get(id as usize).map_or(0, |phrase| phrase.2)
    }

    /// All phrases, the most frequent first; of equally frequent ones the one that came first.
    fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..u32::try_from(self.all.len()).unwrap_or(u32::MAX)).collect();
        order.sort_by_key(|&id| std::cmp::Reverse(self.count(id)));
        order
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
    let dictionary = Dictionary::read(lengths, rest).ok_or("phrases without bytes")?;
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
        let &(start, length) =
            dictionary.places.get(phrase).filter(|_| phrase < phrases).ok_or("more single phrases than there are")?;
        let (start, length) = (start as usize, usize::from(length));
        let bytes = dictionary.bytes.get(start..start + COPIED);
        match (out.get_mut(at..at + COPIED), bytes) {
            (Some(out), Some(bytes)) if length <= COPIED => out.copy_from_slice(bytes),
            _ => {
                let out = out.get_mut(at..at + length).ok_or("more content than there should be")?;
                out.copy_from_slice(dictionary.bytes.get(start..start + length).unwrap_or_default());
            }
        }
        at += length;
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
    /// Bytes of all of them.
    length: usize,
}

impl Dictionary {
    fn read(lengths: &[u8], columns: &[u8]) -> Option<Self> {
        let length: usize = lengths.iter().map(|&length| usize::from(length)).sum();
        let columns = columns.get(..length)?;
        let mut bytes = vec![0; length + COPIED];
        let mut places = Vec::with_capacity(lengths.len());
        let mut start = 0_u32;
        for &length in lengths {
            places.push((start, length));
            start = start.checked_add(length.into())?;
        }
        let mut columns = columns.iter();
        for column in 0..lengths.iter().copied().max().unwrap_or(0) {
            for &(start, length) in &places {
                if length > column {
                    *bytes.get_mut(start as usize + usize::from(column))? = *columns.next()?;
                }
            }
        }
        Some(Self { bytes, places, length })
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
