//! The resolved schema of a DTD: what every other crate reads.
//!
//! Names are looked up, properties are inherited, records are flattened into leaves; no spans, no syntax. All text
//! positions of a DTD stay inside this crate (diagnostics).

mod date;
mod earlier;
mod interpretation;
mod meaning;
mod names;
mod printed;
mod raw;
mod text;
mod version;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use interpretation::listed_words;
pub use interpretation::{Argument, Interpretation, InterpretationWord, Parts};
pub use names::{Bits, NameList, Names, changes_direction};
pub(crate) use names::{ListError, parse as parse_names};
pub use raw::{MAGIC, RECORDS_SIZE, RawFile, RawStart, TRAILER};
pub(crate) use text::expression_text;
pub use version::Version;

/// Index of a section in [`Dtd::sections`]. Index 0 is the global section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectionId(pub u16);

/// Index of a record in [`Dtd::records`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(pub u32);

/// Index of a leaf in its tagged or stream record, `tag` being 0 in a tagged record (spec 4.1 `field`). At most 255.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeafId(pub u8);

/// A resolved DTD without errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dtd {
    /// The DTD's source text, as it is embedded in traces (without a byte-order mark).
    pub text: String,
    /// The comment at the head of the DTD, if there is one.
    pub doc: Option<String>,
    /// Bytes of a tag: 1, 2 or 4.
    pub tag_width: u8,
    /// Index 0 is the global section; the others in the order of the DTD.
    pub sections: Vec<Section>,
    /// The *top* records: every tagged record and every stream section's element, predefined ones (`comment`,
    /// `section`, `metadata`) first. Records that are only nested appear as [`Item::Nested`] inside these.
    pub records: Vec<Record>,
    /// What predicted leaves are predicted by: one for each such leaf of a record, in their order.
    pub models: Vec<Model>,
}

/// Index of a model in [`Dtd::models`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModelId(pub u16);

/// A section of the trace: which records may stand in it, and how their state is laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// 1 to 255; 0 for the global section.
    pub number: u8,
    /// `None` for the global section.
    pub name: Option<String>,
    /// Doc comment.
    pub doc: Option<String>,
    /// `Some(element)` for a stream section (spec 3.4).
    pub stream: Option<RecordId>,
    /// Records that may stand in this section. Tagged section: `comment`, `section`, `metadata` (always the ids 0, 1,
    /// 2), then the global tagged records, then its own, in the order of the DTD. Stream section: its element alone.
    pub records: Vec<RecordId>,
    /// For each of [`records`](Self::records), for each leaf: the cell that holds its *previous* value (spec 4).
    /// Leaves that share a previous value have the same cell. Leaves of `section` and `metadata` have none: empty.
    pub cells: Vec<Vec<u32>>,
    /// Initial value of each cell: the initial value of its delta or stride leaves; 0 where none has one.
    pub cell_initials: Vec<u64>,
}

/// A tagged record or the element of a stream section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Name in the DTD.
    pub name: String,
    /// The section whose definitions list it; `None` for global and predefined records.
    pub section: Option<SectionId>,
    /// Tag value; `None` for a stream element. Of a catch-all record the least that no record of its sections has: metadata records
    /// name it by that.
    pub tag: Option<u32>,
    /// Whether it is the record of all tags that no other record of its sections has (spec 3.2). Its first leaf, which is not a
    /// [tag](Leaf::is_tag), is the number that stands there.
    pub catch_all: bool,
    /// Names that the record had in earlier versions of the DTD.
    pub was: Vec<String>,
    /// Doc comment.
    pub doc: Option<String>,
    /// The layout, in the order of the bytes. A tagged record starts with its tag (leaf 0).
    pub items: Vec<Item>,
    /// Leaves in the order of the bytes; those inside a repetition once.
    pub leaves: Vec<Leaf>,
}

