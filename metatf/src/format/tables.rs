//! Constructors for the tables in generated code, usable in constants. Their parameters stay the same if a struct gets
//! another field.

use super::{
    ExpectedWidth, ExprOp, Format, HeapRole, Interpretation, Leaf, LeafKind, LeafRef, Magic, Model, ModelKind,
    Predictor, PredictorKind, RawFile, RawStart, Record, Section, Step,
};
use std::borrow::Cow::{self, Borrowed};
use std::mem::{forget, replace};
use std::ops::RangeInclusive;

/// Replaces the value of a field without dropping the old value, because constants cannot run destructors.
const fn set<T>(field: &mut T, value: T) {
    forget(replace(field, value));
}

impl Format {
    /// Creates a format with tags of one byte from the text of its DTD, its sections and its records.
    #[must_use]
    pub const fn new(dtd: &'static str, sections: &'static [Section], records: &'static [Record]) -> Self {
        Self {
            dtd: Borrowed(dtd),
            fingerprint: 0,
            tag_width: 1,
            sections: Borrowed(sections),
            records: Borrowed(records),
            models: Borrowed(&[]),
            expected: Borrowed(&[]),
            raw: None,
        }
    }

    /// Sets the fingerprint of the DTD's meaning.
    #[must_use]
    pub const fn fingerprint(mut self, fingerprint: u64) -> Self {
        self.fingerprint = fingerprint;
        self
    }

    /// Sets the size of a tag in bytes.
    #[must_use]
    pub const fn tag_width(mut self, bytes: u8) -> Self {
        self.tag_width = bytes;
        self
    }

    /// Sets the models of predicted leaves.
    #[must_use]
    pub const fn models(mut self, models: &'static [Model]) -> Self {
        set(&mut self.models, Borrowed(models));
        self
    }

    /// Sets the widths that generated code is optimized for.
    #[must_use]
    pub const fn expected_widths(mut self, widths: &'static [ExpectedWidth]) -> Self {
        set(&mut self.expected, Borrowed(widths));
        self
    }

    /// Sets the description of files without a header.
    #[must_use]
    pub const fn raw_file(mut self, file: RawFile) -> Self {
        set(&mut self.raw, Some(file));
        self
    }
}

impl ExpectedWidth {
    /// Creates the expected width of a leaf.
    #[must_use]
    pub const fn new((record, leaf): LeafRef, bytes: u8) -> Self {
        Self { record, leaf, width: bytes }
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
        let mut section = Self::tagged(number, name, records);
        section.stream = true;
        section
    }

    /// Sets the cell of each leaf. The initial value of each cell is 0.
    #[must_use]
    pub const fn cells<const LEAVES: usize>(mut self, cells: &'static [u32; LEAVES]) -> Self {
        let mut count = 0;
        let mut leaf = 0;
        while leaf < LEAVES {
            if cells[leaf] as usize >= count {
                count = cells[leaf] as usize + 1;
            }
            leaf += 1;
        }
        // Each cell belongs to a leaf, so there are at most as many cells as leaves.
        let zeros: &'static [u64] = const { &[0; LEAVES] };
        set(&mut self.cells, Borrowed(cells));
        set(&mut self.initials, Borrowed(zeros.split_at(count).0));
        self
    }

    /// Sets the initial value of each cell.
    #[must_use]
    pub const fn initials(mut self, initials: &'static [u64]) -> Self {
        set(&mut self.initials, Borrowed(initials));
        self
    }
}

impl Record {
    /// Creates a tagged record from its name, its tag, its leaves and its layout.
    #[must_use]
    pub const fn tagged(name: &'static str, tag: u32, leaves: &'static [Leaf], steps: &'static [Step]) -> Self {
        let (leaves, steps) = (Borrowed(leaves), Borrowed(steps));
        Self { name: Borrowed(name), was: Borrowed(&[]), tag, leaves, steps, time: None }
    }

    /// Creates the element of a stream section from its name, its leaves and its layout.
    #[must_use]
    pub const fn element(name: &'static str, leaves: &'static [Leaf], steps: &'static [Step]) -> Self {
        Self::tagged(name, 0, leaves, steps)
    }

