//! Addresses, and maps by them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The end of an address space, which begins at 0. What does not fit below is refused.
pub const ADDRESS_SPACE: u64 = 1 << 47;

/// A map whose keys are addresses, or numbers of pages.
pub type AddressMap<V> = HashMap<u64, V, BuildHasherDefault<AddressHasher>>;

/// Spreads addresses, whose low bits are zero. They come from a program under study, not from an
/// adversary; one who makes them collide slows down his own report.
#[derive(Debug, Default)]
pub struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the fold is meant")]
    fn write_u64(&mut self, value: u64) {
        let mixed = u128::from(self.0 ^ value) * 0x9e37_79b9_7f4a_7c15;
        // Both halves of the product, folded.
        self.0 = (mixed ^ (mixed >> 64)) as u64;
    }
}
