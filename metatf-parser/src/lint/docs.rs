//! Rules for missing documentation.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use super::{Linter, Rule};
use crate::index::{Index, ResolvedField, Symbol, SymbolKind};
use crate::schema::Origin;
use crate::vocabulary::Property;

pub(super) fn check(linter: &mut Linter, wanted: &impl Fn(Rule) -> bool) {
    let index = linter.index;
    let symbols = index.symbols.iter().filter(|symbol| symbol.doc.is_none() && !symbol.predefined);
    let places = |kind| {
        let of_kind = symbols.clone().filter(move |symbol| symbol.kind == kind);
        of_kind.filter_map(|symbol| Some((symbol.name.as_str(), symbol.definitions.first()?)))
    };
    // If the DTD has only one section, the comment at the head of the DTD documents the section.
    let sections = index.outline.iter().filter(|declared| declared.kind == SymbolKind::Section).count();
    let head = !linter.lexed.comments_before(0).is_empty();
    for (name, place) in places(SymbolKind::Section).filter(|_| sections > 1 || !head) {
        let message = format!("section `{name}` has no documentation");
        linter.add(Rule::UndocumentedSection, place, message, "describe the section's content in a comment above it");
    }
    let only = only_ones(index);
    for (name, place) in places(SymbolKind::Record).filter(|(_, place)| !only.contains(&place.start)) {
        let message = format!("record `{name}` has no documentation");
        linter.add(
            Rule::UndocumentedRecord,
            place,
            message,
            "add a comment above the record that explains when it is written",
        );
    }
    // Fields are the largest part of a DTD, so skip them if the rule is off.
    let fields = if wanted(Rule::UndocumentedField) { fields(linter) } else { Vec::new() };
    for (place, name) in fields {
        let message = format!("field `{name}` has no documentation");
        linter.add(Rule::UndocumentedField, &place, message, "describe the field in a comment above its properties");
    }
}

/// Returns the offsets of the names of records that need no documentation, because each is the only record in a
/// documented section. The elements of tables are typical examples.
fn only_ones(index: &Index) -> HashSet<usize> {
    let documented: HashSet<usize> = index.symbols.iter().filter_map(documented_section).collect();
    let sections = index.outline.iter().filter(|declared| declared.kind == SymbolKind::Section);
    let only = sections.filter(|section| section.children.len() == 1 && documented.contains(&section.span.start));
    only.filter_map(|section| Some(section.children.first()?.span.start)).collect()
}

fn documented_section(symbol: &Symbol) -> Option<usize> {
    let is = symbol.kind == SymbolKind::Section && symbol.doc.is_some();
    symbol.definitions.first().filter(|_| is).map(|place| place.start)
}

/// Returns the name of each undocumented field once, with the location of a property of the field or, without such a
/// property, its location in the field list.
fn fields(linter: &Linter) -> Vec<(Range<usize>, String)> {
    let mut found = BTreeMap::new();
    for record in &linter.index.records {
        let own = |field: &&ResolvedField| !field.leaf.is_implied() && !is_of_vfield(field);
        // If a stream element has only one field, its section's comment documents the field.
        if record.tag.is_none() && record.fields.iter().filter(own).count() <= 1 {
            continue;
        }
        for field in record.fields.iter().filter(own).filter(|field| field.leaf.doc.is_none()) {
            let set = field.set(Property::Width).or_else(|| field.set(Property::Interpretation));
            let place = set.and_then(|set| set.span.as_ref()).unwrap_or(&field.site);
            found.insert((place.start, place.end), field.leaf.name.clone());
        }
    }
    found.into_iter().map(|((start, end), name)| (start..end, name)).collect()
}

/// Checks whether a field belongs to the predefined `vfield`, which a repetition may give another name.
fn is_of_vfield(field: &ResolvedField) -> bool {
    let nested = field.leaf.path.iter().rev().nth(1);
    let by_name = nested.is_some_and(|key| key == "vfield" || key.starts_with("vfield_"));
    let by_block = matches!(&field.leaf.interpretation_origin, Origin::Block(record) if &**record == "vfield");
    (by_name || by_block) && matches!(field.leaf.name.as_str(), "length" | "data")
}
