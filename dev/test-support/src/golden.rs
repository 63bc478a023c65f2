//! Compares generated parts of the project's files, such as pages of the book and the picture of the layers, with their
//! sources.
//!
//! People also read and edit such a file, so it cannot be an `insta` snapshot, which is a separate file with a header.
//! `METATF_BLESS=1` rewrites differing parts in place; a missing file is a failure.

use std::path::Path;

/// Returns whether differences should be rewritten.
#[must_use]
pub fn bless() -> bool {
    std::env::var_os("METATF_BLESS").is_some_and(|value| value == "1")
}

/// Compares a file with its expected contents.
///
/// # Panics
/// Panics if the contents differ and should not be rewritten, or if the file does not exist.
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
        "{}:{}: outdated\n   is: {found}\nto be: {wanted}\nMETATF_BLESS=1 rewrites the file",
        path.display(),
        line + 1
    );
}
