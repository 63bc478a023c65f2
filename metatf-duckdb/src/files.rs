//! The files that a parameter names.

use std::path::PathBuf;

use crate::api::Result;

/// The files of a name or of a pattern with `*`, `?`, `[..]` or `**`, in the order of their names.
///
/// A file that is called as the pattern says is itself meant.
///
/// # Errors
/// There are none, or a folder cannot be read.
pub(crate) fn matching(pattern: &str) -> Result<Vec<PathBuf>> {
    let path = PathBuf::from(pattern);
    if path.exists() || !pattern.contains(['*', '?', '[']) {
        return Ok(vec![path]);
    }
    let found = glob::glob(pattern).map_err(|error| format!("{pattern}: {error}"))?;
    let files: Vec<PathBuf> =
        found.collect::<std::result::Result<_, _>>().map_err(|error| format!("{pattern}: {error}"))?;
    if files.is_empty() { Err(format!("{pattern}: no file is called so")) } else { Ok(files) }
}