/// One piece of a record's layout. A composite group that is not repeated has been flattened away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// One leaf.
    Leaf(LeafId),
    /// A nested untagged record.
    Nested {
        /// Key in JSON and basis of the name in generated code: the record's name, or `name_2` where it stands twice.
        key: String,
        /// The untagged record's name in the DTD (`vfield` for the predefined one).
        record: String,
        /// Doc comment of the untagged record.
        doc: Option<String>,
        /// Its layout here.
        items: Vec<Item>,
    },
    /// A repetition: `count` (an earlier leaf; a count in place, or an [expression](Leaf::computed), stands just before as an
    /// [`Item::Leaf`]) says how often.
    Repeat {
        /// The leaf that counts.
        count: LeafId,
        /// Key in JSON: the leaf's own key for a repeated leaf, else `<count>_items`; with an expression the nested record's, or `items`.
        key: String,
        /// What is repeated.
        body: Repeated,
    },
}

/// What a repetition repeats.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repeated {
    /// One leaf: prints as an array of values.
    Leaf(LeafId),
    /// A group: prints as an array of objects.
    Group(Vec<Item>),
    /// A nested record: prints as an array of objects (`vfield`: of its data).
    Record {
        /// The untagged record's name in the DTD.
        record: String,
        /// Its doc comment.
        doc: Option<String>,
        /// Its layout here.
        items: Vec<Item>,
    },
}

/// A leaf: the unit that has width, interpretation and state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The field's name in the DTD.
    pub name: String,
    /// The name outside the DTD: `address_2` for the second `address` of an object (spec 3.1, 8).
    pub key: String,
    /// Keys from the top record down to and with this leaf (`["box", "point", "x"]`).
    pub path: Vec<String>,
    /// Bytes it stores, as the DTD says.
    pub width: Width,
    /// How the stored bytes give the value, as the DTD says.
    pub interpretation: Interpretation,
    /// The value every record must have (spec 3.2), if it is a constant.
    pub constant: Option<u64>,
    /// The expression that is its value, if it is a count that is computed (spec 3.3). It stores nothing, and its name is the
    /// expression in parentheses.
    pub computed: Option<Expr>,
    /// How tools print it.
    pub format: Format,
    /// Names of its values or bits.
    pub names: Names,
    /// Names that the field had in earlier versions of the DTD.
    pub was: Vec<String>,
    /// Of a byte array that is records of a section (spec 3.7): the section's number.
    pub section: Option<u8>,
    /// Unit for docs and exports.
    pub unit: Option<String>,
    /// `doc` property or comment.
    pub doc: Option<String>,
    /// Properties that are neither standard nor understood by the tools, with their values as written.
    pub annotations: BTreeMap<String, String>,
    /// Whether it stands inside a repetition.
    pub repeated: bool,
    /// Where `width` was set; `None` where it was not.
    pub width_origin: Option<Origin>,
    /// Where `interpretation` was set.
    pub interpretation_origin: Origin,
}

impl Leaf {
    /// Checks whether this is the tag of a tagged record: always the same number. (In a catch-all record it is a field.)
    #[must_use]
    pub fn is_tag(&self) -> bool {
        self.interpretation_origin == Origin::Tag
    }

    /// Checks whether the value follows from the DTD or from other fields: a constant, the tag, a computed count.
    #[must_use]
    pub fn is_implied(&self) -> bool {
        self.constant.is_some() || self.computed.is_some() || self.is_tag()
    }

    /// Checks whether the value is a number (else a byte array).
    #[must_use]
    pub fn is_numeric(&self) -> bool {
        matches!(self.width, Width::Unset | Width::Number(_))
    }

    /// Returns the nanoseconds in its unit, or in that of its format; `None`: it has none, or one that is not a time.
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

/// The width a DTD gives a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Width {
    /// None given; only for interpretations that store nothing.
    Unset,
    /// A numeric leaf of 0 to 8 bytes.
    Number(u8),
    /// An opaque byte array of 1 to 2^32-1 bytes.
    Array(u32),
    /// A byte array whose length is computed for each record.
    Variable(Expr),
    /// A byte array up to this byte, which is stored behind it and is not part of it.
    Until(u8),
}

