//! The options and the result of a comparison.

/// The scope of a comparison.
#[derive(Clone, Debug, Default)]
pub struct CompareOptions {
    /// The maximum number of differences to list; 0 lists all.
    pub max: usize,
    /// Whether to stop after `max` differences. By default, everything is compared and counted.
    pub stop: bool,
    /// Whether to also compare the order in which records of different sections are interleaved.
    pub order: bool,
    /// Fields (`size`, `alloc.size`) and records (`free`, `comment`) to exclude. `time` also excludes fields whose
    /// `format` is a time. With `address-base`, two addresses (numbers with the format `hex` or the name `address`) are
    /// equal if each always corresponds to the other; this requires memory for every address.
    pub ignore: Vec<String>,
    /// The names of the sections to compare, or `0` for the global section. If empty, all sections are compared. Stream
    /// sections in this list are compared element by element.
    pub sections: Vec<String>,
    /// Whether to also compare user metadata and the text of the DTD.
    pub metadata: bool,
}

/// One of the two compared traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The first trace.
    Left = 0,
    /// The second trace.
    Right = 1,
}

/// The result of a comparison.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// The differences, in the order of the records of each section.
    pub differences: Vec<Difference>,
    /// The items that only one of the DTDs defines, which were not compared.
    pub only: Vec<OneSided>,
    /// The number of records and elements compared.
    pub compared: u64,
    /// The counts of records and of differing records for each record type defined by both DTDs, in DTD order.
    pub records: Vec<RecordSummary>,
    /// For each section, the first position at which the record types differ, as a [`What::Record`]. Later records are
    /// counted, but no summary includes their values.
    pub out_of_step: Vec<Difference>,
    /// Whether there are, or may be, unlisted differences.
    pub stopped: bool,
    /// Whether both DTDs define records, but no record in common.
    pub nothing_in_common: bool,
}

/// The result for the records of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordSummary {
    /// The name of the section in the left trace; `None` for the global section.
    pub section: Option<String>,
    /// The name of the record in the left trace.
    pub record: String,
    /// The number of records in the left and the right trace.
    pub counts: [u64; 2],
    /// The number of pairs whose values were compared.
    pub compared: u64,
    /// The number of pairs whose values differ.
    pub differ: u64,
    /// The differing fields, each with the number of records in which it differs.
    pub fields: Vec<(String, u64)>,
}

impl RecordSummary {
    /// Checks whether all records were compared and are equal.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.differ == 0 && self.counts == [self.compared; 2]
    }
}

/// A section, record or field that only one of the DTDs defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneSided {
    /// The DTD that defines the item.
    pub which: Which,
    /// A description, such as `field alloc.time`.
    pub what: String,
}

/// A record referred to in a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name of the record.
    pub record: String,
    /// The number of earlier data records in the same trace (in all sections), or of earlier elements in the same
    /// stream section.
    pub number: u64,
}

/// A formatted value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The value as in the JSON output (spec 8); an offset includes its element.
    pub json: String,
    /// The value for people, which is its name, its form according to `format`, or else the same as `json`.
    pub text: String,
}

/// A difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The name of the section in the left trace; `None` for the global section, or if the difference is not in a
    /// section.
    pub section: Option<String>,
    /// The records; `None` if a trace contains no more records.
    pub records: [Option<Named>; 2],
    /// The kind of difference.
    pub what: What,
}

/// The kind of a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The values of a field; `None` if a record contains fewer items.
    Field(String, [Option<Shown>; 2]),
    /// Records of different types at the same position.
    Record,
    /// One trace contains this number of additional records or elements in the section. `records` names the first of
    /// these.
    More(Which, u64),
    /// User metadata with this key, as JSON.
    User(String, [Option<String>; 2]),
    /// The text of the DTD.
    Dtd,
}

impl Comparison {
    /// Returns whether no difference was found.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.differences.is_empty() && !self.nothing_in_common
    }
}
