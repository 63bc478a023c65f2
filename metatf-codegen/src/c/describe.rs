//! The tables that a debugger uses to show the events in a buffer.

use std::fmt::Write as _;

use super::fields::{Field, field};
use super::layout::{EventC, Layout};
use crate::emitters::Emitters;

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