/// An expression in postfix form: evaluate left to right with a stack. At every step a result below 0 or over 2^64-1
/// is an error of the trace (spec 3.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr(pub Vec<ExprOp>);

/// One step of an [`Expr`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExprOp {
    /// Push a number.
    Push(u64),
    /// Push the value of an earlier leaf of the same record (the last read one, where repeated).
    Leaf(LeafId),
    /// Pop two, push their sum.
    Add,
    /// Pop two, push the first less the second.
    Sub,
    /// Pop two, push their product.
    Mul,
    /// Pop two, push the quotient of the first by the second, rounded down.
    Div,
    /// Pop two, push the remainder of the first by the second.
    Rem,
    /// Pop a number, push its bit of this number, 0 or 1.
    Bit(u8),
    /// Pop two, push 1 where the first compares so with the second, else 0.
    Compare(Comparison),
}

/// How two numbers compare.
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
    /// All of them, with their signs.
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

    /// Returns its sign.
    pub(crate) fn sign(self) -> &'static str {
        Comparison::SIGNS.iter().find(|(comparison, _)| *comparison == self).map_or("", |(_, sign)| sign)
    }

    /// Checks whether two numbers compare so.
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
    /// Returns a number that no value exceeds (spec 3.3).
    #[must_use]
    pub fn most(&self) -> u64 {
        let mut stack = Vec::new();
        for op in &self.0 {
            let most = match *op {
                ExprOp::Push(number) => number,
                ExprOp::Leaf(_) => u64::MAX,
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

/// The revision of the models that this version knows (spec 4.2): of those of values, and of that of a heap. What a model gives for a
/// trace changes only under another number.
pub const MODEL_REVISION: u64 = 1;

/// What a leaf is predicted by. Every predicted leaf of every record has its own, because the leaves that it refers to are
/// those of its record; leaves that share a previous value (a cell of [`Section::cells`]) share what the models learn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Number of the stream section that holds the values that no candidate hits.
    pub section: u8,
    /// Where candidates come from.
    pub kind: ModelKind,
}

/// Where the candidates of a [`Model`] come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelKind {
    /// Predictors for any number, in the order of their candidates.
    Values(Vec<Predictor>),
    /// The live and the freed objects of a heap.
    Heap {
        /// What happens to the address.
        role: HeapRole,
        /// The leaf whose values tell models apart (a thread, an arena): one for each value.
        by: Option<(RecordId, LeafId)>,
    },
}

/// A predictor of a [`ModelKind::Values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predictor {
    /// What it goes on.
    pub kind: PredictorKind,
    /// The leaf whose last value is part of its context.
    pub by: Option<(RecordId, LeafId)>,
}

/// What a [`Predictor`] goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredictorKind {
    /// The last values, 1 to 16 of them: a candidate each.
    LastValue(u8),
    /// The last value plus the last difference: one candidate.
    Stride,
    /// What followed the last values, 1 to 3 of them, before (a finite context): two candidates.
    Fcm(u8),
    /// The same with differences in place of values: two candidates.
    Dfcm(u8),
}

impl PredictorKind {
    /// How many candidates it gives.
    #[must_use]
    pub fn candidates(self) -> u8 {
        match self {
            PredictorKind::LastValue(n) => n,
            PredictorKind::Stride => 1,
            PredictorKind::Fcm(_) | PredictorKind::Dfcm(_) => 2,
        }
    }
}

/// What happens to an address of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapRole {
    /// An object begins there.
    Allocated {
        /// The leaf with its size.
        size: (RecordId, LeafId),
    },
    /// The object there ends.
    Freed,
    /// The object there is used and stays.
    Used,
}

