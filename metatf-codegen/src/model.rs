//! What will be generated, before it is tokens: structs with their fields and layout, sections, methods, all named.

/// A struct: a tagged record, a stream element, a nested record, or the item of a repeated group.
#[derive(Clone, Debug)]
pub(crate) struct Struct {
    pub(crate) name: String,
    pub(crate) docs: Vec<String>,
    pub(crate) attributes: Vec<String>,
    pub(crate) shape: Shape,
}

/// What makes two structs the same except for their names and docs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    pub(crate) fields: Vec<Field>,
    pub(crate) pieces: Vec<Piece>,
    /// Some field holds bytes: the struct is generic over who owns them.
    pub(crate) bytes: bool,
}

/// A public field.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) ty: Ty,
    pub(crate) docs: Vec<String>,
    pub(crate) attributes: Vec<String>,
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    U64,
    I64,
    F64,
    /// Index in [`Model::named`].
    Named(usize),
    /// An item that holds nothing but constants.
    Unit,
    /// A byte array of at most [`LARGEST_ARRAY`] bytes.
    Array(u32),
    /// Bytes, owned or borrowed.
    Bytes,
    /// Index in [`Model::structs`].
    Struct(usize),
    List(Box<Ty>),
    /// What is there or not.
    Optional(Box<Ty>),
}

/// The longest arrays for which std derives what generated structs need.
pub(crate) const LARGEST_ARRAY: u32 = 32;

/// One step of a layout: what the runtime's `layouts!` does with one leaf or more. Leaves are numbered from the first
/// leaf of the struct's record; `field` is the field's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A value of a field.
    One { leaf: u8, field: String, kind: Kind },
    /// A constant.
    Constant { leaf: u8, value: u64 },
    /// The length of a field's bytes.
    Length { leaf: u8, field: String },
    /// The number of a field's items.
    Count { leaf: u8, field: String },
    /// A nested record.
    Nested { base: u8, field: String },
    /// A repetition.
    Each { count: u8, field: String, body: Body },
    /// What is there if its count is 1.
    Optional { count: u8, field: String, body: Body },
}

/// How a leaf's value looks in Rust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Number,
    Signed,
    Float,
    /// A number whose values or bits have names.
    Named,
    Bytes,
    Array,
}

/// What is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    One {
        leaf: u8,
        kind: Kind,
    },
    Constant {
        leaf: u8,
        value: u64,
    },
    /// A `vfield`: its length's leaf, its data's leaf.
    Vfield {
        length: u8,
        data: u8,
    },
    Nested {
        base: u8,
    },
}

/// The type of a number whose values or bits have names.
#[derive(Clone, Debug)]
pub(crate) struct NamedType {
    pub(crate) name: String,
    /// The field's name in the DTD.
    pub(crate) field: String,
    /// Bits, else values.
    pub(crate) flags: bool,
    pub(crate) docs: Vec<String>,
    pub(crate) attributes: Vec<String>,
    pub(crate) items: Vec<NamedItem>,
}

/// A value or bit with a name.
#[derive(Clone, Debug)]
pub(crate) struct NamedItem {
    pub(crate) number: u64,
    /// The variant, or the constant.
    pub(crate) name: String,
    /// The name in the DTD.
    pub(crate) text: String,
    pub(crate) docs: String,
}

/// A section that holds tagged data records.
#[derive(Clone, Debug)]
pub(crate) struct Tagged {
    /// Index in the format's sections.
    pub(crate) index: usize,
    /// The enum.
    pub(crate) name: String,
    pub(crate) docs: Vec<String>,
    /// Variant of `Record`.
    pub(crate) variant: String,
    /// Method of `Trace`.
    pub(crate) method: String,
    pub(crate) records: Vec<Listed>,
    pub(crate) bytes: bool,
}

/// A record in a section.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    /// Index in the format's records.
    pub(crate) record: usize,
    pub(crate) item: usize,
    /// Variant of the section's enum.
    pub(crate) variant: String,
    /// Method of `Writer`.
    pub(crate) method: String,
}

/// A stream section.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub(crate) index: usize,
    pub(crate) item: usize,
    /// Variant of `Element`.
    pub(crate) variant: String,
    /// Method of `Trace` and, where users fill the stream, of `Writer`.
    pub(crate) method: String,
    /// Some leaf strides through it, or leaves there what its model misses: the writer fills it by itself.
    pub(crate) strided: bool,
    pub(crate) docs: Vec<String>,
}

/// The columns of a record.
#[derive(Clone, Debug)]
pub(crate) struct RecordColumns {
    /// The struct of its columns.
    pub(crate) name: String,
    /// The struct of one record.
    pub(crate) of: String,
    /// Whether that has bytes.
    pub(crate) bytes: bool,
    /// Index in the format's records.
    pub(crate) record: usize,
    /// For each section that lists it: the method of `Columns`, and the section's index.
    pub(crate) places: Vec<(String, usize)>,
    pub(crate) columns: Vec<Column>,
}

/// The column of a leaf.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) leaf: u8,
    pub(crate) kind: ColumnKind,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Unsigned,
    Signed,
    Float,
    Arrays,
}

/// Everything, in the order of output.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) named: Vec<NamedType>,
    pub(crate) structs: Vec<Struct>,
    pub(crate) tagged: Vec<Tagged>,
    pub(crate) streams: Vec<Stream>,
    pub(crate) columns: Vec<RecordColumns>,
}

impl Model {
    /// Checks whether a type holds bytes somewhere.
    pub(crate) fn has_bytes(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Bytes => true,
            Ty::Struct(index) => self.structs.get(*index).is_some_and(|s| s.shape.bytes),
            Ty::List(item) | Ty::Optional(item) => self.has_bytes(item),
            Ty::U64 | Ty::I64 | Ty::F64 | Ty::Named(_) | Ty::Unit | Ty::Array(_) => false,
        }
    }

    pub(crate) fn item_has_bytes(&self, item: usize) -> bool {
        self.has_bytes(&Ty::Struct(item))
    }
}
