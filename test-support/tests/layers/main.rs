//! Layers: within a crate, modules name only modules below them. `table.rs` says which are below.
//!
//! The table is drawn in DESIGN.md, in the block after `<!-- layers -->`; `METATF_BLESS=1` draws it again, and `METATF_LAYERS=print` prints it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that goes wrong has to panic")]

mod crates;
mod picture;
mod table;
mod tokens;
mod uses;

use crates::{Arrow, Crate, read};
use metatf_test::{golden, page, root};
use std::collections::{BTreeMap, BTreeSet};
use table::{Layers, NOT_YET, TABLE};

/// What is wrong with a crate by its layers, a line for each.
fn wrong(layers: &Layers, found: &Crate) -> Vec<String> {
    let level = |module: &str| layers.modules.iter().position(|known| *known == module);
    let mut wrong = Vec::new();
    let missing = found.modules.iter().filter(|module| level(module).is_none());
    wrong.extend(missing.map(|module| format!("{}: module `{module}` is not in the table", layers.folder)));
    let gone = layers.modules.iter().filter(|module| !found.modules.contains(**module));
    wrong.extend(gone.map(|module| format!("{}: there is no module `{module}`, which is in the table", layers.folder)));
    for Arrow { from, to, place } in &found.arrows {
        match (level(from), level(to)) {
            (Some(from_level), Some(to_level)) if from_level < to_level => {
                wrong.push(format!("{place}: {from} -> {to}: `{to}` is above `{from}`"));
            }
            (Some(_), None) => wrong.push(format!("{place}: {from} -> {to}: `{to}` is above all modules")),
            _ => {}
        }
    }
    wrong
}

/// The modules of a crate that stand in circles, or name the root, with a place for each arrow: what keeps it from having layers.
fn circles(found: &Crate) -> Vec<String> {
    let mut below: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for arrow in &found.arrows {
        below.entry(&arrow.from).or_default().insert(&arrow.to);
    }
    let reaches = |from: &str, to: &str| {
        let mut seen = BTreeSet::new();
        let mut left = vec![from];
        while let Some(next) = left.pop() {
            left.extend(below.get(next).into_iter().flatten().filter(|further| seen.insert(**further)));
        }
        seen.contains(to)
    };
    let mut lines = BTreeMap::new();
    for Arrow { from, to, place } in &found.arrows {
        if reaches(to, from) || to == crates::ROOT {
            lines.entry((from, to)).or_insert_with(|| format!("    {from} -> {to} ({place})"));
        }
    }
    lines.into_values().collect()
}

/// An order of the modules that breaks as few arrows as a simple search finds: a first row for the table.
fn order(found: &Crate) -> Vec<&str> {
    let mut left: BTreeSet<&str> = found.modules.iter().map(String::as_str).collect();
    let mut order = Vec::new();
    while !left.is_empty() {
        let above = |module: &str| {
            let of = found.arrows.iter().filter(|arrow| arrow.from == module && left.contains(&*arrow.to));
            of.map(|arrow| &arrow.to).collect::<BTreeSet<_>>().len()
        };
        let Some(next) = left.iter().copied().min_by_key(|module| above(module)) else { break };
        left.remove(next);
        order.push(next);
    }
    order
}

#[test]
fn modules_name_only_modules_below_them() {
    let all: Vec<String> =
        TABLE.iter().flat_map(|layers| wrong(layers, &read(&root(), layers.folder, layers.within))).collect();
    assert!(all.is_empty(), "{}\nThe layers are in test-support/tests/layers/table.rs.", all.join("\n"));
    for (folder, within) in NOT_YET {
        let found = read(&root(), folder, *within);
        let circles = circles(&found);
        println!(
            "{folder} {}: {:?}\n{} arrows in circles\n{}",
            within.unwrap_or_default(),
            order(&found),
            circles.len(),
            circles.join("\n")
        );
    }
}

#[test]
fn every_crate_of_the_project_is_in_the_table() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, published) = manifest.split_once("[workspace.dependencies]\n").unwrap();
    let crates = published.lines().filter_map(|line| line.split_once("path = \"")?.1.split('"').next());
    let mut folders: BTreeSet<&str> = crates.filter(|folder| *folder != "test-support").collect();
    for known in TABLE.iter().map(|layers| layers.folder).chain(NOT_YET.iter().map(|(folder, _)| *folder)) {
        folders.remove(known);
    }
    assert!(folders.is_empty(), "not in the table of layers: {folders:?}");
}

#[test]
fn the_picture_in_design_is_current() {
    let crates: Vec<_> = TABLE.iter().map(|layers| (layers, read(&root(), layers.folder, layers.within))).collect();
    let lines = picture::draw(&root(), &crates);
    if std::env::var_os("METATF_LAYERS").is_some_and(|mode| mode == "print") {
        println!("{}", lines.join("\n"));
    }
    let path = root().join("DESIGN.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut blocks = page::blocks(&text).into_iter();
    if let Some(block) = blocks.find(|block| block.above.as_deref() == Some("layers") && block.info == "mermaid") {
        golden::hold(&path, &page::replace(&text, &[(block.line, lines)]));
    }
}

#[test]
fn arrows_upwards_and_modules_that_are_missing_are_found() {
    let arrow =
        |from: &str, to: &str| Arrow { from: from.to_owned(), to: to.to_owned(), place: "src/x.rs:7".to_owned() };
    let found = Crate {
        modules: ["a", "b", "c"].map(str::to_owned).into(),
        arrows: vec![arrow("b", "a"), arrow("a", "b"), arrow("a", crates::ROOT), arrow("c", "a")],
    };
    let layers = Layers { folder: "x", within: None, modules: &["a", "b", "d"] };
    let expected = [
        "x: module `c` is not in the table",
        "x: there is no module `d`, which is in the table",
        "src/x.rs:7: a -> b: `b` is above `a`",
        "src/x.rs:7: a -> (root): `(root)` is above all modules",
    ];
    assert_eq!(wrong(&layers, &found), expected);
    assert_eq!(circles(&found).len(), 3);
}
