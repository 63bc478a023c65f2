//! Constructors for the tables in generated code, usable in constants. Their parameters stay the same if a struct gets
//! another field.

use super::{
    ExpectedWidth, ExprOp, Format, Interpretation, Leaf, LeafKind, Magic, Model, ModelKind, Predictor, RawFile,
    RawStart, Record, Section, Step,
};
use std::borrow::Cow::{self, Borrowed};
use std::mem::forget;

/// Returns the static table in a `Cow`. Constructors store nothing else.
#[allow(clippy::ptr_arg, reason = "constants cannot dereference a `Cow`")]
const fn table<T: Clone>(cow: &Cow<'static, [T]>) -> Cow<'static, [T]> {
    match cow {
        Borrowed(table) => Borrowed(table),
        Cow::Owned(_) => Borrowed(&[]),
    }
}

/// Returns the static text in a `Cow`.
#[allow(clippy::ptr_arg, reason = "constants cannot dereference a `Cow`")]
const fn text(cow: &Cow<'static, str>) -> Cow<'static, str> {
    match cow {
        Borrowed(text) => Borrowed(text),
        Cow::Owned(_) => Borrowed(""),
    }
}

impl Format {
    /// Creates the tables of a format from the text of its DTD, the fingerprint of the DTD, the size of a tag in bytes,
    /// the sections and the records.
    #[must_use]
    pub const fn new(
        dtd: &'static str,
        fingerprint: u64,
        tag_width: u8,
        sections: &'static [Section],
        records: &'static [Record],
    ) -> Self {
        Self {
            dtd: Borrowed(dtd),
            fingerprint,
            tag_width,
            sections: Borrowed(sections),
            records: Borrowed(records),
            models: Borrowed(&[]),
            expected: Borrowed(&[]),
            raw: None,
        }
    }

    /// Sets the models of predicted leaves, the widths that generated code is optimized for, and the description of files
    /// without a header.
    #[must_use]
    pub const fn with(
        self,
        models: &'static [Model],
        expected: &'static [ExpectedWidth],
        raw: Option<RawFile>,
    ) -> Self {
        let with = Self {
            dtd: text(&self.dtd),
            fingerprint: self.fingerprint,
            tag_width: self.tag_width,
            sections: table(&self.sections),
            records: table(&self.records),
            models: Borrowed(models),
            expected: Borrowed(expected),
            raw,
        };
        forget(self);
        with
    }
}

impl Section {
    /// Creates a section from its number, its name and the indices of its records.
    #[must_use]
    pub const fn tagged(number: u8, name: &'static str, records: &'static [u16]) -> Self {
        Self {
            number,
            name: Borrowed(name),
            stream: false,
            records: Borrowed(records),
            cells: Borrowed(&[]),
            initials: Borrowed(&[]),
        }
    }

    /// Creates a stream section from its number, its name and the index of its record.
    #[must_use]
    pub const fn stream(number: u8, name: &'static str, records: &'static [u16]) -> Self {
        Self {
            number,
            name: Borrowed(name),
            stream: true,
            records: Borrowed(records),
            cells: Borrowed(&[]),
            initials: Borrowed(&[]),
        }
    }

    /// Sets, for each leaf of the records, the cell with its previous value.
    #[must_use]
    pub const fn cells(self, cells: &'static [u32]) -> Self {
        let with = Self {
            number: self.number,
            name: text(&self.name),
            stream: self.stream,
            records: table(&self.records),
            cells: Borrowed(cells),
            initials: table(&self.initials),
        };
        forget(self);
        with
    }

    /// Sets the initial value of each cell.
    #[must_use]
    pub const fn initials(self, initials: &'static [u64]) -> Self {
        let with = Self {
            number: self.number,
            name: text(&self.name),
            stream: self.stream,
            records: table(&self.records),
            cells: table(&self.cells),
            initials: Borrowed(initials),
        };
        forget(self);
        with
    }
}

impl Record {
    /// Creates a record from its name, its tag, its leaves and its layout.
    #[must_use]
    pub const fn new(name: &'static str, tag: u32, leaves: &'static [Leaf], steps: &'static [Step]) -> Self {
        Self { name: Borrowed(name), was: Borrowed(&[]), tag, leaves: Borrowed(leaves), steps: Borrowed(steps) }
    }

    /// Sets the names in earlier versions of the DTD.
    #[must_use]
    pub const fn was(self, names: &'static [Cow<'static, str>]) -> Self {
        let with = Self {
            name: text(&self.name),
            was: Borrowed(names),
            tag: self.tag,
            leaves: table(&self.leaves),
            steps: table(&self.steps),
        };
        forget(self);
        with
    }
}

/// Returns the layout of a record without repetitions, which consists of its leaves in order.
#[must_use]
pub const fn in_order<const N: usize>(leaves: &[Leaf; N]) -> [Step; N] {
    let mut steps = [Step::Number(0); N];
    let mut leaf = 0;
    let mut i = 0;
    while i < N {
        steps[i] = match leaves[i].kind {
            LeafKind::Array(_) | LeafKind::Variable(_) | LeafKind::Until(_) => Step::Bytes(leaf),
            LeafKind::Number { .. } | LeafKind::Tag | LeafKind::AnyTag | LeafKind::Computed(_) => Step::Number(leaf),
        };
        leaf += 1;
        i += 1;
    }
    steps
}

impl Leaf {
    const fn new(path: &'static str, kind: LeafKind) -> Self {
        Self { field: Borrowed(path), path: Borrowed(path), was: Borrowed(&[]), kind, constant: None }
    }

    /// Creates the tag of a record.
    #[must_use]
    pub const fn tag() -> Self {
        Self::new("tag", LeafKind::Tag)
    }

    /// Creates the tag of a catch-all record.
    #[must_use]
    pub const fn any_tag() -> Self {
        Self::new("tag", LeafKind::AnyTag)
    }

    /// Creates a number.
    #[must_use]
    pub const fn number(path: &'static str, width: u8, interpretation: Interpretation) -> Self {
        Self::new(path, LeafKind::Number { width, interpretation })
    }

    /// Creates a byte array of fixed length.
    #[must_use]
    pub const fn array(path: &'static str, length: u32) -> Self {
        Self::new(path, LeafKind::Array(length))
    }

    /// Creates a byte array whose length is the result of a postfix program.
    #[must_use]
    pub const fn variable(path: &'static str, length: &'static [ExprOp]) -> Self {
        Self::new(path, LeafKind::Variable(Borrowed(length)))
    }

    /// Creates a byte array that is followed by a terminator.
    #[must_use]
    pub const fn until(path: &'static str, terminator: u8) -> Self {
        Self::new(path, LeafKind::Until(terminator))
    }

    /// Creates a count that is the result of a postfix program.
    #[must_use]
    pub const fn computed(path: &'static str, count: &'static [ExprOp]) -> Self {
        Self::new(path, LeafKind::Computed(Borrowed(count)))
    }

    /// Sets the name of the field, if it differs from the path.
    #[must_use]
    pub const fn named(self, field: &'static str) -> Self {
        let with = Self {
            field: Borrowed(field),
            path: text(&self.path),
            was: table(&self.was),
            kind: kind(&self.kind),
            constant: self.constant,
        };
        forget(self);
        with
    }

    /// Sets the paths in earlier versions of the DTD.
    #[must_use]
    pub const fn was(self, paths: &'static [Cow<'static, str>]) -> Self {
        let with = Self {
            field: text(&self.field),
            path: text(&self.path),
            was: Borrowed(paths),
            kind: kind(&self.kind),
            constant: self.constant,
        };
        forget(self);
        with
    }

    /// Sets the value that the leaf has in all records.
    #[must_use]
    pub const fn constant(self, value: u64) -> Self {
        let with = Self {
            field: text(&self.field),
            path: text(&self.path),
            was: table(&self.was),
            kind: kind(&self.kind),
            constant: Some(value),
        };
        forget(self);
        with
    }
}

