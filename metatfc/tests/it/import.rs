//! Tests the conversion of tables, which are decoded in a child process, with intact and corrupt tables.
#![cfg(all(feature = "tables", target_os = "linux"))]
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use crate::common::{metatfc, run};
use metatf_test::Folder;

/// Creates a table with a few rows as CSV and exports it as Arrow and Parquet.
fn tables() -> Folder {
    let folder = Folder::new();
    for name in ["table.dtd", "panics.arrow", "panics.parquet", "exhausts.arrow"] {
        folder.write(name, std::fs::read(metatf_test::root().join("tests/data/import").join(name)).expect(name));
    }
    let rows = (0..300).map(|row| format!("{},{},n{}\n", 1_000_000 + row * 7, row % 50, row % 9));
    folder.write("r.csv", format!("time,size,name\n{}", rows.collect::<String>()));
    metatfc(&folder, &["convert", "--dtd", "table.dtd", "r.csv", "whole.mtf"]).exits(0);
    for form in ["arrow", "parquet"] {
        metatfc(&folder, &["convert", "whole.mtf", "--to", form, form]).exits(0);
    }
    folder
}

const FILES: [&str; 3] = ["r.csv", "arrow/r.arrow", "parquet/r.parquet"];

#[test]
fn tables_become_the_trace_they_were() {
    let folder = tables();
    let here = &folder;
    let dump = |trace: &str| metatfc(here, &["dump", trace]).exits(0).text();
    let whole = dump("whole.mtf");
    assert_eq!(whole.lines().count(), 300, "{whole}");
    for file in FILES {
        metatfc(here, &["convert", "--dtd", "table.dtd", file, "copy.mtf"]).exits(0);
        assert_eq!(dump("copy.mtf"), whole, "{file}");
        // The first output is a file, whose header is completed at the end; the second is a stream.
        assert_eq!(here.read("copy.mtf"), here.read("whole.mtf"), "{file}");
        let streamed = metatfc(here, &["convert", "--dtd", "table.dtd", file, "-"]).exits(0);
        here.write("streamed.mtf", streamed.out);
        assert_eq!(dump("streamed.mtf"), whole, "{file}");
        // The DTD can only be read once.
        run(here, &["convert", "--dtd", "-", file, "copy.mtf"], &here.read("table.dtd")).exits(0);
        assert_eq!(dump("copy.mtf"), whole, "{file}");
        let full = metatfc(here, &["convert", "--dtd", "table.dtd", file, "/dev/full"]).exits(1);
        assert_eq!(full.err, "metatfc: /dev/full: No space left on device (os error 28)\n");
    }
}

#[test]
fn mistakes_are_reported_as_by_the_command_itself() {
    let folder = tables();
    let here = &folder;
    here.write("short.csv", "time,size\n1,2\n");
    metatfc(here, &["convert", "--dtd", "table.dtd", "--record", "r", "short.csv", "x.mtf"])
        .exits(1)
        .says("metatfc: short.csv: row 1: `name` is missing");
    metatfc(here, &["convert", "--dtd", "table.dtd", "none.csv", "x.mtf"]).exits(1).says("metatfc: none.csv: ");
    here.write("wrong.dtd", "section {");
    metatfc(here, &["convert", "--dtd", "wrong.dtd", "r.csv", "x.mtf"]).exits(1).says("wrong.dtd:1");
    assert!(!here.join("x.mtf").exists());
}

/// Checks that importing a corrupt file of the record `r` either fails with the file's name or creates a complete
/// trace. Returns whether it creates a trace.
#[track_caller]
fn stands(here: &Folder, file: &str) -> bool {
    let _ = std::fs::remove_file(here.join("x.mtf"));
    let done = metatfc(here, &["convert", "--dtd", "table.dtd", "--record", "r", file, "x.mtf"]);
    assert!(!done.err.contains("panicked"), "{}", done.err);
    if done.status == 0 {
        metatfc(here, &["verify", "x.mtf"]).exits(0);
        return true;
    }
    assert_eq!(done.status, 1, "{}", done.err);
    assert!(done.err.starts_with(&format!("metatfc: {file}: ")), "{}", done.err);
    assert!(!here.join("x.mtf").exists());
    false
}

/// Decoders that panic, and one that requests 4 GiB for a 2 KB file, cause errors.
#[test]
fn failures_of_decoders_are_errors() {
    let folder = tables();
    let import = |file| metatfc(&folder, &["convert", "--dtd", "table.dtd", "--record", "r", file, "x.mtf"]);
    for file in ["panics.arrow", "panics.parquet"] {
        import(file).exits(1).says("the file is corrupt: its decoder failed: ");
        assert!(!stands(&folder, file));
    }
    import("exhausts.arrow").exits(1).says(
        "exhausts.arrow: reading the file takes more than 1024 MiB; if the file is not corrupt, raise the limit with --max-memory",
    );
    // The error names the file that failed, not the previously read file.
    let both = ["convert", "--dtd", "table.dtd", "--record", "r", "r.csv", "exhausts.arrow", "x.mtf"];
    metatfc(&folder, &both).exits(1).says("metatfc: exhausts.arrow: ");
}

#[test]
fn damaged_tables_are_errors_or_whole_traces() {
    let folder = tables();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |most: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap_or(0) % most
    };
    let (mut whole, mut all) = (0, 0);
    for (file, name) in FILES.into_iter().zip(["d.csv", "d.arrow", "d.parquet"]) {
        let good = folder.read(file);
        for _ in 0..20 * metatf_test::factor() {
            let mut bytes = good.clone();
            for _ in 0..=random(3) {
                let at = random(bytes.len());
                match random(4) {
                    0 => bytes[at] ^= 1 << random(8),
                    1 => bytes[at..].iter_mut().take(4).for_each(|byte| *byte = 0xff),
                    2 => drop(bytes.drain(at..(at + 1 + random(12)).min(good.len()).min(bytes.len()))),
                    _ => bytes.insert(at, bytes[at]),
                }
            }
            folder.write(name, bytes);
            whole += usize::from(stands(&folder, name));
            all += 1;
        }
    }
    assert!(whole < all, "none of them was damaged");
}
