//! Spec 7: memory use is bounded and proportional to the input length. The tests count requested bytes, so every run
//! gives the same result.
#![allow(clippy::unwrap_used, clippy::panic)] // Test helpers may panic.

use std::fmt::Write as _;

use crate::ALLOCATOR;
use metatf_parser::parse;
use metatf_test::alone;

/// Returns the peak number of bytes allocated while parsing a DTD.
fn peak(text: &str) -> usize {
    ALLOCATOR.peak(|| drop(parse("memory.dtd", text.as_bytes())))
}

fn lines(count: usize, line: impl Fn(&mut String, usize) -> std::fmt::Result) -> String {
    let mut text = "tag.width = 4;\n".to_owned();
    (0..count).for_each(|i| line(&mut text, i).unwrap());
    text
}

#[test]
fn memory_is_bounded() {
    if !alone("memory::memory_is_bounded") {
        return;
    }
    const MIB: usize = 1 << 20;
    for statement in ["a.b=1;", "r:a;", "r:(a,a,a,a,a);", "a", ";", "(", "//\n", "/**/", "\n", "\"\"", "a.b=\"x\";\n"] {
        let text = statement.repeat(MIB / statement.len());
        assert!(peak(&text) <= 20 * text.len(), "{} times {} bytes of {statement:?}", peak(&text) / MIB, text.len());
    }
    // The most expensive known inputs close to the limits.
    let costly = [
        ("records", lines(18_000, |t, i| write!(t, "r{i}:(tag){{tag.value={};}}", i + 4))),
        ("untagged records", lines(65_000, |t, i| write!(t, "r{i}:a;"))),
        ("records twice", lines(65_000, |t, _| write!(t, "r:a;"))),
        ("properties", lines(43_000, |t, i| write!(t, "a{i}.b=1;"))),
        ("properties twice", lines(43_000, |t, _| write!(t, "a.b=1;"))),
        ("annotations", lines(43_000, |t, i| write!(t, "a.z{i}=b;"))),
        ("docs", lines(37_000, |t, i| writeln!(t, "//a\na{i}.b=1;"))),
        ("fields", format!("r:({}a);", "a,".repeat(130_990))),
        ("fields with types", format!("r:({}a:u8);", "a:u8,".repeat(65_000))),
        ("fields with lengths", format!("r:({}a:u8);", "a:bytes 9,".repeat(52_000))),
        ("fields with interpretations", format!("r:({}a:u8);", "a:delta 9,".repeat(52_000))),
        ("types", lines(43_000, |t, i| write!(t, "type t{i}:u8;"))),
        ("types of types", lines(43_000, |t, i| write!(t, "type t{}:t{i};", i + 1))),
        ("groups", format!("r:({}a);", "(a),".repeat(65_000))),
        ("a sum", format!("a.width={}1;", "1+".repeat(130_990))),
        ("a model", format!("a.interpretation=predicted({}stride)1;", "stride,".repeat(130_000))),
        ("sections", lines(50_000, |t, i| write!(t, "section s{i} {i}{{}}"))),
        (
            "records of all sections",
            lines(9_000, |t, i| match i {
                1..256 => write!(t, "section s{i} {i}{{}}"),
                _ => write!(t, "r{i}:(tag){{tag.value={};}}", i + 4),
            }),
        ),
    ];
    for (what, text) in costly {
        assert!(peak(&text) <= 48 * MIB, "{what}: {} MiB for {} bytes", peak(&text) / MIB, text.len());
    }
}
