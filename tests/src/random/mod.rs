//! Random formats and random traces, drawn from the bytes of proptest (which shrinks them) or of a fuzzer.
//!
//! Every choice consumes a few bytes, or zeros after the end, and a zero selects the simplest option. Shorter and
//! smaller bytes therefore produce a smaller example.

mod dtd;
mod options;
mod predicted;
mod records;
mod world;

pub use dtd::{Features, dtd, dtd_with};
pub use options::options;
pub use records::{Action, Limits, actions};

/// Bytes of one example, with separate parts so that they shrink independently.
#[derive(Clone, Default)]
pub struct Seed {
    /// Bytes for the DTD.
    pub dtd: Vec<u8>,
    /// Bytes for the records.
    pub data: Vec<u8>,
    /// Bytes for the options: 8, plus one that selects the features of the DTD.
    pub options: Vec<u8>,
}

impl Seed {
    /// Splits a fuzzer's bytes into three parts: one byte gives the share of the DTD, and 9 bytes are for the options.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let Some((&cut, rest)) = bytes.split_first() else { return Self::default() };
        let (options, rest) = rest.split_at(rest.len().min(9));
        let (dtd, data) = rest.split_at(rest.len() * usize::from(cut) / 256);
        Self { dtd: dtd.to_vec(), data: data.to_vec(), options: options.to_vec() }
    }

    /// Returns the features that the DTD may use.
    #[must_use]
    pub fn features(&self) -> Features {
        let byte = self.options.get(8).copied().unwrap_or(0);
        Features { predicted: byte >= 0x80, names: byte & 1 == 1 }
    }
}

impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        write!(f, "{:?}", [hex(&self.dtd), hex(&self.data), hex(&self.options)])
    }
}

/// Makes choices from bytes.
#[derive(Debug)]
pub struct Choices<'a> {
    bytes: &'a [u8],
}

impl<'a> Choices<'a> {
    /// Makes choices from these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Returns whether all bytes are consumed, so that only zeros follow.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the next byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        first
    }

    /// Returns a number less than `n`, or 0 if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        if n <= 256 {
            return usize::from(self.byte()) * n / 256;
        }
        (usize::from(self.byte()) << 8 | usize::from(self.byte())) % n
    }

    /// Returns true in about `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        usize::from(self.byte()) * 100 / 256 >= 100 - percent
    }

    /// Returns one of the elements.
    pub fn pick<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len())]
    }

    /// Returns a 64-bit number that is likely near a width boundary.
    pub fn number(&mut self) -> u64 {
        let near = |c: &mut Self, boundary: u64| boundary.wrapping_add(c.below(5) as u64).wrapping_sub(2);
        match self.below(10) {
            0..4 => self.byte().into(),
            4 => u64::from(self.byte()) << 8 | u64::from(self.byte()),
            5 => {
                let bytes = self.below(8);
                near(self, 1 << (8 * bytes))
            }
            6 => {
                let bytes = self.below(8);
                near(self, 0x80 << (8 * bytes))
            }
            7 => near(self, 0),
            8 => u64::from(self.byte()).wrapping_neg(),
            _ => u64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }

    /// Returns `n` bytes.
    pub fn bytes(&mut self, n: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..n.min(16)).map(|_| self.byte()).collect();
        // Long arrays repeat their first bytes.
        while bytes.len() < n {
            bytes.push(bytes[bytes.len() - 16]);
        }
        bytes
    }
}
