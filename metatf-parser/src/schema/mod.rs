//! The resolved schema of a DTD, as used by all other crates.
//!
//! Names are resolved, properties are inherited, and records are flattened into leaves. The schema contains no syntax
//! and no source locations, which only diagnostics within this crate use.
//!
//! # Examples
//!
//! ```
//! use metatf_parser::schema::{Interpretation, Width};
//!
//! let text = b"section heap 1 {
//!     alloc: (tag, address, size) { tag.value = 4; address.width = 2; address.interpretation = delta 4096;
//!                                   size.width = 4; size.interpretation = none; }
//! }";
//! let dtd = metatf_parser::parse("heap.dtd", text).dtd.ok_or("the DTD has errors")?;
//! let heap = dtd.section(1).ok_or("no section")?;
//! let (_, alloc) = dtd.tagged(heap, 4).ok_or("no record")?;
//! let (_, address) = alloc.leaf_at(&["address"]).ok_or("no field")?;
//! assert_eq!(address.width, Width::Number(2));
//! assert_eq!(address.interpretation, Interpretation::Delta(4096));
//! assert_eq!(dtd.interpretation_text(alloc, address), "delta 4096");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod date;
mod earlier;
mod interpretation;
mod meaning;
mod names;
mod occurrence;
mod printed;
mod raw;
mod text;
mod version;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use interpretation::listed_words;
pub use interpretation::{Argument, Interpretation, InterpretationWord, Parts};
pub use names::{Bits, NameList, Names, changes_direction};
pub(crate) use names::{ListError, is_hexadecimal, parse as parse_names};
pub use occurrence::Occurrence;
pub use raw::{MAGIC, RECORDS_SIZE, RawFile, RawStart, TRAILER};
pub(crate) use text::expression_text;
pub use version::Version;

/// Index of a section in [`Dtd::sections`]. Index 0 is the global section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectionId(pub u16);

/// Index of a record in [`Dtd::records`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(pub u32);

/// Index of a leaf in its tagged or stream record (spec 4.1 `field`). In a tagged record, `tag` has index 0. At most
/// 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeafId(pub u8);

/// A resolved DTD without errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dtd {
    /// The DTD's source text as embedded in traces, without a byte-order mark.
    pub text: String,
    /// The comment at the head of the DTD, if any.
    pub doc: Option<String>,
    /// The size of a tag in bytes: 1, 2 or 4.
    pub tag_width: u8,
    /// The sections. Index 0 is the global section, and the other sections follow in DTD order.
    pub sections: Vec<Section>,
    /// The *top* records: every tagged record and every element of a stream section, starting with the predefined
    /// records (`comment`, `section`, `metadata`). Records that are only nested appear as an [`Item::Nested`] of the
    /// top records.
    pub records: Vec<Record>,
    /// The models of predicted leaves: one model for each predicted leaf of each record, in the order of the leaves.
    pub models: Vec<Model>,
}

/// Index of a model in [`Dtd::models`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelId(pub u16);

/// A section of the trace: the records it may contain and the layout of their state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// The number: 1 to 255, or 0 for the global section.
    pub number: u8,
    /// The name; `None` for the global section.
    pub name: Option<String>,
    /// The doc comment.
    pub doc: Option<String>,
    /// The element, if this is a stream section (spec 3.4).
    pub stream: Option<RecordId>,
    /// The records that this section may contain. A stream section contains only its element. Any other section may
    /// contain `comment`, `section` and `metadata` (always IDs 0, 1 and 2), the global tagged records, and its own
    /// tagged records in DTD order.
    pub records: Vec<RecordId>,
    /// For each of the [`records`](Self::records), the cells that store the *previous* values of its leaves (spec 4).
    /// Leaves that share a previous value share a cell. The lists for `section` and `metadata` are empty, because their
    /// leaves have no cells.
    pub cells: Vec<Vec<u32>>,
    /// The initial value of each cell, as set by its delta or stride leaves, or 0 by default.
    pub cell_initials: Vec<u64>,
}

