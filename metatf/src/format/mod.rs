//! The tables a reader or writer runs on: a DTD resolved to sections, records, leaves and layout programs.
//!
//! Generated code holds a `static Format`; the universal reader makes one from a parsed DTD (feature `dynamic`). The
//! types can be built in constants, hence the [`Cow`]s.
//!
//! Longer than other files: these tables refer to each other, and generated code names each of them.

mod floor;
mod raw;
mod steps;

pub use floor::Floor;
pub(crate) use floor::floor;
pub use raw::{Magic, RawFile, RawStart};
pub use steps::Steps;

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

/// A trace format: what a DTD means, without its syntax.
#[derive(Clone, Debug)]
pub struct Format {
    /// The DTD's text, embedded in traces (spec 5.2).
    pub dtd: Cow<'static, str>,
    /// What the DTD means as a number (`metatf_parser::Dtd::fingerprint`).
    pub fingerprint: u64,
    /// Bytes of a tag: 1, 2 or 4.
    pub tag_width: u8,
    /// The global section first.
    pub sections: Cow<'static, [Section]>,
    /// `comment`, `section` and `metadata` first (indices 0 to 2), then tagged records and stream elements.
    pub records: Cow<'static, [Record]>,
    /// What predicted leaves are predicted by: one for each such leaf of a record.
    pub models: Cow<'static, [Model]>,
    /// Widths that generated code is made for, where they are others than the DTD's. They change nothing but speed.
    pub expected: Cow<'static, [ExpectedWidth]>,
    /// How files without a header begin and end; `None`: the DTD does not say it.
    pub raw: Option<RawFile>,
}

/// The width that most traces give a numeric leaf, where that is not the DTD's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedWidth {
    /// Index of the record in [`Format::records`].
    pub record: u16,
    /// The leaf there.
    pub leaf: u8,
    /// 0 to 8.
    pub width: u8,
}

/// A section: which records stand in it, and which leaves share a previous value.
#[derive(Clone, Debug)]
pub struct Section {
    /// 0 for the global section.
    pub number: u8,
    /// Empty for the global section.
    pub name: Cow<'static, str>,
    /// A stream section: its only record is repeated without tags.
    pub stream: bool,
    /// Indices in [`Format::records`].
    pub records: Cow<'static, [u16]>,
    /// The cell of the previous value of every leaf, record after record in the order of `records`; none for the
    /// leaves of `section` and `metadata`.
    pub cells: Cow<'static, [u32]>,
    /// Initial value of each cell.
    pub initials: Cow<'static, [u64]>,
}

/// A tagged record or the element of a stream section.
#[derive(Clone, Debug)]
pub struct Record {
    /// Name in the DTD.
    pub name: Cow<'static, str>,
    /// Names that it had in earlier versions of the DTD.
    pub was: Cow<'static, [Cow<'static, str>]>,
    /// Tag value; 0 for a stream element. Of a catch-all record the least tag that no record of its sections has: metadata names it
    /// by that.
    pub tag: u32,
    /// In the order of the bytes; the tag is leaf 0 of a tagged record.
    pub leaves: Cow<'static, [Leaf]>,
    /// The layout as a program.
    pub steps: Cow<'static, [Step]>,
}

/// A leaf as its DTD declares it.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// Field name in the DTD: what metadata with bit 3 goes by.
    pub field: Cow<'static, str>,
    /// Name outside the DTD, from the record down: `box.point_2.x`.
    pub path: Cow<'static, str>,
    /// Paths that it had in earlier versions of the DTD.
    pub was: Cow<'static, [Cow<'static, str>]>,
    /// Number or byte array.
    pub kind: LeafKind,
    /// The value all records must have.
    pub constant: Option<u64>,
}

