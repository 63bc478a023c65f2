//! Mutates the vectors: removes, duplicates and moves pieces, and inserts comments and line breaks. No mutation causes
//! a panic. A DTD that can be formatted keeps its meaning and docs, and formatting it again changes nothing.

#![allow(clippy::unwrap_used, clippy::panic)] // Test helpers may panic.

use std::fs;
use std::path::Path;

use metatf_parser::{format, parse, shorten};

/// A small random number generator (xorshift) that makes every run the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }
}

fn texts() -> Vec<String> {
    let good = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/good");
    let mut files: Vec<_> = fs::read_dir(good).unwrap().map(|e| e.unwrap().path().join("format.dtd")).collect();
    files.sort();
    let mut texts: Vec<String> = files.iter().filter_map(|f| fs::read_to_string(f).ok()).collect();
    texts.dedup();
    texts
}

/// Splits a string into words, single punctuation characters and runs of whitespace.
fn pieces(text: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    let class = |c: char| {
        if c.is_alphanumeric() || c == '_' {
            1
        } else if c.is_whitespace() {
            2
        } else {
            0
        }
    };
    for c in text.chars() {
        match pieces.last_mut() {
            Some(last) if class(c) != 0 && last.chars().all(|l| class(l) == class(c)) => last.push(c),
            _ => pieces.push(c.to_string()),
        }
    }
    pieces
}

fn mutate(pieces: &[String], numbers: &mut Numbers) -> String {
    const INSERTS: [&str; 12] =
        [" /* c */ ", "// d\n", "\n\n/* e\n f */\n", "\n", "\n// g\n", ";", "{", "}", "(", ",", "value", " -1 "];
    let mut out = pieces.to_vec();
    for _ in 0..=numbers.below(4) {
        let (at, other) = (numbers.below(out.len()), numbers.below(out.len()));
        match numbers.below(12) {
            0 => drop(out.remove(at)),
            1 => out.insert(at, out[other].clone()),
            2 => out.swap(at, other),
            // Inserted comments and line breaks leave most DTDs valid.
            3..=9 => out.insert(at, INSERTS[numbers.below(5)].to_owned()),
            _ => out.insert(at, INSERTS[numbers.below(INSERTS.len())].to_owned()),
        }
        if out.is_empty() {
            break;
        }
    }
    out.concat()
}

/// Returns the part that the formatter preserves: everything but whitespace, optional punctuation and the byte-order
/// mark.
fn substance(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !";,\u{FEFF}".contains(*c)).collect()
}

fn check(text: &str) -> bool {
    let parsed = parse("m.dtd", text.as_bytes());
    assert_eq!(parsed.dtd.is_none(), parsed.errors() > 0, "{text}");
    let Ok(once) = format("m.dtd", text.as_bytes()) else {
        assert!(parsed.dtd.is_none(), "accepted and not formatted:\n{text}");
        return false;
    };
    let twice = format("m.dtd", once.as_bytes()).unwrap_or_else(|e| panic!("{text}\n---\n{once}\n{e:#?}"));
    assert_eq!(once, twice, "formatted twice, from\n{text}");
    assert_eq!(substance(text), substance(&once), "{text}\n---\n{once}");
    let Some(before) = parsed.dtd else { return false };
    let short = shorten("m.dtd", text.as_bytes()).unwrap();
    let shortened = parse("m.dtd", short.as_bytes()).dtd.unwrap_or_else(|| panic!("{text}\n---\n{short}"));
    assert_eq!(before.fingerprint(), shortened.fingerprint(), "{text}\n---\n{short}");
    assert_eq!(shorten("m.dtd", short.as_bytes()).as_ref(), Ok(&short), "shortened twice, from\n{text}");
    let mut after = parse("m.dtd", once.as_bytes()).dtd.unwrap();
    after.text.clone_from(&before.text);
    assert_eq!(before, after, "\n{text}\n---\n{once}");
    true
}

#[test]
fn near_vectors() {
    let rounds = std::env::var("METATF_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(40);
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let mut valid = 0;
    for text in texts() {
        let pieces = pieces(&text);
        valid += (0..rounds).filter(|_| check(&mutate(&pieces, &mut numbers))).count();
    }
    assert!(valid > 10 * rounds, "only {valid} of the texts were valid");
}
