//! The fuzz target `tables` over every vector.

use metatf_tests::targets::{TARGETS_ELSEWHERE, vectors};

use crate::any_bytes::tables;

#[test]
fn tables_stand_the_vectors() {
    let [("tables", seeds)] = TARGETS_ELSEWHERE else { panic!("the target is not there") };
    let mut count = 0;
    for path in vectors() {
        for mut seed in seeds(&path, &std::fs::read(&path).unwrap()) {
            // As records, and as a heap trace.
            for switch in [0, 0x80] {
                seed[0] = seed[0] & 0x7f | switch;
                tables(&seed);
                count += 1;
            }
        }
    }
    assert!(count > 1000, "{count}");
}