/// What a leaf stores.
#[derive(Clone, Debug)]
pub enum LeafKind {
    /// The tag of a tagged record: always the same.
    Tag,
    /// The tag of a catch-all record: a number that no other record of its section has for a tag.
    AnyTag,
    /// A number of `width` bytes (0 also where the DTD gives none) read by `interpretation`.
    Number {
        /// 0 to 8.
        width: u8,
        /// How bytes give a value.
        interpretation: Interpretation,
    },
    /// A byte array of fixed length.
    Array(u32),
    /// A byte array whose length is the result of a postfix program.
    Variable(Cow<'static, [ExprOp]>),
    /// A byte array up to this byte, which is stored behind it (spec 3.2).
    Until(u8),
    /// A count that is the result of a postfix program: a number that stores nothing (spec 3.3).
    Computed(Cow<'static, [ExprOp]>),
}

/// Spec 4. Numbers are 64-bit two's complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpretation {
    /// The stored integer.
    None,
    /// A base plus the stored integer.
    BaseOffset(u64),
    /// The last value of a leaf (record index, leaf) of the same section plus the stored integer.
    BaseOffsetOf(u16, u8),
    /// The previous value (its initial value is given) plus the stored integer.
    Delta(u64),
    /// This value.
    Default(u64),
    /// The previous value (initial value given) plus a stride.
    Stride(u64, u64),
    /// An offset into a stream section's content.
    SectionOffset(u8),
    /// The next element of a stream section, and how far the cursor moves.
    SectionStride(u8, u64),
    /// The number of a candidate of this model ([`Format::models`]).
    Predicted(u16),
}

impl Interpretation {
    /// Whether the leaf stores bytes under this interpretation.
    #[must_use]
    pub const fn stores(self) -> bool {
        !matches!(self, Self::Default(_) | Self::Stride(..) | Self::SectionStride(..))
    }
}

/// What a leaf is predicted by. Every predicted leaf of every record has its own; leaves that share a previous value share
/// what their models learn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Number of the stream section that holds the values that no candidate hits.
    pub section: u8,
    /// Where candidates come from.
    pub kind: ModelKind,
}

/// A leaf by the index of its record in [`Format::records`] and its own there: of the model's own record an earlier leaf.
pub type LeafRef = (u16, u8);

/// Where the candidates of a [`Model`] come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelKind {
    /// Predictors for any number, in the order of their candidates.
    Values(Cow<'static, [Predictor]>),
    /// The live and the freed objects of a heap.
    Heap {
        /// What happens to the address.
        role: HeapRole,
        /// The leaf whose values tell models apart: one for each value.
        by: Option<LeafRef>,
    },
}

/// A predictor of [`ModelKind::Values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predictor {
    /// What it goes on.
    pub kind: PredictorKind,
    /// The leaf whose last value is part of its context.
    pub by: Option<LeafRef>,
}

/// What a [`Predictor`] goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictorKind {
    /// The last 1 to 16 values: a candidate each.
    LastValue(u8),
    /// The last value plus the last difference: one candidate.
    Stride,
    /// What followed the last 1 to 3 values before: two candidates.
    Fcm(u8),
    /// The same with differences in place of values: two candidates.
    Dfcm(u8),
}

/// What happens to an address of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapRole {
    /// An object begins there.
    Allocated {
        /// The leaf with its size.
        size: LeafRef,
    },
    /// The object there ends.
    Freed,
    /// The object there is used and stays.
    Used,
}

/// One step of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExprOp {
    /// Push a number.
    Push(u64),
    /// Push the value of an earlier leaf.
    Leaf(u8),
    /// Add the two on top.
    Add,
    /// Subtract the top from the one below.
    Sub,
    /// Multiply the two on top.
    Mul,
    /// Divide the one below by the top, rounded down.
    Div,
    /// The remainder of that.
    Rem,
    /// This bit of the one on top.
    Bit(u8),
    /// 1 where the one below is the top, else 0.
    Eq,
    /// 1 where it is not, else 0.
    Ne,
    /// 1 where the one below is less than the top, else 0.
    Lt,
    /// 1 where it is not greater, else 0.
    Le,
    /// 1 where it is greater, else 0.
    Gt,
    /// 1 where it is not less, else 0.
    Ge,
}

/// One step of a record's layout, in the order of the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A numeric leaf (or the tag).
    Number(u8),
    /// A byte array.
    Bytes(u8),
    /// The steps up to (not with) `end` are repeated as often as the leaf `count` says.
    Repeat {
        /// Leaf that counts.
        count: u8,
        /// Index of the first step after the repetition.
        end: u16,
    },
}

/// Index of `comment` in [`Format::records`].
pub const COMMENT: u16 = 0;
/// Index of `section` in [`Format::records`].
pub const SECTION: u16 = 1;
/// Index of `metadata` in [`Format::records`].
pub const METADATA: u16 = 2;

