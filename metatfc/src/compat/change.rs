//! A change from one DTD to another, with its kind, level and location.

use super::version::Level;
use metatf_parser::schema::{Record, Section};
use serde::Serialize;

/// The kind of a change. `docs/versions.md` explains the level of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    TagWidth,
    PredefinedTag,
    SectionAdded,
    SectionRemoved,
    SectionNumber,
    SectionForm,
    RecordAdded,
    RecordRemoved,
    RecordRenamed,
    RecordTag,
    RecordScope,
    FieldAdded,
    FieldRemoved,
    FieldRenamed,
    FieldOrder,
    FieldType,
    FieldWidth,
    FieldInterpretation,
    FieldPrevious,
    FieldRepetition,
    FieldConstant,
    FieldUnit,
    NameAdded,
    NameRemoved,
    NameChanged,
    Meaning,
}

impl Kind {
    /// Returns the level of a kind whose level is fixed.
    fn level(self) -> Level {
        match self {
            Kind::TagWidth | Kind::PredefinedTag => Level::Major,
            Kind::SectionAdded | Kind::RecordAdded | Kind::NameAdded => Level::Minor,
            _ => Level::Median,
        }
    }
}

/// The location of a change; all fields are `None` for the entire file.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Place {
    pub(super) section: Option<String>,
    pub(super) record: Option<String>,
    pub(super) field: Option<String>,
}

impl Place {
    pub(super) fn section(section: &Section) -> Self {
        Self { section: section.name.clone(), ..Self::default() }
    }

    pub(super) fn record(section: &Section, record: &Record) -> Self {
        Self { record: Some(record.name.clone()), ..Self::section(section) }
    }

    pub(super) fn field(&self, path: String) -> Self {
        Self { field: Some(path), ..self.clone() }
    }

    /// Formats the location as `section.record.field`, or `the file` if no section, record or field is set.
    pub(super) fn text(&self) -> String {
        let parts: Vec<&str> =
            [&self.section, &self.record, &self.field].into_iter().flatten().map(String::as_str).collect();
        if parts.is_empty() { "the file".to_owned() } else { parts.join(".") }
    }
}

/// A change.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Change {
    pub(super) level: Level,
    pub(super) kind: Kind,
    /// The location in the new DTD, or in the old DTD if the element was removed.
    #[serde(flatten)]
    pub(super) place: Place,
    /// A description, without the location.
    pub(super) text: String,
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
    /// Whether a reader built from the other DTD silently misinterprets the values.
    #[serde(skip)]
    pub(super) misread: bool,
}

impl Change {
    pub(super) fn new(kind: Kind, place: Place, text: impl Into<String>) -> Self {
        Self { kind, level: kind.level(), place, text: text.into(), old: None, new: None, misread: false }
    }

    /// Creates a change of a property from one value to another, such as `width: 1, now 2`.
    pub(super) fn of(kind: Kind, place: Place, what: &str, old: Option<String>, new: Option<String>) -> Self {
        // A unit or a name may contain any character.
        let shown = |value: &Option<String>| metatf_cli::shown(value.as_deref().unwrap_or("none")).into_owned();
        let text = format!("{what}: {}, now {}", shown(&old), shown(&new));
        Self { old, new, ..Self::new(kind, place, text) }
    }

    pub(super) fn renamed(kind: Kind, place: Place, old: &str, new: &str) -> Self {
        let (before, after) = (Some(old.to_owned()), Some(new.to_owned()));
        Self { old: before, new: after, ..Self::new(kind, place, format!("renamed from {old}")) }
    }

    pub(super) fn misread_if(self, misread: bool) -> Self {
        Self { misread, ..self }
    }
}
