//! Runs the fuzz target `tables` on the stable toolchain with every vector, and with slightly damaged vectors.

use metatf_tests::targets::{TARGETS_ELSEWHERE, vectors};
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};

use crate::any_bytes::tables;

/// Changes a few bytes or removes a run of bytes after the first two, which select how the file is read.
fn damaged(rng: &mut impl Rng, seed: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..1 + rng.next_u32() % 4 {
        let places = bytes.len().saturating_sub(2);
        if places == 0 {
            return bytes;
        }
        let at = 2 + rng.next_u32() as usize % places;
        match rng.next_u32() % 4 {
            0 => bytes[at] = rng.next_u32().to_le_bytes()[0],
            1 => bytes[at] ^= 1 << (rng.next_u32() % 8),
            2 => drop(bytes.drain(at..(at + 1 + rng.next_u32() as usize % 12).min(places + 2))),
            _ => bytes.insert(at, rng.next_u32().to_le_bytes()[0]),
        }
    }
    // Randomize the options, and let checksums be corrected.
    bytes[0] = rng.next_u32().to_le_bytes()[0];
    bytes[1] |= 0x80;
    bytes
}

#[test]
fn tables_stand_the_vectors() {
    let target = TARGETS_ELSEWHERE.iter().find(|(name, _)| *name == "tables");
    let (_, seeds) = target.expect("the target is there");
    let factor: u64 = std::env::var("METATF_TEST_FACTOR").ok().and_then(|f| f.parse().ok()).unwrap_or(1);
    // A different factor produces different damage.
    let mut seed_of_rng = [7; 32];
    seed_of_rng[..8].copy_from_slice(&factor.to_le_bytes());
    let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed_of_rng);
    let mut count = 0;
    for path in vectors() {
        for mut seed in seeds(&path, &std::fs::read(&path).unwrap()) {
            // Read the file as records and as a heap trace.
            for switch in [0, 0x80] {
                seed[0] = seed[0] & 0x7f | switch;
                tables(&seed);
                count += 1;
            }
            for _ in 0..factor {
                tables(&damaged(&mut rng, &seed));
            }
        }
    }
    assert!(count > 1000, "{count}");
}