/// Makes [`Format`] of the table below.
macro_rules! formats {
    ($($variant:ident = $name:literal, $doc:literal;)*) => {
        /// How tools print a value (spec 3, property `format`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
        pub enum Format {
            /// Not given: decimal numbers, hex bytes (`comment` text is predefined as [`Format::Utf8`]).
            #[default]
            Unset,
            $(#[doc = $doc] $variant,)*
        }

        impl Format {
            /// All formats that a DTD can give.
            pub const ALL: &[Format] = &[$(Format::$variant),*];

            /// What it prints, in a sentence.
            #[must_use]
            pub const fn doc(self) -> &'static str {
                match self {
                    Format::Unset => "Decimal numbers, hex bytes.",
                    $(Format::$variant => $doc,)*
                }
            }

            /// Returns the name in a DTD; empty where none is given.
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
    F64 = "f64", "The bits of an IEEE 754 double.";
    Utf8 = "utf8", "Text.";
    CString = "cstring", "Text up to the first byte 0.";
    Bytes = "bytes", "Hex string.";
    TimeNs = "time_ns", "A time in nanoseconds, shown in seconds.";
    TimeUs = "time_us", "A time in microseconds, shown in seconds.";
    TimeS = "time_s", "A time in seconds.";
    DateNs = "date_ns", "Nanoseconds since 1970, shown as a date.";
    DateUs = "date_us", "Microseconds since 1970, shown as a date.";
    DateMs = "date_ms", "Milliseconds since 1970, shown as a date.";
    DateS = "date_s", "Seconds since 1970, shown as a date.";
    DurationNs = "duration_ns", "A duration in nanoseconds, shown in the unit that fits.";
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

/// Where a leaf's property was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The leaf is a tag.
    Tag,
    /// The block of this record (top, nested or predefined), by name.
    Block(Arc<str>),
    /// The definitions of a section.
    Section(SectionId),
    /// The top level of the DTD.
    Global,
}

/// The three predefined tagged records have fixed places in [`Dtd::records`].
pub const COMMENT: RecordId = RecordId(0);
/// See [`COMMENT`].
pub const SECTION: RecordId = RecordId(1);
/// See [`COMMENT`]. Its `value` leaf is special (spec 4.1); it is listed with one `value` leaf of width 4 or 8.
pub const METADATA: RecordId = RecordId(2);

impl Dtd {
    /// Returns the record with this id.
    #[must_use]
    pub fn record(&self, id: RecordId) -> Option<&Record> {
        self.records.get(id.0 as usize)
    }

    /// Returns the section with this number (0: global).
    #[must_use]
    pub fn section(&self, number: u8) -> Option<&Section> {
        self.sections.iter().find(|s| s.number == number)
    }

    /// Returns the section with this name.
    #[must_use]
    pub fn section_named(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|s| s.name.as_deref() == Some(name))
    }

    /// Returns the record of this name that may stand in a section, predefined ones included.
    #[must_use]
    pub fn find_record(&self, section: &Section, name: &str) -> Option<&Record> {
        section.records.iter().filter_map(|id| self.record(*id)).find(|record| record.name == name)
    }

    /// Returns the record with this tag that may stand in a section, with its id: that of this number, or the catch-all record.
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

    /// Checks whether what a leaf counts is there or not, as the count is an expression that is at most 1 (spec 3.3).
    #[must_use]
    pub fn is_optional(&self, count: LeafId) -> bool {
        self.leaf(count).and_then(|leaf| leaf.computed.as_ref()).is_some_and(|expression| expression.most() <= 1)
    }

    /// Returns the leaf with this path of keys (`["vfield", "data"]`).
    #[must_use]
    pub fn leaf_at(&self, path: &[&str]) -> Option<(LeafId, &Leaf)> {
        (0..=u8::MAX).map(LeafId).zip(&self.leaves).find(|(_, leaf)| leaf.path == path)
    }
}