/// A tagged record or the element of a stream section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The name in the DTD.
    pub name: String,
    /// The section whose definitions list the record; `None` for global and predefined records.
    pub section: Option<SectionId>,
    /// The tag value; `None` for a stream element. For a catch-all record, this is the lowest value that no other
    /// record of its sections uses; metadata records refer to the catch-all record by this value.
    pub tag: Option<u32>,
    /// Whether this is the catch-all record, which matches all tags not used by another record of its sections (spec
    /// 3.2). The first leaf of a catch-all record is the stored number, which is not a [tag](Leaf::is_tag).
    pub catch_all: bool,
    /// The record's names in earlier versions of the DTD.
    pub was: Vec<String>,
    /// The doc comment.
    pub doc: Option<String>,
    /// The layout in byte order. A tagged record starts with its tag (leaf 0).
    pub items: Vec<Item>,
    /// The leaves in byte order. A leaf inside a repetition occurs only once.
    pub leaves: Vec<Leaf>,
}

/// An item of a record's layout. Groups that are not repeated have been flattened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A single leaf.
    Leaf(LeafId),
    /// A nested untagged record.
    Nested {
        /// The JSON key, which is also the basis of the name in generated code: the record's name, or `name_2` for the
        /// second occurrence.
        key: String,
        /// The name of the untagged record in the DTD (`vfield` for the predefined record).
        record: String,
        /// The doc comment of the untagged record.
        doc: Option<String>,
        /// The record's layout at this place.
        items: Vec<Item>,
    },
    /// A repetition. Its `count` is an earlier leaf. If the count is stored in place or is an
    /// [expression](Leaf::computed), it directly precedes the repetition as an [`Item::Leaf`].
    Repeat {
        /// The leaf that stores the count.
        count: LeafId,
        /// The JSON key, which is the name that the DTD gives the repetition or, without such a name, the key of the
        /// leaf or nested record. A group without a name has the key `<count>_items`, or `items` if the count is an
        /// expression. If a leaf is repeated, this is also the leaf's own key.
        key: String,
        /// The repeated part.
        body: Repeated,
    },
}

/// The repeated part of a repetition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repeated {
    /// A leaf, printed as an array of values.
    Leaf(LeafId),
    /// A group, printed as an array of objects.
    Group(Vec<Item>),
    /// A nested record, printed as an array of objects, or for `vfield` as an array of its data.
    Record {
        /// The name of the untagged record in the DTD.
        record: String,
        /// The doc comment of the untagged record.
        doc: Option<String>,
        /// The record's layout at this place.
        items: Vec<Item>,
    },
}

/// A leaf, which is the unit that has a width, an interpretation and state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The name of the field in the DTD.
    pub name: String,
    /// The name used outside the DTD, such as `address_2` for the second `address` of an object, or the name of the
    /// leaf's repetition (spec 3.1, 8).
    pub key: String,
    /// The keys from the top record down to this leaf, inclusive (`["box", "point", "x"]`).
    pub path: Vec<String>,
    /// The number of stored bytes, as declared in the DTD.
    pub width: Width,
    /// The interpretation of the stored bytes, as declared in the DTD.
    pub interpretation: Interpretation,
    /// The field of the header of a file without a header of Meta-TF whose value is the [`Interpretation::Default`] of
    /// this leaf (spec 5.4).
    pub header: Option<(RecordId, LeafId)>,
    /// The value of a constant (spec 3.2), which must be the same in every record.
    pub constant: Option<u64>,
    /// The expression of a computed count (spec 3.3). Such a leaf stores nothing, and its name is the expression in
    /// parentheses.
    pub computed: Option<Expr>,
    /// The format in which tools print the value.
    pub format: Format,
    /// The names of the leaf's values or bits.
    pub names: Names,
    /// The field's names in earlier versions of the DTD.
    pub was: Vec<String>,
    /// The number of the nested section, if the byte array contains records of that section (spec 3.7).
    pub section: Option<u8>,
    /// The unit for documentation and exports.
    pub unit: Option<String>,
    /// The `doc` property or the doc comment.
    pub doc: Option<String>,
    /// Annotations, which are properties unknown to the specification and the tools, with their values as written.
    pub annotations: BTreeMap<String, String>,
    /// Whether the leaf is inside a repetition or an optional item; see [`Record::occurrence`].
    pub repeated: bool,
    /// The scope that sets `width`; `None` if no scope sets it.
    pub width_origin: Option<Origin>,
    /// The scope that sets `interpretation`.
    pub interpretation_origin: Origin,
}

