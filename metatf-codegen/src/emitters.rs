//! Plans the emitters of a running program: which records get an emitter, its arguments, and the layout of the values
//! in an event.
//!
//! Annotations control the emitters: `tag.kind` names the kind of a record, `tag.rate` puts rare records into separate
//! buffers, `type` sets the type of a field, and `source` determines what fills in the field. The resulting table of
//! events is text. The crate `metatf-telemetry` reads this table, and so do other processes, which find it in a
//! program's buffers.
//!
//! This file exceeds 400 lines, a quarter of which are types and error messages.

use std::fmt::Write as _;

use metatf_parser::schema::{
    Dtd, ExprOp, Format, Interpretation, Item, Leaf, LeafId, METADATA, Record, Section, Width,
};

use crate::docs;
use crate::names::{Scope, camel, ident, snake};
use crate::options::{Lookup, OptionError, Options};
use crate::repetition::repetition;
use crate::uses::Uses;

/// Maximum number of kinds. The last bit of the control word is reserved for notes.
const KINDS_MOST: usize = 63;
/// Maximum length of a byte array of fixed length in a plain record.
pub(crate) const PLAIN_MOST: u32 = 1024;
/// The kind of records without a `kind` annotation.
const OTHER: &str = "Other";

/// All emitters of a DTD.
#[derive(Clone, Debug, Default)]
pub(crate) struct Emitters {
    pub(crate) kinds: Vec<String>,
    pub(crate) events: Vec<Event>,
    /// The records without an emitter.
    pub(crate) without: Vec<Missing>,
    /// The record that stores the number of dropped events.
    pub(crate) dropped: Option<Event>,
    /// The record that relates the two clocks.
    pub(crate) clock_sync: Option<Event>,
    /// The record that stores a string and its ID. The function that returns the ID is named after this record.
    pub(crate) intern: Option<Event>,
    /// The elements of the tables to which records refer by offset.
    pub(crate) tables: Vec<Event>,
    /// The table of events.
    pub(crate) table: String,
}

