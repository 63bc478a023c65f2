//! Filters 2 and 3 undone: what `phrases` made.

use super::phrases::{MOST, SINGLE, ones};

/// Bytes that are copied at once; phrases are seldom longer.
const COPIED: usize = 16;

/// Undoes filter 2, or with tails 3; `out` is as long as the content is said to be. The error says what is wrong.
pub(crate) fn restore(filtered: &[u8], with_tails: bool, out: &mut [u8]) -> Result<(), &'static str> {
    let mut rest = filtered;
    let (repeated, singles, tokens) = (read_number(&mut rest)?, read_number(&mut rest)?, read_number(&mut rest)?);
    if repeated > MOST {
        return Err("more phrases than two bytes can tell apart");
    }
    let phrases = repeated.checked_add(singles).filter(|&n| n <= rest.len()).ok_or("phrases without a length")?;
    let (lengths, rest) = rest.split_at(phrases);
    let mut dictionary = Dictionary::read(repeated, lengths, rest).ok_or("phrases without bytes")?;
    let rest = rest.get(dictionary.length..).unwrap_or_default();
    let (first, rest) = rest.split_at_checked(tokens).ok_or("fewer tokens than there should be")?;
    if !with_tails {
        let tokens = Tokens { repeated, ones: ones(repeated), first, second: rest };
        return expand::<false>(&mut dictionary, phrases, &tokens, &[], out);
    }
    let seconds = rest.len().checked_sub(tokens).ok_or("fewer tails than tokens")?;
    let (second, tails) = rest.split_at(seconds);
    let tokens = Tokens { repeated, ones: ones(repeated), first, second };
    dictionary.place_tails(&tokens)?;
    expand::<true>(&mut dictionary, phrases, &tokens, tails, out)
}

struct Tokens<'t> {
    /// Repeated phrases, and how many of them are a token by themselves.
    repeated: usize,
    ones: usize,
    first: &'t [u8],
    second: &'t [u8],
}

impl Tokens<'_> {
    /// The phrase that a token of two bytes stands for.
    #[inline(always)]
    fn of_two<'s>(&self, token: usize, second: &mut impl Iterator<Item = &'s u8>) -> Result<usize, &'static str> {
        let low = *second.next().ok_or("a token without its second byte")?;
        let phrase = self.ones + (token - self.ones) * 256 + usize::from(low);
        if phrase < self.repeated { Ok(phrase) } else { Err("an unknown token") }
    }
}

fn expand<const TAILS: bool>(
    dictionary: &mut Dictionary,
    phrases: usize,
    tokens: &Tokens<'_>,
    tails: &[u8],
    out: &mut [u8],
) -> Result<(), &'static str> {
    let mut second = tokens.second.iter();
    let mut next_single = tokens.repeated;
    let mut at = 0;
    for &token in tokens.first {
        let token = usize::from(token);
        let phrase = if token < tokens.ones {
            token
        } else if token == usize::from(SINGLE) {
            next_single += 1;
            next_single - 1
        } else {
            tokens.of_two(token, &mut second)?
        };
        // Most tokens: of a short phrase, where there is room for more than that.
        if let Some(Short { bytes, length, tail }) = dictionary.short.get_mut(phrase)
            && let Some(out) = out.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<{ COPIED + 1 }>)
            && let Some((copied, _)) = out.split_first_chunk_mut()
        {
            *copied = *bytes;
            at += usize::from(*length);
            if TAILS && let (Some(place), Some(byte)) = (out.get_mut(usize::from(*length)), tails.get(*tail as usize)) {
                *place = *byte;
                *tail += 1;
                at += 1;
            }
            continue;
        }
        let tail = if TAILS { dictionary.next_tail(phrase, tails) } else { None };
        let bytes =
            dictionary.phrase(phrase).filter(|_| phrase < phrases).ok_or("more single phrases than there are")?;
        let all = bytes.iter().chain(tail);
        let room = out.get_mut(at..at + bytes.len() + usize::from(TAILS)).ok_or("more content than there should be")?;
        at += room.len();
        for (place, byte) in room.iter_mut().zip(all) {
            *place = *byte;
        }
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
    /// The first ones, as far as they fit the bytes that are copied at once.
    short: Vec<Short>,
    /// Of the phrases behind those: which tail is next.
    tails: Vec<u32>,
    /// Bytes of all of them.
    length: usize,
}

/// A repeated phrase of at most so many bytes as are copied at once.
struct Short {
    bytes: [u8; COPIED],
    length: u8,
    /// Which tail is next.
    tail: u32,
}

impl Dictionary {
    /// Of phrases with these lengths.
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
        let short = |&(start, length): &(u32, u8)| {
            Some(Short { bytes: *bytes.get(start as usize..)?.first_chunk()?, length, tail: 0 })
        };
        let short = fits.filter_map(short).collect();
        Some(Self { bytes, places, short, tails: Vec::new(), length })
    }

    /// Counts the tokens of each phrase: so many tails it has, behind those of the phrases before it.
    fn place_tails(&mut self, tokens: &Tokens<'_>) -> Result<(), &'static str> {
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
        for single in all.iter_mut().skip(tokens.repeated) {
            *single = 1;
        }
        let mut next = 0_u32;
        for count in &mut all {
            // No more than tokens, which are bytes of the payload.
            next = next.wrapping_add(std::mem::replace(count, next));
        }
        for (short, &tail) in self.short.iter_mut().zip(&all) {
            short.tail = tail;
        }
        self.tails = all;
        Ok(())
    }

    /// The next tail of a phrase that is not short.
    fn next_tail<'t>(&mut self, phrase: usize, tails: &'t [u8]) -> Option<&'t u8> {
        let next = match self.short.get_mut(phrase) {
            Some(short) => &mut short.tail,
            None => self.tails.get_mut(phrase)?,
        };
        let tail = tails.get(*next as usize);
        *next += 1;
        tail
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
