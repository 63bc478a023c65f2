//! Computes the CRC-32C of any range of a file at a cost that depends only on its ends.
//!
//! In a corrupt file, bytes that look like a chunk header may occur every few bytes and declare most of the remaining
//! file as their payload. Checking each such chunk byte by byte would take quadratic time. Salvage therefore stores the
//! CRC of all data up to certain offsets and derives the CRC of a range from the CRCs at its two ends. If A and B are
//! the CRCs of two adjacent ranges, the CRC of both together is `A * x^(8 |B|) + B` over GF(2), modulo the polynomial.

use super::chunk::{self, ChunkHeader, Frame, Probe};
use super::source::Source;
use crate::{Error, ErrorKind, Result};

/// Distance between stored CRCs in bytes. Payloads shorter than this are checked directly.
const STEP: usize = 16 << 10;
const STEP_U32: u32 = 16 << 10;

/// The polynomial of CRC-32C in reflected form, where the highest bit is x^0.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// CRCs of the file from `origin` up to each multiple of `STEP`.
#[derive(Default)]
pub(crate) struct Sums {
    origin: u64,
    /// `sums[i]` is the CRC of the first `i + 1` steps.
    sums: Vec<u32>,
    started: bool,
}

impl Sums {
    /// Checks a chunk like [`chunk::probe`]. No offset may be less than the first offset checked.
    pub(crate) fn probe(&mut self, source: &mut Source<'_>, start: u64) -> Result<Probe> {
        if !std::mem::replace(&mut self.started, true) {
            self.origin = start;
        }
        let header = match chunk::frame(source, start)? {
            Frame::None(probe) => return Ok(probe),
            Frame::Whole(header) => header,
        };
        let holds = if (header.stored_len as usize) < STEP {
            chunk::crc_holds(source, &header, start)?
        } else {
            self.crc(source, &header, start)? == Some(header.crc)
        };
        Ok(if holds { Probe::Whole(header) } else { Probe::Bad(Error::at(start, ErrorKind::Checksum)) })
    }

    /// Allows a stream to discard the bytes before `upto`, because chunks that start there will not be checked again.
    /// Data needed for later CRCs is read first.
    pub(crate) fn release(&mut self, source: &mut Source<'_>, upto: u64) -> Result<()> {
        if source.all().is_none() && self.started {
            self.up_to(source, upto)?;
            let summed = self.origin + (self.sums.len() * STEP) as u64;
            let into_step = upto.saturating_sub(self.origin) % STEP as u64;
            source.release(summed.min(upto - into_step));
        }
        Ok(())
    }

    /// Returns the CRC that the complete chunk at `start` should have.
    fn crc(&mut self, source: &mut Source<'_>, header: &ChunkHeader, start: u64) -> Result<Option<u32>> {
        let payload = start + chunk::LEN as u64;
        let before = self.up_to(source, payload)?;
        let whole = self.up_to(source, start + header.total_len())?;
        let head = source.view(start, 44)?;
        let head = chunk::crc_of(head);
        let (Some(before), Some(whole)) = (before, whole) else { return Ok(None) };
        Ok(Some(multiply(power(header.stored_len), head ^ before) ^ whole))
    }

    /// Returns the CRC of all data from `origin` to `to`.
    fn up_to(&mut self, source: &mut Source<'_>, to: u64) -> Result<Option<u32>> {
        let Ok(len) = usize::try_from(to.saturating_sub(self.origin)) else { return Ok(None) };
        while self.sums.len() < len / STEP {
            let sum = self.sums.last().copied().unwrap_or(0);
            let at = self.origin + (self.sums.len() * STEP) as u64;
            let step = source.view(at, STEP)?;
            if step.len() < STEP {
                return Ok(None);
            }
            self.sums.push(multiply(power(STEP_U32), sum) ^ chunk::crc_of(step));
        }
        let steps = len / STEP;
        let sum = steps.checked_sub(1).and_then(|last| self.sums.get(last)).copied().unwrap_or(0);
        let rest = source.view(self.origin + (steps * STEP) as u64, len % STEP)?;
        let rest_len = u32::try_from(rest.len()).unwrap_or(0);
        Ok((rest.len() == len % STEP).then(|| multiply(power(rest_len), sum) ^ chunk::crc_of(rest)))
    }
}

/// Returns the product of two polynomials modulo the polynomial of CRC-32C.
const fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = 1 << 31;
    while bit != 0 {
        if a & bit != 0 {
            product ^= b;
        }
        b = if b & 1 != 0 { b >> 1 ^ POLYNOMIAL } else { b >> 1 };
        bit >>= 1;
    }
    product
}

/// `x^(8 * 2^k)` for each k.
const POWERS: [u32; 32] = {
    let mut powers = [1 << 23; 32]; // x^8
    let mut k = 1;
    while k < powers.len() {
        powers[k] = multiply(powers[k - 1], powers[k - 1]);
        k += 1;
    }
    powers
};

/// Returns `x^(8 n)`, the factor that moves a CRC over n bytes.
fn power(n: u32) -> u32 {
    let bits = POWERS.iter().enumerate().filter(|(k, _)| n >> k & 1 != 0);
    bits.fold(1 << 31, |product, (_, power)| multiply(*power, product))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crcs_put_together() {
        let bytes: Vec<u8> = (0..=255_u8).cycle().map(|b| b.wrapping_mul(151)).take(3 * STEP + 500).collect();
        for (from, len) in [(0, 0), (0, 1), (0, STEP), (7, 2 * STEP), (48, 3 * STEP + 452), (STEP, 2 * STEP)] {
            let mut sums = Sums { started: true, ..Sums::default() };
            let mut source = Source::slice(&bytes);
            let end = (from + len) as u64;
            let a = sums.up_to(&mut source, from as u64).unwrap().unwrap();
            let b = sums.up_to(&mut source, end).unwrap().unwrap();
            let n = u32::try_from(len).unwrap();
            assert_eq!(multiply(power(n), a) ^ b, chunk::crc_of(&bytes[from..from + len]), "{from}, {len}");
        }
        let mut sums = Sums { started: true, ..Sums::default() };
        assert_eq!(sums.up_to(&mut Source::slice(&bytes), 4 * STEP as u64).unwrap(), None);
    }
}