    /// Sets the names in earlier versions of the DTD.
    #[must_use]
    pub const fn was(mut self, names: &'static [Cow<'static, str>]) -> Self {
        set(&mut self.was, Borrowed(names));
        self
    }

    /// Sets the leaf that contains the time of the record.
    #[must_use]
    pub const fn time(mut self, leaf: u8) -> Self {
        self.time = Some(leaf);
        self
    }
}

/// A repetition in a record's layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// The leaf that contains the number of items.
    count: u8,
    /// The first leaf of an item.
    first: u8,
    /// The last leaf of an item.
    last: u8,
}

impl Repeat {
    /// Creates a repetition of these leaves, which are the leaves of an item.
    #[must_use]
    pub const fn leaves(leaves: RangeInclusive<u8>) -> Self {
        Self { count: 0, first: *leaves.start(), last: *leaves.end() }
    }

    /// Sets the leaf that contains the number of items.
    #[must_use]
    pub const fn counted_by(mut self, leaf: u8) -> Self {
        self.count = leaf;
        self
    }
}

/// Returns the layout of a record without repetitions, which consists of its leaves in order.
#[must_use]
pub const fn in_order<const LEAVES: usize>(leaves: &[Leaf; LEAVES]) -> [Step; LEAVES] {
    repeating(leaves, &[])
}

/// Returns the layout of a record with these repetitions, which consists of its leaves in order. A repetition precedes
/// the repetitions inside its items. `STEPS` is the number of leaves plus the number of repetitions.
#[must_use]
pub const fn repeating<const LEAVES: usize, const STEPS: usize>(
    leaves: &[Leaf; LEAVES],
    repeats: &[Repeat],
) -> [Step; STEPS] {
    assert!(STEPS == LEAVES + repeats.len(), "expected a step for each leaf and each repetition");
    let mut steps = [Step::Number(0); STEPS];
    let (mut leaf, mut step) = (0, 0);
    let mut i = 0;
    while i < LEAVES {
        let mut repeat = 0;
        while repeat < repeats.len() {
            if repeats[repeat].first == leaf {
                steps[step] = Step::Repeat { count: repeats[repeat].count, end: end_of(repeats, repeat) };
                step += 1;
            }
            repeat += 1;
        }
        steps[step] = match leaves[i].kind {
            LeafKind::Array(_) | LeafKind::Variable(_) | LeafKind::Until(_) | LeafKind::Rest => Step::Bytes(leaf),
            LeafKind::Number { .. }
            | LeafKind::Tag
            | LeafKind::AnyTag
            | LeafKind::Computed(_)
            | LeafKind::Scanned(_) => Step::Number(leaf),
        };
        step += 1;
        leaf += 1;
        i += 1;
    }
    steps
}

/// Returns the index of the first step after a repetition: the leaves up to its last leaf, and the repetitions that
/// begin before the end of that leaf, have a step each.
const fn end_of(repeats: &[Repeat], of: usize) -> u16 {
    let mut end = repeats[of].last as u16 + 1;
    let mut repeat = 0;
    while repeat < repeats.len() {
        if repeats[repeat].first <= repeats[of].last {
            end += 1;
        }
        repeat += 1;
    }
    end
}

impl Leaf {
    const fn new(path: &'static str, kind: LeafKind) -> Self {
        Self { field: Borrowed(path), path: Borrowed(path), was: Borrowed(&[]), kind, constant: None, header: None }
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

    /// Creates a byte array that extends to the end of the content, except for the leaves after it.
    #[must_use]
    pub const fn rest(path: &'static str) -> Self {
        Self::new(path, LeafKind::Rest)
    }

    /// Creates the count of items up to the first item after which the result of a postfix program is not 0. Without a
    /// program, the items extend to the end of the content.
    #[must_use]
    pub const fn scanned(path: &'static str, until: &'static [ExprOp]) -> Self {
        Self::new(path, LeafKind::Scanned(Borrowed(until)))
    }

    /// Creates a count that is the result of a postfix program.
    #[must_use]
    pub const fn computed(path: &'static str, count: &'static [ExprOp]) -> Self {
        Self::new(path, LeafKind::Computed(Borrowed(count)))
    }

    /// Sets the name of the field, if it differs from the path.
    #[must_use]
    pub const fn named(mut self, field: &'static str) -> Self {
        set(&mut self.field, Borrowed(field));
        self
    }

    /// Sets the paths in earlier versions of the DTD.
    #[must_use]
    pub const fn was(mut self, paths: &'static [Cow<'static, str>]) -> Self {
        set(&mut self.was, Borrowed(paths));
        self
    }

