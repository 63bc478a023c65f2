//! The static tables of the format, in a separate module.

use std::collections::BTreeMap;

use heck::ToShoutySnakeCase;
use metatf_parser::schema::{
    Comparison, Dtd, Expr, ExprOp, HeapRole, Interpretation, Item, Leaf, LeafId, Model, ModelKind, Predictor,
    PredictorKind, RawFile, Record, RecordId, Repeated, Section, SectionId, Width,
};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::protocol::record_type;
use super::{hexadecimal, number};
use crate::expect::Expected;
use crate::model::Model as Code;
use crate::names::{Scope, ident, legal};

/// The constants of a record.
struct RecordTable<'d> {
    /// The constant with the leaves.
    leaves: Ident,
    /// The constant with the layout, and its repetitions, unless the leaves are stored in order.
    layout: Option<(Ident, Vec<TokenStream>)>,
    record: &'d Record,
}

/// Emits the module with the tables.
pub(super) fn emit(dtd: &Dtd, code: &Code, expected: &[Expected]) -> TokenStream {
    let references = References(code);
    let fingerprint = hexadecimal(dtd.fingerprint());
    let tag_width = number(dtd.tag_width);
    let mut names = Scope::with(&["FORMAT", "SECTIONS", "RECORDS", "MODELS", "WIDTHS", "STARTS"]);
    let mut constant = |name: String| format_ident!("{}", names.take(&[name]));
    let mut records: Vec<RecordTable<'_>> = Vec::new();
    for record in &dtd.records {
        let leaves = constant(legal(record.name.to_shouty_snake_case(), "RECORD", &record.name));
        records.push(RecordTable { leaves, layout: None, record });
    }
    for table in &mut records {
        let mut repeats = Vec::new();
        find_repeats(&table.record.items, &mut repeats);
        if !repeats.is_empty() {
            table.layout = Some((constant(format!("{}_LAYOUT", table.leaves)), repeats));
        }
    }
    let leaves = records.iter().map(|table| leaves(&table.leaves, table.record));
    let layouts = records.iter().map(layout);
    let rows = records.iter().map(row);
    let sections = dtd.sections.iter().map(section);
    let heap = dtd.models.iter().any(|model| matches!(model.kind, ModelKind::Heap { .. })).then(|| {
        quote! {
            ///
            /// All `allocated`, `freed` and `used` models of a section share one set of live and recently freed blocks, which
            /// contains the value of `by` for each block. `allocated` predicts the address of a new block from the size in another
            /// leaf, `freed` predicts the block that ends, and `used` predicts a block that stays live.
        }
    });
    let models = (!dtd.models.is_empty()).then(|| {
        let models = dtd.models.iter().map(|m| model(&references, m));
        quote! {
            /// The models of predicted leaves. `Interpretation::Predicted` contains an index into this table. `by` is a leaf, such
            /// as a thread's number: a prediction uses the history for the leaf's current value. `misses_in` is the number of
            /// the section with elements for values that the model does not predict.
            #heap
            const MODELS: &[Model] = &[#(#models),*];
        }
    });
    let widths = (!expected.is_empty()).then(|| {
        let widths = expected.iter().map(|&(record, leaf, width)| {
            let (leaf, width) = (references.leaf(record.into(), leaf), number(width));
            quote!(ExpectedWidth::new(#leaf, #width))
        });
        quote! {
            /// The usual widths of leaves in bytes, where they differ from the widths in the DTD.
            const WIDTHS: &[ExpectedWidth] = &[#(#widths),*];
        }
    });
    let (raw, starts) = dtd.raw_file().map(|file| raw_file(dtd, &file)).unzip();
    let tag_width = (dtd.tag_width != 1).then(|| quote!(.tag_width(#tag_width)));
    let with_models = models.as_ref().map(|_| quote!(.models(MODELS)));
    let with_widths = widths.as_ref().map(|_| quote!(.expected_widths(WIDTHS)));
    let with_raw = raw.map(|raw| quote!(.raw_file(#raw)));
    let initials = dtd.sections.iter().any(has_initials).then(|| {
        quote! {
            /// `initials` contains the initial value of each cell, in the order of their numbers, unless all are 0.
        }
    });
    let time = dtd.records.iter().any(|record| record.time().is_some()).then(|| {
        quote! {
            /// `time` is the leaf that contains a record's time.
        }
    });
    let was =
        dtd.records.iter().any(|record| !record.was.is_empty() || !record.earlier_paths().is_empty()).then(|| {
            quote! {
                /// `was` lists names of a record or a leaf in older traces. For a leaf of a repetition with a name, these include
                /// its name before repetitions could have names.
            }
        });
    let items = quote! {
            /// The tables of the format. The fingerprint is a hash of the DTD's meaning, without comments, which identifies
            /// traces of the same format.
            pub static FORMAT: Format =
                Format::new(super::DTD, SECTIONS, RECORDS).fingerprint(#fingerprint)
                    #tag_width #with_models #with_widths #with_raw;
            /// The sections, each with its number, its name and the indices of its records in `RECORDS`.
            ///
            /// `cells` contains the number of a cell for each leaf of these records, in order, except for `section` and
            /// `metadata`. The cell stores the leaf's previous value, and leaves with the same number share it. Leaves whose
            /// interpretation ignores the previous value have cells, too, because metadata can select another interpretation.
            #initials
            const SECTIONS: &[Section] = &[#(#sections),*];
            /// The records, each with its name, its tag, its leaves and the order in which they are stored.
            #time
            #was
            const RECORDS: &[Record] = &[#(#rows),*];
            #models
            #widths
            #starts
            #(#leaves #layouts)*
    };
    let types = [
        "ExpectedWidth",
        "ExprOp",
        "Format",
        "Interpretation",
        "Leaf",
        "Magic",
        "Model",
        "Predictor",
        "RawFile",
        "RawStart",
        "Record",
        "Repeat",
        "Section",
        "Step",
        "in_order",
        "repeating",
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
        /// Describes the format as data, for the slow path and for tools.
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
    let initials = has_initials(section).then(|| {
        let initials = section.cell_initials.iter().map(|value| number(*value));
        quote!(.initials(&[#(#initials),*]))
    });
    quote!(Section::#kind(#n, #name, &[#(#records),*]).cells(&[#(#cells),*])#initials)
}

fn has_initials(section: &Section) -> bool {
    section.cell_initials.iter().any(|value| *value != 0)
}

/// Emits a record, whose leaves are a constant with the same name.
fn row(table: &RecordTable<'_>) -> TokenStream {
    let RecordTable { leaves, layout, record } = table;
    let steps = match layout {
        Some((layout, _)) => quote!(#layout),
        None => quote!(&in_order(#leaves)),
    };
    let (name, was) = (&record.name, earlier(&record.was));
    // The tag of a catch-all record is the lowest tag without its own record.
    let new = match record.tag.map(number) {
        Some(tag) => quote!(tagged(#name, #tag, #leaves, #steps)),
        None => quote!(element(#name, #leaves, #steps)),
    };
    let time = record.time().map(|leaf| {
        let leaf = number(leaf.0);
        quote!(.time(#leaf))
    });
    quote!(Record::#new #was #time)
}

/// Emits the layout of a record with repetitions.
fn layout(table: &RecordTable<'_>) -> Option<TokenStream> {
    let RecordTable { leaves, layout, record } = table;
    let (layout, repeats) = layout.as_ref()?;
    let docs = format!(
        " The steps that store a record `{}`: its leaves, and a step at the start of each repetition.",
        record.name
    );
    let count = number(repeats.len() as u64);
    Some(quote! {
        #[doc = #docs]
        const #layout: &[Step; #leaves.len() + #count] = &repeating(#leaves, &[#(#repeats),*]);
    })
}

/// Emits the repetitions, each before the repetitions inside its items. The parser bounds the nesting depth (spec 3.5).
fn find_repeats(items: &[Item], repeats: &mut Vec<TokenStream>) {
    for item in items {
        match item {
            Item::Leaf(_) => {}
            Item::Nested { items, .. } => find_repeats(items, repeats),
            Item::Repeat { count, body, .. } => {
                let Some((first, last)) = first_leaf(item).zip(last_leaf(item)) else { continue };
                let (count, first, last) = (number(count.0), number(first.0), number(last.0));
                repeats.push(quote!(Repeat::leaves(#first..=#last).counted_by(#count)));
                match body {
                    Repeated::Leaf(_) => {}
                    Repeated::Group(items) | Repeated::Record { items, .. } => find_repeats(items, repeats),
                }
            }
        }
    }
}

fn first_leaf(item: &Item) -> Option<LeafId> {
    match item {
        Item::Leaf(id) | Item::Repeat { body: Repeated::Leaf(id), .. } => Some(*id),
        Item::Nested { items, .. }
        | Item::Repeat { body: Repeated::Group(items) | Repeated::Record { items, .. }, .. } => {
            items.first().and_then(first_leaf)
        }
    }
}

fn last_leaf(item: &Item) -> Option<LeafId> {
    match item {
        Item::Leaf(id) | Item::Repeat { body: Repeated::Leaf(id), .. } => Some(*id),
        Item::Nested { items, .. }
        | Item::Repeat { body: Repeated::Group(items) | Repeated::Record { items, .. }, .. } => {
            items.last().and_then(last_leaf)
        }
    }
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
    let metadata = (record.name == "metadata").then(|| {
        quote! {
            /// `record` is the tag of the record to change, `field` is the number of the leaf, `property` selects the width or
            /// an interpretation (section 4.1 of the specification of Meta-TF), and `value` is its first argument. The runtime
            /// handles further arguments.
        }
    });
    let explained = (record.name == "comment").then(|| {
        quote! {
            /// A number has a path, a width in bytes and an interpretation, a byte array has a path and a length, and a computed
            /// count has a path and an expression. A path is unique in its record; `named` is the name of the field in the DTD,
            /// if it differs from the path. Lengths and counts that are expressions consist of operators in postfix order.
        }
    });
    quote!(#[doc = #docs] #metadata #explained const #constant: &[Leaf; #count] = &[#(#leaves),*];)
}

/// Emits a leaf. `any_tag` marks the tag of a catch-all record.
fn leaf(leaf: &Leaf, any_tag: bool, was: &[String]) -> TokenStream {
    let path = leaf.path.join(".");
    let base = match &leaf.width {
        _ if leaf.is_tag() => return quote!(Leaf::tag()),
        _ if any_tag => return quote!(Leaf::any_tag()),
        _ if leaf.computed.is_some() => {
            let (program, count) = (program(leaf.computed.as_ref()), leaf.computed.as_ref());
            match count.and_then(|count| count.0.last()) {
                Some(ExprOp::Rest | ExprOp::Until) => quote!(Leaf::scanned(#path, #program)),
                _ => quote!(Leaf::computed(#path, #program)),
            }
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
        Width::Rest => quote!(Leaf::rest(#path)),
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
    let header = leaf.header.map(|(_, leaf)| {
        let leaf = number(leaf.0);
        quote!(.of_header(#leaf))
    });
    quote!(#base #named #was #constant #header)
}

fn numeric(path: &str, width: u8, interpretation: Interpretation) -> TokenStream {
    let parts = interpretation.parts();
    let (width, name) = (number(width), ident(parts.variant));
    let values = parts.numbers.into_iter().map(number);
    let values = (values.len() > 0).then(|| quote!((#(#values),*)));
    quote!(Leaf::number(#path, #width, Interpretation::#name #values))
}

fn program(expression: Option<&Expr>) -> TokenStream {
    let steps = expression.iter().flat_map(|e| &e.0).filter_map(expr_op);
    quote!(&[#(#steps),*])
}

/// Emits a step, or nothing for the marker of a count that is not the result of its steps.
fn expr_op(op: &ExprOp) -> Option<TokenStream> {
    let name = match op {
        ExprOp::Rest | ExprOp::Until => return None,
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
    Some(quote!(ExprOp::#name))
}

fn model(references: &References<'_>, model: &Model) -> TokenStream {
    let section = number(model.section);
    let kind = match &model.kind {
        ModelKind::Values(predictors) => {
            let predictors = predictors.iter().map(|p| predictor(references, p));
            quote!(values(&[#(#predictors),*]))
        }
        ModelKind::Heap { role, by } => {
            let by = references.by(*by);
            let role = match role {
                HeapRole::Allocated { size: (record, leaf) } => {
                    let size = references.leaf(record.0, leaf.0);
                    quote!(allocated(#size))
                }
                HeapRole::Freed => quote!(freed()),
                HeapRole::Used => quote!(used()),
            };
            quote!(#role #by)
        }
    };
    quote!(Model::#kind.misses_in(#section))
}

fn predictor(references: &References<'_>, predictor: &Predictor) -> TokenStream {
    let by = references.by(predictor.by);
    let kind = match predictor.kind {
        PredictorKind::LastValue(count) => {
            let count = number(count);
            quote!(last_values(#count))
        }
        PredictorKind::Stride => quote!(stride()),
        PredictorKind::Fcm(order) => {
            let order = number(order);
            quote!(fcm(#order))
        }
        PredictorKind::Dfcm(order) => {
            let order = number(order);
            quote!(dfcm(#order))
        }
    };
    quote!(Predictor::#kind #by)
}

/// References to leaves.
struct References<'m>(&'m Code);

impl References<'_> {
    /// Emits a reference to a leaf, through the type of its record if there is one.
    fn leaf(&self, record: u32, leaf: u8) -> TokenStream {
        let mut listed = self.0.tagged.iter().flat_map(|section| &section.records);
        let found = listed.find(|listed| listed.record == record as usize).map(record_type);
        let (record, leaf) = (number(record), number(leaf));
        found.map_or(quote!((#record, #leaf)), |name| quote!(super::#name::leaf(#leaf)))
    }

    fn by(&self, leaf: Option<(RecordId, LeafId)>) -> Option<TokenStream> {
        leaf.map(|(record, leaf)| {
            let leaf = self.leaf(record.0, leaf.0);
            quote!(.by(#leaf))
        })
    }
}

/// Emits the description of files without a header and its constants.
fn raw_file(dtd: &Dtd, file: &RawFile) -> (TokenStream, TokenStream) {
    let section = |id: SectionId| number(dtd.sections.get(usize::from(id.0)).map_or(0, |s| s.number));
    let (records, trailer) = (section(file.records), file.trailer.map(section));
    let trailer = trailer.map(|trailer| quote!(.trailer_in(#trailer)));
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
        let size = start.records_size.map(|leaf| number(leaf.0));
        let size = size.map(|size| quote!(.records_size(#size)));
        quote!(RawStart::new(#section, #record, #constant)#size)
    });
    (
        quote!(RawFile::new(STARTS, #records)#trailer),
        quote! {
            /// The possible first records of a file without a header, each with the number of its section, its index in
            /// `RECORDS` and the leaves that identify the file.
            const STARTS: &[RawStart] = &[#(#starts),*];
            #(#magic)*
        },
    )
}