impl Format {
    /// The tag of a record, by its index in [`Format::records`]; 0 of a stream element.
    #[must_use]
    pub fn tag(&self, record: u16) -> u32 {
        self.records.get(usize::from(record)).map_or(0, |record| record.tag)
    }

    /// Position in [`Format::sections`] of the section with this number.
    #[must_use]
    pub fn section_index(&self, number: u8) -> Option<usize> {
        self.sections.iter().position(|s| s.number == number)
    }

    /// Position in [`Format::sections`] of the section with this name.
    #[must_use]
    pub fn section_named(&self, name: &str) -> Option<usize> {
        self.sections.iter().position(|s| s.number != 0 && s.name == name)
    }
}

/// The place of the cursor of a reader (the index of a section; behind them, in the same order, of the sections' models) in a
/// stream section, given by its number.
pub(crate) fn slot(format: &Format, reader: usize, target: u8) -> Option<usize> {
    let numbers = streams(format);
    let (count, ordinal) = (numbers.clone().count(), numbers.clone().position(|n| n == target)?);
    Some(reader * count + ordinal)
}

/// The numbers of the stream sections.
pub(crate) fn streams(format: &Format) -> impl Iterator<Item = u8> + Clone + '_ {
    format.sections.iter().filter(|s| s.stream).map(|s| s.number)
}

/// A format that lives as long as the program (generated code), or as long as its users (parsed at run time).
#[derive(Clone, Debug)]
pub enum FormatRef {
    /// Generated.
    Static(&'static Format),
    /// Parsed.
    Shared(Arc<Format>),
}

impl Deref for FormatRef {
    type Target = Format;

    #[inline]
    fn deref(&self) -> &Format {
        match self {
            Self::Static(format) => format,
            Self::Shared(format) => format,
        }
    }
}

impl Leaf {
    /// Width the DTD gives a numeric leaf; 0 for others.
    #[must_use]
    pub fn width(&self) -> u8 {
        match self.kind {
            LeafKind::Number { width, .. } => width,
            _ => 0,
        }
    }

    /// Whether metadata may change this leaf (spec 4.1).
    #[must_use]
    pub fn is_settable(&self) -> bool {
        matches!(self.kind, LeafKind::Number { .. }) && self.constant.is_none()
    }
}

/// What a table holds, in constants, too, where `Cow` does not deref.
#[must_use]
#[allow(clippy::ptr_arg, reason = "this is the deref")]
pub(crate) const fn borrowed<'c, T: Clone>(cow: &'c Cow<'static, [T]>) -> &'c [T] {
    match cow {
        Cow::Borrowed(slice) => slice,
        Cow::Owned(vec) => vec.as_slice(),
    }
}

impl Record {
    /// Whether no leaf's value depends on records before it.
    #[must_use]
    pub fn is_stateless(&self) -> bool {
        self.leaves.iter().all(|leaf| match leaf.kind {
            LeafKind::Number { interpretation, .. } => matches!(
                interpretation,
                Interpretation::None
                    | Interpretation::BaseOffset(_)
                    | Interpretation::Default(_)
                    | Interpretation::SectionOffset(_)
            ),
            _ => true,
        })
    }

    /// Whether it is the record of all tags that no other record of its section has (spec 3.2).
    #[must_use]
    pub const fn is_catch_all(&self) -> bool {
        matches!(borrowed(&self.leaves), [Leaf { kind: LeafKind::AnyTag, .. }, ..])
    }

    /// The step of the layout that its values begin with: a tag that is always the same is none of them.
    #[inline]
    #[must_use]
    pub fn first_value(&self) -> usize {
        usize::from(matches!(*self.leaves, [Leaf { kind: LeafKind::Tag, .. }, ..]))
    }

    /// The leaf of a stream section of one numeric leaf that is not repeated (spec 3.5, 5.2).
    #[must_use]
    pub fn single_number(&self) -> Option<&Leaf> {
        match (&*self.steps, &*self.leaves) {
            ([Step::Number(0)], [leaf]) => Some(leaf),
            _ => None,
        }
    }
}

#[cfg(feature = "dynamic")]
mod from_dtd {
    use super::{
        Cow, ExprOp, Format, HeapRole, Interpretation, Leaf, LeafKind, LeafRef, Magic, Model, ModelKind, Predictor,
        PredictorKind, RawFile, RawStart, Record, Section, Step,
    };
    use metatf_parser::schema;

