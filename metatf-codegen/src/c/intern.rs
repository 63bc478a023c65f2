//! The parts of the header that store strings and the elements of tables once: the strings that have an ID, and the
//! elements to which events refer by offset.

use std::fmt::Write as _;

use super::functions::{body, described, leaves, listed};
use super::layout::{EventC, Layout};
use super::statements::number;

/// Returns the constants of strings and tables.
pub(super) fn constants(layout: &Layout) -> String {
    let mut out = String::new();
    if let Some((bytes, section)) = layout.string_chunk() {
        let _ = writeln!(out, "#define PFX_STRING_CHUNK {bytes}\n#define PFX_STRING_SECTION {section}");
    }
    if layout.intern.is_some() || !layout.tables.is_empty() {
        out.push_str(STRING_BYTES);
    }
    if !layout.tables.is_empty() {
        out.push_str(ELEMENT_BYTES);
    }
    out
}

const STRING_BYTES: &str = "\
/* The total size of the interned strings and elements of a trace, plus 7 bytes each; must be the same in all files. */
#ifndef PFX_STRING_BYTES
#define PFX_STRING_BYTES 8192
#endif
/* The result of interning an element that could not be stored. Events that refer to it are dropped. */
#define PFX_NO_ELEMENT UINT32_MAX
";

const ELEMENT_BYTES: &str = "\
/* The maximum size of an element, up to 65535. */
#ifndef PFX_ELEMENT_BYTES
#define PFX_ELEMENT_BYTES 1024
#endif
";

