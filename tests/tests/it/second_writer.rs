//! A writer in Python, made from the specification, writes the bytes of vectors that list all their lines, and traces
//! that the reader reads as the same records.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use metatf::dynamic::Schema;
use metatf_test::{Folder, root, skip};
use metatf_tests::models::lines;
use metatf_tests::runtime;
use std::process::Command;

/// Returns the lines of data records, in an order that does not depend on the order of sections.
fn sorted(schema: &Schema, trace: &[u8]) -> Vec<String> {
    let mut lines = lines(schema, trace);
    lines.retain(|line| !line.is_empty());
    lines.sort();
    lines
}

#[test]
fn a_writer_in_python_writes_the_vectors() {
    let folder = Folder::new();
    let script = root().join("tests/writer.py");
    let Ok(run) = Command::new("python3").arg(script).arg(&*folder).output() else {
        return skip("there is no python3");
    };
    assert!(run.status.success(), "{}{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    let mut read = 0;
    for entry in std::fs::read_dir(&*folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let vector = metatf_test::vectors(format!("good/{name}"));
        let schema = runtime::schema(&std::fs::read_to_string(vector.join("format.dtd")).unwrap());
        let expected = sorted(&schema, &std::fs::read(vector.join("trace.mtf")).unwrap());
        let (_, end) = runtime::read(&schema, &std::fs::read(&path).unwrap());
        assert_eq!(end, Ok(()), "{name}");
        assert_eq!(sorted(&schema, &std::fs::read(&path).unwrap()), expected, "{name}");
        read += 1;
    }
    assert!(read > 30, "{read}");
}
