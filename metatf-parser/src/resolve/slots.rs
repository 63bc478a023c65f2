//! The properties that one scope sets, searchable by field path and property name.

use std::cmp::Ordering;

use crate::ast::{Name, Setting};
use crate::codes::Code;
use crate::diagnostic::{Draft, LINE, Reporter};
use crate::vocabulary::Property;

/// The settings of one scope, sorted by path and name. Each entry also stores the first name of the path, so most
/// comparisons need not load the setting itself.
#[derive(Default)]
pub(super) struct Slots<'a>(Vec<Entry<'a>>);

type Entry<'a> = (&'a str, &'a Setting<'a>);

/// The properties, including annotations, that one scope or type sets for one field path.
#[derive(Clone, Copy)]
pub(super) struct Slot<'m, 'a> {
    entries: &'m [Entry<'a>],
    of_type: &'a [Setting<'a>],
}

impl<'a> Slots<'a> {
    /// Collects settings in text order, and reports properties set twice in one scope (spec 3.1).
    pub(super) fn new(settings: Vec<&'a Setting<'a>>, report: &mut Reporter) -> Slots<'a> {
        let first = |setting: &'a Setting<'a>| setting.path.first().map_or("", |name| name.text);
        let mut entries: Vec<Entry> = settings.into_iter().map(|setting| (first(setting), setting)).collect();
        entries.sort_by(|a, b| order(*a, *b).then_with(|| key(a.1).cmp(&key(b.1))));
        entries.dedup_by(|(name, second), (first_name, first)| {
            let same = key(first) == key(second) && order((*first_name, *first), (*name, *second)) == Ordering::Equal;
            if same {
                let message = format!("`{}.{}` is set twice", second.path_text(), second.name.text);
                report.add(
                    Draft::new(Code::PropertyTwice, second.target(), message)
                        .also(first.target(), "first set here")
                        .help(format!("remove one of the two statements, such as `{LINE}`"))
                        .quote(second.target()),
                );
            }
            same
        });
        Slots(entries)
    }

    /// Finds the properties of a path such as `vfield`, `length`.
    pub(super) fn get(&self, path: &[&str]) -> Option<Slot<'_, 'a>> {
        let compare = |(first, setting): &Entry| {
            let start = path.first().map_or(Ordering::Greater, |wanted| first.cmp(wanted));
            start.then_with(|| compare(&setting.path, path, |name| name))
        };
        let start = self.0.partition_point(|entry| compare(entry) == Ordering::Less);
        let rest = self.0.get(start..)?;
        let end = rest.iter().take_while(|entry| compare(entry) == Ordering::Equal).count();
        (end > 0).then_some(Slot::entries(rest.get(..end)?))
    }

    /// Returns an iterator over the paths.
    pub(super) fn iter(&self) -> impl Iterator<Item = Slot<'_, 'a>> {
        self.0.chunk_by(|a, b| order(*a, *b) == Ordering::Equal).map(Slot::entries)
    }
}

/// Returns the key of a setting. An annotation with a quoted name is different from the property with the same name.
fn key<'s>(setting: &'s Setting) -> (bool, &'s str) {
    (setting.quoted, setting.name.text)
}

/// Compares the paths of two settings.
fn order((first, a): Entry, (other, b): Entry) -> Ordering {
    first.cmp(other).then_with(|| compare(&a.path, &b.path, |name| name.text))
}

/// Compares a path with a list of names.
fn compare<N>(path: &[Name], names: &[N], text: impl Fn(&N) -> &str) -> Ordering {
    for (name, other) in path.iter().zip(names) {
        match name.text.cmp(text(other)) {
            Ordering::Equal => {}
            different => return different,
        }
    }
    path.len().cmp(&names.len())
}

impl<'m, 'a> Slot<'m, 'a> {
    fn entries(entries: &'m [Entry<'a>]) -> Slot<'m, 'a> {
        Slot { entries, of_type: &[] }
    }

    /// Returns the properties that a type sets.
    pub(super) fn of(settings: &'a [Setting<'a>]) -> Slot<'m, 'a> {
        Slot { entries: &[], of_type: settings }
    }

    /// Finds the setting of a property.
    pub(super) fn get(&self, property: Property) -> Option<&'a Setting<'a>> {
        self.settings().find(|setting| setting.property == Some(property))
    }

    /// Returns all settings.
    pub(super) fn settings(&self) -> impl Iterator<Item = &'a Setting<'a>> + use<'m, 'a> {
        self.entries.iter().map(|(_, setting)| *setting).chain(self.of_type)
    }

    /// Returns the first setting in the text.
    pub(super) fn first(&self) -> Option<&'a Setting<'a>> {
        self.settings().min_by_key(|setting| setting.target())
    }

    /// Returns the first doc comment above a property.
    pub(super) fn doc(&self) -> Option<&'a str> {
        self.settings().filter(|s| s.doc.is_some()).min_by_key(|s| s.target())?.doc.as_deref()
    }
}
