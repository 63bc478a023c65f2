//! Writes statements as types, in all DTDs of the repository.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test must panic")]

use std::path::{Path, PathBuf};

use metatf_parser::{format, parse, shorten};

/// Returns the DTDs of the repository. The published package contains none.
fn texts() -> Vec<(PathBuf, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders =
        ["dtds", "docs", "examples", "tests/vectors", "tests/dtds", "metatf-codegen/tests", "metatfc", "heap"];
    let mut folders: Vec<_> = folders.map(|folder| root.join(folder)).into();
    let mut out = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "dtd") {
                out.extend(std::fs::read(&path).ok().map(|text| (path, text)));
            }
        }
    }
    out
}

/// Returns the words of the comments, which end at a line or at `*/`.
fn comments(text: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for line in text.lines() {
        // A string may contain the same characters.
        let at = line.find("//").or(line.find("/*")).filter(|at| !line[..*at].contains('"'));
        out.extend(at.map(|at| line[at..].trim_end().to_owned()));
    }
    out.sort();
    out
}

fn check(path: &Path, text: &[u8]) -> Option<(usize, usize)> {
    let before = parse("a.dtd", text).dtd?;
    let short = shorten("a.dtd", text).unwrap();
    let after = parse("a.dtd", short.as_bytes());
    let dtd = after.dtd.unwrap_or_else(|| panic!("{}: {:#?}\n{short}", path.display(), after.diagnostics));
    assert_eq!(before.fingerprint(), dtd.fingerprint(), "{}", path.display());
    assert_eq!(before.doc, dtd.doc, "{}", path.display());
    for (a, b) in before.records.iter().zip(&dtd.records) {
        let shown = |record: &metatf_parser::schema::Record| {
            let leaves = record.leaves.iter().map(|l| (l.doc.clone(), l.format, l.unit.clone(), l.names.clone()));
            (record.doc.clone(), leaves.collect::<Vec<_>>())
        };
        assert_eq!(shown(a), shown(b), "{}", path.display());
    }
    assert_eq!(shorten("a.dtd", short.as_bytes()).as_ref(), Ok(&short), "{} twice", path.display());
    assert_eq!(format("a.dtd", short.as_bytes()).as_ref(), Ok(&short), "{} formatted", path.display());
    let plain = format("a.dtd", text).unwrap();
    assert_eq!(comments(&plain), comments(&short), "{}:\n{short}", path.display());
    Some((plain.len(), short.len()))
}

#[test]
fn of_all_dtds() {
    let texts = texts();
    if texts.is_empty() {
        return;
    }
    let (mut shorter, mut all) = (0, 0);
    for (path, text) in &texts {
        let Some((plain, short)) = check(path, text) else { continue };
        all += 1;
        shorter += usize::from(short < plain);
        if std::env::var_os("METATF_SHOW").is_some() {
            println!("{} {plain} {short}", path.display());
        }
    }
    assert!(all > 100 && shorter * 4 > all * 3, "{shorter} of {all} are shorter");
}

#[test]
fn comments_move() {
    let text = "\
// A log.

time.width = 4; time.interpretation = delta 0; time.format = \"time_ns\"; // since the start
section log 1 {
    // An event.
    event: (time, task, id, vfield, ratio, n*value) {
        tag.value = 4; // The first.
        // The task that ran.
        task.width = 2; task.interpretation = baseOffset 0; task.format = \"signed\"; task.unit = \"x\";

        id.width = 16; id.interpretation = none; // random
        // Set to -1.
        vfield.data.format = \"utf8\";
        ratio.width = 4; ratio.interpretation = none; ratio.format = \"f32\";
        n.width = 1; n.interpretation = none;
        value.interpretation = stride 5 -3;
    }
    point: (x) { x.width = 1; x.interpretation = none; }
}
";
    let short = shorten("a.dtd", text.as_bytes()).unwrap();
    insta::assert_snapshot!(short);
    check(Path::new("a.dtd"), text.as_bytes());
}

#[cfg(feature = "index")]
#[test]
fn hovering_shows_the_statements() {
    let text = "type time: u32 delta { format = \"time_ns\"; }
point: (x: i8, y: u8 baseOffset -1)
section log 1 { r: (time, start: time, name: text, at: point, n: u8, data: bytes n.value * 2) { tag.value = 4; } }
";
    let index = metatf_parser::index(text.as_bytes());
    let hover = |word: &str| {
        let at = text.find(word).unwrap() + word.len() - 1;
        metatf_parser::hover(text.as_bytes(), &index, at).unwrap().markdown
    };
    let same = |statements: &str| format!("the same as\n\n```dtd\n{statements}\n```");
    for (word, shown) in [
        ("time: u32", "type `u32 delta`\n\n".to_owned() + &same("time.interpretation = delta 0;\ntime.width = 4;")),
        (
            "x: i8",
            "type `i8`\n\n".to_owned()
                + &same("x.width = 1;\nx.interpretation = baseOffset 0;\nx.format = \"signed\";"),
        ),
        ("y: u8", "type `u8 baseOffset -1`\n\n".to_owned() + &same("y.interpretation = baseOffset -1;\ny.width = 1;")),
        (
            "start: time",
            "type `time`\n\n".to_owned()
                + &same("start.format = \"time_ns\";\nstart.interpretation = delta 0;\nstart.width = 4;"),
        ),
        (
            "name: text",
            "type `text`\n\nthe nested record `vfield`\n\n".to_owned() + &same("name.data.format = \"utf8\";"),
        ),
        ("at: point", "type `point`\n\nthe nested record `point`".to_owned()),
        (
            "data: bytes",
            "type `bytes n.value * 2`\n\n".to_owned() + &same("data.width = n.value * 2;\ndata.interpretation = none;"),
        ),
    ] {
        assert_eq!(hover(word), shown, "{word}");
    }
    // A name in a path belongs to the field, but a type belongs to its definition.
    let uses = |word: &str| index.use_at(text.find(word).unwrap() + word.len() - 1).unwrap().symbol;
    assert_eq!(index.references(uses("type time")).count(), 3);
}
