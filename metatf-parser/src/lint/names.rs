//! The rule for names that are easily confused.

use std::collections::BTreeMap;

use super::{Linter, Rule};
use crate::index::SymbolKind;

pub(super) fn check(linter: &mut Linter) {
    for (kind, noun) in
        [(SymbolKind::Section, "sections"), (SymbolKind::Record, "records"), (SymbolKind::Field, "fields")]
    {
        of_kind(linter, kind, noun);
    }
}

/// Reports all names except the first in each group of similar names.
fn of_kind(linter: &mut Linter, kind: SymbolKind, noun: &str) {
    // For each exact spelling of a name, the place of its first declaration.
    let mut places = BTreeMap::new();
    for symbol in linter.index.symbols.iter().filter(|symbol| symbol.kind == kind && !symbol.predefined) {
        let Some(place) = symbol.definitions.first() else { continue };
        let first = places.entry(symbol.name.as_str()).or_insert(place);
        if place.start < first.start {
            *first = place;
        }
    }
    let mut alike: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for (name, place) in places {
        let plain: String = name.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect();
        alike.entry(plain).or_default().push((place, name));
    }
    for mut names in alike.into_values() {
        names.sort_by_key(|(place, _)| place.start);
        let Some(((first, known), others)) = names.split_first() else { continue };
        for (place, name) in others {
            let message = format!("{noun} `{known}` and `{name}` differ only in case or underscores");
            let other = linter.label(first, "the other name");
            let help = "rename one of them, and list the old name in `was` to keep existing traces readable";
            linter.add(Rule::SimilarNames, place, message, help).secondary.push(other);
        }
    }
}
