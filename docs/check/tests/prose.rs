//! Prose uses the words of the field, a sentence a line.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use metatf_docs_check::prose::{LONGEST, Line, SOURCES, files, prose, unused_words};
use metatf_test::root;

/// What is wrong with the lines of all files, each with its place.
fn wrong(check: impl Fn(&Line) -> Vec<String>) -> Vec<String> {
    let files = files(SOURCES).unwrap();
    assert!(!files.is_empty());
    let mut wrong = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(root().join(&path)).unwrap();
        for line in prose(&path, &text) {
            wrong.extend(check(&line).into_iter().map(|what| format!("{}:{}: {what}", path.display(), line.number)));
        }
    }
    wrong
}

#[test]
fn prose_uses_the_terms_of_the_glossary() {
    let wrong = wrong(|line| {
        let found = unused_words(&line.text);
        found.map(|(word, instead)| format!("not \"{word}\" but: {instead}")).collect()
    });
    assert!(wrong.is_empty(), "{}\nThe list is in docs/check/src/prose.rs", wrong.join("\n"));
}

#[test]
fn lines_of_prose_are_short() {
    let wrong = wrong(|line| {
        let length = line.text.chars().count();
        let long = !line.table && length > LONGEST;
        long.then(|| format!("{length} characters: make it several sentences, a line each")).into_iter().collect()
    });
    assert!(wrong.is_empty(), "{}\nA line may have {LONGEST} characters", wrong.join("\n"));
}
