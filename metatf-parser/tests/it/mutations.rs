//! Mutates the vectors: removes, duplicates and moves pieces, and inserts comments and line breaks. No mutation causes
//! a panic. A DTD that can be formatted keeps its meaning and docs, and formatting it again changes nothing.

#![allow(clippy::unwrap_used, clippy::panic)] // Test helpers may panic.

use std::fs;
use std::path::Path;

use metatf_parser::{format, parse, shorten};

/// A small random number generator (xorshift) that makes every run the same.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
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
pub(crate) fn pieces(text: &str) -> Vec<String> {
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

/// Removes or repeats tokens of real DTDs. Each mistake has a location in the text, and an edit that can be applied.
#[test]
fn near_gallery() {
    let rounds = std::env::var("METATF_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(20);
    let mut numbers = Numbers(0x2545_F491_4F6C_DD1D);
    let folder = metatf_test::root().join("dtds/gallery");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "dtd"));
    files.sort();
    let mut mistakes = 0;
    for text in files.iter().map(|file| fs::read_to_string(file).unwrap()) {
        let original = pieces(&text);
        for _ in 0..rounds {
            let mut pieces = original.clone();
            for _ in 0..=numbers.below(2) {
                let (at, other) = (numbers.below(pieces.len()), numbers.below(pieces.len()));
                match numbers.below(3) {
                    0 => drop(pieces.remove(at)),
                    1 => pieces.insert(at, original[other.min(original.len() - 1)].clone()),
                    _ => pieces.swap(at, other),
                }
            }
            let mutated = pieces.concat();
            for found in parse("m.dtd", mutated.as_bytes()).diagnostics {
                mistakes += 1;
                assert!(found.primary.line > 0 && found.primary.span.end <= mutated.len(), "{found:?}\n{mutated}");
                assert!(found.help.is_some(), "{found:?}\n{mutated}");
                let edited = found.suggestion.map(|suggestion| suggestion.apply(mutated.as_bytes()));
                assert!(edited.is_none_or(|edited| edited.is_some()), "{mutated}");
            }
        }
    }
    assert!(mistakes > files.len() * rounds / 4, "{mistakes}");
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
