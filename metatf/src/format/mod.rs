//! The tables that drive readers and writers. They contain the sections, records, leaves and layout programs of a DTD.
//!
//! Generated code contains a `static Format`. The dynamic reader creates a `Format` from a parsed DTD (feature
//! `dynamic`). The types use [`Cow`] so that they can be built in constants.
//!
//! This file is longer than most, to keep all the tables together: they refer to each other, and generated code uses
//! all of them.
//!
//! # Examples
//!
//! The DTD in this example declares the record `reading: (tag, time, vfield)`:
//!
//! ```
//! #[metatf_derive::metatf(dtd = "tests/dtds/good.dtd")]
//! mod readings {}
//! use metatf::format::{Interpretation, LeafKind};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let reading = readings::FORMAT.records.iter().find(|record| record.name == "reading").ok_or("no record")?;
//! let paths: Vec<&str> = reading.leaves.iter().map(|leaf| &*leaf.path).collect();
//! assert_eq!(paths, ["tag", "time", "vfield.length", "vfield.data"]);
//!
//! let time = &reading.leaves[1].kind;
//! assert!(matches!(time, LeafKind::Number { width: 4, interpretation: Interpretation::Delta(0) }));
//! # Ok(())
//! # }
//! ```

mod floor;
mod raw;
mod same;
mod steps;
mod tables;

pub use floor::Floor;
pub(crate) use floor::{floor, repeats};
pub use raw::{Magic, RawFile, RawStart};
pub(crate) use same::same_text;
pub use steps::Steps;
pub use tables::{Repeat, in_order, repeating};

use metatf_container::TimeLeaf;
use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

/// A trace format, which is the meaning of a DTD without its syntax.
#[derive(Clone, Debug)]
pub struct Format {
    /// The text of the DTD, which is embedded in traces (spec 5.2).
    pub dtd: Cow<'static, str>,
    /// A fingerprint of the DTD's meaning (`metatf_parser::Dtd::fingerprint`).
    pub fingerprint: u64,
    /// Size of a tag in bytes: 1, 2 or 4.
    pub tag_width: u8,
    /// The sections, starting with the global section.
    pub sections: Cow<'static, [Section]>,
    /// The records: `comment`, `section` and `metadata` (indices 0 to 2), then tagged records and stream elements.
    pub records: Cow<'static, [Record]>,
    /// The models of predicted leaves, one for each predicted leaf of each record.
    pub models: Cow<'static, [Model]>,
    /// The widths that generated code is optimized for, where they differ from the widths in the DTD. They affect only
    /// speed.
    pub expected: Cow<'static, [ExpectedWidth]>,
    /// The description of files without a header, or `None` if the DTD does not describe such files.
    pub raw: Option<RawFile>,
}

/// The width that most traces use for a numeric leaf, if it differs from the width in the DTD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedWidth {
    /// Index of the record in [`Format::records`].
    pub record: u16,
    /// Index of the leaf in the record.
    pub leaf: u8,
    /// Width in bytes, 0 to 8.
    pub width: u8,
}

/// A section, with the records that it may contain and the leaves that share a previous value.
#[derive(Clone, Debug)]
pub struct Section {
    /// Section number; 0 for the global section.
    pub number: u8,
    /// Section name; empty for the global section.
    pub name: Cow<'static, str>,
    /// Whether this is a stream section, whose only record is repeated without tags.
    pub stream: bool,
    /// Indices of the section's records in [`Format::records`].
    pub records: Cow<'static, [u16]>,
    /// For each leaf, the cell with its previous value, record by record in the order of `records`. The leaves of
    /// `section` and `metadata` have no cells.
    pub cells: Cow<'static, [u32]>,
    /// Initial value of each cell.
    pub initials: Cow<'static, [u64]>,
}

/// A tagged record, or the element of a stream section.
#[derive(Clone, Debug)]
pub struct Record {
    /// Name in the DTD.
    pub name: Cow<'static, str>,
    /// Names in earlier versions of the DTD.
    pub was: Cow<'static, [Cow<'static, str>]>,
    /// Tag value, or 0 for a stream element. For a catch-all record, the lowest tag that no other record of its
    /// sections uses; metadata records refer to the catch-all record by this tag.
    pub tag: u32,
    /// The leaves in byte order. Leaf 0 of a tagged record is its tag.
    pub leaves: Cow<'static, [Leaf]>,
    /// The layout of the record as a program.
    pub steps: Cow<'static, [Step]>,
    /// The leaf that contains the time of the record, for the times of groups (spec 5.2).
    pub time: Option<u8>,
}

