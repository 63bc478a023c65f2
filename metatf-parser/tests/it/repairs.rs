//! Repairs of damaged DTDs: a token of a real DTD is removed, repeated, replaced or moved.
#![allow(clippy::unwrap_used)] // Test helpers may panic.

use std::fs;
use std::time::Duration;

use metatf_parser::{Severity, parse};
use metatf_test::thread_time;

use crate::mutations::{Numbers, pieces};

fn texts() -> Vec<String> {
    let folders = ["docs/samples", "dtds/gallery"].map(|folder| metatf_test::root().join(folder));
    let mut files: Vec<_> = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap()).collect();
    files.sort_by_key(|file| file.as_ref().unwrap().path());
    let paths = files.into_iter().map(|file| file.unwrap().path());
    let texts = paths.filter(|path| path.extension().is_some_and(|extension| extension == "dtd"));
    let texts = texts.map(|path| fs::read_to_string(path).unwrap());
    texts.filter(|text| parse("", text.as_bytes()).dtd.is_some()).collect()
}

/// Damages a token outside of comments.
fn damage(text: &str, numbers: &mut Numbers) -> String {
    let mut parts = pieces(text);
    let is_comment =
        |parts: &[String], at: usize| parts[..at].concat().lines().next_back().unwrap_or("").contains("//");
    let token = |numbers: &mut Numbers, parts: &[String]| {
        (0..50).map(|_| numbers.below(parts.len())).find(|at| !parts[*at].trim().is_empty() && !is_comment(parts, *at))
    };
    let (Some(at), Some(other)) = (token(numbers, &parts), token(numbers, &parts)) else { return text.to_owned() };
    match numbers.below(4) {
        0 => drop(parts.remove(at)),
        1 => parts.insert(at, parts[at].clone()),
        2 => parts[at] = parts[other].clone(),
        _ => {
            let next = (at + 1..parts.len()).find(|next| !parts[*next].trim().is_empty()).unwrap_or(at);
            parts.swap(at, next);
        }
    }
    parts.concat()
}

/// Applies the edits of the first errors, and returns true if the text becomes valid.
fn is_restored(mut text: String) -> bool {
    for _ in 0..4 {
        let start = thread_time();
        let parsed = parse("", text.as_bytes());
        assert!(thread_time() - start < Duration::from_secs(20), "{text}");
        if parsed.dtd.is_some() {
            return true;
        }
        let error = parsed.diagnostics.iter().find(|found| found.severity == Severity::Error).unwrap();
        let Some(suggestion) = &error.suggestion else { return false };
        text = String::from_utf8(suggestion.apply(text.as_bytes()).unwrap()).unwrap();
    }
    false
}

/// The edit of the first error restores most of the texts in which damage causes a syntax error.
#[test]
fn damage_is_repaired() {
    let rounds = std::env::var("METATF_ROUNDS").ok().and_then(|r| r.parse().ok()).unwrap_or(10);
    let mut numbers = Numbers(0x9E37_79B9_7F4A_7C15);
    let (mut damaged, mut restored) = (0, 0);
    for text in texts() {
        for _ in 0..rounds {
            let text = damage(&text, &mut numbers);
            if parse("", text.as_bytes()).diagnostics.iter().any(|found| found.code.as_str().starts_with("E00")) {
                damaged += 1;
                restored += usize::from(is_restored(text));
            }
        }
    }
    println!("{restored} of {damaged}");
    assert!(damaged > 100 && restored * 100 > damaged * 50, "{restored} of {damaged}");
}
