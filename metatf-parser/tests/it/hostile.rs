//! Spec 7: no input causes a panic or a stack overflow, or takes much time or memory.
#![allow(clippy::unwrap_used, clippy::panic)] // Test helpers may panic.

use std::fmt::Write as _;
use std::time::Duration;

use metatf_test::thread_time;

use metatf_parser::{Code, Parsed, format, parse, render};

/// Parses, renders and formats within a limit of processor time that allows for slow machines and debug builds.
fn survives(what: &str, text: &[u8]) -> Parsed {
    let start = thread_time();
    let parsed = parse("hostile.dtd", text);
    for diagnostic in &parsed.diagnostics {
        assert!(render(diagnostic, "hostile.dtd", text, true).len() < 20_000, "{what}: long message");
    }
    let _ = format("hostile.dtd", text);
    let took = thread_time() - start;
    assert!(took < Duration::from_secs(60), "{what} took {took:?}");
    parsed
}

fn has(parsed: &Parsed, code: Code) -> bool {
    parsed.diagnostics.iter().any(|d| d.code == code)
}

#[test]
fn deep_nesting() {
    let parens = "(".repeat(1_000_000);
    assert!(has(&survives("fields", format!("r: {parens}").as_bytes()), Code::DeepParentheses));
    assert!(has(&survives("widths", format!("a.width = {parens}").as_bytes()), Code::DeepParentheses));
    survives("braces", "section s 1 {".repeat(10_000).as_bytes());
    survives("blocks", "r: a {".repeat(10_000).as_bytes());
    survives("closing", &b"}".repeat(100_000));
    survives("repetitions", "r: (n*".repeat(10_000).as_bytes());
    survives("comments", "/*".repeat(100_000).as_bytes());
    survives("signs", format!("a.width = {}1;", "-".repeat(100_000)).as_bytes());
}

#[test]
fn exponential_nesting() {
    let mut text = "section s 1 { r: (tag, p0) { tag.value = 4; }\n".to_owned();
    for i in 0..30 {
        writeln!(text, "p{i}: (p{0}, p{0});", i + 1).unwrap();
    }
    text += "p30: (a) { a.width = 1; a.interpretation = none; } }";
    assert!(has(&survives("doubling", text.as_bytes()), Code::ManyLeaves));

    let mut text = "tag.width = 4; a.width = 1; a.interpretation = none;\nwide: (a".to_owned();
    text += &", a".repeat(250);
    text += ");\n";
    for i in 0..10_000 {
        writeln!(text, "r{i}: (tag, wide) {{ tag.value = {}; }}", i + 10).unwrap();
    }
    assert!(has(&survives("many wide records", text.as_bytes()), Code::LargeSchema));
}

#[test]
fn long_chains_and_cycles() {
    let mut text = "section s 1 { r: (tag, p0) { tag.value = 4; }\n".to_owned();
    for i in 0..20_000 {
        writeln!(text, "p{i}: (p{});", (i + 1) % 20_000).unwrap();
    }
    text.push('}');
    assert!(has(&survives("a cycle", text.as_bytes()), Code::NestsItself));
    let sum = format!("a.width = {}1;", "1 + ".repeat(10_000));
    assert!(has(&survives("a long sum", sum.as_bytes()), Code::LongExpression));
    survives("a long path", format!("a{}.width = 1;", ".a".repeat(100_000)).as_bytes());
    survives("a long name", format!("r: ({0}, {0});", "x".repeat(100_000)).as_bytes());
    survives("a long number", format!("a.width = {};", "9".repeat(100_000)).as_bytes());
}

#[test]
fn many_of_everything() {
    let sections: String = (0..5_000).map(|i| format!("section s{i} {i} {{}}\n")).collect();
    survives("sections", sections.as_bytes());
    let records: String = (0..5_000).map(|i| format!("r{i}: (tag) {{ tag.value = {}; }}\n", i + 4)).collect();
    let text = format!("tag.width = 4;\n{records}");
    let parsed = survives("records", text.as_bytes());
    assert_eq!(parsed.dtd.map(|d| d.records.len()), Some(5_003));
    let mut text = text;
    (1..256).for_each(|i| writeln!(text, "section s{i} {i} {{}}").unwrap());
    survives("records in every section", text.as_bytes());
    survives("duplicates", "r: (tag) { tag.value = 4; }\n".repeat(5_000).as_bytes());
    survives("properties", "a.width = 1;\n".repeat(10_000).as_bytes());
    survives("errors", "# ".repeat(10_000).as_bytes());
    survives("one mistake again and again", "none.\n".repeat(80_000).as_bytes());
    survives("errors in lines", "a.\n".repeat(100_000).as_bytes());
    survives("strings", "a.doc = \"\n".repeat(10_000).as_bytes());
}

