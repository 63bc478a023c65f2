//! Syntax tree to resolved schema (spec 3), one file for each family of rules. Each step reports what it finds wrong and
//! goes on with what is left, so that one run reports all mistakes.

mod assemble;
mod bases;
mod constants;
mod expression;
mod layout;
mod leaves;
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
mod unused;

use std::collections::HashMap;

use crate::ast::Ast;
use crate::codes::Code;
use crate::diagnostic::{Draft, Reporter};
use crate::schema::Dtd;
use crate::span::Span;

/// Returns the schema, if nothing is wrong; `text` without its byte-order mark goes into it, `source` is what places count in.
pub(crate) fn resolve(ast: &Ast, source: &str, report: &mut Reporter) -> Option<Dtd> {
    let vfield = predefined::vfield();
    let mut model = names::collect(ast, &vfield, report);
    if report.is_full() {
        return None;
    }
    nesting::check(&mut model, report);
    scopes::fill(&mut model, report);
    model.tag_width = scopes::tag_width(&model, report);
    streams::find(&mut model);
    let tops = model.all_tops();
    let predefined = tags::predefined(&model, report);
    let values: HashMap<_, _> =
        tops.iter().filter_map(|t| Some((*t, tags::value(&model, *t, predefined, report)?))).collect();
    tags::unique(&model, &values, report);
    let tags = tags::numbered(&model, &values, predefined, report);
    let mut layouts = Vec::new();
    for top in &tops {
        layouts.extend(layout::expand(&mut model, *top, report));
        if model.budget.is_spent() {
            return None;
        }
    }
    let all: Vec<_> = (0..layouts.len())
        .map(|index| {
            let tag = layouts.get(index).and_then(|l| tags.get(&l.record)).copied();
            let leaves = if model.budget.is_spent() {
                Vec::new()
            } else {
                leaves::resolve(&mut model, &layouts, index, tag, report)
            };
            (tag, leaves)
        })
        .collect();
    if model.budget.is_spent() {
        return None;
    }
    let resolved: Vec<_> =
        layouts.into_iter().zip(all).map(|(layout, (tag, leaves))| leaves::Resolved { layout, leaves, tag }).collect();
    referenced::check(&resolved, report);
    streams::counts(&resolved, report);
    streams::references(&model, &resolved, report);
    streams::element_sizes(&model, &resolved, report);
    nested_sections::check(&model, &resolved, report);
    raw::check(&model, &resolved, report);
    unused::check(&model, report);
    assemble::dtd(model, resolved, predefined, ast, source, report)
}

/// Reports a schema that is over the budget of [`model::Budget`].
fn too_large(place: Span) -> Draft {
    Draft::new(Code::LargeSchema, place, "the records of this DTD have too many fields in all")
        .help("nested records multiply fields: nest less, or repeat (`n*item`)")
}