impl Leaf {
    /// Checks whether this is the tag of a tagged record, which never changes. (In a catch-all record, the tag is an
    /// ordinary field.)
    #[must_use]
    pub fn is_tag(&self) -> bool {
        self.interpretation_origin == Origin::Tag
    }

    /// Checks whether the value follows from the DTD or from other fields, as for a constant, a tag or a computed
    /// count.
    #[must_use]
    pub fn is_implied(&self) -> bool {
        self.constant.is_some() || self.computed.is_some() || self.is_tag()
    }

    /// Checks whether the value is the time of its record, according to the annotation `role` or, if there is none,
    /// `source`.
    #[must_use]
    pub fn is_time(&self) -> bool {
        let source = || self.annotations.get("source").is_some_and(|text| text.trim_matches('"') == "clock");
        self.role().map_or_else(source, |role| role == "time")
    }

    /// Checks whether the value is a number rather than a byte array.
    #[must_use]
    pub fn is_numeric(&self) -> bool {
        matches!(self.width, Width::Unset | Width::Number(_))
    }

    /// Returns the nanoseconds per unit of the leaf's format or, failing that, of its `unit`. Returns `None` if the
    /// leaf has neither, or if the unit is not a unit of time.
    #[must_use]
    pub fn nanoseconds(&self) -> Option<u64> {
        let unit = match self.format {
            Format::DateNs => "ns",
            Format::TimeUs | Format::DateUs => "us",
            Format::DateMs => "ms",
            Format::TimeS | Format::DateS => "s",
            _ => "",
        };
        match self.unit.as_deref().unwrap_or(unit) {
            "ns" | "nanosecond" | "nanoseconds" => Some(1),
            "us" | "µs" | "microsecond" | "microseconds" => Some(1_000),
            "ms" | "millisecond" | "milliseconds" => Some(1_000_000),
            "s" | "second" | "seconds" => Some(1_000_000_000),
            _ => None,
        }
    }
}

/// The width of a leaf in the DTD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Width {
    /// No width, which is allowed only for interpretations that store nothing.
    Unset,
    /// A numeric leaf of 0 to 8 bytes.
    Number(u8),
    /// An opaque byte array of 1 to 2^32-1 bytes.
    Array(u32),
    /// A byte array whose length is computed for each record.
    Variable(Expr),
    /// A byte array that ends before this terminator byte. The terminator is stored after the array and is not part of
    /// it.
    Until(u8),
    /// A byte array that extends to the end of the content that contains the record, except for the leaves after the
    /// array, whose sizes are fixed.
    Rest,
}

/// An expression in postfix order, evaluated from left to right with a stack. If a result is below 0 or above 2^64-1 at
/// any step, the trace is invalid (spec 3.2).
///
/// # Examples
///
/// ```
/// use metatf_parser::schema::{Expr, ExprOp, LeafId};
///
/// // `(length.value + 1) % 8`, where `length` is leaf 1.
/// let steps = [ExprOp::Leaf(LeafId(1)), ExprOp::Push(1), ExprOp::Add, ExprOp::Push(8), ExprOp::Rem];
/// assert_eq!(Expr(steps.to_vec()).most(), 7);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr(pub Vec<ExprOp>);

/// A step of an [`Expr`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExprOp {
    /// Pushes a number.
    Push(u64),
    /// Pushes the value of an earlier leaf of the same record. For a repeated leaf, this is the value read last.
    Leaf(LeafId),
    /// Pops two numbers and pushes their sum.
    Add,
    /// Pops two numbers and pushes the first minus the second.
    Sub,
    /// Pops two numbers and pushes their product.
    Mul,
    /// Pops two numbers and pushes the quotient of the first by the second, rounded down.
    Div,
    /// Pops two numbers and pushes the remainder of the first by the second.
    Rem,
    /// Pops a number and pushes the value, 0 or 1, of its bit with this index.
    Bit(u8),
    /// Pops two numbers and pushes 1 if the comparison of the first with the second holds, otherwise 0.
    Compare(Comparison),
    /// The only step of a [count](Leaf::computed): the number of items that fill the rest of the content.
    Rest,
    /// The last step of a [count](Leaf::computed): the number of items up to the first item after which the number
    /// computed by the preceding steps is not 0.
    Until,
}

