//! Holds parts of the project's own files to what they are made from: pages of the book, the picture of the layers.
//!
//! Such a file is written and read by people, around the part that is held. So it cannot be a snapshot of `insta`, which is a file of its
//! own with a header. `METATF_BLESS=1` rewrites what differs, where it stands; a file that is not there is a failure.

use std::path::Path;

/// Says whether what differs is to be rewritten.
#[must_use]
pub fn bless() -> bool {
    std::env::var_os("METATF_BLESS").is_some_and(|value| value == "1")
}

/// Holds a file to the text that it should be.
///
/// # Panics
/// If it is not that and is not to be rewritten, or does not exist.
#[track_caller]
pub fn hold(path: &Path, text: &str) {
    let found = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if found == text {
        return;
    }
    if bless() {
        std::fs::write(path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        return;
    }
    let mut lines = found.lines().zip(text.lines());
    let line =
        lines.position(|(found, wanted)| found != wanted).unwrap_or(found.lines().count().min(text.lines().count()));
    let [found, wanted] = [&*found, text].map(|text| text.lines().nth(line).unwrap_or("(the end)"));
    panic!(
        "{}:{}: is not current\n   is: {found}\nto be: {wanted}\nMETATF_BLESS=1 rewrites it",
        path.display(),
        line + 1
    );
}
