//! The function that decodes each record.

use std::fmt::Write as _;

use metatf_parser::schema::{Expr, ExprOp};

use super::declare::member;
use super::shape::{Body, Kind, Length, Shape, Step, Struct, Times, Value};

/// Writes all functions.
pub(super) fn functions(shape: &Shape) -> String {
    let bodies: Vec<String> = shape.structs.iter().map(|of| function(shape, of)).collect();
    format!("/* ---- The fields of each record ---- */\n\n{}", bodies.concat())
}

/// Writes the declaration of a record's function.
pub(super) fn signature(of: &Struct) -> String {
    let record = if of.top { "pfx_record *record".to_owned() } else { format!("pfx_{} *to", of.name) };
    format!("static void pfx_decode_record_{}_(pfx_reader *reader, pfx_leaf_ *leaf, {record})", of.name)
}

fn function(shape: &Shape, of: &Struct) -> String {
    let mut body = String::new();
    of.steps.iter().for_each(|step| one(&mut body, shape, step));
    let mut out = format!("{}\n{{\n", signature(of));
    let uses = |name: &str| body.contains(name);
    if of.top && uses("to->") {
        let _ = writeln!(out, "    pfx_{} *to = &record->as.{};", of.name, member(of));
    }
    if uses("for (i") {
        out.push_str("    uint64_t i;\n");
    }
    let unused =
        [("reader", uses("(reader")), ("leaf", uses("leaf")), (if of.top { "record" } else { "to" }, uses("to->"))];
    unused.iter().filter(|(_, used)| !used).for_each(|(name, _)| out.push_str(&format!("    (void){name};\n")));
    out + &body + "}\n\n"
}

fn one(out: &mut String, shape: &Shape, step: &Step) {
    let name = |of: &usize| shape.structs.get(*of).map_or("", |s| s.name.as_str());
    let _ = match step {
        Step::Tag { .. } => Ok(()),
        Step::Count { leaf, value } => writeln!(out, "    pfx_count_(reader, &leaf[{leaf}], {});", expression(value)),
        Step::One { field, value, .. } => {
            assign(out, "    ", field.as_ref().map(|field| format!("to->{field}")), value);
            Ok(())
        }
        Step::Nested { field, of, .. } => {
            writeln!(out, "    pfx_decode_record_{}_(reader, leaf, &to->{field});", name(of))
        }
        Step::Repeat { count, times, field, body, .. } => {
            if let Times::Separate(counted) = times {
                let _ = writeln!(out, "    to->{counted} = leaf[{count}].last;");
            }
            let indent = "        ";
            let end = match (times, field) {
                (Times::Flag(optional), _) => {
                    let _ = writeln!(out, "    to->{optional} = leaf[{count}].last != 0 && pfx_item_(reader);");
                    let _ = writeln!(out, "    if (to->{optional}) {{");
                    field.as_ref().map(|field| format!("to->{field}"))
                }
                (_, field) => {
                    let _ = writeln!(out, "    for (i = 0; i < leaf[{count}].last && pfx_item_(reader); i++) {{");
                    if let Some(field) = field {
                        let ty = match body {
                            Body::One(value) => value.kind.ty().to_owned(),
                            Body::Nested(of) => format!("pfx_{} ", name(of)),
                        };
                        let _ = writeln!(
                            out,
                            "{indent}{ty}*list = ({ty}*)pfx_grow_(reader, to->{field}, i, sizeof *list);\n\
                             {indent}if (list == NULL) {{\n{indent}    return;\n{indent}}}\n{indent}to->{field} = list;"
                        );
                        if matches!(body, Body::Nested(_)) {
                            let _ = writeln!(out, "{indent}memset(&list[i], 0, sizeof list[i]);");
                        }
                    }
                    field.as_ref().map(|_| "list[i]".to_owned())
                }
            };
            match (body, end) {
                (Body::One(value), to) => assign(out, indent, to, value),
                (Body::Nested(of), to) => {
                    let to = to.unwrap_or_default();
                    let _ = writeln!(out, "{indent}pfx_decode_record_{}_(reader, leaf, &{to});", name(of));
                }
            }
            writeln!(out, "    }}")
        }
    };
}

/// Writes the line that decodes a value.
fn assign(out: &mut String, indent: &str, to: Option<String>, value: &Value) {
    if let Some(length) = value.length {
        let _ = writeln!(out, "{indent}pfx_number_(reader, &leaf[{length}]);");
    }
    let leaf = value.leaf;
    let number = format!("pfx_number_(reader, &leaf[{leaf}])");
    let read = match &value.kind {
        Kind::Unsigned | Kind::Constant(_) => number,
        Kind::Signed => format!("(int64_t){number}"),
        Kind::Float => format!("pfx_float_({number})"),
        Kind::Double => format!("pfx_double_({number})"),
        Kind::Array { length: Length::Fixed(bytes), .. } => {
            format!("pfx_array_(reader, &leaf[{leaf}], UINT64_C({bytes}))")
        }
        Kind::Array { length: Length::Computed(expr), .. } => {
            format!("pfx_array_(reader, &leaf[{leaf}], {})", expression(expr))
        }
        Kind::Array { length: Length::Until(end), .. } => format!("pfx_until_(reader, &leaf[{leaf}], {end})"),
    };
    let _ = match to {
        Some(to) => writeln!(out, "{indent}{to} = {read};"),
        None => writeln!(out, "{indent}{read};"),
    };
}

/// Writes an expression.
fn expression(expr: &Expr) -> String {
    let mut stack: Vec<String> = Vec::new();
    for op in &expr.0 {
        let mut pop = || stack.pop().unwrap_or_default();
        let term = match op {
            ExprOp::Push(number) => format!("UINT64_C({number})"),
            ExprOp::Leaf(id) => format!("leaf[{}].last", id.0),
            ExprOp::Bit(bit) => format!("({} >> {bit} & 1)", pop()),
            _ => {
                let (b, a) = (pop(), pop());
                let call = |name: &str| format!("pfx_{name}_(reader, {a}, {b})");
                match op {
                    ExprOp::Add => call("add"),
                    ExprOp::Sub => call("subtract"),
                    ExprOp::Mul => call("multiply"),
                    ExprOp::Div => call("divide"),
                    ExprOp::Rem => call("remainder"),
                    ExprOp::Compare(comparison) => format!("(uint64_t)({a} {} {b})", comparison.sign()),
                    // The generator refuses `rest` and `until`.
                    ExprOp::Push(_) | ExprOp::Leaf(_) | ExprOp::Bit(_) | ExprOp::Rest | ExprOp::Until => String::new(),
                }
            }
        };
        stack.push(term);
    }
    stack.pop().unwrap_or_default()
}
