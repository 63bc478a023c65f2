//! What is asked of a comparison, and what it reports.

/// What to compare.
#[derive(Clone, Debug, Default)]
pub struct CompareOptions {
    /// Differences that are listed; 0: all.
    pub max: usize,
    /// Stop when this many are found. Without it everything is compared and counted.
    pub stop: bool,
    /// The order of records over sections counts, too.
    pub order: bool,
    /// Fields (`size`, `alloc.size`) and records (`free`, `comment`) that are left out. `time` also means fields whose `format` is
    /// a time. `address-base` means that two addresses (numbers with the format `hex` or the name `address`) are the same if each
    /// always stands for the other; this takes memory for each address.
    pub ignore: Vec<String>,
    /// Sections by name, `0` the global one; none: all. A stream section named here is compared element by element.
    pub sections: Vec<String>,
    /// Compare user metadata and the text of the DTD, too.
    pub metadata: bool,
}

/// One of the two traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The first.
    Left = 0,
    /// The second.
    Right = 1,
}

/// What became of it.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Differences, in the order of the records of each section.
    pub differences: Vec<Difference>,
    /// What only one of the DTDs has; it was not compared.
    pub only: Vec<OneSided>,
    /// Records and elements that were compared.
    pub compared: u64,
    /// For each type of record that both DTDs have, in their order: how many there are, and how many differ.
    pub records: Vec<RecordSummary>,
    /// For each section, the first place where records of different types stand: a [`What::Record`]. Behind it records are counted,
    /// and their values are in no summary.
    pub out_of_step: Vec<Difference>,
    /// There are, or may be, differences that are not listed.
    pub stopped: bool,
    /// The DTDs have records, and none in common.
    pub nothing_in_common: bool,
}

/// What was found out about the records of one type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordSummary {
    /// Name of the section on the left; `None` for the global section.
    pub section: Option<String>,
    /// The record's name on the left.
    pub record: String,
    /// How many there are, left and right.
    pub counts: [u64; 2],
    /// Pairs of which the values were compared.
    pub compared: u64,
    /// How many of these differ.
    pub differ: u64,
    /// Fields that differ, each with the number of records in which it does.
    pub fields: Vec<(String, u64)>,
}

impl RecordSummary {
    /// Checks whether all records were compared, and are the same.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.differ == 0 && self.counts == [self.compared; 2]
    }
}

/// A section, record or field that only one of the DTDs has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OneSided {
    /// Which one has it.
    pub which: Which,
    /// What it is: `field alloc.time`.
    pub what: String,
}

/// A record that is named in a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The record's name.
    pub record: String,
    /// Data records before it in its trace (in all sections); elements before it in its stream section.
    pub number: u64,
}

/// A value, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// As spec 8 prints it; an offset with its element.
    pub json: String,
    /// For people: a name of the value, or what its `format` makes of it. Else as `json`.
    pub text: String,
}

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Name of the section on the left; `None` for the global section, and for what is in none.
    pub section: Option<String>,
    /// The records; `None` where a trace has no more.
    pub records: [Option<Named>; 2],
    /// What differs.
    pub what: What,
}

/// What differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The values of a field; `None` where a record has fewer items.
    Field(String, [Option<Shown>; 2]),
    /// Different records stand at the same place.
    Record,
    /// One trace has this many records (elements) more in the section, the first of which is named.
    More(Which, u64),
    /// User metadata of this key, as JSON.
    User(String, [Option<String>; 2]),
    /// The DTDs' texts.
    Dtd,
}

impl Comparison {
    /// Whether no difference was found.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.differences.is_empty() && !self.nothing_in_common
    }
}
