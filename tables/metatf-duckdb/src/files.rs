//! The files that match a parameter.

use std::path::PathBuf;

use crate::api::Result;

/// Returns the files that match a name or a pattern with `*`, `?`, `[..]` or `**`, sorted by name.
///
/// If a file with exactly this name exists, only that file is returned.
///
/// # Errors
/// Returns an error if no file matches, or if a directory cannot be read.
pub(crate) fn matching(pattern: &str) -> Result<Vec<PathBuf>> {
    let path = PathBuf::from(pattern);
    if path.exists() || !pattern.contains(['*', '?', '[']) {
        return Ok(vec![path]);
    }
    let found = glob::glob(pattern).map_err(|error| format!("{pattern}: {error}"))?;
    let files: Vec<PathBuf> =
        found.collect::<std::result::Result<_, _>>().map_err(|error| format!("{pattern}: {error}"))?;
    if files.is_empty() { Err(format!("{pattern}: no file matches")) } else { Ok(files) }
}
