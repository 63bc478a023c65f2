//! The properties that one scope sets, found by field path and property name.

use std::cmp::Ordering;

use crate::ast::{self, Setting};
use crate::codes::Code;
use crate::diagnostic::{Draft, Reporter};
use crate::vocabulary::Property;

/// The properties of one scope, sorted by path and name: hostile texts hold very many, so each costs eight bytes.
#[derive(Default)]
pub(super) struct Slots<'a>(Vec<&'a Setting<'a>>);

/// The properties that one scope sets for one field path, annotations too.
#[derive(Clone, Copy)]
pub(super) struct Slot<'m, 'a>(&'m [&'a Setting<'a>]);

impl<'a> Slots<'a> {
    /// Collects settings in the order of the text; a property set twice in one scope is an error (spec 3.1).
    pub(super) fn new(mut settings: Vec<&'a Setting<'a>>, report: &mut Reporter) -> Slots<'a> {
        settings.sort_by(|a, b| names(a).cmp(names(b)).then_with(|| key(a).cmp(&key(b))));
        settings.dedup_by(|second, first| {
            let same = key(first) == key(second) && names(first).eq(names(second));
            if same {
                let message = format!("`{}.{}` is set twice", second.path_text(), second.name.text);
                report.add(
                    Draft::new(Code::PropertyTwice, second.target(), message)
                        .also(first.target(), "first set here")
                        .help("keep one of them"),
                );
            }
            same
        });
        Slots(settings)
    }

    /// Finds the properties of a path (`vfield.length`).
    pub(super) fn get(&self, path: &str) -> Option<Slot<'_, 'a>> {
        // Bytes have the order of their texts, and are split faster.
        let wanted = || path.as_bytes().split(|byte| *byte == b'.');
        let start = self.0.partition_point(|s| names(s).map(str::as_bytes).cmp(wanted()) == Ordering::Less);
        let rest = self.0.get(start..)?;
        let end = rest.partition_point(|s| names(s).map(str::as_bytes).eq(wanted()));
        (end > 0).then_some(Slot(rest.get(..end)?))
    }

    /// Goes through the paths.
    pub(super) fn iter(&self) -> impl Iterator<Item = Slot<'_, 'a>> {
        self.0.chunk_by(|a, b| names(a).eq(names(b))).map(Slot)
    }
}

/// Returns what a setting sets: an annotation whose name is quoted is another than the property of that name.
fn key<'s>(setting: &'s Setting) -> (bool, &'s str) {
    (setting.quoted, setting.name.text)
}

/// Returns the names of a setting's path.
fn names<'s>(setting: &'s Setting) -> impl Iterator<Item = &'s str> {
    setting.path.iter().map(|name: &'s ast::Name| name.text)
}

impl<'m, 'a> Slot<'m, 'a> {
    /// Finds the setting of a property.
    pub(super) fn get(&self, property: Property) -> Option<&'a Setting<'a>> {
        let found = self.0.binary_search_by(|setting| key(setting).cmp(&(false, property.name()))).ok()?;
        self.0.get(found).copied()
    }

    /// Returns all settings.
    pub(super) fn settings(&self) -> impl Iterator<Item = &'a Setting<'a>> + use<'m, 'a> {
        self.0.iter().copied()
    }

    /// Returns the setting that comes first in the text.
    pub(super) fn first(&self) -> Option<&'a Setting<'a>> {
        self.settings().min_by_key(|setting| setting.target())
    }

    /// Returns the doc comment above the first property that has one.
    pub(super) fn doc(&self) -> Option<&'a str> {
        self.settings().filter(|s| s.doc.is_some()).min_by_key(|s| s.target())?.doc.as_deref()
    }
}
