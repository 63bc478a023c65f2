//! The oracle reads the conformance vectors as they say, and each of its rules is pinned by one: with the rule broken, a vector reads in
//! another way. `METATF_BLESS=1` writes the index of them.
#![allow(clippy::unwrap_used, reason = "a test")]

use metatf_tests::conformance::{index, list, noticed, vectors};
use metatf_tests::oracle::Chapter;

#[test]
fn the_oracle_reads_the_vectors() {
    let complaints: Vec<String> = vectors().iter().flat_map(|v| v.complaints(&v.answer(None))).collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_rule_is_pinned() {
    let vectors = vectors();
    let noticed = noticed(&vectors);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/rules.md");
    let text = index(&noticed);
    if std::env::var_os("METATF_BLESS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let all = Chapter::ALL.iter().flat_map(|chapter| chapter.rules());
    let unnoticed: Vec<_> = all.filter(|rule| !noticed.contains_key(*rule)).collect();
    assert!(unnoticed.is_empty(), "no vector notices {unnoticed:?}");
    assert_eq!(std::fs::read_to_string(path).unwrap(), text, "METATF_BLESS=1 writes it anew");
}

#[test]
fn the_list_says_which_level_a_vector_needs() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/levels.txt");
    let text = list(&vectors());
    if std::env::var_os("METATF_BLESS").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(path).unwrap(), text, "METATF_BLESS=1 writes it");
}