/// A leaf as declared in its DTD.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// Field name in the DTD, which metadata with bit 3 refers to.
    pub field: Cow<'static, str>,
    /// Name used outside the DTD, which is a path from the record such as `box.point_2.x`.
    pub path: Cow<'static, str>,
    /// Paths in earlier versions of the DTD.
    pub was: Cow<'static, [Cow<'static, str>]>,
    /// The kind of number or byte array.
    pub kind: LeafKind,
    /// The value that the leaf must have in all records.
    pub constant: Option<u64>,
    /// The leaf of the file's header whose value is the initial `default` of this leaf in a raw stream (spec 5.4).
    pub header: Option<u8>,
}

/// The data that a leaf stores.
#[derive(Clone, Debug)]
pub enum LeafKind {
    /// The tag of a tagged record, which is constant.
    Tag,
    /// The tag of a catch-all record: any number that is not the tag of another record in its section.
    AnyTag,
    /// A number of `width` bytes (0 if the DTD specifies no width) read by `interpretation`.
    Number {
        /// Width in bytes, 0 to 8.
        width: u8,
        /// The rule that turns stored bytes into a value.
        interpretation: Interpretation,
    },
    /// A byte array of fixed length.
    Array(u32),
    /// A byte array whose length is the result of a postfix program.
    Variable(Cow<'static, [ExprOp]>),
    /// A byte array followed by this terminator (spec 3.2).
    Until(u8),
    /// A byte array that extends to the end of the content, except for the leaves after it (spec 3.2).
    Rest,
    /// A count that is the result of a postfix program and is not stored (spec 3.3).
    Computed(Cow<'static, [ExprOp]>),
    /// The number of items up to the first item after which the result of a postfix program is not 0. Without a
    /// program, the number of items up to the end of the content. The number is not stored (spec 3.3).
    Scanned(Cow<'static, [ExprOp]>),
}

/// An interpretation according to spec 4. Numbers are 64-bit two's complement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpretation {
    /// The stored integer.
    None,
    /// This base plus the stored integer.
    BaseOffset(u64),
    /// The last value of a leaf of the same section (record index, leaf) plus the stored integer.
    BaseOffsetOf(u16, u8),
    /// The previous value plus the stored integer. The argument is the initial previous value.
    Delta(u64),
    /// This value. Nothing is stored.
    Default(u64),
    /// The previous value plus a stride. The arguments are the initial previous value and the stride.
    Stride(u64, u64),
    /// An offset into a stream section's content.
    SectionOffset(u8),
    /// The element at the cursor of a stream section. The arguments are the section number and the number of elements
    /// by which the cursor advances.
    SectionStride(u8, u64),
    /// The number of the candidate that equals the value. The argument is the index of the model in [`Format::models`].
    Predicted(u16),
}

impl Interpretation {
    /// Returns whether the leaf stores bytes under this interpretation.
    #[must_use]
    pub const fn stores(self) -> bool {
        !matches!(self, Self::Default(_) | Self::Stride(..) | Self::SectionStride(..))
    }
}

/// The model of a predicted leaf. Every predicted leaf of every record has its own model, but leaves that share a
/// previous value also share the learned state of their models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Number of the stream section that contains the values that match no candidate.
    pub section: u8,
    /// The source of the candidates.
    pub kind: ModelKind,
}

/// A reference to a leaf, as the index of its record in [`Format::records`] and the index of the leaf in that record.
/// If the record contains the predicted leaf itself, the reference must be to an earlier leaf.
pub type LeafRef = (u16, u8);

/// The source of a [`Model`]'s candidates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelKind {
    /// Predictors for arbitrary numbers, in the order of their candidates.
    Values(Cow<'static, [Predictor]>),
    /// The live and freed objects of a heap.
    Heap {
        /// The effect on the object at the address.
        role: HeapRole,
        /// The leaf whose values distinguish contexts. Each context has its own model.
        by: Option<LeafRef>,
    },
}

/// A predictor in [`ModelKind::Values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predictor {
    /// The kind of predictor.
    pub kind: PredictorKind,
    /// The leaf whose last value is part of the predictor's context.
    pub by: Option<LeafRef>,
}

