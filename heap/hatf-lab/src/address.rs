//! Addresses and maps keyed by address.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The end of the simulated address space, which begins at 0. Blocks that do not fit below it are rejected.
pub const ADDRESS_SPACE: u64 = 1 << 47;

/// A map keyed by addresses or page numbers.
///
/// # Examples
///
/// ```
/// use hatf_lab::AddressMap;
///
/// let mut sizes = AddressMap::default();
/// sizes.insert(0x1000, 24);
/// sizes.insert(0x1020, 100);
/// assert_eq!((sizes.remove(&0x1000), sizes.len()), (Some(24), 1));
/// ```
pub type AddressMap<V> = HashMap<u64, V, BuildHasherDefault<AddressHasher>>;

/// A hasher for addresses, whose low bits are zero. It does not defend against collision attacks, because keys come
/// from the user's own trace, so forged collisions would only slow down that user's report.
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

    #[expect(clippy::cast_possible_truncation, reason = "the halves are folded")]
    fn write_u64(&mut self, value: u64) {
        let mixed = u128::from(self.0 ^ value) * 0x9e37_79b9_7f4a_7c15;
        // Combine both halves of the product.
        self.0 = (mixed ^ (mixed >> 64)) as u64;
    }
}
