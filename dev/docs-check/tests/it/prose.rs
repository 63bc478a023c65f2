//! Prose has one sentence per line.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use metatf_docs_check::prose::{LONGEST, SOURCES, files, prose};
use metatf_test::root;

#[test]
fn lines_of_prose_are_short() {
    let files = files(SOURCES).unwrap();
    assert!(!files.is_empty());
    let mut wrong = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(root().join(&path)).unwrap();
        for line in prose(&path, &text) {
            let length = line.text.chars().count();
            if !line.table && length > LONGEST {
                wrong.push(format!("{}:{}: {length} characters", path.display(), line.number));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\nWrite one sentence per line, of at most {LONGEST} characters", wrong.join("\n"));
}