/// The kind of a [`Predictor`], which determines its candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictorKind {
    /// The last 1 to 16 values, with one candidate each.
    LastValue(u8),
    /// The last value plus the last difference, with one candidate.
    Stride,
    /// The values that previously followed the same last 1 to 3 values, with two candidates.
    Fcm(u8),
    /// Like `Fcm`, but with differences instead of values.
    Dfcm(u8),
}

/// The effect on the object at a heap address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapRole {
    /// An object begins at the address.
    Allocated {
        /// The leaf that contains the object's size.
        size: LeafRef,
    },
    /// The object at the address is freed.
    Freed,
    /// The object at the address is used and stays live.
    Used,
}

/// A step of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExprOp {
    /// Pushes a number.
    Push(u64),
    /// Pushes the value of an earlier leaf.
    Leaf(u8),
    /// Adds the two top values.
    Add,
    /// Subtracts the top value from the value below it.
    Sub,
    /// Multiplies the two top values.
    Mul,
    /// Divides the value below the top by the top value, rounding down.
    Div,
    /// Computes the remainder of dividing the value below the top by the top value.
    Rem,
    /// Extracts this bit of the top value.
    Bit(u8),
    /// Pushes 1 if the value below the top equals the top value, otherwise 0.
    Eq,
    /// Pushes 1 if the value below the top differs from the top value, otherwise 0.
    Ne,
    /// Pushes 1 if the value below the top is less than the top value, otherwise 0.
    Lt,
    /// Pushes 1 if the value below the top is less than or equal to the top value, otherwise 0.
    Le,
    /// Pushes 1 if the value below the top is greater than the top value, otherwise 0.
    Gt,
    /// Pushes 1 if the value below the top is greater than or equal to the top value, otherwise 0.
    Ge,
}

/// A step of a record's layout. Steps are listed in the order in which their bytes are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A numeric leaf (or the tag).
    Number(u8),
    /// A byte array.
    Bytes(u8),
    /// Repeats the steps before `end` as often as the value of the leaf `count`.
    Repeat {
        /// The leaf that contains the count.
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
    /// Returns the tag of the record with this index in [`Format::records`], or 0 for a stream element.
    #[must_use]
    pub fn tag(&self, record: u16) -> u32 {
        self.records.get(usize::from(record)).map_or(0, |record| record.tag)
    }

    /// Returns the index in [`Format::sections`] of the section with this number.
    #[must_use]
    pub fn section_index(&self, number: u8) -> Option<usize> {
        self.sections.iter().position(|s| s.number == number)
    }

    /// Returns the leaves that contain the times of records, for the times of groups (spec 5.2).
    pub(crate) fn time_leaves(&self) -> Vec<TimeLeaf> {
        let sections = self.sections.iter().filter(|section| !section.stream);
        let leaf = |section: u8, record: u16| {
            let record = self.records.get(usize::from(record)).filter(|record| !record.is_catch_all())?;
            record.time.map(|leaf| TimeLeaf { section, tag: record.tag, leaf })
        };
        sections.flat_map(|s| s.records.iter().filter_map(move |record| leaf(s.number, *record))).collect()
    }

    /// Returns the index in [`Format::sections`] of the section with this name.
    #[must_use]
    pub fn section_named(&self, name: &str) -> Option<usize> {
        self.sections.iter().position(|s| s.number != 0 && s.name == name)
    }
}

/// Returns the slot of a reader's cursor in stream section number `target`. A reader is a section or the models of a
/// section: `reader` is the section's index or, for its models, that index plus the number of sections.
pub(crate) fn slot(format: &Format, reader: usize, target: u8) -> Option<usize> {
    let numbers = streams(format);
    let (count, ordinal) = (numbers.clone().count(), numbers.clone().position(|n| n == target)?);
    Some(reader * count + ordinal)
}

/// Returns the numbers of the stream sections.
pub(crate) fn streams(format: &Format) -> impl Iterator<Item = u8> + Clone + '_ {
    format.sections.iter().filter(|s| s.stream).map(|s| s.number)
}

