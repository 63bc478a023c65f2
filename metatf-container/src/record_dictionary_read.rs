//! Reverses filters 2 and 3, which `record_dictionary` applies.

use super::leb128::read_short;
use super::record_dictionary::{MOST, SINGLE, ones};

/// Number of bytes copied at once. Entries are rarely longer.
const COPIED: usize = 16;

/// Reverses filter 2, or filter 3 if `split` is set. `out` has the declared length of the content. If the filtered
/// bytes are invalid, returns a description of the problem.
pub(crate) fn restore(filtered: &[u8], split: bool, out: &mut [u8]) -> Result<(), &'static str> {
    let mut rest = filtered;
    let (repeated, singles, tokens) = (read_short(&mut rest)?, read_short(&mut rest)?, read_short(&mut rest)?);
    if repeated > MOST {
        return Err("the dictionary has more entries than two-byte tokens can distinguish");
    }
    let entries = repeated.checked_add(singles).filter(|&n| n <= rest.len()).ok_or("some entries have no length")?;
    let (lengths, rest) = rest.split_at(entries);
    let length = lengths.iter().map(|&length| usize::from(length)).sum();
    let (columns, rest) = rest.split_at_checked(length).ok_or("some entries have too few bytes")?;
    let (lengths, single) = lengths.split_at(repeated);
    let mut singles = Singles { lengths: single.iter(), columns, next: column_starts(lengths, single), suffix: 0 };
    let mut dictionary = Dictionary::read(lengths, &mut singles).ok_or("some entries have too few bytes")?;
    let (first, rest) = rest.split_at_checked(tokens).ok_or("tokens are missing")?;
    if !split {
        let tokens = Tokens { repeated, ones: ones(repeated), first, second: rest };
        return expand::<false>(&mut dictionary, &mut singles, &tokens, &[], out);
    }
    let seconds = rest.len().checked_sub(tokens).ok_or("there are fewer suffixes than tokens")?;
    let (second, suffixes) = rest.split_at(seconds);
    let tokens = Tokens { repeated, ones: ones(repeated), first, second };
    singles.suffix = dictionary.place_suffixes(&tokens)?;
    expand::<true>(&mut dictionary, &mut singles, &tokens, suffixes, out)
}

struct Tokens<'t> {
    /// Number of repeated entries.
    repeated: usize,
    /// Number of repeated entries with a one-byte token.
    ones: usize,
    first: &'t [u8],
    second: &'t [u8],
}

impl Tokens<'_> {
    /// Returns the entry that a two-byte token represents.
    #[inline(always)]
    fn of_two<'s>(&self, token: usize, second: &mut impl Iterator<Item = &'s u8>) -> Result<usize, &'static str> {
        let low = *second.next().ok_or("a token has no second byte")?;
        let entry = self.ones + (token - self.ones) * 256 + usize::from(low);
        if entry < self.repeated { Ok(entry) } else { Err("a token has no entry") }
    }
}

fn expand<const SPLIT: bool>(
    dictionary: &mut Dictionary,
    singles: &mut Singles<'_>,
    tokens: &Tokens<'_>,
    suffixes: &[u8],
    out: &mut [u8],
) -> Result<(), &'static str> {
    let mut second = tokens.second.iter();
    let mut at = 0;
    for &token in tokens.first {
        let token = usize::from(token);
        let entry = if token < tokens.ones {
            token
        } else if token == usize::from(SINGLE) {
            at += singles.put::<SPLIT>(out.get_mut(at..).unwrap_or_default(), suffixes)?;
            continue;
        } else {
            tokens.of_two(token, &mut second)?
        };
        // The most frequent case: the token of a short entry, with enough space for the fixed-size copy.
        if let Some(ShortEntry { bytes, length, suffix }) = dictionary.short.get_mut(entry)
            && let Some(out) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<{ COPIED + 1 }>)
            && let Some((copied, _)) = out.split_first_chunk_mut()
        {
            *copied = *bytes;
            at += usize::from(*length);
            if SPLIT
                && let (Some(place), Some(byte)) = (out.get_mut(usize::from(*length)), suffixes.get(*suffix as usize))
            {
                *place = *byte;
                *suffix += 1;
                at += 1;
            }
            continue;
        }
        let suffix = if SPLIT { dictionary.next_suffix(entry, suffixes) } else { None };
        let bytes = dictionary.entry(entry).ok_or("a token has no entry")?;
        let all = bytes.iter().chain(suffix);
        let place =
            out.get_mut(at..at + bytes.len() + usize::from(SPLIT)).ok_or("the content is longer than declared")?;
        at += place.len();
        for (place, byte) in place.iter_mut().zip(all) {
            *place = *byte;
        }
    }
    match (at == out.len(), second.next(), singles.lengths.len() == 0) {
        (true, None, true) => Ok(()),
        (false, ..) => Err("the content is shorter than declared"),
        _ => Err("some entries or tokens are unused"),
    }
}

/// The single entries in order, which are moved from their columns to the output.
struct Singles<'c> {
    /// The lengths of the remaining entries.
    lengths: std::slice::Iter<'c, u8>,
    columns: &'c [u8],
    /// Position of the next byte of each column.
    next: [usize; 256],
    suffix: usize,
}