/// Returns a copy of the kind of a leaf.
const fn kind(kind: &LeafKind) -> LeafKind {
    match kind {
        LeafKind::Tag => LeafKind::Tag,
        LeafKind::AnyTag => LeafKind::AnyTag,
        LeafKind::Number { width, interpretation } => {
            LeafKind::Number { width: *width, interpretation: *interpretation }
        }
        LeafKind::Array(length) => LeafKind::Array(*length),
        LeafKind::Variable(length) => LeafKind::Variable(table(length)),
        LeafKind::Until(end) => LeafKind::Until(*end),
        LeafKind::Computed(count) => LeafKind::Computed(table(count)),
    }
}

impl Model {
    /// Creates the model of a predicted leaf from the number of the stream section for unpredicted values and the source
    /// of the candidates.
    #[must_use]
    pub const fn new(section: u8, kind: ModelKind) -> Self {
        Self { section, kind }
    }
}

impl ModelKind {
    /// Creates a model with these predictors.
    #[must_use]
    pub const fn values(predictors: &'static [Predictor]) -> Self {
        Self::Values(Borrowed(predictors))
    }
}

impl RawFile {
    /// Creates the description of files without a header. See the fields of this struct.
    #[must_use]
    pub const fn new(starts: &'static [RawStart], records: u8, trailer: Option<u8>) -> Self {
        Self { starts: Borrowed(starts), records, trailer }
    }
}

impl RawStart {
    /// Creates a possible first record. See the fields of this struct.
    #[must_use]
    pub const fn new(section: u8, record: u16, magic: &'static [Magic], records_size: Option<u8>) -> Self {
        Self { section, record, magic: Borrowed(magic), records_size }
    }
}

impl Magic {
    /// Creates a leaf that identifies a file by one of these values.
    #[must_use]
    pub const fn new(leaf: u8, values: &'static [u64]) -> Self {
        Self { leaf, values: Borrowed(values) }
    }
}
