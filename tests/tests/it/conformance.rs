//! The oracle reads the conformance vectors as expected, and each of its rules is pinned by a vector that reads
//! differently if the rule is broken. `METATF_BLESS=1` writes the index of the vectors.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use metatf_parser::schema::{Dtd, Item, Leaf, Repeated, Section};
use metatf_tests::conformance::{index, list, noticed, vectors};
use metatf_tests::oracle::{Chapter, is_read, meaning};
use std::path::PathBuf;

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
    assert_eq!(std::fs::read_to_string(path).unwrap(), text, "METATF_BLESS=1 writes it again");
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

/// Returns, for each numeric leaf of a section's own and global records, the first leaf with which it shares its
/// previous value.
fn shares(dtd: &Dtd, section: &Section) -> Vec<usize> {
    let mut cells = Vec::new();
    for (id, of) in section.records.iter().zip(&section.cells).filter(|(id, _)| id.0 > 2) {
        let leaves = &dtd.records[id.0 as usize].leaves;
        cells.extend(leaves.iter().zip(of).filter(|(leaf, _)| leaf.is_numeric()).map(|(_, cell)| *cell));
    }
    cells.iter().map(|cell| cells.iter().position(|other| other == cell).unwrap()).collect()
}

/// Returns the keys and counts of a layout.
fn keys(items: &[Item]) -> String {
    let of = |item: &Item| match item {
        Item::Leaf(leaf) => format!("{} ", leaf.0),
        Item::Nested { key, record, items, .. } => format!("{key}:{record}({})", keys(items)),
        Item::Repeat { count, key, body } => match body {
            Repeated::Leaf(leaf) => format!("{key}:{}*{} ", count.0, leaf.0),
            Repeated::Group(items) => format!("{key}:{}*({})", count.0, keys(items)),
            Repeated::Record { record, items, .. } => format!("{key}:{}*{record}({})", count.0, keys(items)),
        },
    };
    items.iter().map(of).collect()
}

/// The oracle and the parser, which share no code, interpret DTDs in the same way.
#[test]
fn the_oracle_understands_what_the_parser_does() {
    let folders = |of: PathBuf| std::fs::read_dir(of).unwrap().map(|entry| entry.unwrap().path());
    let good = folders(metatf_test::vectors("good")).map(|folder| folder.join("format.dtd"));
    let mut read = 0;
    for path in good
        .chain(folders(metatf_test::root().join("dtds")))
        .chain(folders(metatf_test::root().join("dtds/gallery")))
        .filter(|path| path.extension().is_some_and(|e| e == "dtd"))
    {
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        let dtd = metatf_parser::parse("format.dtd", text.as_bytes()).dtd.unwrap();
        if is_read(&dtd) {
            let own = meaning(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            for (a, b) in dtd.records.iter().skip(3).zip(own.records.iter().skip(3)) {
                assert_eq!((&a.name, keys(&a.items)), (&b.name, keys(&b.items)), "{}", path.display());
                for (a, b) in a.leaves.iter().zip(&b.leaves) {
                    let leaf = |l: &Leaf| {
                        let key = if l.computed.is_none() { &*l.key } else { "" };
                        format!("{key} {:?} {:?} {:?} {:?}", l.width, l.interpretation, l.constant, l.computed)
                    };
                    assert_eq!(leaf(a), leaf(b), "{}", path.display());
                }
            }
            for (a, b) in dtd.sections.iter().zip(&own.sections) {
                assert_eq!((a.number, &a.records), (b.number, &b.records), "{}", path.display());
                assert_eq!(shares(&dtd, a), shares(&own, b), "{}", path.display());
            }
            read += 1;
        }
    }
    assert!(read > 60, "{read}");
}
