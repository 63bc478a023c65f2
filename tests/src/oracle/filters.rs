//! Codecs and filters of chunks (spec 5.2).

use super::{Rule, Rules, Wrong};
use flate2::{Decompress, FlushDecompress, Status};
use std::io::Read;

/// Decompresses data of the given length. Output is truncated after one extra byte.
pub(super) fn decompressed(codec: u8, stored: &[u8], len: usize, rules: Rules) -> Result<Vec<u8>, Wrong> {
    let mut out = Vec::new();
    let mut behind = 0;
    match codec {
        1 => {
            let mut rest = stored;
            let mut frame =
                zstd::stream::read::Decoder::with_buffer(&mut rest).map_err(|e| e.to_string())?.single_frame();
            (&mut frame).take(len as u64 + 1).read_to_end(&mut out).map_err(|e| e.to_string())?;
            drop(frame);
            behind = rest.len();
        }
        2 => out = lz4_flex::block::decompress(stored, len).map_err(|e| e.to_string())?,
        3 => {
            out.reserve_exact(len + 1);
            let mut stream = Decompress::new(true);
            let end = stream.decompress_vec(stored, &mut out, FlushDecompress::Finish).map_err(|e| e.to_string())?;
            if end != Status::StreamEnd {
                return Err("a zlib stream without its end".into());
            }
            behind = stored.len() - stream.total_in() as usize;
        }
        _ => out = stored.to_vec(),
    }
    rules.demand(Rule::NothingBehindStreams, behind == 0, "bytes behind a zstd frame or zlib stream")?;
    Ok(out)
}

/// Undoes filter 1.
pub(super) fn transposed(bytes: &[u8], width: usize, rules: Rules) -> Vec<u8> {
    if width == 0 || !rules.holds(Rule::Transposes) {
        return bytes.to_vec();
    }
    let n = bytes.len() / width;
    (0..n * width).map(|at| bytes[at % width * n + at / width]).collect()
}

/// Bytes consumed from the front.
pub(super) struct Rest<'b>(pub(super) &'b [u8]);

impl<'b> Rest<'b> {
    pub(super) fn take(&mut self, n: usize) -> Result<&'b [u8], Wrong> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or("filtered bytes that end too early")?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn leb128(&mut self, rules: Rules) -> Result<usize, Wrong> {
        let mut value = 0_u64;
        let most = if rules.holds(Rule::Leb128Of5) { 5 } else { 9 };
        for i in 0..most {
            let byte = self.take(1)?[0];
            let shift = if rules.holds(Rule::LeastGroupFirst) { 7 * i } else { 7 * (most - 1 - i) };
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Ok(value as usize);
            }
        }
        Err("a number of too many bytes".into())
    }
}

/// Undoes filters 2 and 3: entries and tokens, followed by suffixes in filter 3.
pub(super) fn entries(filtered: &[u8], len: usize, suffixes: bool, rules: Rules) -> Result<Vec<u8>, Wrong> {
    let mut rest = Rest(filtered);
    let [m, s, t] = [rest.leb128(rules)?, rest.leb128(rules)?, rest.leb128(rules)?];
    rules.demand(Rule::MostEntries, m <= 65_280, "over 65,280 entries")?;
    let count = m.checked_add(s).ok_or("too many entries")?;
    let lengths = rest.take(count)?;
    let mut entries = vec![Vec::new(); count];
    if rules.holds(Rule::EntriesInColumns) {
        for column in 0..255 {
            for (entry, _) in entries.iter_mut().zip(lengths).filter(|(_, len)| **len > column) {
                entry.push(rest.take(1)?[0]);
            }
        }
    } else {
        for (entry, len) in entries.iter_mut().zip(lengths) {
            *entry = rest.take(usize::from(*len))?.to_vec();
        }
    }
    let ones = if m <= 255 { m } else { (65_280 - m.min(65_280)) / 255 };
    let firsts = rest.take(t)?;
    let is_two = |b: usize| if rules.holds(Rule::TokensOfTwo) { b >= ones && b != 255 } else { false };
    let mut seconds = Rest(rest.take(firsts.iter().filter(|b| is_two(usize::from(**b))).count())?);
    let mut single = m;
    let mut named = Vec::new();
    for b in firsts.iter().map(|b| usize::from(*b)) {
        let entry = if b == 255 && rules.holds(Rule::SinglesByToken255) {
            single += 1;
            single - 1
        } else if is_two(b) {
            ones + 256 * (b - ones) + usize::from(seconds.take(1)?[0])
        } else {
            b
        };
        let known = entry < m || b == 255 && entry < count;
        rules.demand(Rule::TokensKnown, known, "a token without an entry")?;
        named.push(entry.min(count.saturating_sub(1)));
    }
    rules.demand(Rule::SinglesUsedUp, single == count, "entries left over")?;
    let mut of_token = vec![0; t];
    if suffixes {
        // The suffixes of entry 0 come first, in the order of the tokens.
        let mut order: Vec<usize> = (0..t).collect();
        if rules.holds(Rule::SuffixesByEntry) {
            order.sort_by_key(|token| named[*token]);
        }
        for token in order {
            of_token[token] = rest.take(1)?[0];
        }
    }
    rules.demand(Rule::FilteredUsedUp, rest.0.is_empty(), "filtered bytes left over")?;
    let mut content = Vec::new();
    for (entry, suffix) in named.into_iter().zip(of_token) {
        content.extend(entries.get(entry).into_iter().flatten());
        if suffixes {
            content.push(suffix);
        }
        if content.len() > len {
            return Err("content over its length".into());
        }
    }
    Ok(content)
}