/// A record without an emitter.
#[derive(Clone, Debug)]
pub(crate) struct Missing {
    pub(crate) record: String,
    /// The reason as a clause about the record, such as `it repeats fields`.
    pub(crate) reason: String,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` ({})", self.record, self.reason)
    }
}

/// An emitter.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// The name of the function and the macro.
    pub(crate) name: String,
    /// The name of the struct for the arguments.
    pub(crate) arguments: String,
    pub(crate) docs: Vec<String>,
    /// The bit of the event's kind.
    pub(crate) kind: usize,
    /// Whether the event's kind is compiled at all.
    pub(crate) compiled: bool,
    /// Whether the event is written to the ring for rare events, where frequent events do not overwrite it.
    pub(crate) rare: bool,
    pub(crate) fields: Vec<Argument>,
    /// The values in each word, with their shifts.
    pub(crate) words: Vec<Vec<(u8, Bits)>>,
    /// The number of the section.
    pub(crate) section: u8,
    pub(crate) tag: u32,
    /// Whether the words hold all values of the record. Otherwise, only a header for C can emit the record.
    pub(crate) plain: bool,
    /// The source of each leaf's value, except for the tag.
    pub(crate) given: Vec<Given>,
}

/// The source of a leaf's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// A constant in the DTD.
    Constant(u64),
    /// The length of this leaf.
    Length(LeafId),
    /// A count that is computed from other values, and stores nothing.
    Computed,
    /// The argument with this index.
    Argument(usize),
    Clock,
    Thread,
    Process,
    /// A value that telemetry fills in: the number of dropped events, or the wall-clock time.
    Own,
    /// The ID of a string.
    OwnId,
    /// The string with that ID.
    OwnText,
}

/// An argument.
#[derive(Clone, Debug)]
pub(crate) struct Argument {
    pub(crate) name: String,
    pub(crate) machine: Machine,
    pub(crate) docs: Vec<String>,
}

/// A part of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bits {
    Stamp,
    /// The value of the argument with this index.
    Value(usize),
    /// The length of the argument with this index.
    Length(usize),
}

/// A machine type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Machine {
    Unsigned(u8),
    Signed(u8),
    Bool,
    /// A float in a field with the format `f64`.
    F32,
    /// A float in a field with the format `f32`.
    Single,
    F64,
    /// The ID of a string.
    Id,
    Text,
    Bytes,
    Array(u32),
}

impl Machine {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "u8" => Self::Unsigned(8),
            "u16" => Self::Unsigned(16),
            "u32" => Self::Unsigned(32),
            "u64" => Self::Unsigned(64),
            "i8" => Self::Signed(8),
            "i16" => Self::Signed(16),
            "i32" => Self::Signed(32),
            "i64" => Self::Signed(64),
            "bool" => Self::Bool,
            "f32" => Self::F32,
            "f64" => Self::F64,
            "string" => Self::Text,
            "bytes" => Self::Bytes,
            _ => return None,
        })
    }

    /// Returns the number of bits in a word.
    fn bits(self) -> u8 {
        match self {
            Self::Unsigned(bits) | Self::Signed(bits) => bits,
            Self::Bool => 8,
            Self::F32 | Self::Single | Self::Id => 32,
            Self::F64 => 64,
            Self::Text | Self::Bytes => 16,
            Self::Array(_) => 0,
        }
    }

    /// Checks whether the value is a number rather than bytes.
    pub(crate) fn is_number(self) -> bool {
        !self.is_bytes()
    }

    fn is_bytes(self) -> bool {
        matches!(self, Self::Text | Self::Bytes | Self::Array(_))
    }

    /// Returns the type's name in the table of events.
    fn in_table(self) -> String {
        match self {
            Self::Unsigned(bits) => format!("u{bits}"),
            Self::Signed(bits) => format!("i{bits}"),
            Self::Bool => "bool".to_owned(),
            Self::F32 => "f32".to_owned(),
            Self::Single => "single".to_owned(),
            Self::F64 => "f64".to_owned(),
            Self::Id => "u32".to_owned(),
            Self::Text => "text".to_owned(),
            Self::Bytes => "bytes".to_owned(),
            Self::Array(bytes) => format!("*{bytes}"),
        }
    }
}

/// The records that a language can emit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Records whose values fit in the words and the tail of an event.
    Plain,
    /// All records, including those with repetitions, optional fields and references.
    Nested,
}

/// Plans the emitters of a DTD.
///
/// # Errors
/// Returns an error if an annotation is invalid, or if a kind to omit is not the kind of any record.
pub(crate) fn emitters(
    dtd: &Dtd,
    lookup: &Lookup<'_>,
    options: &Options,
    reach: Reach,
) -> Result<Emitters, OptionError> {
    let has_strings =
        |record: &Record| role(record).is_ok_and(|role| role == Role::Intern) && not_plain(record).is_none();
    let interns = dtd.records.iter().any(has_strings);
    let mut planner = Planner {
        dtd,
        lookup,
        interns,
        reach,
        out: Emitters::default(),
        names: Scope::default(),
        types: Scope::default(),
        tables: Scope::default(),
    };
    let mut rows = String::new();
    for section in &dtd.sections {
        if section.stream.is_some() {
            for element in section.records.iter().filter_map(|id| dtd.record(*id)) {
                planner.element(section, element)?;
            }
            continue;
        }
        let own = section.records.iter().filter(|id| **id > METADATA);
        for record in own.filter_map(|id| dtd.record(*id)) {
            // A global record may occur in any section, but it is emitted only in the global section.
            let home = record.section.map_or(0, |id| dtd.sections.get(usize::from(id.0)).map_or(0, |s| s.number));
            if home == section.number {
                planner.record(section.number, record, &mut rows)?;
            }
        }
    }
    let mut out = planner.out;
    for kind in &options.without_kinds {
        let Some(bit) = out.kinds.iter().position(|known| known.eq_ignore_ascii_case(kind)) else {
            let known = out.kinds.join(", ");
            return Err(OptionError(format!(
                "cannot omit the kind `{kind}`, because no record has this kind: expected one of {known}"
            )));
        };
        out.events.iter_mut().filter(|event| event.kind == bit).for_each(|event| event.compiled = false);
    }
    let rare: String = out.events.iter().filter(|event| event.rare).map(|event| format!(" {}", event.name)).collect();
    let rare = if rare.is_empty() { rare } else { format!("rare{rare}\n") };
    out.table = format!("kinds {}\n{rare}{rows}", out.kinds.join(" "));
    Ok(out)
}

struct Planner<'s, 'd> {
    dtd: &'d Dtd,
    lookup: &'s Lookup<'s>,
    /// Whether strings have IDs, which requires a record that stores a string and its ID.
    interns: bool,
    reach: Reach,
    out: Emitters,
    names: Scope,
    types: Scope,
    tables: Scope,
}

/// The reason why emitters omit a byte array without a length.
const EXTENDS: &str = "extends to the end of its content";

/// The role of a record for emitters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Event,
    Dropped,
    ClockSync,
    Intern,
}

impl Planner<'_, '_> {
    fn record(&mut self, section: u8, record: &Record, rows: &mut String) -> Result<(), OptionError> {
        // Without nested records, a catch-all record only reads records emitted by other programs.
        let is_read_only = record.catch_all && self.reach == Reach::Plain;
        let Some(tag) = record.tag.filter(|_| !is_read_only) else { return Ok(()) };
        if let Some(leaf) = record.ends_by_content() {
            let reason = match leaf.width {
                Width::Rest => format!("`{}` {EXTENDS}", named(leaf)),
                _ => format!("its items are not counted: `{}`", leaf.key),
            };
            self.out.without.push(Missing { record: record.name.clone(), reason });
            return Ok(());
        }
        let role = role(record)?;
        let complex = not_plain(record);
        let plain = complex.is_none() && !record.catch_all;
        if let Some(reason) = complex.filter(|_| self.reach == Reach::Plain || role != Role::Event) {
            self.out.without.push(Missing { record: record.name.clone(), reason });
            return Ok(());
        }
        let kind = self.kind(record)?;
        let (sources, Layout { fields, words, given, .. }) =
            Layout::of(self.dtd, record, role, self.interns, self.lookup)?;
        let word = match role {
            Role::Event => "event",
            Role::Dropped => "dropped",
            Role::ClockSync => "clock_sync",
            Role::Intern => "intern",
        };
        let count = match role {
            Role::Event => words.len(),
            Role::Dropped | Role::ClockSync => 2,
            Role::Intern => 1,
        };
        let sources = if plain { sources } else { nested_sources(record, &given) };
        let word = if plain { word } else { "nested" };
        let sources = sources.join(" ");
        let _ = writeln!(rows, "{word} {} {section} {tag} {kind} {count} {sources}", record.name);
        let wanted = self.lookup.rename(std::slice::from_ref(&record.name)).unwrap_or_else(|| record.name.clone());
        let (name, arguments) = match role {
            Role::Event => (self.names.take(&[snake(&wanted)]), self.types.take(&[camel(&wanted)])),
            Role::Intern => (self.names.take(&[snake(&wanted)]), String::new()),
            Role::Dropped | Role::ClockSync => Default::default(),
        };
        let docs = docs::or(docs::lines(record.doc.as_deref()), || format!("Emits `{}`.", record.name));
        let rare = is_rare(record, role, &given)?;
        let event =
            Event { name, arguments, docs, kind, compiled: true, rare, fields, words, section, tag, plain, given };
        match role {
            Role::Event => self.out.events.push(event),
            Role::Dropped => self.out.dropped = Some(event),
            Role::ClockSync => self.out.clock_sync = Some(event),
            Role::Intern if self.out.intern.is_some() => {
                let name = &record.name;
                return Err(OptionError(format!(
                    "`{name}` is the second record with the source `intern`, but a DTD may have only one"
                )));
            }
            Role::Intern => self.out.intern = Some(event),
        }
        Ok(())
    }

    /// Adds the element of a stream section, if records refer to it by offset. The values of a section that records
    /// stride through or predict from are arguments of these records.
    fn element(&mut self, section: &Section, element: &Record) -> Result<(), OptionError> {
        let missing = |reason: &str| Missing { record: element.name.clone(), reason: reason.to_owned() };
        if self.reach == Reach::Plain {
            self.out.without.push(missing("it is an element of a stream section, so it has no tag"));
            return Ok(());
        }
        let number = section.number;
        let mut leaves = self.dtd.records.iter().flat_map(|record| &record.leaves);
        let is_table = leaves.clone().any(|l| l.interpretation == Interpretation::SectionOffset(number));
        let is_column = leaves.any(|l| l.interpretation.stream() == Some(number))
            || self.dtd.models.iter().any(|model| model.section == number);
        if is_table && is_column {
            let reason = "fields refer to its section, and other fields stride through it or are predicted from it";
            self.out.without.push(missing(reason));
        } else if is_table {
            let (_, Layout { fields, words, given, .. }) =
                Layout::of(self.dtd, element, Role::Event, self.interns, self.lookup)?;
            let wanted = section.name.clone().unwrap_or_default();
            let wanted = self.lookup.rename(std::slice::from_ref(&wanted)).unwrap_or(wanted);
            let name = self.tables.take(&[snake(&wanted)]);
            let docs = docs::lines(element.doc.as_deref());
            self.out.tables.push(Event {
                name,
                docs,
                fields,
                words,
                given,
                arguments: String::new(),
                kind: 0,
                compiled: true,
                rare: false,
                section: number,
                tag: 0,
                plain: false,
            });
        } else if !is_column {
            self.out.without.push(missing("it is an element of a stream section to which no field refers"));
        }
        Ok(())
    }

    /// Returns the bit of a record's kind.
    fn kind(&mut self, record: &Record) -> Result<usize, OptionError> {
        let name = record.leaves.first().and_then(|tag| annotation(tag, "kind")).unwrap_or_else(|| OTHER.to_owned());
        let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if !plain || ["all", "none", "notes"].contains(&name.as_str()) || name.starts_with(|c: char| c.is_ascii_digit())
        {
            let record = &record.name;
            return Err(OptionError(format!(
                "the kind `{name}` of the record `{record}` is not a valid name: expected letters, digits, `_` and \
                 `-`, not starting with a digit, and none of the reserved words `all`, `none` and `notes`"
            )));
        }
        if let Some(bit) = self.out.kinds.iter().position(|known| known.eq_ignore_ascii_case(&name)) {
            return Ok(bit);
        }
        if self.out.kinds.len() == KINDS_MOST {
            return Err(OptionError(format!("the DTD uses more than {KINDS_MOST} event kinds (`tag.kind`)")));
        }
        self.out.kinds.push(name);
        Ok(self.out.kinds.len() - 1)
    }
}

/// Returns the number of leaves that precede the fields of a record: its tag, unless the tag is a field.
pub(crate) fn first(record: &Record) -> usize {
    usize::from(record.tag.is_some() && !record.catch_all)
}

/// Returns the sources of a nested record's first fields, of which only the thread matters. The values of a record are
/// numbered like its fields up to the first repetition.
fn nested_sources(record: &Record, given: &[Given]) -> Vec<String> {
    let fields = record.leaves.iter().skip(first(record)).take_while(|l| !l.repeated && l.computed.is_none());
    let source = |given: &Given| if *given == Given::Thread { "_:thread" } else { "_:=0" };
    fields.zip(given).map(|(_, given)| source(given).to_owned()).collect()
}

/// Returns an annotation without its quotes.
fn annotation(leaf: &Leaf, name: &str) -> Option<String> {
    leaf.annotations.get(name).map(|value| value.trim_matches('"').to_owned())
}

fn role(record: &Record) -> Result<Role, OptionError> {
    match record.leaves.first().and_then(|tag| annotation(tag, "source")).as_deref() {
        None => Ok(Role::Event),
        Some("dropped") => Ok(Role::Dropped),
        Some("clock_sync") => Ok(Role::ClockSync),
        Some("intern") => Ok(Role::Intern),
        Some(other) => Err(OptionError(format!(
            "the record `{}` has the source `{other}`: expected `dropped`, `clock_sync` or `intern`",
            record.name
        ))),
    }
}

/// Returns whether a record is rare. A rare record needs a time, because rare events are merged with other events by
/// time.
fn is_rare(record: &Record, role: Role, given: &[Given]) -> Result<bool, OptionError> {
    let name = &record.name;
    match record.leaves.first().and_then(|tag| annotation(tag, "rate")).as_deref() {
        None => Ok(false),
        Some("rare") if role == Role::Event && given.contains(&Given::Clock) => Ok(true),
        Some("rare") => Err(OptionError(format!(
            "the record `{name}` has the rate `rare`, so it must be an event with a field that has the source `clock`, \
             which orders the record among other events"
        ))),
        Some(other) => Err(OptionError(format!("the record `{name}` has the rate `{other}`: expected `rare`"))),
    }
}

/// Returns the reason why a record has no emitter: it contains a repetition, an offset, or a computed, constant or
/// shared length. Returns `None` if all values of the record are plain.
fn not_plain(record: &Record) -> Option<String> {
    if record.leaves.iter().any(|l| l.repeated) || record.items.iter().any(repeats) {
        return Some("it has repeated fields".to_owned());
    }
    let uses = Uses::of(record);
    record.leaves.iter().find_map(|l| {
        let reason = match (&l.width, l.interpretation) {
            (_, Interpretation::SectionOffset(_) | Interpretation::SectionStride { .. }) => {
                "points into another section"
            }
            (Width::Variable(expr), _) => match expr.0[..] {
                [ExprOp::Leaf(id)] if uses.measures_one(record, id) => return None,
                [ExprOp::Leaf(_)] => "has a length that is constant or shared with another field",
                _ => "has a computed length",
            },
            (Width::Array(bytes), _) if *bytes > PLAIN_MOST => "has more than 1024 bytes",
            (Width::Until(_), _) => "ends at a terminator",
            (Width::Rest, _) => EXTENDS,
            (Width::Unset | Width::Number(_) | Width::Array(_), _) => return None,
        };
        Some(format!("`{}` {reason}", named(l)))
    })
}

fn repeats(item: &Item) -> bool {
    match item {
        Item::Leaf(_) => false,
        Item::Nested { items, .. } => items.iter().any(repeats),
        Item::Repeat { .. } => true,
    }
}

/// The layout of a record's values in the words of an event.
struct Layout<'s> {
    record: &'s Record,
    role: Role,
    interns: bool,
    fields: Vec<Argument>,
    words: Vec<Vec<(u8, Bits)>>,
    /// The number of bits used in each word.
    taken: Vec<u8>,
    given: Vec<Given>,
}

impl<'s> Layout<'s> {
    fn of(
        dtd: &Dtd,
        record: &'s Record,
        role: Role,
        interns: bool,
        lookup: &Lookup<'_>,
    ) -> Result<(Vec<String>, Self), OptionError> {
        let (fields, words) = (Vec::new(), Vec::new());
        let mut layout = Self { record, role, interns, fields, words, taken: Vec::new(), given: Vec::new() };
        let uses = Uses::of(record);
        let mut names = Scope::default();
        let mut sources = Vec::new();
        for (id, l) in (0..=u8::MAX).map(LeafId).zip(&record.leaves).skip(first(record)) {
            let (source, given) = match (l.constant, measured(record, &uses, id), annotation(l, "source")) {
                _ if l.computed.is_some() => (String::new(), Given::Computed),
                (Some(value), _, _) => (format!("={value}"), Given::Constant(value)),
                (None, Some(data), _) => (format!("#{}", data.0.saturating_sub(1)), Given::Length(data)),
                (None, None, Some(source)) => layout.filled(l, &source)?,
                (None, None, None) if role == Role::Intern => layout.interned(l)?,
                (None, None, None) => {
                    (layout.argument(dtd, id, l, lookup, &mut names)?, Given::Argument(layout.fields.len() - 1))
                }
            };
            sources.push(format!("{}:{source}", named(l)));
            layout.given.push(given);
        }
        if role == Role::Intern && !(layout.given.contains(&Given::OwnId) && layout.given.contains(&Given::OwnText)) {
            return Err(OptionError(format!(
                "the record `{}` has the source `intern`, so it must have a field with the role `string_id` and a \
                 field of variable length with the role `string`",
                record.name
            )));
        }
        Ok((sources, layout))
    }

    /// Adds a field that telemetry fills in.
    fn filled(&mut self, l: &Leaf, source: &str) -> Result<(String, Given), OptionError> {
        match (source, self.role) {
            ("clock", Role::Event) => {
                let (word, _) = self.place(64, Bits::Stamp);
                Ok((format!("stamp@{word}"), Given::Clock))
            }
            ("clock", _) => Ok(("stamp@1".to_owned(), Given::Clock)),
            ("thread", _) => Ok((source.to_owned(), Given::Thread)),
            ("process", _) => Ok((source.to_owned(), Given::Process)),
            ("count", Role::Dropped) | ("wall", Role::ClockSync) => Ok(("u64@0.0".to_owned(), Given::Own)),
            _ => Err(OptionError(format!(
                "the field `{}.{}` has the source `{source}`: expected `clock`, `thread` or `process`; a record with \
                 the source `dropped` can also use `count`, and a record with the source `clock_sync` can also use \
                 `wall`",
                self.record.name, l.name
            ))),
        }
    }

    /// Adds a field of the record that stores a string and its ID.
    fn interned(&self, l: &Leaf) -> Result<(String, Given), OptionError> {
        match (annotation(l, "role").as_deref(), &l.width) {
            (Some("string_id"), Width::Number(_) | Width::Unset) => Ok(("u32@0.32".to_owned(), Given::OwnId)),
            (Some("string"), Width::Variable(_)) => Ok(("text@0.0".to_owned(), Given::OwnText)),
            _ => Err(self.nobody(l)),
        }
    }

    fn nobody(&self, l: &Leaf) -> OptionError {
        let (record, name) = (&self.record.name, &l.name);
        OptionError(format!(
            "the field `{record}.{name}` has no value: because telemetry writes this record, the field must have a \
             `source`"
        ))
    }

    /// Adds a field that the program passes as an argument.
    fn argument(
        &mut self,
        dtd: &Dtd,
        id: LeafId,
        l: &Leaf,
        lookup: &Lookup<'_>,
        names: &mut Scope,
    ) -> Result<String, OptionError> {
        if self.role != Role::Event {
            return Err(self.nobody(l));
        }
        let machine = machine(self.record, l, self.interns)?;
        let key = named(l);
        let repetition = repetition(self.record, id).unwrap_or_default();
        let renamed = lookup.rename(&[format!("{}.{key}", self.record.name)]);
        let name = match l.repeated {
            // The item of each repetition has its own names.
            true => renamed.unwrap_or_else(|| snake(&named_at(l.path.get(repetition.keys..).unwrap_or_default()))),
            false => names.take(&[ident(&renamed.unwrap_or_else(|| snake(&key))).to_string()]),
        };
        let index = self.fields.len();
        self.fields.push(Argument { name, machine, docs: docs::of_leaf(dtd, self.record, l, false) });
        if let Machine::Array(_) = machine {
            return Ok(machine.in_table());
        }
        let bits = if machine.is_bytes() { Bits::Length(index) } else { Bits::Value(index) };
        let (word, shift) = self.place(machine.bits(), bits);
        Ok(format!("{}@{word}.{shift}", machine.in_table()))
    }

    /// Allocates bits in the first word with enough unused bits.
    fn place(&mut self, bits: u8, what: Bits) -> (usize, u8) {
        let fits = |taken: &u8| taken.next_multiple_of(bits).checked_add(bits).is_some_and(|end| end <= 64);
        let word = self.taken.iter().position(fits).unwrap_or_else(|| {
            self.taken.push(0);
            self.words.push(Vec::new());
            self.taken.len() - 1
        });
        let mut shift = 0;
        if let (Some(taken), Some(parts)) = (self.taken.get_mut(word), self.words.get_mut(word)) {
            shift = taken.next_multiple_of(bits);
            *taken = shift + bits;
            parts.push((shift, what));
        }
        (word, shift)
    }
}

/// Returns the byte array of the same item whose length is stored in a leaf, if the leaf has no other use.
fn measured(record: &Record, uses: &Uses, id: LeafId) -> Option<LeafId> {
    if !uses.measures_one(record, id) {
        return None;
    }
    let item = |id: LeafId| repetition(record, id);
    (0..=u8::MAX).map(LeafId).zip(&record.leaves).find_map(|(data, l)| match &l.width {
        Width::Variable(expr) if expr.0 == [ExprOp::Leaf(id)] && item(id) == item(data) => Some(data),
        _ => None,
    })
}

/// Returns the argument name of a leaf. For a `vfield`, this is its key.
pub(crate) fn named(l: &Leaf) -> String {
    named_at(&l.path)
}

fn named_at(path: &[String]) -> String {
    match path.split_last() {
        Some((last, above)) if last == "data" && above.last().is_some_and(|key| key.starts_with("vfield")) => {
            above.join("_")
        }
        _ => path.join("_"),
    }
}

/// Returns the type of a leaf, which is the type in the DTD or else a type that can hold all values of the leaf.
fn machine(record: &Record, l: &Leaf, interns: bool) -> Result<Machine, OptionError> {
    let own = match (&l.width, l.format, l.interpretation) {
        (Width::Array(bytes), _, _) => Machine::Array(*bytes),
        (Width::Variable(_), Format::Utf8, _) => Machine::Text,
        (Width::Variable(_) | Width::Until(_) | Width::Rest, _, _) => Machine::Bytes,
        _ if interns && annotation(l, "role").as_deref() == Some("string_id") => Machine::Id,
        (_, Format::F32, _) => Machine::Single,
        (_, Format::F64, _) => Machine::F64,
        (_, Format::Bool, _) => Machine::Bool,
        (_, Format::Signed, _) => Machine::Signed(64),
        (Width::Number(1), _, Interpretation::None) => Machine::Unsigned(8),
        (Width::Number(2), _, Interpretation::None) => Machine::Unsigned(16),
        (Width::Number(3 | 4), _, Interpretation::None) => Machine::Unsigned(32),
        _ => Machine::Unsigned(64),
    };
    let Some(wanted) = annotation(l, "type") else { return Ok(own) };
    let chosen = Machine::named(&wanted).filter(|chosen| chosen.is_bytes() == own.is_bytes());
    let chosen =
        if own == Machine::Single { chosen.filter(|chosen| *chosen == Machine::F32).map(|_| own) } else { chosen };
    let chosen = chosen.filter(|chosen| {
        own == Machine::Single || (l.format == Format::F64) == matches!(chosen, Machine::F32 | Machine::F64)
    });
    chosen.filter(|_| !matches!(own, Machine::Array(_))).ok_or_else(|| {
        let (record, name) = (&record.name, &l.name);
        OptionError(format!(
            "the field `{record}.{name}` cannot have the type `{wanted}`: numbers can be `u8` to `u64`, `i8` to `i64` or `bool`, \
             numbers with the format \"f64\" can be `f32` or `f64`, and bytes of variable length can be `string` or `bytes`"
        ))
    })
}
