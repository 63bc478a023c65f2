//! `export` and `import` in a `metatfc` without tables.
#![cfg(not(feature = "tables"))]

use crate::common::metatfc;

#[test]
fn a_metatfc_without_tables_says_how_to_get_one() {
    let here = std::env::temp_dir();
    for args in [&["export", "a.mtf", "-o", "tables"][..], &["import", "--dtd", "heap", "a.csv", "-o", "a.mtf"]] {
        let run = metatfc(&here, args);
        assert_eq!(run.status, 1, "{}", run.err);
        assert!(run.err.contains("cargo install metatfc --features tables"), "{}", run.err);
    }
}
