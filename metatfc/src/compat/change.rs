//! A change from one DTD to another: its kind, its level, and where it is.

use super::version::Level;
use metatf_parser::schema::{Record, Section};
use serde::Serialize;

/// What changed. `docs/versions.md` has the reason for the level of each.
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
    /// Returns its level, if the level is that of the kind.
    fn level(self) -> Level {
        match self {
            Kind::TagWidth | Kind::PredefinedTag => Level::Major,
            Kind::SectionAdded | Kind::RecordAdded | Kind::NameAdded => Level::Minor,
            _ => Level::Median,
        }
    }
}

/// Where a change is: nothing for the whole file.
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

    /// `section.record.field`; `the file` for the whole.
    pub(super) fn text(&self) -> String {
        let parts: Vec<&str> =
            [&self.section, &self.record, &self.field].into_iter().flatten().map(String::as_str).collect();
        if parts.is_empty() { "the file".to_owned() } else { parts.join(".") }
    }
}

/// One change.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Change {
    pub(super) level: Level,
    pub(super) kind: Kind,
    /// In the new DTD; of what was removed, in the old one.
    #[serde(flatten)]
    pub(super) place: Place,
    /// In words, without the place.
    pub(super) text: String,
    pub(super) old: Option<String>,
    pub(super) new: Option<String>,
    /// A reader by the other DTD takes the values for something else, and cannot know.
    #[serde(skip)]
    pub(super) misread: bool,
}

impl Change {
    pub(super) fn new(kind: Kind, place: Place, text: impl Into<String>) -> Self {
        Self { kind, level: kind.level(), place, text: text.into(), old: None, new: None, misread: false }
    }

    /// Makes the change of a property from one value to another: `width: 1, now 2`.
    pub(super) fn of(kind: Kind, place: Place, what: &str, old: Option<String>, new: Option<String>) -> Self {
        // A unit and a name may hold any character.
        let shown = |value: &Option<String>| metatf_cli::shown(value.as_deref().unwrap_or("none")).into_owned();
        let text = format!("{what}: {}, now {}", shown(&old), shown(&new));
        Self { old, new, ..Self::new(kind, place, text) }
    }

    pub(super) fn renamed(kind: Kind, place: Place, old: &str, new: &str) -> Self {
        let (before, after) = (Some(old.to_owned()), Some(new.to_owned()));
        Self { old: before, new: after, ..Self::new(kind, place, format!("renamed, was {old}")) }
    }

    pub(super) fn misread_if(self, misread: bool) -> Self {
        Self { misread, ..self }
    }
}
