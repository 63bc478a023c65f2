//! The words that stand in the attributes of a record.

use std::io::Write as _;

use super::Dialect;
use crate::event::{Call, Event, Function, UNKNOWN_SIZE, What};

/// Attributes as this crate writes them: words with a space between them, the name of the call first where it is not
/// the record's own, then `key=value`. Attributes of other origin are bytes in which these look-ups find nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Attributes<'a> {
    /// The words.
    pub fn words(self) -> impl Iterator<Item = &'a [u8]> {
        self.0.split(|byte| *byte == b' ').filter(|word| !word.is_empty())
    }

    /// Whether there is such a word.
    #[must_use]
    pub fn has(self, word: &str) -> bool {
        self.words().any(|other| other == word.as_bytes())
    }

    /// The number after `key=`.
    #[must_use]
    pub fn number(self, key: &str) -> Option<u64> {
        let value = self.words().find_map(|word| {
            let rest = word.strip_prefix(key.as_bytes())?;
            rest.strip_prefix(b"=")
        })?;
        std::str::from_utf8(value).ok()?.parse().ok()
    }
}

/// The attributes of the record that says `event`, put behind what is in `out`.
pub(super) fn write(event: &Event<'_>, dialect: Dialect, out: &mut Vec<u8>) {
    if !event.attributes.is_empty() {
        out.extend_from_slice(event.attributes);
        return;
    }
    let meta_tf = dialect == Dialect::MetaTf;
    match event.what {
        What::Call(ref call) => write_call(call, dialect, out),
        What::ReallocBegin { .. } => out.extend_from_slice(b"realloc begin"),
        What::ReallocEnd(Call { function, detail, .. }) => {
            word(out, format_args!("{} end", function.name()));
            if function.counts() {
                word(out, format_args!("count={detail}"));
            }
        }
        What::Exit { status } => word(out, format_args!("exit={status}")),
        What::Killed { signal } => word(out, format_args!("signal={signal}")),
        _ => {}
    }
    if meta_tf && has_no_time(event.what) {
        word(out, format_args!("time={}", event.time));
    }
    match event.what {
        What::ThreadStart { creator: 0 } => {}
        What::ThreadStart { creator } => word(out, format_args!("by={creator}")),
        What::Image { process, path } => {
            word(out, format_args!("process={process}"));
            word(out, format_args!("path="));
            out.extend_from_slice(path);
        }
        _ => {}
    }
}

/// Whether the record in Meta-TF's form has no field for the time.
fn has_no_time(what: What<'_>) -> bool {
    let thread = matches!(what, What::ThreadStart { .. } | What::ThreadEnd);
    thread || matches!(what, What::Image { .. } | What::Exit { .. } | What::Killed { .. })
}

fn write_call(call: &Call, dialect: Dialect, out: &mut Vec<u8>) {
    let Call { function, detail, size, old, address, .. } = *call;
    let moved = old != 0 && address != 0;
    match function {
        Function::Malloc => {}
        // A record of its own says that it is one.
        Function::Realloc if moved || dialect == Dialect::Native => {}
        _ => word(out, format_args!("{}", function.name())),
    }
    if function.counts() {
        word(out, format_args!("count={detail}"));
    }
    if matches!(function, Function::Memalign | Function::PosixMemalign | Function::AlignedAlloc) {
        word(out, format_args!("align={detail}"));
    }
    if function.is_realloc() && moved && dialect == Dialect::MetaTf && size != UNKNOWN_SIZE {
        word(out, format_args!("size={size}"));
    }
}

fn word(out: &mut Vec<u8>, word: std::fmt::Arguments<'_>) {
    if !out.is_empty() {
        out.push(b' ');
    }
    // Memory takes it.
    let _ = out.write_fmt(word);
}