/// Returns the parts of the header for strings and tables: the fields of the trace, their initialization, declarations
/// and the implementation. All parts are empty if the DTD has neither.
pub(super) fn parts(layout: &Layout) -> [(&'static str, String); 4] {
    let names = ["@STRINGS@\n", "@STRINGS_BEGIN@\n", "@STRINGS_FUNCTION@\n", "@STRINGS_IMPLEMENTATION@\n"];
    let mut texts: [String; 4] = Default::default();
    if layout.intern.is_some() || !layout.tables.is_empty() {
        let [field, begin, declaration, implementation] = &mut texts;
        field.push_str(FIELD);
        begin.push_str(BEGIN);
        implementation.push_str(&write_entry(layout));
        implementation.push_str(include_str!("intern.h"));
        if layout.intern.is_some() {
            declaration.push_str(DECLARATION);
            implementation.push_str(INTERN);
        }
        layout.tables.iter().for_each(|table| implementation.push_str(&intern(table)));
    }
    let [a, b, c, d] = names;
    let [field, begin, declaration, implementation] = texts;
    [(a, field), (b, begin), (c, declaration), (d, implementation)]
}

const FIELD: &str = "\
    /* The strings and elements that have a number; the slots have their places, and 1 more. */
    uint8_t strings[PFX_STRING_BYTES];
    uint32_t string_slots[PFX_STRING_BYTES / 8];
    uint32_t strings_length;
    uint32_t strings_count;
    /* Strings and elements without a number: they found no room, could not be written, or came from a signal handler that interrupted a write. */
    uint32_t strings_refused;
";

const BEGIN: &str = "\
    memset(trace->string_slots, 0, sizeof trace->string_slots);
    trace->strings_length = 0;
    trace->strings_count = 0;
    trace->strings_refused = 0;
";

const DECLARATION: &str = "\
/* Returns the number of a string, the same each time. A new string is written at once, in its own chunk, so that it comes before all
   events that name it. 0: it found no room in PFX_STRING_BYTES, or was not written. A known string needs no lock. A signal handler may
   call it, but a new string gets 0 if the handler interrupted the thread that writes to the trace. */
uint32_t pfx_intern(pfx_trace *trace, const char *text);
";

const INTERN: &str = "\
uint32_t pfx_intern(pfx_trace *trace, const char *text)
{
    uint8_t key[256];
    const uint8_t *end = pfx_put_cut(key, pfx_text(text));
    uint32_t number = pfx_intern_entry(trace, 0, key, (size_t)(end - key));
    return number == PFX_NO_ELEMENT ? 0 : number;
}

";

/// Writes the declaration of the function that interns an element, and the struct definitions that it needs.
pub(super) fn declare(table: &EventC) -> String {
    let Some(nested) = &table.nested else { return String::new() };
    let (name, parameters) = (&table.name, &nested.body.parameters);
    let mut docs = vec![
        format!("Returns the offset of an element of `{name}` for events; equal elements have the same offset. A new element is"),
        "written immediately, as a separate chunk. Returns PFX_NO_ELEMENT if the element does not fit in PFX_STRING_BYTES or".to_owned(),
        "PFX_ELEMENT_BYTES, a value does not fit in the width that the DTD declares, the write failed, or a signal handler".to_owned(),
        "interrupted the thread that writes to the trace.".to_owned(),
    ];
    docs.extend(table.docs.iter().cloned());
    format!(
        "{}{}uint32_t pfx_intern_{name}({});\n\n",
        nested.structs,
        described(&docs, parameters),
        listed("pfx_trace *trace", parameters)
    )
}

/// Writes the function that interns an element.
fn intern(table: &EventC) -> String {
    let Some(nested) = &table.nested else { return String::new() };
    let EventC { name, section, .. } = table;
    // Fields may have any name without the prefix.
    let (parameters, size) = (&nested.body.parameters, nested.body.size);
    let given: String = parameters.iter().map(|parameter| format!(", {}", parameter.name)).collect();
    format!(
        "static uint8_t *pfx_store_{name}({})\n{{\n    pfx_room room = pfx_room_for(pfx_size - {size});\n{}\n\
         uint32_t pfx_intern_{name}({})\n{{\n    uint8_t pfx_key[{size} + PFX_ELEMENT_BYTES];\n    \
         const uint8_t *pfx_end = pfx_store_{name}(pfx_key, sizeof pfx_key{given});\n    \
         size_t pfx_length = pfx_end == NULL ? 0 : (size_t)(pfx_end - pfx_key);\n    \
         if (pfx_length == 0 || pfx_length > PFX_ELEMENT_BYTES) {{\n        PFX_COUNT(&trace->strings_refused);\n        \
         return PFX_NO_ELEMENT;\n    }}\n    \
         return pfx_intern_entry(trace, {section}, pfx_key, pfx_length);\n}}\n\n",
        listed("uint8_t *at, size_t pfx_size", parameters),
        body(&nested.body),
        listed("pfx_trace *trace", parameters),
    )
}

/// Writes the function that writes the chunk of an entry.
fn write_entry(layout: &Layout) -> String {
    let mut out = String::new();
    if let Some(event) = &layout.intern {
        let _ = write!(
            out,
            "/* Puts the record of a string. */\nstatic uint8_t *pfx_put_string(const pfx_emitter *emitter, uint8_t *at, \
             uint32_t number, pfx_bytes string)\n{{\n    (void)emitter;\n    {}\n{}    return at;\n}}\n\n{WRITE_STRING}",
            number(u64::from(event.tag), layout.tag_width),
            leaves(event, "number", 4)
        );
    }
    if !layout.tables.is_empty() {
        out.push_str(WRITE_ELEMENT);
    }
    out.push_str(
        "static int pfx_write_entry(pfx_trace *trace, uint8_t table, uint32_t number, const uint8_t *key, size_t length)\n{\n",
    );
    out.push_str(match (&layout.intern, layout.tables.is_empty()) {
        (Some(_), true) => "    (void)table;\n    return pfx_write_string(trace, number, key, length);\n}\n\n",
        (None, _) => "    (void)number;\n    return pfx_write_element(trace, table, key, length);\n}\n\n",
        (Some(_), false) => {
            "    return table == 0 ? pfx_write_string(trace, number, key, length) : pfx_write_element(trace, table, key, length);\n}\n\n"
        }
    });
    out
}

const WRITE_STRING: &str = "\
static int pfx_write_string(pfx_trace *trace, uint32_t number, const uint8_t *key, size_t length)
{
    const uint8_t section = PFX_STRING_SECTION;
    const pfx_bytes string = {key, (uint16_t)length, 0};
    uint8_t chunk[PFX_STRING_CHUNK];
    pfx_emitter emitter;
    uint8_t *at;
    memset(&emitter, 0, sizeof emitter);
    emitter.trace = trace;
    at = pfx_put_bytes(chunk + 48, pfx_sections[section - 1].metadata, pfx_sections[section - 1].length);
    at = pfx_put_string(&emitter, at, number, string);
    return pfx_write_chunk(trace, chunk, section, (size_t)(at - chunk) - 48, 1);
}

";

const WRITE_ELEMENT: &str = "\
static int pfx_write_element(pfx_trace *trace, uint8_t section, const uint8_t *key, size_t length)
{
    uint8_t chunk[48 + PFX_ELEMENT_BYTES];
    pfx_put_bytes(chunk + 48, key, length);
    return pfx_write_chunk(trace, chunk, section, length, 1);
}

";
