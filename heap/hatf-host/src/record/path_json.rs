//! Paths in JSON: a string, or an array of bytes if the path is not UTF-8.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Converts a path to JSON.
#[must_use]
pub fn path_to_json(path: &Path) -> Value {
    path.to_str().map_or_else(|| path.as_os_str().as_bytes().into(), Value::from)
}

/// Converts JSON written by [`path_to_json`] to a path. Returns `None` for other JSON.
#[must_use]
pub fn path_from_json(json: &Value) -> Option<PathBuf> {
    match json {
        Value::String(path) => Some(path.into()),
        Value::Array(bytes) => {
            let bytes = bytes.iter().map(|byte| u8::try_from(byte.as_u64()?).ok());
            Some(OsStr::from_bytes(&bytes.collect::<Option<Vec<_>>>()?).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_there_and_back() {
        for bytes in [&b"/a/b.mtf"[..], b"", b"/d\xff/\n.mtf"] {
            let path = Path::new(OsStr::from_bytes(bytes));
            assert_eq!(path_from_json(&path_to_json(path)).as_deref(), Some(path));
        }
        assert_eq!(path_to_json(Path::new("a")), "a");
        for other in [serde_json::json!([1, 256]), serde_json::json!([1, "a"]), Value::Null] {
            assert_eq!(path_from_json(&other), None);
        }
    }
}