/// A comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Comparison {
    /// All comparisons with their signs.
    const SIGNS: [(Comparison, &str); 6] = [
        (Comparison::Equal, "=="),
        (Comparison::NotEqual, "!="),
        (Comparison::Less, "<"),
        (Comparison::LessOrEqual, "<="),
        (Comparison::Greater, ">"),
        (Comparison::GreaterOrEqual, ">="),
    ];

    /// Returns the comparison with this sign.
    pub(crate) fn signed(sign: &str) -> Option<Comparison> {
        Comparison::SIGNS.iter().find(|(_, s)| *s == sign).map(|(comparison, _)| *comparison)
    }

    /// Returns the sign of the comparison.
    #[must_use]
    pub fn sign(self) -> &'static str {
        Comparison::SIGNS.iter().find(|(comparison, _)| *comparison == self).map_or("", |(_, sign)| sign)
    }

    /// Checks whether the comparison holds for two numbers.
    #[must_use]
    pub fn holds(self, a: u64, b: u64) -> bool {
        match self {
            Comparison::Equal => a == b,
            Comparison::NotEqual => a != b,
            Comparison::Less => a < b,
            Comparison::LessOrEqual => a <= b,
            Comparison::Greater => a > b,
            Comparison::GreaterOrEqual => a >= b,
        }
    }
}

impl Expr {
    /// Returns an upper bound of the expression's value (spec 3.3).
    #[must_use]
    pub fn most(&self) -> u64 {
        let mut stack = Vec::new();
        for op in &self.0 {
            let most = match *op {
                ExprOp::Push(number) => number,
                ExprOp::Leaf(_) | ExprOp::Rest => u64::MAX,
                ExprOp::Until => {
                    stack.pop();
                    u64::MAX
                }
                ExprOp::Bit(_) => {
                    stack.pop();
                    1
                }
                ExprOp::Compare(_) => {
                    stack.pop();
                    stack.pop();
                    1
                }
                ExprOp::Add | ExprOp::Sub | ExprOp::Mul | ExprOp::Div | ExprOp::Rem => {
                    let (b, a): (Option<u64>, Option<u64>) = (stack.pop(), stack.pop());
                    let (a, b) = (a.unwrap_or(u64::MAX), b.unwrap_or(u64::MAX));
                    match op {
                        ExprOp::Add => a.saturating_add(b),
                        ExprOp::Mul => a.saturating_mul(b),
                        ExprOp::Rem => a.min(b.saturating_sub(1)),
                        _ => a,
                    }
                }
            };
            stack.push(most);
        }
        stack.pop().unwrap_or(u64::MAX)
    }
}

/// The revision of the prediction rules that this version supports, for both kinds of models (spec 4.2). Any change to
/// the predictions for a trace requires a new revision.
pub const MODEL_REVISION: u64 = 1;

/// The model of a predicted leaf. Every predicted leaf of every record has a separate model, because a model refers to
/// other leaves of the same record. Leaves that share a previous value (a cell of [`Section::cells`]) also share the
/// learned state of their models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// The number of the stream section that stores the values not matched by any candidate.
    pub section: u8,
    /// The source of the candidates.
    pub kind: ModelKind,
}

/// The source of a [`Model`]'s candidates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelKind {
    /// Predictors for arbitrary numbers, in the order of their candidates.
    Values(Vec<Predictor>),
    /// The live and the freed objects of a heap.
    Heap {
        /// The action on the address.
        role: HeapRole,
        /// A leaf, such as a thread or an arena, whose value selects the heap's context. Each value has a separate
        /// context.
        by: Option<(RecordId, LeafId)>,
    },
}

/// A predictor of [`ModelKind::Values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predictor {
    /// The kind of predictor.
    pub kind: PredictorKind,
    /// The leaf whose last value is part of the predictor's context.
    pub by: Option<(RecordId, LeafId)>,
}

