//! The named items to generate, before they become tokens: structs with their fields and layout, sections, and methods.

/// A struct for a tagged record, a stream element, a nested record, or an item of a repeated group.
#[derive(Clone, Debug)]
pub(crate) struct Struct {
    pub(crate) name: String,
    pub(crate) docs: Vec<String>,
    /// The description of the bytes of a top record. Empty for the struct of a nested record.
    pub(crate) layout: Vec<String>,
    pub(crate) attributes: Vec<String>,
    pub(crate) shape: Shape,
}

/// The parts of a struct other than names and docs. Two structs are equivalent if their shapes are equal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    pub(crate) fields: Vec<Field>,
    pub(crate) pieces: Vec<Piece>,
    /// Whether a field contains bytes, which makes the struct generic over the owner of the bytes.
    pub(crate) bytes: bool,
}

/// A public field.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) ty: Ty,
    pub(crate) docs: Vec<String>,
    /// The number of the stream section into which the offsets in this field lead.
    pub(crate) target: Option<u8>,
    pub(crate) attributes: Vec<String>,
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    U64,
    I64,
    F32,
    F64,
    /// A named type, as an index into [`Model::named`].
    Named(usize),
    /// An item that contains only constants.
    Unit,
    /// A byte array of at most [`LARGEST_ARRAY`] bytes.
    Array(u32),
    /// Bytes, owned or borrowed.
    Bytes,
    /// A struct, as an index into [`Model::structs`].
    Struct(usize),
    List(Box<Ty>),
    /// An optional value.
    Optional(Box<Ty>),
}

/// Maximum array length for which the standard library implements the traits derived by generated structs.
pub(crate) const LARGEST_ARRAY: u32 = 32;

/// A step of a layout, which handles one or more leaves in the runtime's `layouts!`. Leaves are numbered from the first
/// leaf of the struct's record, and `field` is the name of the field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// The value of a field.
    One { leaf: u8, field: String, kind: Kind },
    /// A constant.
    Constant { leaf: u8, value: u64 },
    /// The length of a field's bytes.
    Length { leaf: u8, field: String },
    /// The number of items in a field.
    Count { leaf: u8, field: String },
    /// A nested record.
    Nested { base: u8, field: String },
    /// A repetition.
    Each { count: u8, field: String, body: Body },
    /// A part that is present only if its count is 1.
    Optional { count: u8, field: String, body: Body },
}

/// The Rust representation of a leaf's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Number,
    Signed,
    Single,
    Float,
    /// A number with named values or bits.
    Named,
    Bytes,
    Array,
}

/// The body of a repetition.
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
    /// A `vfield`, as the leaves of its length and its data.
    Vfield {
        length: u8,
        data: u8,
    },
    Nested {
        base: u8,
    },
}

/// The type of a number with named values or bits.
#[derive(Clone, Debug)]
pub(crate) struct NamedType {
    pub(crate) name: String,
    /// The name of the field in the DTD.
    pub(crate) field: String,
    /// Whether the names denote bits rather than values.
    pub(crate) flags: bool,
    pub(crate) docs: Vec<String>,
    pub(crate) attributes: Vec<String>,
    pub(crate) items: Vec<NamedItem>,
}

/// A named value or bit.
#[derive(Clone, Debug)]
pub(crate) struct NamedItem {
    pub(crate) number: u64,
    /// The variant or the constant.
    pub(crate) name: String,
    /// The name in the DTD.
    pub(crate) text: String,
    pub(crate) docs: String,
}

/// A section that contains tagged data records.
#[derive(Clone, Debug)]
pub(crate) struct Tagged {
    /// Index of the section in the format.
    pub(crate) index: usize,
    /// The name of the enum.
    pub(crate) name: String,
    pub(crate) docs: Vec<String>,
    /// The name in the DTD.
    pub(crate) title: String,
    /// The constant with the number of leaves.
    pub(crate) leaves: String,
    /// The variant of `Record`.
    pub(crate) variant: String,
    /// The method of `Trace`.
    pub(crate) method: String,
    pub(crate) records: Vec<Listed>,
    pub(crate) bytes: bool,
}

/// A record in a section.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    /// Index of the record in the format.
    pub(crate) record: usize,
    pub(crate) item: usize,
    /// The variant of the section's enum.
    pub(crate) variant: String,
    /// The method of `Writer`.
    pub(crate) method: String,
    /// The name of the record in this section as a type.
    pub(crate) record_type: String,
    /// The fields that store no bytes although their values are not always 0.
    pub(crate) implied: Vec<Implied>,
    /// The method of `Writer` that returns the next values of these fields. Empty if there are no such fields.
    pub(crate) next: String,
}

/// A field that stores no bytes.
#[derive(Clone, Debug)]
pub(crate) struct Implied {
    pub(crate) field: String,
    pub(crate) leaf: u8,
    pub(crate) kind: Kind,
    /// The value in every record, or `None` if the value increases by a stride.
    pub(crate) value: Option<u64>,
}

/// A stream section.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    /// Index of the section in the format.
    pub(crate) index: usize,
    /// The number in the DTD.
    pub(crate) number: u8,
    /// The name in the DTD.
    pub(crate) title: String,
    pub(crate) item: usize,
    /// The variant of `Element`.
    pub(crate) variant: String,
    /// The method of `Trace` and, if users fill the stream, of `Writer`.
    pub(crate) method: String,
    pub(crate) filled: Filled,
    /// Whether a field contains offsets of elements.
    pub(crate) is_table: bool,
    pub(crate) docs: Vec<String>,
}

/// The source of the elements of a stream section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// Users add the elements.
    Users,
    /// The writer adds the values of `sectionStride` fields.
    Strides,
    /// The writer adds the values that models do not predict.
    Models,
}

/// The columns of a record.
#[derive(Clone, Debug)]
pub(crate) struct RecordColumns {
    /// The name of the struct for the columns.
    pub(crate) name: String,
    /// The name of the struct for a single record.
    pub(crate) of: String,
    /// Index of the record in the format.
    pub(crate) record: usize,
    /// The method of `Columns` and the type of the record for each section that lists the record.
    pub(crate) places: Vec<(String, String)>,
    pub(crate) columns: Vec<Column>,
}

/// The column of a leaf.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// The path of the leaf in the DTD.
    pub(crate) path: String,
    pub(crate) leaf: u8,
    pub(crate) kind: ColumnKind,
}

/// The content of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Unsigned,
    Signed,
    Float,
    Arrays,
}

/// All items, in the order of the output.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) named: Vec<NamedType>,
    pub(crate) structs: Vec<Struct>,
    pub(crate) tagged: Vec<Tagged>,
    pub(crate) streams: Vec<Stream>,
    pub(crate) columns: Vec<RecordColumns>,
}

impl Model {
    /// Checks whether a type contains bytes at any depth.
    pub(crate) fn has_bytes(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Bytes => true,
            Ty::Struct(index) => self.structs.get(*index).is_some_and(|s| s.shape.bytes),
            Ty::List(item) | Ty::Optional(item) => self.has_bytes(item),
            Ty::U64 | Ty::I64 | Ty::F32 | Ty::F64 | Ty::Named(_) | Ty::Unit | Ty::Array(_) => false,
        }
    }

    pub(crate) fn item_has_bytes(&self, item: usize) -> bool {
        self.has_bytes(&Ty::Struct(item))
    }
}