    impl Format {
        /// The tables of a parsed DTD.
        #[must_use]
        pub fn from_dtd(dtd: &schema::Dtd) -> Self {
            Self {
                dtd: Cow::Owned(dtd.text.clone()),
                fingerprint: dtd.fingerprint(),
                tag_width: dtd.tag_width,
                sections: dtd.sections.iter().map(section).collect(),
                records: dtd.records.iter().map(record).collect(),
                models: dtd.models.iter().map(model).collect(),
                expected: Cow::Borrowed(&[]),
                raw: dtd.raw_file().map(|file| raw_file(dtd, &file)),
            }
        }
    }

    fn raw_file(dtd: &schema::Dtd, file: &schema::RawFile) -> RawFile {
        let number = |id: schema::SectionId| dtd.sections.get(usize::from(id.0)).map_or(0, |s| s.number);
        let start = |start: &schema::RawStart| RawStart {
            section: number(start.section),
            record: index(start.record.0),
            magic: start
                .magic
                .iter()
                .map(|(leaf, values)| Magic { leaf: leaf.0, values: Cow::Owned(values.clone()) })
                .collect(),
            records_size: start.records_size.map(|leaf| leaf.0),
        };
        RawFile {
            starts: file.starts.iter().map(start).collect(),
            records: number(file.records),
            trailer: file.trailer.map(number),
        }
    }

    fn section(s: &schema::Section) -> Section {
        Section {
            number: s.number,
            name: Cow::Owned(s.name.clone().unwrap_or_default()),
            stream: s.stream.is_some(),
            records: s.records.iter().map(|id| index(id.0)).collect(),
            cells: s.cells.concat().into(),
            initials: Cow::Owned(s.cell_initials.clone()),
        }
    }

    /// The parser bounds the number of records far below 2^16.
    fn index(id: u32) -> u16 {
        u16::try_from(id).unwrap_or(u16::MAX)
    }

    fn record(r: &schema::Record) -> Record {
        let mut steps = Vec::new();
        layout(&r.items, &r.leaves, &mut steps);
        let earlier = r.earlier_paths();
        let was = |id: usize| earlier.iter().find(|(leaf, _)| usize::from(leaf.0) == id).map(|(_, paths)| &**paths);
        Record {
            name: Cow::Owned(r.name.clone()),
            was: owned(&r.was),
            tag: r.tag.unwrap_or(0),
            leaves: r.leaves.iter().enumerate().map(|(id, l)| leaf(r, (id, l), was(id).unwrap_or_default())).collect(),
            steps: Cow::Owned(steps),
        }
    }

    fn owned(names: &[String]) -> Cow<'static, [Cow<'static, str>]> {
        names.iter().map(|name| Cow::Owned(name.clone())).collect()
    }

    fn leaf(r: &schema::Record, (id, l): (usize, &schema::Leaf), was: &[String]) -> Leaf {
        use schema::Width;
        let kind = match &l.width {
            _ if l.is_tag() => LeafKind::Tag,
            _ if r.catch_all && id == 0 => LeafKind::AnyTag,
            _ if l.computed.is_some() => LeafKind::Computed(program(l.computed.as_ref())),
            Width::Unset => LeafKind::Number { width: 0, interpretation: interpretation(l.interpretation) },
            Width::Number(width) => {
                LeafKind::Number { width: *width, interpretation: interpretation(l.interpretation) }
            }
            Width::Array(n) => LeafKind::Array(*n),
            Width::Variable(expr) => LeafKind::Variable(program(Some(expr))),
            Width::Until(end) => LeafKind::Until(*end),
        };
        Leaf {
            field: Cow::Owned(l.name.clone()),
            path: Cow::Owned(l.path.join(".")),
            was: owned(was),
            kind,
            constant: if l.is_tag() { None } else { l.constant },
        }
    }

