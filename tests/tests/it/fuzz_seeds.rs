//! Runs the fuzz targets on the stable toolchain, over every vector and over slightly damaged vectors.
#![allow(clippy::unwrap_used, reason = "a test that goes wrong has to panic")]

use metatf_tests::targets::{TARGETS, TARGETS_ELSEWHERE, Target, vectors};
use proptest::prelude::Rng;
use proptest::test_runner::{RngAlgorithm, TestRng};

/// Changes a few bytes, removes a run of bytes, or duplicates one.
fn mutate(rng: &mut impl Rng, input: &[u8]) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..1 + rng.next_u32() % 4 {
        if bytes.is_empty() {
            return bytes;
        }
        let at = rng.next_u32() as usize % bytes.len();
        let end = (at + 1 + rng.next_u32() as usize % 12).min(bytes.len());
        match rng.next_u32() % 5 {
            0 => bytes[at] = rng.next_u32().to_le_bytes()[0],
            1 => bytes[at] ^= 1 << (rng.next_u32() % 8),
            2 => drop(bytes.drain(at..end)),
            3 => bytes.splice(at..at, input[at.min(input.len())..end.min(input.len())].to_vec()).for_each(drop),
            _ => bytes[at..end].fill([0, 1, 0x7f, 0xff][rng.next_u32() as usize % 4]),
        }
    }
    bytes
}

fn stands_the_vectors(target: &Target) {
    let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    for path in vectors() {
        let bytes = std::fs::read(&path).unwrap();
        for seed in (target.seeds)(&path, &bytes) {
            (target.run)(&seed);
            for _ in 0..metatf_test::factor() {
                (target.run)(&mutate(&mut rng, &seed));
            }
        }
    }
}

/// Each target has its own thread, because this is the longest test.
#[test]
fn every_target_stands_the_vectors() {
    std::thread::scope(|threads| {
        for target in TARGETS {
            threads.spawn(|| stands_the_vectors(target));
        }
    });
}

/// Every target, here or elsewhere, has a file in `dev/fuzz/fuzz_targets`, and every file there is a target.
#[test]
fn the_targets_are_those_of_the_fuzzer() {
    let folder = metatf_test::root().join("dev/fuzz/fuzz_targets");
    let files = std::fs::read_dir(folder).unwrap().flatten().map(|f| f.path());
    let mut files: Vec<_> = files.map(|f| f.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    files.sort();
    let here = TARGETS.iter().map(|target| target.name);
    let mut names: Vec<_> = here.chain(TARGETS_ELSEWHERE.iter().map(|(name, _)| *name)).collect();
    names.sort_unstable();
    assert_eq!(files, names);
}