/// The kind of a [`Predictor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictorKind {
    /// Predicts each of the last 1 to 16 values, with one candidate per value.
    LastValue(u8),
    /// Predicts the last value plus the last difference, with one candidate.
    Stride,
    /// Predicts the values that followed earlier occurrences of the last 1 to 3 values (a finite context), with two
    /// candidates.
    Fcm(u8),
    /// Works like `Fcm` on differences instead of values, with two candidates.
    Dfcm(u8),
}

impl PredictorKind {
    /// Returns the number of candidates.
    #[must_use]
    pub fn candidates(self) -> u8 {
        match self {
            PredictorKind::LastValue(n) => n,
            PredictorKind::Stride => 1,
            PredictorKind::Fcm(_) | PredictorKind::Dfcm(_) => 2,
        }
    }
}

/// The action on a heap address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapRole {
    /// An object is allocated at the address.
    Allocated {
        /// The leaf that stores the object's size.
        size: (RecordId, LeafId),
    },
    /// The object at the address is freed.
    Freed,
    /// The object at the address is used and remains live.
    Used,
}

/// Defines [`Format`] from the table below.
macro_rules! formats {
    ($($variant:ident = $name:literal, $doc:literal;)*) => {
        /// The format in which tools print a value (spec 3, property `format`).
        ///
        /// # Examples
        ///
        /// ```
        /// use metatf_parser::schema::Format;
        ///
        /// let mut text = String::new();
        /// Format::DurationNs.write_number(&mut text, 1_500);
        /// assert_eq!(text, "1.5us");
        /// assert_eq!(Format::Ipv4.number_of_word("127.0.0.1"), Some(0x7f00_0001));
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        pub enum Format {
            /// No format. Numbers are printed in decimal, and bytes in hexadecimal. (The text of `comment` is
            /// predefined as [`Format::Utf8`].)
            #[default]
            Unset,
            $(#[doc = $doc] $variant,)*
        }

        impl Format {
            /// All formats available in a DTD.
            pub const ALL: &[Format] = &[$(Format::$variant),*];

            /// Returns a sentence that describes the output.
            #[must_use]
            pub const fn doc(self) -> &'static str {
                match self {
                    Format::Unset => "Numbers in decimal, bytes in hexadecimal.",
                    $(Format::$variant => $doc,)*
                }
            }

            /// Returns the name in a DTD, or an empty string for [`Format::Unset`].
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    Format::Unset => "",
                    $(Format::$variant => $name,)*
                }
            }
        }
    };
}

formats! {
    Dec = "dec", "Decimal.";
    Hex = "hex", "Hexadecimal (a plain integer in JSON).";
    Signed = "signed", "Two's complement of the 64-bit value.";
    F32 = "f32", "The bits of an IEEE 754 single.";
    F64 = "f64", "The bits of an IEEE 754 double.";
    Utf8 = "utf8", "Text.";
    CString = "cstring", "Text up to the first zero byte.";
    Bytes = "bytes", "Hex string.";
    TimeNs = "time_ns", "A time in nanoseconds, shown in seconds.";
    TimeUs = "time_us", "A time in microseconds, shown in seconds.";
    TimeS = "time_s", "A time in seconds.";
    DateNs = "date_ns", "Nanoseconds since 1970, shown as a date.";
    DateUs = "date_us", "Microseconds since 1970, shown as a date.";
    DateMs = "date_ms", "Milliseconds since 1970, shown as a date.";
    DateS = "date_s", "Seconds since 1970, shown as a date.";
    DurationNs = "duration_ns", "A duration in nanoseconds, shown in a suitable unit.";
    Bool = "bool", "False for 0, true for 1.";
    Chars = "chars", "Characters, the first in the most significant byte.";
    CharsLe = "chars_le", "Characters, the first in the least significant byte.";
    Char = "char", "A Unicode character.";
    Ipv4 = "ipv4", "An IPv4 address.";
    Ipv6 = "ipv6", "An IPv6 address.";
    Uuid = "uuid", "A UUID.";
}

impl Format {
    /// Returns the format with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Format> {
        Format::ALL.iter().copied().find(|format| format.name() == name)
    }
}