/// A format that either has static lifetime (generated code) or is shared by its users (parsed at run time).
#[derive(Clone, Debug)]
pub enum FormatRef {
    /// A generated format.
    Static(&'static Format),
    /// A parsed format.
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
    /// Returns the DTD's width for a numeric leaf, or 0 for any other leaf.
    #[must_use]
    pub fn width(&self) -> u8 {
        match self.kind {
            LeafKind::Number { width, .. } => width,
            _ => 0,
        }
    }

    /// Returns whether metadata may change this leaf (spec 4.1).
    #[must_use]
    pub fn is_settable(&self) -> bool {
        matches!(self.kind, LeafKind::Number { .. }) && self.constant.is_none()
    }
}

/// Returns the contents of a table. Also works in constants, where `Cow` cannot be dereferenced.
#[must_use]
#[allow(clippy::ptr_arg, reason = "this function replaces the dereference")]
pub(crate) const fn borrowed<'c, T: Clone>(cow: &'c Cow<'static, [T]>) -> &'c [T] {
    match cow {
        Cow::Borrowed(slice) => slice,
        Cow::Owned(vec) => vec.as_slice(),
    }
}

impl Record {
    /// Returns whether no leaf's value depends on earlier records.
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

    /// Returns whether this is the catch-all record, which accepts all tags that no other record of its section uses
    /// (spec 3.2).
    #[must_use]
    pub const fn is_catch_all(&self) -> bool {
        matches!(borrowed(&self.leaves), [Leaf { kind: LeafKind::AnyTag, .. }, ..])
    }

    /// Returns the index of the first step that produces a value, skipping a constant tag.
    #[inline]
    #[must_use]
    pub fn first_value(&self) -> usize {
        usize::from(matches!(*self.leaves, [Leaf { kind: LeafKind::Tag, .. }, ..]))
    }

    /// Returns whether the record ends its content, because a byte array or its items extend to the end.
    pub(crate) fn ends_content(&self) -> bool {
        self.leaves.iter().any(|leaf| match &leaf.kind {
            LeafKind::Rest => true,
            LeafKind::Scanned(until) => until.is_empty(),
            _ => false,
        })
    }

    /// Returns whether the record contains items that end after one of them, or at the end of the content.
    pub(crate) fn scans(&self) -> bool {
        self.leaves.iter().any(|leaf| matches!(leaf.kind, LeafKind::Scanned(_)))
    }

    /// Returns the leaf of a stream section element that consists of a single, unrepeated number (spec 3.5, 5.2).
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
        /// Creates the tables for a parsed DTD.
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

    /// The parser limits the number of records to far less than 2^16.
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
            time: r.time().map(|leaf| leaf.0),
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
            _ if l.computed.is_some() => match l.computed.as_ref().map(|count| count.0.as_slice()) {
                Some([schema::ExprOp::Rest]) => LeafKind::Scanned(Cow::Borrowed(&[])),
                Some([until @ .., schema::ExprOp::Until]) => LeafKind::Scanned(steps(until)),
                _ => LeafKind::Computed(program(l.computed.as_ref())),
            },
            Width::Unset => LeafKind::Number { width: 0, interpretation: interpretation(l.interpretation) },
            Width::Number(width) => {
                LeafKind::Number { width: *width, interpretation: interpretation(l.interpretation) }
            }
            Width::Array(n) => LeafKind::Array(*n),
            Width::Variable(expr) => LeafKind::Variable(program(Some(expr))),
            Width::Until(end) => LeafKind::Until(*end),
            Width::Rest => LeafKind::Rest,
        };
        Leaf {
            field: Cow::Owned(l.name.clone()),
            path: Cow::Owned(l.path.join(".")),
            was: owned(was),
            kind,
            constant: if l.is_tag() { None } else { l.constant },
            header: l.header.map(|(_, leaf)| leaf.0),
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
        steps(expression.map_or(&[], |expression| &expression.0))
    }

    fn steps(steps: &[schema::ExprOp]) -> Cow<'static, [ExprOp]> {
        steps.iter().filter_map(|op| expr_op(*op)).collect()
    }

    /// Returns the step of a program, or `None` for a marker of [`LeafKind::Scanned`].
    fn expr_op(op: schema::ExprOp) -> Option<ExprOp> {
        use schema::{Comparison, ExprOp as E};
        Some(match op {
            E::Rest | E::Until => return None,
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
        })
    }

    /// Recursion is bounded, because items nest at most 32 levels deep (spec 3.5).
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
