//! The static tables of the format, in a separate module.

use std::collections::BTreeMap;

use heck::ToShoutySnakeCase;
use metatf_parser::schema::{
    Comparison, Dtd, Expr, ExprOp, HeapRole, Interpretation, Item, Leaf, LeafId, Model, ModelKind, Predictor,
    PredictorKind, RawFile, Record, RecordId, Repeated, Section, SectionId, Width,
};
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

use super::{hexadecimal, number};
use crate::expect::Expected;
use crate::names::{Scope, ident, legal};

/// Emits the module with the tables.
pub(super) fn emit(dtd: &Dtd, expected: &[Expected]) -> TokenStream {
    let fingerprint = hexadecimal(dtd.fingerprint());
    let tag_width = number(dtd.tag_width);
    let mut names = Scope::with(&["FORMAT", "SECTIONS", "RECORDS", "MODELS", "EXPECTED", "STARTS"]);
    let records: Vec<(Ident, &Record)> = dtd
        .records
        .iter()
        .map(|record| {
            let name = legal(record.name.to_shouty_snake_case(), "RECORD", &record.name);
            (format_ident!("{}", names.take(&[name])), record)
        })
        .collect();
    let leaves = records.iter().map(|(name, record)| leaves(name, record));
    let rows = records.iter().map(|(name, record)| row(name, record));
    let sections = dtd.sections.iter().map(section);
    let models = dtd.models.iter().map(model);
    let widths = expected.iter().map(|&(record, leaf, width)| {
        let (record, leaf, width) = (number(record), number(leaf), number(width));
        quote!(ExpectedWidth { record: #record, leaf: #leaf, width: #width })
    });
    let raw = dtd.raw_file().map(|file| raw_file(dtd, &file));
    let is_more = !dtd.models.is_empty() || !expected.is_empty() || raw.is_some();
    let (raw, starts) = raw.map_or((quote!(None), None), |(raw, starts)| (quote!(Some(#raw)), Some(starts)));
    let with = is_more.then(|| quote!(.with(MODELS, EXPECTED, #raw)));
    let more = is_more.then(|| {
        quote! {
            const MODELS: &[Model] = &[#(#models),*];
            const EXPECTED: &[ExpectedWidth] = &[#(#widths),*];
            #starts
        }
    });
    let items = quote! {
            /// The tables of the format.
            pub static FORMAT: Format = Format::new(super::DTD, #fingerprint, #tag_width, SECTIONS, RECORDS) #with;
            const SECTIONS: &[Section] = &[#(#sections),*];
            const RECORDS: &[Record] = &[#(#rows),*];
            #more
            #(#leaves)*
    };
    let types = [
        "ExpectedWidth",
        "ExprOp",
        "Format",
        "HeapRole",
        "Interpretation",
        "Leaf",
        "Magic",
        "Model",
        "ModelKind",
        "Predictor",
        "PredictorKind",
        "RawFile",
        "RawStart",
        "Record",
        "Section",
        "Step",
        "in_order",
    ];
    let text = items.to_string();
    let is_used = |name: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
    let types = types.into_iter().filter(|name| is_used(name)).map(ident);
    let borrowed = is_used("Borrowed").then(|| {
        quote!(
            use std::borrow::Cow::Borrowed;
        )
    });
    quote! {
        pub use tables::FORMAT;
        /// Describes the format as data, for tools and for records that the functions above cannot read.
        mod tables {
            use super::runtime::tables::{#(#types),*};
            #borrowed
            #items
        }
    }
}

fn section(section: &Section) -> TokenStream {
    let (n, name) = (number(section.number), section.name.as_deref().unwrap_or(""));
    let kind = if section.stream.is_some() { quote!(stream) } else { quote!(tagged) };
    let records = section.records.iter().map(|id| number(id.0));
    let cells = section.cells.iter().flatten().map(|cell| number(*cell));
    let initials = if section.cell_initials.iter().all(|value| *value == 0) {
        let n = number(section.cell_initials.len() as u64);
        quote!([0; #n])
    } else {
        let initials = section.cell_initials.iter().map(|value| number(*value));
        quote!([#(#initials),*])
    };
    quote!(Section::#kind(#n, #name, &[#(#records),*]).cells(&[#(#cells),*]).initials(&#initials))
}

/// Emits a record, whose leaves are a constant with the same name.
fn row(constant: &Ident, record: &Record) -> TokenStream {
    let (name, tag) = (&record.name, number(record.tag.unwrap_or(0)));
    let mut steps = Vec::new();
    layout(record, &record.items, &mut steps);
    let repeats = record.leaves.iter().any(|l| l.repeated) || steps.len() != record.leaves.len();
    let steps = if repeats { quote!([#(#steps),*]) } else { quote!(in_order(#constant)) };
    let was = earlier(&record.was);
    quote!(Record::new(#name, #tag, #constant, &#steps)#was)
}

fn earlier(names: &[String]) -> Option<TokenStream> {
    (!names.is_empty()).then(|| quote!(.was(&[#(Borrowed(#names)),*])))
}

/// Emits the leaves of a record.
fn leaves(constant: &Ident, record: &Record) -> TokenStream {
    let earlier: BTreeMap<u8, Vec<String>> =
        record.earlier_paths().into_iter().map(|(id, paths)| (id.0, paths)).collect();
    let leaves = (0..=u8::MAX)
        .zip(&record.leaves)
        .map(|(id, l)| leaf(l, record.catch_all && id == 0, earlier.get(&id).map_or(&[][..], Vec::as_slice)));
    let count = number(record.leaves.len() as u64);
    let docs = format!(" The leaves of `{}`.", record.name);
    quote!(#[doc = #docs] const #constant: &[Leaf; #count] = &[#(#leaves),*];)
}

/// Emits a leaf. `any_tag` marks the tag of a catch-all record.
fn leaf(leaf: &Leaf, any_tag: bool, was: &[String]) -> TokenStream {
    let path = leaf.path.join(".");
    let base = match &leaf.width {
        _ if leaf.is_tag() => return quote!(Leaf::tag()),
        _ if any_tag => return quote!(Leaf::any_tag()),
        _ if leaf.computed.is_some() => {
            let program = program(leaf.computed.as_ref());
            quote!(Leaf::computed(#path, #program))
        }
        Width::Unset => numeric(&path, 0, leaf.interpretation),
        Width::Number(width) => numeric(&path, *width, leaf.interpretation),
        Width::Array(n) => {
            let n = number(*n);
            quote!(Leaf::array(#path, #n))
        }
        Width::Until(end) => {
            let end = number(*end);
            quote!(Leaf::until(#path, #end))
        }
        Width::Variable(expr) => {
            let program = program(Some(expr));
            quote!(Leaf::variable(#path, #program))
        }
    };
    let named = (path != leaf.name).then(|| {
        let name = &leaf.name;
        quote!(.named(#name))
    });
    let was = earlier(was);
    let constant = leaf.constant.map(|value| {
        let value = number(value);
        quote!(.constant(#value))
    });
    quote!(#base #named #was #constant)
}

fn numeric(path: &str, width: u8, interpretation: Interpretation) -> TokenStream {
    let parts = interpretation.parts();
    let (width, name) = (number(width), ident(parts.variant));
    let values = parts.numbers.into_iter().map(number);
    let values = (values.len() > 0).then(|| quote!((#(#values),*)));
    quote!(Leaf::number(#path, #width, Interpretation::#name #values))
}

fn program(expression: Option<&Expr>) -> TokenStream {
    let steps = expression.iter().flat_map(|e| &e.0).map(expr_op);
    quote!(&[#(#steps),*])
}

fn expr_op(op: &ExprOp) -> TokenStream {
    let name = match op {
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
    };
    quote!(ExprOp::#name)
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
                    *step = quote!(Step::Repeat { count: #count, end: #end });
                }
            }
        }
    }
}

fn step(record: &Record, id: LeafId) -> TokenStream {
    let leaf = number(id.0);
    match record.leaves.get(usize::from(id.0)) {
        Some(l) if !l.is_numeric() => quote!(Step::Bytes(#leaf)),
        _ => quote!(Step::Number(#leaf)),
    }
}

fn model(model: &Model) -> TokenStream {
    let section = number(model.section);
    let kind = match &model.kind {
        ModelKind::Values(predictors) => {
            let predictors = predictors.iter().map(predictor);
            quote!(ModelKind::values(&[#(#predictors),*]))
        }
        ModelKind::Heap { role, by } => {
            let by = leaf_ref(*by);
            let role = match role {
                HeapRole::Allocated { size: (record, leaf) } => {
                    let (record, leaf) = (number(record.0), number(leaf.0));
                    quote!(Allocated { size: (#record, #leaf) })
                }
                HeapRole::Freed => quote!(Freed),
                HeapRole::Used => quote!(Used),
            };
            quote!(ModelKind::Heap { role: HeapRole::#role, by: #by })
        }
    };
    quote!(Model::new(#section, #kind))
}

fn predictor(predictor: &Predictor) -> TokenStream {
    let by = leaf_ref(predictor.by);
    let (name, argument) = match predictor.kind {
        PredictorKind::LastValue(n) => (quote!(LastValue), Some(n)),
        PredictorKind::Stride => (quote!(Stride), None),
        PredictorKind::Fcm(order) => (quote!(Fcm), Some(order)),
        PredictorKind::Dfcm(order) => (quote!(Dfcm), Some(order)),
    };
    let argument = argument.map(|argument| {
        let argument = number(argument);
        quote!((#argument))
    });
    quote!(Predictor { kind: PredictorKind::#name #argument, by: #by })
}

fn leaf_ref(leaf: Option<(RecordId, LeafId)>) -> TokenStream {
    match leaf {
        Some((record, leaf)) => {
            let (record, leaf) = (number(record.0), number(leaf.0));
            quote!(Some((#record, #leaf)))
        }
        None => quote!(None),
    }
}

/// Emits the description of files without a header and its constants.
fn raw_file(dtd: &Dtd, file: &RawFile) -> (TokenStream, TokenStream) {
    let section = |id: SectionId| number(dtd.sections.get(usize::from(id.0)).map_or(0, |s| s.number));
    let optional = |n: Option<Literal>| n.map_or(quote!(None), |n| quote!(Some(#n)));
    let (records, trailer) = (section(file.records), optional(file.trailer.map(section)));
    let constants: Vec<Ident> = (0..file.starts.len()).map(|i| format_ident!("MAGIC_OF_START_{i}")).collect();
    let magic = file.starts.iter().zip(&constants).map(|(start, constant)| {
        let magic = start.magic.iter().map(|(leaf, values)| {
            let (leaf, values) = (number(leaf.0), values.iter().map(|value| number(*value)));
            quote!(Magic::new(#leaf, &[#(#values),*]))
        });
        quote!(const #constant: &[Magic] = &[#(#magic),*];)
    });
    let starts = file.starts.iter().zip(&constants).map(|(start, constant)| {
        let (section, record) = (section(start.section), number(start.record.0));
        let size = optional(start.records_size.map(|leaf| number(leaf.0)));
        quote!(RawStart::new(#section, #record, #constant, #size))
    });
    (
        quote!(RawFile::new(STARTS, #records, #trailer)),
        quote! {
            const STARTS: &[RawStart] = &[#(#starts),*];
            #(#magic)*
        },
    )
}
