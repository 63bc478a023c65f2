//! The tables that a debugger uses to show the events in a buffer.

use std::fmt::Write as _;

use super::layout::{EventC, Layout, Put, stored};
use crate::emitters::{Emitters, Machine};

/// Writes the tables and the functions that use them.
pub(super) fn describe(emitters: &Emitters, layout: &Layout) -> String {
    let mut fields = String::new();
    let mut rows = String::from("static const pfx_event pfx_events[] = {\n");
    let kind = |event: &EventC| emitters.kinds.get(event.kind).map_or("", String::as_str);
    let events = layout.events.iter().map(|event| (event, format!(" ({})", kind(event))));
    let own = layout.dropped.iter().chain(&layout.clock_sync).map(|event| (event, String::new()));
    for (index, (event, kind)) in events.chain(own).enumerate() {
        let _ = writeln!(fields, "static const pfx_field pfx_fields_{index}[] = {{");
        for (put, name) in event.leaves.iter().zip(&event.names) {
            let (kind, bytes) = field(*put, event);
            let _ = writeln!(fields, "    {{\"{name}\", '{kind}', {bytes}}},");
        }
        if event.leaves.is_empty() {
            fields.push_str("    {NULL, 'k', 0},\n");
        }
        fields.push_str("};\n");
        let EventC { record, tag, section, .. } = event;
        let count = event.leaves.len();
        let _ = writeln!(rows, "    {{\"{record}{kind}\", pfx_fields_{index}, {tag}, {count}, {section}}},");
    }
    rows.push_str("};\n\n#define PFX_TAG_BYTES ");
    let _ = writeln!(rows, "{}", layout.tag_width);
    include_str!("describe.h").replacen("@EVENTS@\n", &(fields + &rows), 1)
}

/// Returns the format of a field, and its size or, for a length, the index of the measured field.
fn field(put: Put, event: &EventC) -> (char, usize) {
    let bytes = stored(put).map_or(0, |(width, _)| usize::from(width));
    match put {
        Put::Constant(_, width) => ('k', usize::from(width)),
        Put::Length(argument) => {
            let is_measured =
                |leaf: &Put| matches!(leaf, Put::Argument(index, Machine::Text | Machine::Bytes) if *index == argument);
            ('l', event.leaves.iter().position(is_measured).unwrap_or(255))
        }
        Put::Argument(_, Machine::Signed(_)) => ('s', bytes),
        Put::Argument(_, Machine::Bool) => ('b', bytes),
        Put::Argument(_, Machine::F32 | Machine::F64) => ('d', bytes),
        Put::Argument(_, Machine::Text) => ('t', 0),
        Put::Argument(_, Machine::Bytes) => ('x', 0),
        Put::Argument(_, Machine::Array(bytes)) => ('x', usize::from(bytes)),
        Put::Clock => ('c', bytes),
        Put::Argument(_, Machine::Unsigned(_) | Machine::Id) | Put::Thread | Put::Process | Put::Own => ('u', bytes),
        // Records of strings are in separate chunks.
        Put::OwnId | Put::OwnLength | Put::OwnText => ('k', bytes),
    }
}
