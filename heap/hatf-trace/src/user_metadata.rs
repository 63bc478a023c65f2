//! User metadata of a heap trace, which describes the origin of the trace.

use serde_json::{Map, Value};

/// The user metadata of a trace. The head of `dtds/heap.dtd` lists the keys.
pub type UserMetadata = Map<String, Value>;

/// The key of the description of a segment: its number, and the live state at its start.
pub const SEGMENT: &str = "segment";
/// The key of the live state at the end of a segment.
pub const SEGMENT_END: &str = "segment_end";
/// The key of the data with which `hatf recover` continues a segment.
pub const RESUME: &str = "resume";

/// Merges the user metadata objects of a trace; later objects override earlier ones.
pub(crate) fn read<'t>(texts: impl IntoIterator<Item = &'t Vec<u8>>) -> UserMetadata {
    let mut user_metadata = UserMetadata::new();
    for text in texts {
        if let Ok(Value::Object(object)) = serde_json::from_slice(text) {
            user_metadata.extend(object);
        }
    }
    user_metadata
}

/// Returns whether a trace contains only allocation sizes, without addresses or frees.
#[must_use]
pub fn has_sizes_only(user_metadata: &UserMetadata) -> bool {
    user_metadata.get("only").and_then(|only| only.get("sizes")).and_then(Value::as_bool).unwrap_or(false)
}

/// Formats user metadata as one line per key, as reports and comments show it.
#[must_use]
pub fn user_metadata_lines(user_metadata: &UserMetadata) -> Vec<String> {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(traces) if traces.iter().any(Value::is_object) => {
            // The traces that a merged trace consists of.
            let name = |trace: &Value| trace.get("trace").map(bare).unwrap_or_default();
            traces.iter().map(name).collect::<Vec<_>>().join(", ")
        }
        Value::Array(arguments) => shell_words(arguments.iter().map(|argument| argument.as_str().unwrap_or("?"))),
        Value::Object(object) => {
            object.iter().map(|(key, value)| format!("{key} {}", bare(value))).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    // Keys that describe the file rather than the program.
    let of_file = |key: &str, value: &Value| match key {
        "format" | "converted" | "recording" | "spool" | RESUME => true,
        "clock" => value.get("name").is_none(),
        _ => false,
    };
    let shown = user_metadata.iter().filter(|(key, value)| !value.is_null() && !of_file(key, value));
    shown.map(|(key, value)| format!("{key}: {}", text(value))).collect()
}

fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Joins a program and its arguments, quoted for a shell.
///
/// # Examples
///
/// ```
/// use hatf_trace::event::shell_words;
///
/// assert_eq!(shell_words(["perl", "-e", "print 1"]), "perl -e 'print 1'");
/// ```
#[must_use]
pub fn shell_words<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    words.into_iter().map(|word| shell_quoted(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Quotes an argument for a shell.
fn shell_quoted(argument: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting() {
        assert_eq!(shell_quoted("a-b/c.d"), "a-b/c.d");
        assert_eq!(shell_quoted("print 'x'"), "'print '\\''x'\\'''");
        assert_eq!(shell_quoted(""), "''");
    }
}
