//! Record attributes: text in which this crate stores values that have no field in HATF 1.0.

use std::io::Write as _;

use super::Dialect;
use crate::event::{Call, Event, EventKind, Function, UNKNOWN_SIZE};

/// Attributes in the form in which this crate writes them, which is a list of space-separated items. The first item is
/// the name of the call, unless the record implies it. All other items are `key=value` pairs. Lookups in attributes
/// from other sources find nothing.
///
/// # Examples
///
/// ```
/// use hatf_trace::hatf10::Attributes;
///
/// let attributes = Attributes(b"calloc count=4");
/// assert_eq!((attributes.has("calloc"), attributes.number("count")), (true, Some(4)));
/// assert_eq!(attributes.number("align"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Attributes<'a> {
    /// Returns the items.
    pub fn items(self) -> impl Iterator<Item = &'a [u8]> {
        self.0.split(|byte| *byte == b' ').filter(|item| !item.is_empty())
    }

    /// Returns whether the attributes contain an item.
    #[must_use]
    pub fn has(self, item: &str) -> bool {
        self.items().any(|other| other == item.as_bytes())
    }

    /// Returns the number after `key=`.
    #[must_use]
    pub fn number(self, key: &str) -> Option<u64> {
        let value = self.items().find_map(|item| {
            let rest = item.strip_prefix(key.as_bytes())?;
            rest.strip_prefix(b"=")
        })?;
        std::str::from_utf8(value).ok()?.parse().ok()
    }
}

/// Appends the attributes of the record that encodes `event`.
pub(super) fn write(event: &Event<'_>, dialect: Dialect, out: &mut Vec<u8>) {
    if !event.attributes.is_empty() {
        out.extend_from_slice(event.attributes);
        return;
    }
    let meta_tf = dialect == Dialect::MetaTf;
    match event.kind {
        EventKind::Call(ref call) => write_call(call, dialect, out),
        EventKind::ReallocBegin { .. } => out.extend_from_slice(b"realloc begin"),
        EventKind::ReallocEnd(Call { function, detail, .. }) => {
            push(out, format_args!("{} end", function.name()));
            if function.counts() {
                push(out, format_args!("count={detail}"));
            }
        }
        EventKind::Exit { status } => push(out, format_args!("exit={status}")),
        EventKind::Killed { signal } => push(out, format_args!("signal={signal}")),
        _ => {}
    }
    if meta_tf && has_no_time(event.kind) {
        push(out, format_args!("time={}", event.time));
    }
    match event.kind {
        EventKind::ThreadStart { creator, task } => {
            if creator != 0 {
                push(out, format_args!("by={creator}"));
            }
            if task != 0 {
                push(out, format_args!("task={task}"));
            }
        }
        EventKind::Image { process, path } => {
            push(out, format_args!("process={process}"));
            push(out, format_args!("path="));
            out.extend_from_slice(path);
        }
        _ => {}
    }
}

/// Returns whether the Meta-TF version of the record lacks a time field.
fn has_no_time(kind: EventKind<'_>) -> bool {
    let thread = matches!(kind, EventKind::ThreadStart { .. } | EventKind::ThreadEnd);
    thread || matches!(kind, EventKind::Image { .. } | EventKind::Exit { .. } | EventKind::Killed { .. })
}

fn write_call(call: &Call, dialect: Dialect, out: &mut Vec<u8>) {
    let Call { function, detail, size, old, address, .. } = *call;
    let moved = old != 0 && address != 0;
    match function {
        Function::Malloc => {}
        // The record kind implies the function.
        Function::Realloc if moved || dialect == Dialect::Native => {}
        _ => push(out, format_args!("{}", function.name())),
    }
    if function.counts() {
        push(out, format_args!("count={detail}"));
    }
    if matches!(function, Function::Memalign | Function::PosixMemalign | Function::AlignedAlloc) {
        push(out, format_args!("align={detail}"));
    }
    if function.is_realloc() && moved && dialect == Dialect::MetaTf && size != UNKNOWN_SIZE {
        push(out, format_args!("size={size}"));
    }
}

fn push(out: &mut Vec<u8>, item: std::fmt::Arguments<'_>) {
    if !out.is_empty() {
        out.push(b' ');
    }
    // Writing to a vector cannot fail.
    let _ = out.write_fmt(item);
}
