//! The function that prints each record as JSON.

use std::fmt::Write as _;

use metatf_parser::schema::Format;

use super::declare::member;
use super::shape::{Body, Kind, Shape, Step, Struct, Times, Value};

/// The end of the function that selects the function of a record.
const OTHER_KINDS: &str = "    case PFX_RECORD_COMMENT:
        pfx_key_(out, \"text\");
        pfx_print_text_(out, record->as.comment);
        break;
    case PFX_RECORD_METADATA:
        pfx_print_metadata_(out, &record->as.metadata);
        break;
    case PFX_RECORD_SECTION:
        pfx_key_(out, \"number\");
        pfx_print_unsigned_(out, record->as.number);
        break;
    default:
        break;
    }
}

";

/// Writes all functions, and the function that selects one of them.
pub(super) fn functions(shape: &Shape) -> String {
    let mut out: String = shape.structs.iter().map(|of| function(shape, of)).collect();
    out.push_str(
        "static void pfx_print_fields_(pfx_printer_ *out, const pfx_record *record)\n{\n    switch (record->kind) {\n",
    );
    for of in shape.structs.iter().filter(|of| of.top) {
        let (name, member) = (&of.name, member(of));
        let _ = writeln!(
            out,
            "    case PFX_RECORD_{}:\n        pfx_print_record_{name}_(out, &record->as.{member});\n        break;",
            name.to_ascii_uppercase()
        );
    }
    out + OTHER_KINDS
}

fn function(shape: &Shape, of: &Struct) -> String {
    let mut body = String::new();
    of.steps.iter().for_each(|step| one(&mut body, shape, step));
    let name = &of.name;
    let mut out = format!("static void pfx_print_record_{name}_(pfx_printer_ *out, const pfx_{name} *record)\n{{\n");
    if body.contains("for (i") {
        out.push_str("    uint64_t i;\n");
    }
    if body.is_empty() {
        out.push_str("    (void)out;\n");
    }
    if !body.contains("record->") {
        out.push_str("    (void)record;\n");
    }
    out + &body + "}\n\n"
}

fn one(out: &mut String, shape: &Shape, step: &Step) {
    let name = |of: &usize| shape.structs.get(*of).map_or("", |s| s.name.as_str());
    let _ = match step {
        Step::Count { .. } => Ok(()),
        Step::Tag { key, value } => writeln!(out, "    pfx_print_constant_(out, \"{key}\", UINT64_C({value}));"),
        Step::One { field: None, key, value: Value { kind: Kind::Constant(value), .. } } => {
            writeln!(out, "    pfx_print_constant_(out, \"{key}\", UINT64_C({value}));")
        }
        Step::One { field, key, value } => {
            let field = field.as_deref().unwrap_or_default();
            writeln!(out, "    pfx_key_(out, \"{key}\");\n    {}", printed(value, &format!("record->{field}")))
        }
        Step::Nested { field, key, of } => {
            let call = format!("pfx_print_record_{}_(out, &record->{field});", name(of));
            writeln!(
                out,
                "    pfx_key_(out, \"{key}\");\n    pfx_begin_(out, '{{');\n    {call}\n    pfx_end_(out, '}}');"
            )
        }
        Step::Repeat { times, field, key, body, .. } => {
            let field = field.as_deref().unwrap_or_default();
            let item = match times {
                Times::Flag(_) => format!("record->{field}"),
                Times::Field(_) | Times::Separate(_) => format!("record->{field}[i]"),
            };
            let lines = match body {
                Body::One(value) => vec![printed(value, &item)],
                Body::Nested(of) => vec![
                    "pfx_begin_(out, '{');".to_owned(),
                    format!("pfx_print_record_{}_(out, &{item});", name(of)),
                    "pfx_end_(out, '}');".to_owned(),
                ],
            };
            let lines: String = lines.iter().map(|line| format!("        {line}\n")).collect();
            match times {
                Times::Flag(flag) => {
                    writeln!(out, "    if (record->{flag}) {{\n        pfx_key_(out, \"{key}\");\n{lines}    }}")
                }
                Times::Field(count) | Times::Separate(count) => writeln!(
                    out,
                    "    pfx_key_(out, \"{key}\");\n    pfx_begin_(out, '[');\n    \
                     for (i = 0; i < record->{count}; i++) {{\n        pfx_separate_(out);\n{lines}    }}\n    \
                     pfx_end_(out, ']');"
                ),
            }
        }
    };
}

/// Writes the call that prints a value.
fn printed(value: &Value, from: &str) -> String {
    let function = match &value.kind {
        Kind::Constant(constant) => return format!("pfx_print_unsigned_(out, UINT64_C({constant}));"),
        Kind::Array { section: Some(section), .. } => return format!("pfx_print_array_(out, {section}, {from});"),
        Kind::Unsigned => "unsigned",
        Kind::Signed => "signed",
        Kind::Float => "float",
        Kind::Double => "double",
        Kind::Array { format: Format::Utf8, .. } => "text",
        Kind::Array { format: Format::CString, .. } => "cstring",
        Kind::Array { .. } => "hex",
    };
    format!("pfx_print_{function}_(out, {from});")
}