/// The origin of a leaf's property, as the scope that sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// No scope, because the leaf is a tag.
    Tag,
    /// The block of the record with this name (top, nested or predefined).
    Block(Arc<str>),
    /// The definitions of a section.
    Section(SectionId),
    /// The top level of the DTD.
    Global,
}

/// The ID of `comment`. The three predefined tagged records have fixed positions in [`Dtd::records`].
pub const COMMENT: RecordId = RecordId(0);
/// The ID of `section`; see [`COMMENT`].
pub const SECTION: RecordId = RecordId(1);
/// The ID of `metadata`; see [`COMMENT`]. The width of its `value` leaf depends on the trace (spec 4.1); the schema
/// lists one `value` leaf of width 4 or 8.
pub const METADATA: RecordId = RecordId(2);

impl Dtd {
    /// Returns the record with this ID.
    #[must_use]
    pub fn record(&self, id: RecordId) -> Option<&Record> {
        self.records.get(id.0 as usize)
    }

    /// Returns the section with this number (0 is the global section).
    #[must_use]
    pub fn section(&self, number: u8) -> Option<&Section> {
        self.sections.iter().find(|s| s.number == number)
    }

    /// Returns the section with this name.
    #[must_use]
    pub fn section_named(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|s| s.name.as_deref() == Some(name))
    }

    /// Returns the record of this name that a section may contain, including predefined records.
    #[must_use]
    pub fn find_record(&self, section: &Section, name: &str) -> Option<&Record> {
        section.records.iter().filter_map(|id| self.record(*id)).find(|record| record.name == name)
    }

    /// Returns the record with this tag in a section, or else the catch-all record, together with the record's ID.
    #[must_use]
    pub fn tagged(&self, section: &Section, tag: u32) -> Option<(RecordId, &Record)> {
        let mut records = section.records.iter().filter_map(|id| Some((*id, self.record(*id)?)));
        let found = records.clone().find(|(_, r)| r.tag == Some(tag));
        found.or_else(|| records.find(|(_, r)| r.catch_all))
    }
}

impl Record {
    /// Returns the leaf with this index.
    #[must_use]
    pub fn leaf(&self, id: LeafId) -> Option<&Leaf> {
        self.leaves.get(usize::from(id.0))
    }

    /// Checks whether the counted item is optional, which means that its count is an expression with a maximum of 1
    /// (spec 3.3).
    #[must_use]
    pub fn is_optional(&self, count: LeafId) -> bool {
        self.leaf(count).and_then(|leaf| leaf.computed.as_ref()).is_some_and(|expression| expression.most() <= 1)
    }

    /// Returns the first leaf that makes the record's end depend on its content: a byte array that extends to the end,
    /// or the count of items that end by their content.
    #[must_use]
    pub fn ends_by_content(&self) -> Option<&Leaf> {
        self.leaves.iter().find(|leaf| {
            let count = leaf.computed.as_ref().and_then(|count| count.0.last());
            leaf.width == Width::Rest || matches!(count, Some(ExprOp::Rest | ExprOp::Until))
        })
    }

    /// Returns the leaf whose values are recorded as the times of groups (spec 5.2), which is the first leaf that
    /// [contains times](Leaf::is_time). Returns `None` if the values of that leaf are not unsigned integers, or if they
    /// are repeated or computed.
    #[must_use]
    pub fn time(&self) -> Option<LeafId> {
        let (id, leaf) = (0..=u8::MAX).map(LeafId).zip(&self.leaves).find(|(_, leaf)| leaf.is_time())?;
        let is_stored = leaf.is_numeric() && leaf.computed.is_none() && !leaf.is_tag() && !leaf.repeated;
        (is_stored && leaf.format != Format::Signed && !leaf.format.is_float()).then_some(id)
    }

    /// Returns the leaf with this path of keys (`["vfield", "data"]`).
    #[must_use]
    pub fn leaf_at(&self, path: &[&str]) -> Option<(LeafId, &Leaf)> {
        (0..=u8::MAX).map(LeafId).zip(&self.leaves).find(|(_, leaf)| leaf.path == path)
    }
}
