//! The tables that a debugger uses to show the events in a buffer.

use std::fmt::Write as _;

use super::layout::{EventC, Layout, Put, stored};
use crate::emitters::{Emitters, Machine};

/// A field of an event, as declared in `describe.h`.
pub(crate) struct Field {
    pub(crate) kind: char,
    pub(crate) leaf: usize,
    pub(crate) bytes: usize,
    /// The C expression that computes a length or a count.
    pub(crate) value: Option<String>,
}

/// Writes the tables and the functions that use them.
pub(super) fn describe(emitters: &Emitters, layout: &Layout) -> String {
    let mut fields = String::new();
    let mut rows = String::from("static const pfx_event pfx_events[] = {\n");
    let kind = |event: &EventC| emitters.kinds.get(event.kind).map_or("", String::as_str);
    let is_catch_all = |event: &&EventC| event.nested.as_ref().is_some_and(|nested| nested.is_catch_all);
    // Any record matches before a catch-all record does.
    let events = layout.events.iter().filter(|event| !is_catch_all(event));
    let events = events.chain(layout.events.iter().filter(is_catch_all));
    let events = events.map(|event| (event, format!(" ({})", kind(event))));
    let own = layout.dropped.iter().chain(&layout.clock_sync).map(|event| (event, String::new()));
    for (index, (event, kind)) in own.chain(events).enumerate() {
        let plain: Vec<Field>;
        let shown = match &event.nested {
            Some(nested) => &nested.fields,
            None => {
                plain = event.leaves.iter().enumerate().map(|(leaf, put)| field(*put, leaf, &event.leaves)).collect();
                &plain
            }
        };
        let mut table = format!("static const pfx_field pfx_fields_{index}[] = {{\n");
        for (at, Field { kind, leaf, bytes, value }) in shown.iter().enumerate() {
            let name = event.names.get(*leaf).filter(|_| *kind != 'r').map_or("", String::as_str);
            let function = value.as_ref().map_or("NULL".to_owned(), |_| format!("pfx_value_{index}_{at}"));
            if let Some(value) = value {
                let _ = writeln!(
                    fields,
                    "static uint64_t {function}(const uint64_t *values, pfx_room *room)\n{{\n    (void)values;\n    (void)room;\n    return {value};\n}}\n"
                );
            }
            let _ = writeln!(table, "    {{\"{name}\", '{kind}', {leaf}, {bytes}, {function}}},");
        }
        if shown.is_empty() {
            table.push_str("    {NULL, 'k', 0, 0, NULL},\n");
        }
        fields.push_str(&table);
        fields.push_str("};\n");
        let EventC { record, tag, section, .. } = event;
        let (count, is_rest) = (shown.len(), is_catch_all(&event));
        let _ = writeln!(rows, "    {{\"{record}{kind}\", pfx_fields_{index}, {tag}, {count}, {section}, {is_rest}}},");
    }
    rows.push_str("};\n\n#define PFX_TAG_BYTES ");
    let _ = writeln!(rows, "{}", layout.tag_width);
    include_str!("describe.h").replacen("@EVENTS@\n", &(fields + &rows), 1)
}

/// Returns the row of a leaf.
pub(super) fn field(put: Put, leaf: usize, leaves: &[Put]) -> Field {
    let bytes = stored(put).map_or(0, |(width, _)| usize::from(width));
    let (kind, bytes) = match put {
        Put::Constant(_, width) => ('k', usize::from(width)),
        Put::Length(argument) => {
            let is_measured =
                |leaf: &Put| matches!(leaf, Put::Argument(index, Machine::Text | Machine::Bytes) if *index == argument);
            ('l', leaves.iter().position(is_measured).unwrap_or(255))
        }
        Put::Argument(_, Machine::Signed(_)) => ('s', bytes),
        Put::Argument(_, Machine::Bool) => ('b', bytes),
        Put::Argument(_, Machine::F32 | Machine::F64) => ('d', bytes),
        Put::Argument(_, Machine::Text) => ('t', 0),
        Put::Argument(_, Machine::Bytes) => ('x', 0),
        Put::Argument(_, Machine::Array(bytes)) => ('x', usize::try_from(bytes).unwrap_or(usize::MAX)),
        Put::Clock => ('c', bytes),
        Put::Argument(_, Machine::Unsigned(_) | Machine::Id)
        | Put::Thread
        | Put::Process
        | Put::Own
        | Put::Count(_)
        | Put::Reference(_) => ('u', bytes),
        Put::Measured(_) => ('v', 0),
        Put::Until(_, end) => ('z', usize::from(end)),
        // Records of strings and elements are in separate chunks, and a computed count stores nothing.
        Put::OwnId | Put::OwnLength | Put::OwnText | Put::Computed | Put::Encoded(..) | Put::EncodedLength(..) => {
            ('k', bytes)
        }
    };
    Field { kind, leaf, bytes, value: None }
}