/// Many leaves use the same large model, of which each would need a copy.
#[test]
fn large_models() {
    let misses = "section m 1 { e: (v) { v.width = 8; v.interpretation = none; } }";
    let leaves = |model: &str, records: usize| {
        let mut text = format!("{misses} tag.width = 4; y.width = 1; y.interpretation = none;\n");
        writeln!(text, "x.interpretation = predicted 1 ({model}) 1;\nwide: (x{});", ", x".repeat(250)).unwrap();
        for i in 0..records {
            writeln!(text, "r{i}: (tag, y, wide) {{ tag.value = {}; }}", i + 10).unwrap();
        }
        text
    };
    let many = leaves(&vec!["stride"; 100_000].join(", "), 100);
    assert!(has(&survives("many predictors", many.as_bytes()), Code::ManyCandidates));
    let unknown = leaves(&vec!["stride by zzz"; 64].join(", "), 100);
    assert!(has(&survives("fields that are not there", unknown.as_bytes()), Code::PredictorField));
    let full = leaves(&vec!["stride by y"; 64].join(", "), 250);
    assert!(has(&survives("many references", full.as_bytes()), Code::LargeSchema));
    survives(
        "an open model",
        format!("x.interpretation = predicted 1 ({}", "fcm 1 by a.b, ".repeat(50_000)).as_bytes(),
    );
    survives(
        "a wrong word at the end",
        format!("x.interpretation = predicted 1 ({} z", "stride, ".repeat(50_000)).as_bytes(),
    );
    survives(
        "a long path",
        format!("x.interpretation = predicted 1 stride by a{} 1;", ".a".repeat(100_000)).as_bytes(),
    );
}

#[test]
fn large_and_odd_texts() {
    assert!(has(&survives("5 MB", &vec![b' '; 5 << 20]), Code::TooLarge));
    let parsed = survives("nothing", b"");
    assert_eq!(parsed.dtd.map(|d| (d.sections.len(), d.records.len())), Some((1, 3)));
    survives("a byte-order mark", b"\xEF\xBB\xBF");
    survives("a byte-order mark and junk", b"\xEF\xBB\xBF\xFF");
    survives("zeros", &[0; 10_000]);
    survives("quotes", &b"\"".repeat(10_000));
    survives("backslashes", &b"a.doc = \"\\".repeat(10_000));
    survives("carriage returns", b"a.width\r=\r1;\r\n// x\r\n");
    survives("wide characters", "\u{10FFFF}é".repeat(10_000).as_bytes());
}

/// The parser survives every prefix of a realistic DTD and every change of a single byte.
#[test]
fn near_misses() {
    let text = b"tag.width = 1; x.width = 2; // c\nsection s 1 { p: (n*(x, y)); /* d */\n r: (tag, p, vfield, z) { \
        tag.value = 4; p.y.width = 3 * (1 + p.x.width) - 2; p.y.interpretation = none; p.n.width = 1; \
        p.n.interpretation = none; p.x.interpretation = delta -5; z.width = p.n.value; z.interpretation = none; \
        z.doc = \"a\\n\"; } }\nsection t 2 { e: vfield; }";
    assert_eq!(parse("x", text).diagnostics, []);
    for end in 0..text.len() {
        survives("a prefix", &text[..end]);
        for byte in [b'(', b'}', b'"', b'/'] {
            let mut changed = text.to_vec();
            changed[end] = byte;
            survives("a change", &changed);
        }
    }
}

/// Warnings do not displace an error, and the parser stops after the hundredth error.
#[test]
fn at_most_a_hundred() {
    let warnings: String = (0..500).map(|i| format!("a{i}.width = 1;\n")).collect();
    let parsed = parse("warnings.dtd", warnings.as_bytes());
    assert_eq!((parsed.diagnostics.len(), parsed.errors(), parsed.dtd.is_some()), (100, 0, true));
    let parsed = parse("one.dtd", format!("{warnings} r: (tag) {{ tag.value = 1; }}").as_bytes());
    assert_eq!((parsed.diagnostics.len(), parsed.dtd.is_none()), (100, true));
    assert!(has(&parsed, Code::TagReserved), "the error is shown");
    assert_eq!(parse("errors.dtd", "a.;\n".repeat(500).as_bytes()).errors(), 100);
}

/// Long comments and strings are accepted, but too many tokens are not.
#[test]
fn many_pieces() {
    survives("lines of comments", ("//\n".repeat(200_000) + "a: b;").as_bytes());
    for record in ["b: (c, (1)*c)\n", "b: (1)*c\n", "b: (c: (1)*c\n"] {
        let parsed = survives(record, ("a: (c\n".to_owned() + &record.repeat(20_000)).as_bytes());
        assert!(has(&parsed, Code::Syntax), "{record}");
    }
    let comment = format!("// {}\n", "a".repeat(3 << 20));
    assert!(parse("comment.dtd", comment.as_bytes()).dtd.is_some());
    for piece in ["a.b = 1;", "r: a;", "(", "/**/", "//\n", "\"\" "] {
        let parsed = survives(piece, piece.repeat(300_000).as_bytes());
        assert!(has(&parsed, Code::TooLarge), "{piece}");
    }
}
