//! The generated code of each `golden/*.dtd`, held against `golden/*.rs`. `METATF_BLESS=1` writes them anew; a golden
//! that is missing, or that no DTD belongs to, fails.
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
    let bless = std::env::var_os("METATF_BLESS").is_some_and(|v| v == "1");
    let mut wrong = Vec::new();
    for name in names("dtd") {
        let generated = generate(&name, &format!("{name}.dtd"));
        let golden = folder().join(&name).with_extension("rs");
        if bless {
            std::fs::write(golden, generated).unwrap();
        } else if std::fs::read_to_string(golden).ok().as_deref() != Some(&generated) {
            wrong.push(name);
        }
    }
    let orphans: Vec<_> = names("rs").difference(&names("dtd")).cloned().collect();
    assert!(wrong.is_empty(), "not as the golden (see the difference with METATF_BLESS=1 and git diff): {wrong:?}");
    assert!(orphans.is_empty(), "goldens without a DTD: {orphans:?}");
}

/// At most eleven lines of output for a line of DTD, the 80 that every module has apart. (A line of comment or blank is
/// no line.)
#[test]
fn output_is_small() {
    for name in names("dtd") {
        let lines = |extension| {
            let text = std::fs::read_to_string(folder().join(&name).with_extension(extension)).unwrap();
            text.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with("//")).count()
        };
        let (dtd, rs) = (lines("dtd"), lines("rs"));
        println!("{name}: {rs} lines for {dtd} ({:.1} each)", rs as f64 / dtd as f64);
        assert!(rs <= 80 + 11 * dtd, "{name}: {rs} lines for {dtd}");
    }
}

#[test]
fn the_same_every_time() {
    for name in names("dtd") {
        assert_eq!(generate(&name, "x.dtd"), generate(&name, "x.dtd"));
    }
}
