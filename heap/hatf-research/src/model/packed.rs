//! Lists of numbers as compact strings: base64-encoded LEB128, with run-length encoding for zeros.

use serde::{Deserialize, Serialize};

/// A list of mostly small numbers, encoded as a string that needs no escaping in JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Packed(String);

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

impl Packed {
    pub(super) fn new(numbers: impl IntoIterator<Item = u64>) -> Self {
        let (mut bytes, mut zeros) = (Vec::new(), 0);
        for number in numbers {
            if number == 0 {
                zeros += 1;
                continue;
            }
            end_run(&mut zeros, &mut bytes);
            leb128(number, &mut bytes);
        }
        end_run(&mut zeros, &mut bytes);
        let digit = |bits: u32| char::from(DIGITS.get((bits & 63) as usize).copied().unwrap_or(b'A'));
        let mut text = String::new();
        for three in bytes.chunks(3) {
            let bits = three.iter().enumerate().fold(0, |bits, (n, byte)| bits | u32::from(*byte) << (8 * n));
            text.extend((0..=three.len()).map(|n| digit(bits >> (6 * n))));
        }
        Self(text)
    }

    /// Decodes the numbers. Returns `None` if the string is invalid or contains more than `most` numbers.
    pub(super) fn numbers(&self, most: usize) -> Option<Vec<u64>> {
        let mut bytes = Vec::with_capacity(self.0.len() / 4 * 3 + 3);
        for four in self.0.as_bytes().chunks(4) {
            let mut bits = 0;
            for (n, digit) in four.iter().enumerate() {
                bits |= u32::try_from(DIGITS.iter().position(|known| known == digit)?).ok()? << (6 * n);
            }
            bytes.extend(bits.to_le_bytes().into_iter().take(four.len() - 1));
        }
        let (mut numbers, mut rest) = (Vec::new(), bytes.iter().copied());
        while let Some(number) = next(&mut rest) {
            match number? {
                0 => {
                    let zeros =
                        usize::try_from(next(&mut rest)??).ok().filter(|zeros| *zeros <= most - numbers.len())?;
                    numbers.resize(numbers.len() + zeros, 0);
                }
                number => numbers.push(number),
            }
            if numbers.len() > most {
                return None;
            }
        }
        Some(numbers)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Encodes a run of zeros as a zero and its length.
fn end_run(zeros: &mut u64, bytes: &mut Vec<u8>) {
    if *zeros > 0 {
        bytes.push(0);
        leb128(std::mem::take(zeros), bytes);
    }
}

fn leb128(mut number: u64, bytes: &mut Vec<u8>) {
    while number >= 128 {
        bytes.push(number.to_le_bytes()[0] | 128);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

/// Reads a number. Returns `None` at the end, and `Some(None)` if the number is truncated or too large.
fn next(bytes: &mut impl Iterator<Item = u8>) -> Option<Option<u64>> {
    let mut byte = bytes.next()?;
    let (mut number, mut shift) = (u64::from(byte & 127), 7);
    while byte >= 128 {
        byte = match bytes.next() {
            Some(byte) if shift < 63 || (shift == 63 && byte < 2) => byte,
            _ => return Some(None),
        };
        number |= u64::from(byte & 127) << shift;
        shift += 7;
    }
    Some(Some(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(numbers in prop::collection::vec(prop_oneof![3 => Just(0), 3 => 0..300_u64, 1 => any::<u64>()], 0..60)) {
            let packed = Packed::new(numbers.iter().copied());
            prop_assert_eq!(packed.numbers(60), Some(numbers.clone()));
            prop_assert!(numbers.is_empty() || packed.numbers(numbers.len() - 1).is_none());
        }

        #[test]
        fn any_text(text in "[A-Za-z0-9_-]{0,40}") {
            if let Some(numbers) = Packed(text).numbers(1000) {
                prop_assert!(numbers.len() <= 1000);
            }
        }
    }

    #[test]
    fn other_characters_are_refused() {
        assert_eq!(Packed("A B".to_owned()).numbers(9), None);
        assert_eq!(Packed("€".to_owned()).numbers(9), None);
        assert_eq!(Packed(String::new()).numbers(0), Some(Vec::new()));
    }
}