impl Singles<'_> {
    /// Copies the bytes of the next entry, one from each column.
    #[inline(always)]
    fn take(&mut self, entry: &mut [u8]) -> Option<()> {
        for (byte, next) in entry.iter_mut().zip(&mut self.next) {
            *byte = *self.columns.get(*next)?;
            *next += 1;
        }
        Some(())
    }

    /// Writes the next entry and its suffix to the start of `out`, and returns the number of bytes written.
    #[inline(always)]
    fn put<const SPLIT: bool>(&mut self, out: &mut [u8], suffixes: &[u8]) -> Result<usize, &'static str> {
        let length =
            usize::from(*self.lengths.next().ok_or("there are more tokens of single entries than single entries")?);
        let place = out.get_mut(..length + usize::from(SPLIT)).ok_or("the content is longer than declared")?;
        let (entry, suffix) = place.split_at_mut_checked(length).ok_or("the content is longer than declared")?;
        self.take(entry).ok_or("some entries have too few bytes")?;
        if let (Some(place), Some(byte)) = (suffix.first_mut(), suffixes.get(self.suffix)) {
            *place = *byte;
            self.suffix += 1;
        }
        Ok(place.len())
    }
}

/// The repeated entries, stored contiguously.
struct Dictionary {
    bytes: Vec<u8>,
    /// The start and length of each entry.
    places: Vec<(u32, u8)>,
    /// The entries before the first one that is too long to be copied at once.
    short: Vec<ShortEntry>,
    /// For the remaining entries, the position of the next suffix.
    suffixes: Vec<u32>,
}

/// A repeated entry that is short enough to be copied at once.
struct ShortEntry {
    bytes: [u8; COPIED],
    length: u8,
    /// The position of the next suffix.
    suffix: u32,
}

impl Dictionary {
    /// Reads entries with these lengths, whose bytes come first in each column.
    fn read(lengths: &[u8], columns: &mut Singles<'_>) -> Option<Self> {
        let length: usize = lengths.iter().map(|&length| usize::from(length)).sum();
        let mut bytes = vec![0; length + COPIED];
        let mut places = Vec::with_capacity(lengths.len());
        let mut start = 0_u32;
        let mut entry = bytes.as_mut_slice();
        for &length in lengths {
            places.push((start, length));
            start = start.checked_add(length.into())?;
            let (these, rest) = entry.split_at_mut_checked(length.into())?;
            columns.take(these)?;
            entry = rest;
        }
        let fits = places.iter().take_while(|(_, length)| usize::from(*length) <= COPIED);
        let short = |&(start, length): &(u32, u8)| {
            Some(ShortEntry { bytes: *bytes.get(start as usize..)?.first_chunk()?, length, suffix: 0 })
        };
        let short = fits.filter_map(short).collect();
        Some(Self { bytes, places, short, suffixes: Vec::new() })
    }

    /// Counts the tokens of each entry, which have one suffix each, and computes where the suffixes of each entry
    /// start. Returns the total number of suffixes.
    fn place_suffixes(&mut self, tokens: &Tokens<'_>) -> Result<usize, &'static str> {
        let mut counts = [0_u32; 256];
        for &token in tokens.first {
            if let Some(count) = counts.get_mut(usize::from(token)) {
                *count += 1;
            }
        }
        let mut all = vec![0_u32; self.places.len()];
        for (all, count) in all.iter_mut().zip(counts).take(tokens.ones) {
            *all = count;
        }
        let mut second = tokens.second.iter();
        let two = |token: &&u8| usize::from(**token) >= tokens.ones && **token != SINGLE;
        for &token in tokens.first.iter().filter(two).take(if tokens.second.is_empty() { 0 } else { usize::MAX }) {
            if let Some(count) = all.get_mut(tokens.of_two(token.into(), &mut second)?) {
                *count += 1;
            }
        }
        let mut next = 0_u32;
        for count in &mut all {
            // The sum cannot exceed the number of tokens, which are bytes of the payload.
            next = next.wrapping_add(std::mem::replace(count, next));
        }
        for (short, &suffix) in self.short.iter_mut().zip(&all) {
            short.suffix = suffix;
        }
        self.suffixes = all;
        Ok(next as usize)
    }

    /// Returns the next suffix of an entry.
    fn next_suffix<'t>(&mut self, entry: usize, suffixes: &'t [u8]) -> Option<&'t u8> {
        let next = match self.short.get_mut(entry) {
            Some(short) => &mut short.suffix,
            None => self.suffixes.get_mut(entry)?,
        };
        let suffix = suffixes.get(*next as usize);
        *next += 1;
        suffix
    }

    fn entry(&self, entry: usize) -> Option<&[u8]> {
        let &(start, length) = self.places.get(entry)?;
        self.bytes.get(start as usize..)?.get(..length.into())
    }
}

/// Returns the starts of the columns for entries with these lengths.
fn column_starts(repeated: &[u8], single: &[u8]) -> [usize; 256] {
    let mut longer = [0; 256];
    for &length in repeated.iter().chain(single) {
        longer[usize::from(length)] += 1;
    }
    // The first column contains a byte of every nonempty entry.
    let mut next = [0; 256];
    let (mut start, mut count) = (0, repeated.len() + single.len());
    for (next, ends) in next.iter_mut().zip(longer) {
        count -= ends;
        *next = start;
        start += count;
    }
    next
}