    fn interpretation(i: schema::Interpretation) -> Interpretation {
        use schema::Interpretation as I;
        match i {
            I::None => Interpretation::None,
            I::BaseOffset(b) => Interpretation::BaseOffset(b),
            I::BaseOffsetOf(r, l) => Interpretation::BaseOffsetOf(index(r.0), l.0),
            I::Delta(i) => Interpretation::Delta(i),
            I::Default(v) => Interpretation::Default(v),
            I::Stride { initial, stride } => Interpretation::Stride(initial, stride),
            I::SectionOffset(n) => Interpretation::SectionOffset(n),
            I::SectionStride { section, stride } => Interpretation::SectionStride(section, stride),
            I::Predicted(model) => Interpretation::Predicted(model.0),
        }
    }

    fn leaf_ref((record, leaf): (schema::RecordId, schema::LeafId)) -> LeafRef {
        (index(record.0), leaf.0)
    }

    fn model(model: &schema::Model) -> Model {
        let kind = match &model.kind {
            schema::ModelKind::Values(predictors) => ModelKind::Values(predictors.iter().map(predictor).collect()),
            schema::ModelKind::Heap { role, by } => {
                let role = match role {
                    schema::HeapRole::Allocated { size } => HeapRole::Allocated { size: leaf_ref(*size) },
                    schema::HeapRole::Freed => HeapRole::Freed,
                    schema::HeapRole::Used => HeapRole::Used,
                };
                ModelKind::Heap { role, by: by.map(leaf_ref) }
            }
        };
        Model { section: model.section, kind }
    }

    fn predictor(predictor: &schema::Predictor) -> Predictor {
        use schema::PredictorKind as P;
        let kind = match predictor.kind {
            P::LastValue(n) => PredictorKind::LastValue(n),
            P::Stride => PredictorKind::Stride,
            P::Fcm(order) => PredictorKind::Fcm(order),
            P::Dfcm(order) => PredictorKind::Dfcm(order),
        };
        Predictor { kind, by: predictor.by.map(leaf_ref) }
    }

    fn program(expression: Option<&schema::Expr>) -> Cow<'static, [ExprOp]> {
        expression.iter().flat_map(|e| &e.0).map(|op| expr_op(*op)).collect()
    }

    fn expr_op(op: schema::ExprOp) -> ExprOp {
        use schema::{Comparison, ExprOp as E};
        match op {
            E::Push(n) => ExprOp::Push(n),
            E::Leaf(l) => ExprOp::Leaf(l.0),
            E::Add => ExprOp::Add,
            E::Sub => ExprOp::Sub,
            E::Mul => ExprOp::Mul,
            E::Div => ExprOp::Div,
            E::Rem => ExprOp::Rem,
            E::Bit(bit) => ExprOp::Bit(bit),
            E::Compare(Comparison::Equal) => ExprOp::Eq,
            E::Compare(Comparison::NotEqual) => ExprOp::Ne,
            E::Compare(Comparison::Less) => ExprOp::Lt,
            E::Compare(Comparison::LessOrEqual) => ExprOp::Le,
            E::Compare(Comparison::Greater) => ExprOp::Gt,
            E::Compare(Comparison::GreaterOrEqual) => ExprOp::Ge,
        }
    }

    /// Items nest at most 32 deep (spec 3.5), so this recursion is bounded.
    fn layout(items: &[schema::Item], leaves: &[schema::Leaf], steps: &mut Vec<Step>) {
        use schema::{Item, Repeated};
        let one = |id: schema::LeafId| match leaves.get(usize::from(id.0)) {
            Some(leaf) if !leaf.is_numeric() => Step::Bytes(id.0),
            _ => Step::Number(id.0),
        };
        for item in items {
            match item {
                Item::Leaf(id) => steps.push(one(*id)),
                Item::Nested { items, .. } => layout(items, leaves, steps),
                Item::Repeat { count, body, .. } => {
                    let at = steps.len();
                    steps.push(Step::Repeat { count: count.0, end: 0 });
                    match body {
                        Repeated::Leaf(id) => steps.push(one(*id)),
                        Repeated::Group(items) | Repeated::Record { items, .. } => layout(items, leaves, steps),
                    }
                    let end = u16::try_from(steps.len()).unwrap_or(u16::MAX);
                    if let Some(step) = steps.get_mut(at) {
                        *step = Step::Repeat { count: count.0, end };
                    }
                }
            }
        }
    }
}
