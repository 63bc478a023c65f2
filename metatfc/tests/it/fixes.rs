//! `check --fix`: its changes, the lines that it leaves unchanged, and its messages.

use super::common::metatfc;
use metatf_test::Folder;
use std::fs;

const WRONG: &str = "\
section s 1 {
    // The size.
    r: (tag, size) {
        tag.value = 4;
        sise.width = 2
        size.interpretation = none;
    }
}
";

#[test]
fn a_file_is_corrected() {
    let folder = Folder::new();
    let path = folder.path("a.dtd");
    fs::write(&path, WRONG).expect("it can be written");
    let run = metatfc(&folder, &["check", "--fix", "a.dtd"]);
    assert_eq!(run.status, 0, "{}", run.err);
    let text = fs::read_to_string(&path).expect("it is there");
    assert_eq!(text, WRONG.replace("sise.width = 2", "size.width = 2;"));
    assert!(run.text().contains("a.dtd:5:23: fixed E0006: expected `;`"), "{}", run.text());
    assert!(
        run.text().contains("a.dtd:5:9: fixed E0301: record `r` has no field `sise`: write `size.width = 2;`"),
        "{}",
        run.text()
    );

    // A second run finds nothing to fix and does not write the file.
    let before = fs::metadata(&path).and_then(|m| m.modified()).expect("it is there");
    let again = metatfc(&folder, &["check", "--fix", "a.dtd"]);
    assert_eq!((again.status, again.text().as_str(), again.err.as_str()), (0, "", ""));
    assert_eq!(fs::metadata(&path).and_then(|m| m.modified()).expect("it is there"), before);
}

#[test]
fn what_a_person_has_to_decide_stays() {
    let folder = Folder::new();
    let path = folder.path("a.dtd");
    let text = "r: (tag, size) { tag.value = 4; size.interpretation = none; }\n";
    fs::write(&path, text).expect("it can be written");
    let run = metatfc(&folder, &["check", "--fix", "a.dtd"]);
    assert_eq!((run.status, run.text().as_str()), (1, ""));
    assert!(run.err.contains("E0501"), "{}", run.err);
    assert_eq!(fs::read_to_string(&path).expect("it is there"), text);

    let run = metatfc(&folder, &["check", "--message-format", "json", "a.dtd"]);
    let found: serde_json::Value = serde_json::from_str(&run.text()).expect("an object");
    assert_eq!(found["fixed"], false);
    assert_eq!(found["suggestion"]["certain"], false);
    assert_eq!((&found["suggestion"]["start"], &found["suggestion"]["text"]), (&16.into(), &" size.width = 4;".into()));

    let run = metatfc(&folder, &["check", "--fix", "-"]);
    assert_eq!(run.status, 2);
    assert!(run.err.contains("--fix cannot change standard input"), "{}", run.err);
}

#[test]
fn what_was_fixed_as_json() {
    let folder = Folder::new();
    fs::write(folder.path("a.metatf"), WRONG).expect("it can be written");
    let run = metatfc(&folder, &["check", "--fix", "--message-format", "json", "a.metatf"]);
    assert_eq!(run.status, 0, "{}", run.err);
    let lines: Vec<serde_json::Value> =
        run.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 2);
    assert!(lines.iter().all(|line| line["fixed"] == true && line["suggestion"]["certain"] == true));
}
