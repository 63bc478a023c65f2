//! Runs the fuzz target `import` on the stable toolchain with its seeds, and with slightly damaged CSV files.
//!
//! Damaged Arrow and Parquet files may request any amount of memory, so they are tested with `metatfc convert`, whose
//! child process has a memory limit.

use metatf_tests::importing::TABLES;

use crate::any_table::import;

#[test]
fn import_stands_its_seeds() {
    let [panics, panics_too, _, rows] = TABLES;
    for table in [panics, panics_too, rows, b"", b"PAR1", b"ARROW1\0\0"] {
        for switches in [0, 1] {
            import(&[&[switches], table].concat());
        }
    }
    // Change every byte of the rows in a few ways.
    for at in 0..rows.len() {
        for byte in [0, b'"', b',', b'\n', b'9', 0xff] {
            let mut damaged = [&[0], rows].concat();
            damaged[at + 1] = byte;
            import(&damaged);
        }
        import(&[&[0], &rows[..at]].concat());
    }
}
