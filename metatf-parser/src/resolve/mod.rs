//! Resolves a syntax tree to a schema (spec 3), with one file for each family of rules. Each step reports a mistake and
//! continues with the rest, so a single run reports all mistakes.

mod assemble;
mod bases;
mod builtin;
mod conditions;
mod constants;
mod ends;
mod expression;
mod header_values;
mod headers;
#[cfg(feature = "index")]
mod indexed;
mod layout;
mod leaves;
mod lines;
mod lookup;
mod model;
mod names;
mod nested_sections;
mod nesting;
mod predefined;
mod predictors;
mod previous;
mod properties;
mod raw;
mod referenced;
mod scopes;
mod shown;
mod slots;
mod streams;
mod tags;
mod types;
mod unused;

use std::collections::HashMap;

use crate::ast::{self, Ast};
use crate::codes::Code;
use crate::diagnostic::{Draft, Reporter};
use crate::schema::Dtd;
use crate::span::Span;
use model::Model;

/// Returns the schema if there are no errors. `source` is the text for the schema, without a byte-order mark. Locations
/// refer to the text including the mark.
pub(crate) fn resolve(ast: &Ast, source: &str, report: &mut Reporter) -> Option<Dtd> {
    let (vfield, types) = (predefined::vfield(), builtin::Types::new());
    let laid_out = lay_out(ast, &vfield, &types, report);
    if laid_out.incomplete {
        return None;
    }
    check(&laid_out, report);
    assemble::dtd(laid_out.model, laid_out.resolved, laid_out.predefined, ast, source, report)
}

/// Returns the index, even if there are mistakes. Diagnostics are passed to the reporter, as in [`resolve`].
#[cfg(feature = "index")]
pub(crate) fn index(ast: &Ast, source: &str, report: &mut Reporter) -> crate::index::Index {
    let (vfield, types) = (predefined::vfield(), builtin::Types::new());
    let mut laid_out = lay_out(ast, &vfield, &types, report);
    if !laid_out.incomplete {
        check(&laid_out, report);
        assemble::sections(&mut laid_out.model, &laid_out.resolved, report);
    }
    indexed::build(&laid_out.model, laid_out.resolved, source)
}

/// The records of a DTD, as far as they can be laid out.
struct LaidOut<'a> {
    model: Model<'a>,
    resolved: Vec<leaves::Resolved<'a>>,
    /// The tags of the predefined records.
    predefined: [u32; 3],
    /// Whether a limit was reached and reported.
    incomplete: bool,
}

fn lay_out<'a>(
    ast: &'a Ast<'a>,
    vfield: &'a ast::Record<'a>,
    types: &'a builtin::Types,
    report: &mut Reporter,
) -> LaidOut<'a> {
    let model = names::collect(ast, vfield, report);
    let mut out = LaidOut { model, resolved: Vec::new(), predefined: [1, 2, 3], incomplete: true };
    if report.is_full() {
        return out;
    }
    let model = &mut out.model;
    types::resolve(model, types, report);
    nesting::check(model, report);
    scopes::fill(model, report);
    types::conflicts(model, report);
    model.tag_width = scopes::tag_width(model, report);
    streams::find(model);
    let tops = model.all_tops();
    out.predefined = tags::predefined(model, report);
    let values: HashMap<_, _> =
        tops.iter().filter_map(|t| Some((*t, tags::value(model, *t, out.predefined, report)?))).collect();
    tags::unique(model, &values, report);
    let tags = tags::numbered(model, &values, out.predefined, report);
    let mut layouts = Vec::new();
    for top in &tops {
        layouts.extend(layout::expand(model, *top, report));
        if model.budget.is_spent() {
            return out;
        }
    }
    let all: Vec<_> = (0..layouts.len())
        .map(|index| {
            let tag = layouts.get(index).and_then(|l| tags.get(&l.record)).copied();
            let leaves =
                if model.budget.is_spent() { Vec::new() } else { leaves::resolve(model, &layouts, index, tag, report) };
            (tag, leaves)
        })
        .collect();
    out.incomplete = model.budget.is_spent();
    let resolved = layouts.into_iter().zip(all);
    out.resolved = resolved.map(|(layout, (tag, leaves))| leaves::Resolved { layout, leaves, tag }).collect();
    out
}

/// Runs the checks that need all records.
fn check(LaidOut { model, resolved, predefined, .. }: &LaidOut, report: &mut Reporter) {
    referenced::check(resolved, report);
    streams::counts(resolved, report);
    streams::references(model, resolved, report);
    streams::element_sizes(model, resolved, report);
    ends::check(model, resolved, report);
    streams::alone(model, resolved, report);
    nested_sections::check(model, resolved, report);
    raw::check(model, resolved, report);
    conditions::check(resolved, report);
    unused::check(model, *predefined, report);
}

/// Reports a schema that exceeds the budget of [`model::Budget`].
fn too_large(place: Span) -> Draft {
    Draft::new(Code::LargeSchema, place, "the records of this DTD have too many fields in total")
        .help("nest fewer records, which multiply the number of fields, or use a repetition (`n*item`)")
}