    /// Sets the leaf of a file's header whose value this leaf has in the records of the file.
    #[must_use]
    pub const fn of_header(mut self, leaf: u8) -> Self {
        self.header = Some(leaf);
        self
    }

    /// Sets the value that the leaf has in all records.
    #[must_use]
    pub const fn constant(mut self, value: u64) -> Self {
        self.constant = Some(value);
        self
    }
}

impl Model {
    const fn heap(role: HeapRole) -> Self {
        Self { section: 0, kind: ModelKind::Heap { role, by: None } }
    }

    /// Creates the model of an address at which an object begins. The leaf `size` contains the size of the object.
    #[must_use]
    pub const fn allocated(size: LeafRef) -> Self {
        Self::heap(HeapRole::Allocated { size })
    }

    /// Creates the model of the address of an object that is freed.
    #[must_use]
    pub const fn freed() -> Self {
        Self::heap(HeapRole::Freed)
    }

    /// Creates the model of the address of an object that is used and stays live.
    #[must_use]
    pub const fn used() -> Self {
        Self::heap(HeapRole::Used)
    }

    /// Creates a model with these predictors.
    #[must_use]
    pub const fn values(predictors: &'static [Predictor]) -> Self {
        Self { section: 0, kind: ModelKind::Values(Borrowed(predictors)) }
    }

    /// Sets the leaf whose values distinguish the contexts of a heap. Predictors have their own
    /// [contexts](Predictor::by).
    #[must_use]
    pub const fn by(mut self, leaf: LeafRef) -> Self {
        if let ModelKind::Heap { by, .. } = &mut self.kind {
            *by = Some(leaf);
        }
        self
    }

    /// Sets the number of the stream section that contains the values that match no candidate.
    #[must_use]
    pub const fn misses_in(mut self, section: u8) -> Self {
        self.section = section;
        self
    }
}

impl Predictor {
    const fn new(kind: PredictorKind) -> Self {
        Self { kind, by: None }
    }

    /// Creates a predictor of the last `count` values.
    #[must_use]
    pub const fn last_values(count: u8) -> Self {
        Self::new(PredictorKind::LastValue(count))
    }

    /// Creates a predictor of the last value plus the last difference.
    #[must_use]
    pub const fn stride() -> Self {
        Self::new(PredictorKind::Stride)
    }

    /// Creates a predictor of the values that followed the same last `order` values.
    #[must_use]
    pub const fn fcm(order: u8) -> Self {
        Self::new(PredictorKind::Fcm(order))
    }

    /// Creates a predictor of the differences that followed the same last `order` differences.
    #[must_use]
    pub const fn dfcm(order: u8) -> Self {
        Self::new(PredictorKind::Dfcm(order))
    }

    /// Sets the leaf whose last value is part of the context.
    #[must_use]
    pub const fn by(mut self, leaf: LeafRef) -> Self {
        self.by = Some(leaf);
        self
    }
}

impl RawFile {
    /// Creates the description of files that begin with one of these records and contain the records of the section
    /// with this number.
    #[must_use]
    pub const fn new(starts: &'static [RawStart], records: u8) -> Self {
        Self { starts: Borrowed(starts), records, trailer: None }
    }

    /// Sets the number of the stream section for the data after the records.
    #[must_use]
    pub const fn trailer_in(mut self, section: u8) -> Self {
        self.trailer = Some(section);
        self
    }
}

impl RawStart {
    /// Creates a possible first record from the number of its section, its index and the leaves that identify the file.
    #[must_use]
    pub const fn new(section: u8, record: u16, magic: &'static [Magic]) -> Self {
        Self { section, record, magic: Borrowed(magic), records_size: None }
    }

    /// Sets the leaf with the number of bytes of records that follow.
    #[must_use]
    pub const fn records_size(mut self, leaf: u8) -> Self {
        self.records_size = Some(leaf);
        self
    }
}

impl Magic {
    /// Creates a leaf that identifies a file by one of these values.
    #[must_use]
    pub const fn new(leaf: u8, values: &'static [u64]) -> Self {
        Self { leaf, values: Borrowed(values) }
    }
}
