//! Compares the code generated from each `golden/*.dtd` with a snapshot. The test fails if a snapshot is missing or has
//! no DTD. The snapshots are binary because `compiled` includes them: a binary snapshot is a plain Rust file next to
//! the `.snap` file.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that goes wrong has to panic")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use metatf_codegen::{Options, generate_source};

fn generate(name: &str, source: &str) -> String {
    let text = std::fs::read(folder().join(name).with_extension("dtd")).unwrap();
    generate_source(&text, &Options::new(source)).unwrap_or_else(|e| panic!("{e}")).source
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn names(extension: &str) -> BTreeSet<String> {
    let files = std::fs::read_dir(folder()).unwrap().map(|f| f.unwrap().path());
    let files = files.filter(|f| f.extension().is_some_and(|e| e == extension));
    files.map(|f| f.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn goldens() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let _bound = settings.bind_to_scope();
    for name in names("dtd") {
        let generated = generate(&name, &format!("{name}.dtd"));
        insta::assert_binary_snapshot!(&format!("{name}.rs"), generated.into_bytes());
    }
    let snapshots = names("rs").iter().map(|name| name.trim_end_matches(".snap").to_owned()).collect();
    assert_eq!((names("dtd"), names("dtd")), (names("snap"), snapshots), "snapshots without a DTD, or the reverse");
}

#[test]
fn the_same_every_time() {
    for name in names("dtd") {
        assert_eq!(generate(&name, "x.dtd"), generate(&name, "x.dtd"));
    }
}

/// A record can have the maximum number of leaves, including its tag.
#[test]
fn the_longest_record() {
    let fields = vec!["x"; 254].join(", ");
    let text = format!("x.width = 1; x.interpretation = none; section s 1 {{ r: ({fields}) {{ tag.value = 4; }} }}");
    let generated = generate_source(text.as_bytes(), &Options::new("x.dtd")).unwrap_or_else(|e| panic!("{e}"));
    assert!(generated.source.contains("pub x_254: u64"));
}

/// Options refer to the type of named values by the path of its property, and attributes for all structs also apply to
/// these types.
#[test]
fn options_reach_named_types() {
    let text = std::fs::read(folder().join("named.dtd")).unwrap();
    let mut options = Options::new("named.dtd");
    options.renames.push(("odd.values".to_owned(), "Strange".to_owned()));
    options.record_attributes.push(("bits.flags".to_owned(), "#[must_use]".to_owned()));
    options.record_attributes.push((".".to_owned(), "#[non_exhaustive]".to_owned()));
    let source = generate_source(&text, &options).unwrap_or_else(|e| panic!("{e}")).source;
    for found in [
        "#[non_exhaustive]\n    pub enum Strange {",
        "pub odd: Strange,",
        "#[must_use]\n    #[non_exhaustive]\n    pub struct Bits(",
    ] {
        assert!(source.contains(found), "{found} is not in\n{source}");
    }
}
