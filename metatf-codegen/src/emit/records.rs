//! Emits the rows for records and models in the generated table that describes the file format.

use std::collections::BTreeMap;

use metatf_parser::schema::{
    self, Comparison, Dtd, ExprOp, HeapRole, Interpretation, Item, Leaf, LeafId, ModelKind, Predictor, PredictorKind,
    Record, RecordId, Repeated, Width,
};
use proc_macro2::TokenStream;
use quote::quote;

use super::number;
use crate::model::{Model, RecordColumns};
use crate::names::ident;

/// Emits the row of each record.
pub(super) fn rows(dtd: &Dtd, model: &Model) -> Vec<TokenStream> {
    let columns: BTreeMap<usize, &RecordColumns> = model.columns.iter().map(|c| (c.record, c)).collect();
    let records = dtd.records.iter().enumerate();
    records.map(|(index, record)| row(index, record, columns.get(&index).copied(), model)).collect()
}

fn row(index: usize, record: &Record, columns: Option<&RecordColumns>, model: &Model) -> TokenStream {
    let (index, name, tag) = (number(index as u64), &record.name, number(record.tag.unwrap_or(0)));
    let types = columns.map(|columns| types(columns, model));
    let earlier: BTreeMap<u8, Vec<String>> =
        record.earlier_paths().into_iter().map(|(id, paths)| (id.0, paths)).collect();
    let was = |id: u8| earlier.get(&id).map_or(&[][..], Vec::as_slice);
    let leaves =
        (0..=u8::MAX).zip(&record.leaves).map(|(id, l)| leaf(l, record.catch_all && id == 0, was(id)));
    let names = &record.was;
    let mut steps = Vec::new();
    layout(record, &record.items, &mut steps);
    let repeats = record.leaves.iter().any(|l| l.repeated) || steps.len() != record.leaves.len();
    let steps = repeats.then(|| quote!(; #(#steps)*));
    quote!(record #index #name #(~ #names)* #tag (#types) { #(#leaves),* #steps })
}

/// Emits the struct name of a record, and the variants of the sections that list the record.
fn types(columns: &RecordColumns, model: &Model) -> TokenStream {
    let of = ident(&columns.of);
    let listed = model.tagged.iter().flat_map(|t| t.records.iter().map(move |listed| (t, listed)));
    let places = listed.filter(|(_, listed)| listed.record == columns.record).map(|(section, listed)| {
        let (index, top, name) = (number(section.index as u64), ident(&section.variant), ident(&section.name));
        let variant = ident(&listed.variant);
        quote!(#index #top #name #variant)
    });
    quote!(#of [#(#places),*])
}

/// Emits the name, storage and earlier paths of a leaf. `any_tag` marks the tag of a catch-all record.
fn leaf(leaf: &Leaf, any_tag: bool, was: &[String]) -> TokenStream {
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
        _ if any_tag => quote!(any_tag()),
        _ if leaf.computed.is_some() => {
            let steps = leaf.computed.iter().flat_map(|e| &e.0).map(expr_op);
            quote!(computed(#(#steps),*))
        }
        Width::Unset => numeric(0, leaf.interpretation),
        Width::Number(width) => numeric(*width, leaf.interpretation),
        Width::Array(n) => {
            let n = number(*n);
            quote!(array(#n))
        }
        Width::Until(end) => {
            let end = number(*end);
            quote!(until(#end))
        }
        Width::Variable(expr) => {
            let steps = expr.0.iter().map(expr_op);
            quote!(variable(#(#steps),*))
        }
    };
    quote!(#path #field #kind #constant #(~ #was)*)
}

fn numeric(width: u8, interpretation: Interpretation) -> TokenStream {
    let parts = interpretation.parts();
    let (width, name) = (number(width), ident(parts.variant));
    let values = parts.numbers.into_iter().map(number);
    quote!(number(#width #name #(#values)*))
}

/// Emits the row of a model.
pub(super) fn model(model: &schema::Model) -> TokenStream {
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
        ExprOp::Div => quote!(Div),
        ExprOp::Rem => quote!(Rem),
        ExprOp::Compare(Comparison::Equal) => quote!(Eq),
        ExprOp::Compare(Comparison::NotEqual) => quote!(Ne),
        ExprOp::Compare(Comparison::Less) => quote!(Lt),
        ExprOp::Compare(Comparison::LessOrEqual) => quote!(Le),
        ExprOp::Compare(Comparison::Greater) => quote!(Gt),
        ExprOp::Compare(Comparison::GreaterOrEqual) => quote!(Ge),
        ExprOp::Bit(bit) => {
            let bit = number(*bit);
            quote!(Bit(#bit))
        }
    }
}

/// Emits the layout of a record's items as a list of steps. The parser bounds the nesting depth (spec 3.5).
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
