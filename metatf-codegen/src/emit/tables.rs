//! The static tables of the format, as a call of the runtime's `format!`: a line for each section and record.

use metatf_parser::schema::{
    Dtd, ExprOp, HeapRole, Interpretation, Item, Leaf, LeafId, Model, ModelKind, Predictor, PredictorKind, Record,
    RecordId, Repeated, Section, Width,
};
use proc_macro2::TokenStream;
use quote::quote;

use super::number;
use crate::expect::Expected;

/// `static FORMAT`.
pub(super) fn emit(dtd: &Dtd, expected: &[Expected], runtime: &TokenStream) -> TokenStream {
    let text = &dtd.text;
    let fingerprint: proc_macro2::Literal =
        format!("{:#018x}", dtd.fingerprint()).parse().unwrap_or_else(|_| number(dtd.fingerprint()));
    let tag_width = number(dtd.tag_width);
    let sections = dtd.sections.iter().map(section);
    let records = dtd.records.iter().map(record);
    let models = dtd.models.iter().map(model);
    let expected = expected.iter().map(|&(record, leaf, width)| {
        let (record, leaf, width) = (number(record), number(leaf), number(width));
        quote!(expected #record #leaf #width;)
    });
    quote! {
        /// The format's tables, and the text of the DTD.
        pub static FORMAT: #runtime::private::Format = #runtime::private::format! {
            dtd #text; fingerprint #fingerprint; tag #tag_width;
            #(#expected)*
            #(#sections)*
            #(#records)*
            #(#models)*
        };
    }
}

fn section(section: &Section) -> TokenStream {
    let (n, name, stream) = (number(section.number), section.name.as_deref().unwrap_or(""), section.stream.is_some());
    let records = section.records.iter().map(|id| number(id.0));
    let cells = section.cells.iter().flatten().map(|cell| number(*cell));
    let initials = if section.cell_initials.iter().all(|value| *value == 0) {
        let n = number(section.cell_initials.len() as u64);
        quote!(zero #n)
    } else {
        let initials = section.cell_initials.iter().map(|value| number(*value));
        quote!(#(#initials)*)
    };
    quote!(section #n #name #stream records [#(#records)*] cells [#(#cells)*] initials [#initials];)
}

fn record(record: &Record) -> TokenStream {
    let (name, tag) = (&record.name, number(record.tag.unwrap_or(0)));
    let leaves = record.leaves.iter().map(leaf);
    let mut steps = Vec::new();
    layout(record, &record.items, &mut steps);
    let repeats = record.leaves.iter().any(|l| l.repeated) || steps.len() != record.leaves.len();
    let steps = repeats.then(|| quote!([#(#steps)*]));
    quote!(record #name #tag { #(#leaves),* } #steps;)
}

fn leaf(leaf: &Leaf) -> TokenStream {
    let path = leaf.path.join(".");
    let field = (path != leaf.name).then(|| {
        let name = &leaf.name;
        quote!((#name))
    });
    let constant = leaf.constant.filter(|_| !leaf.is_tag()).map(|value| {
        let value = number(value);
        quote!(= #value)
    });
    let kind = match &leaf.width {
        _ if leaf.is_tag() => quote!(tag()),
        Width::Unset => numeric(0, leaf.interpretation),
        Width::Number(width) => numeric(*width, leaf.interpretation),
        Width::Array(n) => {
            let n = number(*n);
            quote!(array(#n))
        }
        Width::Variable(expr) => {
            let steps = expr.0.iter().map(expr_op);
            quote!(variable(#(#steps),*))
        }
    };
    quote!(#path #field #kind #constant)
}

fn numeric(width: u8, interpretation: Interpretation) -> TokenStream {
    use Interpretation as I;
    let width = number(width);
    let (name, values) = match interpretation {
        I::None => (quote!(None), vec![]),
        I::BaseOffset(base) => (quote!(BaseOffset), vec![base]),
        I::BaseOffsetOf(record, leaf) => (quote!(BaseOffsetOf), vec![record.0.into(), leaf.0.into()]),
        I::Delta(initial) => (quote!(Delta), vec![initial]),
        I::Default(value) => (quote!(Default), vec![value]),
        I::Stride { initial, stride } => (quote!(Stride), vec![initial, stride]),
        I::SectionOffset(section) => (quote!(SectionOffset), vec![section.into()]),
        I::SectionStride { section, stride } => (quote!(SectionStride), vec![section.into(), stride]),
        I::Predicted(model) => (quote!(Predicted), vec![model.0.into()]),
    };
    let values = values.into_iter().map(number);
    quote!(number(#width #name #(#values)*))
}

fn model(model: &Model) -> TokenStream {
    let section = number(model.section);
    match &model.kind {
        ModelKind::Values(predictors) => {
            let predictors = predictors.iter().map(predictor);
            quote!(model #section values(#(#predictors),*);)
        }
        ModelKind::Heap { role, by } => {
            let by = by.map(by_leaf);
            let role = match role {
                HeapRole::Allocated { size: (record, leaf) } => {
                    let (record, leaf) = (number(record.0), number(leaf.0));
                    quote!(Allocated #record #leaf)
                }
                HeapRole::Freed => quote!(Freed),
                HeapRole::Used => quote!(Used),
            };
            quote!(model #section heap(#role #by);)
        }
    }
}

fn predictor(predictor: &Predictor) -> TokenStream {
    let by = predictor.by.map(by_leaf);
    let (name, argument) = match predictor.kind {
        PredictorKind::LastValue(n) => (quote!(LastValue), Some(n)),
        PredictorKind::Stride => (quote!(Stride), None),
        PredictorKind::Fcm(order) => (quote!(Fcm), Some(order)),
        PredictorKind::Dfcm(order) => (quote!(Dfcm), Some(order)),
    };
    let argument = argument.map(number);
    quote!(#name #argument #by)
}

fn by_leaf((record, leaf): (RecordId, LeafId)) -> TokenStream {
    let (record, leaf) = (number(record.0), number(leaf.0));
    quote!(by #record #leaf)
}

fn expr_op(op: &ExprOp) -> TokenStream {
    match op {
        ExprOp::Push(n) => {
            let n = number(*n);
            quote!(Push(#n))
        }
        ExprOp::Leaf(id) => {
            let id = number(id.0);
            quote!(Leaf(#id))
        }
        ExprOp::Add => quote!(Add),
        ExprOp::Sub => quote!(Sub),
        ExprOp::Mul => quote!(Mul),
    }
}

/// The layout as a program. Nesting is bounded by the parser (spec 3.5).
fn layout(record: &Record, items: &[Item], steps: &mut Vec<TokenStream>) {
    for item in items {
        match item {
            Item::Leaf(id) => steps.push(step(record, *id)),
            Item::Nested { items, .. } => layout(record, items, steps),
            Item::Repeat { count, body, .. } => {
                let at = steps.len();
                steps.push(TokenStream::new());
                match body {
                    Repeated::Leaf(id) => steps.push(step(record, *id)),
                    Repeated::Group(items) | Repeated::Record { items, .. } => layout(record, items, steps),
                }
                let (count, end) = (number(count.0), number(steps.len() as u64));
                if let Some(step) = steps.get_mut(at) {
                    *step = quote!(repeat(#count, #end));
                }
            }
        }
    }
}

fn step(record: &Record, id: LeafId) -> TokenStream {
    let leaf = number(id.0);
    match record.leaves.get(usize::from(id.0)) {
        Some(l) if !l.is_numeric() => quote!(bytes(#leaf)),
        _ => quote!(number(#leaf)),
    }
}
