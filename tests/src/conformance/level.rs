//! Reader levels (section 10 of the specification) that a vector requires.

use super::{Kind, Vector};
use std::fmt::Write;

/// Reader level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Both versions, without compression.
    Plain,
    /// All codecs and filters, salvage, and files without a header.
    Container,
    /// Predicted leaves.
    Predicted,
    /// Arrays and repetitions whose end depends on the content.
    Ends,
}

impl Level {
    /// All levels.
    pub const ALL: [Self; 4] = [Self::Plain, Self::Container, Self::Predicted, Self::Ends];

    /// Returns the name of the level.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Container => "container",
            Self::Predicted => "predicted",
            Self::Ends => "ends",
        }
    }
}

/// Returns the levels that a vector needs in addition to *plain*. If the list is empty, a reader of level *plain*
/// passes the vector.
#[must_use]
pub fn levels(vector: &Vector) -> Vec<Level> {
    let mut levels = Vec::new();
    let mode = vector.case["mode"].as_str().unwrap_or("dump");
    let is_trace = vector.trace.starts_with(b"\x7fMTF") || vector.name.ends_with("/magic");
    if mode != "dump" && vector.kind == Kind::Good || !is_trace || is_packed(&vector.trace) {
        levels.push(Level::Container);
    }
    let embedded = vector.trace.windows(14).any(|w| w == b" = predicted (" || w.starts_with(b" = predicted "));
    let given = vector.dtd.as_ref().is_some_and(|text| text.contains(" = predicted "));
    if embedded || given {
        levels.push(Level::Predicted);
    }
    let dtd = vector.dtd.as_ref().map(String::as_bytes).unwrap_or_default();
    let ends = |text: &[u8]| [&b"= rest;"[..], b"(rest)*", b"(until "].iter().any(|word| contains(text, word));
    if ends(dtd) || ends(&vector.trace) {
        levels.push(Level::Ends);
    }
    levels
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

/// Returns whether the trace needs a feature, or a chunk has a codec or a filter of level *container*.
fn is_packed(trace: &[u8]) -> bool {
    let int = if trace.get(4) == Some(&2) { 8 } else { 4 };
    if trace.get(7) != Some(&1) {
        return false;
    }
    let mut at = 16 + 3 * int + usize::from(trace[6]);
    for _ in 0..trace[8..16].iter().map(|byte| byte.count_ones()).sum() {
        at += 1 + usize::from(trace.get(at).copied().unwrap_or(0));
    }
    while let Some(head) = trace.get(at..at + 48) {
        if (1..4).contains(&head[6]) || (2..5).contains(&head[7]) {
            return true;
        }
        at += 48 + u32::from_le_bytes([head[12], head[13], head[14], head[15]]) as usize;
    }
    false
}

/// Returns one line per vector of `tests/vectors`: the levels it needs and its directory.
#[must_use]
pub fn list(vectors: &[Vector]) -> String {
    let mut out = String::new();
    for vector in vectors.iter().filter(|vector| vector.kind != Kind::Model) {
        let names: Vec<&str> = levels(vector).into_iter().map(Level::name).collect();
        let names = if names.is_empty() { "plain".to_owned() } else { names.join("+") };
        let _ = writeln!(out, "{names} {}", vector.name.trim_start_matches("vectors/"));
    }
    out
}
