//! Prose uses the words of the field, a sentence a line.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use metatf_docs_check::prose::{LONGEST, Line, SOURCES, files, is_allowed, prose, unused_phrases, unused_words};
use metatf_docs_check::{commands, run, sandbox};
use metatf_test::root;
use std::path::Path;

/// What is wrong with the lines of all files, each with its place.
fn wrong(check: impl Fn(&Path, &Line) -> Vec<String>) -> Vec<String> {
    let files = files(SOURCES).unwrap();
    assert!(!files.is_empty());
    let mut wrong = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(root().join(&path)).unwrap();
        for line in prose(&path, &text) {
            wrong.extend(
                check(&path, &line).into_iter().map(|what| format!("{}:{}: {what}", path.display(), line.number)),
            );
        }
    }
    wrong
}

#[test]
fn prose_uses_the_terms_of_the_glossary() {
    let wrong = wrong(|path, line| {
        let found = unused_words(&line.text).filter(|(word, _)| !is_allowed(word, path));
        found.map(|(word, instead)| format!("not \"{word}\" but: {instead}")).collect()
    });
    assert!(wrong.is_empty(), "{}\nThe list is in docs/check/src/prose.rs", wrong.join("\n"));
}

#[test]
fn prose_says_it_plainly() {
    let wrong = wrong(|_, line| {
        let found = unused_phrases(&line.text);
        found.map(|(phrase, instead)| format!("not \"{phrase}\" but: {instead}")).collect()
    });
    assert!(wrong.is_empty(), "{}\nThe list is in docs/check/src/prose.rs", wrong.join("\n"));
}

#[test]
fn lines_of_prose_are_short() {
    let wrong = wrong(|_, line| {
        let length = line.text.chars().count();
        let long = !line.table && length > LONGEST;
        long.then(|| format!("{length} characters: make it several sentences, a line each")).into_iter().collect()
    });
    assert!(wrong.is_empty(), "{}\nA line may have {LONGEST} characters", wrong.join("\n"));
}

/// Help is prose that the pages show as code.
#[test]
fn help_uses_the_terms_of_the_glossary() {
    let (folder, commands) = (sandbox(), commands());
    let mut wrong = Vec::new();
    for command in ["metatfc", "hatf"] {
        let overview = run(&format!("{command} --help"), &folder, &commands);
        // In one list or in several, before the options; a line that goes on is further in.
        let listed = overview.iter().take_while(|line| *line != "Options:").filter_map(|line| line.strip_prefix("  "));
        let listed = listed.filter(|line| !line.starts_with(' ')).filter_map(|line| line.split_whitespace().next());
        let names: Vec<&str> = listed.filter(|name| *name != "help").collect();
        assert!(names.len() > 5, "{command}: {names:?}");
        for name in names.into_iter().chain([""]) {
            let help = run(&format!("{command} {name} --help"), &folder, &commands);
            let found = unused_words(&help.join(" ")).collect::<Vec<_>>();
            wrong
                .extend(found.iter().map(|(word, instead)| format!("{command} {name}: not \"{word}\" but: {instead}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
