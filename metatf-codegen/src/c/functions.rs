//! The parts that the functions of events and of elements share.

use std::fmt::Write as _;

use super::layout::EventC;
use super::nested::{Body, Parameter};
use super::put::Put;
use super::statements::{comment, one};

/// Writes the comment of a function.
pub(super) fn described(docs: &[String], parameters: &[Parameter]) -> String {
    let mut out = "/* ".to_owned();
    out.push_str(&docs.iter().map(|line| comment(line)).collect::<Vec<_>>().join("\n   "));
    for Parameter { name, docs, .. } in parameters {
        let lines: Vec<_> = docs.iter().filter(|line| !line.is_empty()).map(|line| comment(line)).collect();
        if !lines.is_empty() {
            let _ = write!(out, "\n   {name}: {}", lines.join("\n      "));
        }
    }
    out + " */\n"
}

/// Writes a list of parameters.
pub(super) fn listed(first: &str, parameters: &[Parameter]) -> String {
    let all = parameters.iter().map(|Parameter { name, c_type, .. }| format!(", {c_type}{name}"));
    first.to_owned() + &all.collect::<String>()
}

/// Writes the statements of a function that stores a record, and its end.
pub(super) fn body(body: &Body) -> String {
    let lines = body.lines().flat_map(|text| text.lines()).map(|line| format!("    {line}\n"));
    "    (void)room;\n".to_owned() + &lines.collect::<String>() + "    return at;\n}\n"
}

/// Writes the code that appends the leaves of a plain record. `own` is the value that telemetry fills in.
pub(super) fn leaves(event: &EventC, own: &str, indent: usize) -> String {
    let given = |put: Put| match put {
        Put::Argument(index, _) => event.arguments.get(index).map_or("", |argument| argument.0.as_str()),
        _ => "",
    };
    let lines = event.leaves.iter().filter_map(|put| one(*put, given(*put), own));
    lines.map(|line| format!("{:indent$}{line}\n", "")).collect()
}
