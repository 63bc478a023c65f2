//! Property lookup (spec 3.1) in the scopes of a leaf, nearest first.

use std::collections::BTreeMap;

use super::layout::{Layout, RawLeaf};
use super::model::{Meaning, Model, VFIELD};
use super::properties::{NameLists, earlier};
use super::slots::Slot;
use super::types;
use crate::ast::{Setting, Value};
use crate::schema::{Format, Names, Origin, SectionId};
use crate::vocabulary::Property;

/// A property found for a leaf.
#[derive(Clone)]
pub(super) struct Found<'a> {
    pub(super) setting: &'a Setting<'a>,
    pub(super) origin: Origin,
    /// The frame whose record's block sets the property; `None` for a section or the global scope.
    pub(super) frame: Option<usize>,
}

/// The scopes that provide a leaf's properties, nearest first. Each entry contains the scope's settings for the leaf,
/// the scope, and the frame of the record if the scope is a block.
pub(super) struct Lookup<'m, 'a> {
    chain: Vec<Link<'m, 'a>>,
    /// Whether a mistake in the type of the leaf has been reported.
    pub(super) has_wrong_type: bool,
}

/// A scope or a type that provides properties.
struct Link<'m, 'a> {
    slot: Slot<'m, 'a>,
    origin: Origin,
    frame: Option<usize>,
    /// The comment above the type.
    doc: Option<&'a str>,
}

impl<'m, 'a> Lookup<'m, 'a> {
    /// Collects the scopes of spec 3.1: the block of the top record, the blocks of nested records from the outermost
    /// inwards, the type of the field, the top record's section, and the global scope. Leaves of a predefined record use
    /// only the blocks.
    pub(super) fn new(model: &'m Model<'a>, layout: &Layout, raw: &RawLeaf) -> Lookup<'m, 'a> {
        let mut chain = Vec::new();
        let mut has_wrong_type = false;
        let mut path = vec![raw.name];
        for frame in layout.frames_up(raw) {
            let Some(record) = layout.frames.get(frame).and_then(|f| model.records.get(f.record)) else { continue };
            // The chain is reversed below, so the type follows the block.
            let link = |slot, doc| Link { slot, origin: record.origin.clone(), frame: Some(frame), doc };
            match (path.as_slice(), path.first().and_then(|field| record.types.get(field))) {
                ([_], Some((typed, meaning))) => {
                    has_wrong_type |= types::is_wrong(model, *meaning);
                    let links = types::links(model, typed, *meaning).into_iter().rev();
                    chain.extend(links.map(|found| link(found.slot, found.doc)));
                }
                ([_, "data"], Some((_, Meaning::Text(settings)))) => chain.push(link(Slot::of(settings), None)),
                _ => {}
            }
            chain.extend(record.slots.get(&path).map(|slot| link(slot, None)));
            if let Some((_, field)) = layout.frames.get(frame).and_then(|f| f.parent) {
                path.insert(0, field);
            }
        }
        chain.reverse();
        if layout.frames.get(raw.frame).is_some_and(|f| f.record == VFIELD) {
            return Lookup { chain, has_wrong_type };
        }
        let scope = model.records.get(layout.record).map_or(0, |r| r.scope);
        let section = (scope != 0).then_some(scope);
        for scope in section.into_iter().chain([0]) {
            let Some(found) = model.scopes.get(scope) else { continue };
            let origin = match u16::try_from(scope) {
                Ok(id) if id > 0 => Origin::Section(SectionId(id)),
                _ => Origin::Global,
            };
            let link = |slot, doc| Link { slot, origin: origin.clone(), frame: None, doc };
            chain.extend(found.slots.get(&[raw.name]).map(|slot| link(slot, None)));
            if let Some((typed, meaning)) = found.types.get(raw.name) {
                has_wrong_type |= types::is_wrong(model, *meaning);
                chain.extend(types::links(model, typed, *meaning).into_iter().map(|found| link(found.slot, found.doc)));
            }
        }
        Lookup { chain, has_wrong_type }
    }

    pub(super) fn find(&self, property: Property) -> Option<Found<'a>> {
        self.chain.iter().find_map(|link| {
            Some(Found { setting: link.slot.get(property)?, origin: link.origin.clone(), frame: link.frame })
        })
    }

    /// Returns the nearest setting of each property that is set.
    #[cfg(feature = "index")]
    pub(super) fn all(&self) -> Vec<(Property, &'a Setting<'a>, &Origin)> {
        let mut found: Vec<(Property, &'a Setting<'a>, &Origin)> = Vec::new();
        for Link { slot, origin, .. } in &self.chain {
            for setting in slot.settings() {
                if let Some(property) = setting.property.filter(|p| found.iter().all(|(known, ..)| known != p)) {
                    found.push((property, setting, origin));
                }
            }
        }
        found.sort_by_key(|(property, ..)| *property);
        found
    }

    /// Finds an annotation that is probably a misspelling of this property.
    pub(super) fn misspelt(&self, property: Property) -> Option<&'a Setting<'a>> {
        let mut settings = self.chain.iter().flat_map(|link| link.slot.settings());
        settings.find(|setting| setting.misspells() == Some(property))
    }

    pub(super) fn format(&self) -> Format {
        self.text(Property::Format).and_then(|name| Format::named(&name)).unwrap_or_default()
    }

    /// Returns the setting of `values` or `flags`, whichever is in the nearer scope, with the names that it lists.
    pub(super) fn names(&self, lists: &NameLists) -> Option<(&'a Setting<'a>, Names)> {
        let set = |slot: &Slot<'m, 'a>| slot.get(Property::Values).or_else(|| slot.get(Property::Flags));
        let setting = self.chain.iter().find_map(|link| set(&link.slot))?;
        let list = lists.get(&setting.value_span)?.clone();
        let names = if setting.property == Some(Property::Flags) { Names::Flags(list) } else { Names::Values(list) };
        Some((setting, names))
    }

    /// Returns the field's names in earlier versions.
    pub(super) fn was(&self) -> Vec<String> {
        self.text(Property::Was).and_then(|text| earlier(&text)).unwrap_or_default()
    }

    /// Checks whether one scope sets both `values` and `flags`.
    pub(super) fn has_both_names(&self) -> bool {
        let has = |slot: &Slot, property| slot.get(property).is_some();
        self.chain.iter().any(|link| has(&link.slot, Property::Values) && has(&link.slot, Property::Flags))
    }

    pub(super) fn text(&self, property: Property) -> Option<String> {
        match &self.find(property)?.setting.value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        }
    }

    /// Returns the nearest `doc` property or doc comment. Within one scope, the property takes precedence.
    pub(super) fn doc(&self) -> Option<String> {
        self.chain.iter().find_map(|link| match link.slot.get(Property::Doc).map(|p| &p.value) {
            Some(Value::Text(text)) => Some(text.clone()),
            _ => link.slot.doc().or(link.doc).map(str::to_owned),
        })
    }

    /// Returns the nearest setting of an annotation.
    pub(super) fn annotation(&self, name: &str) -> Option<&'a Setting<'a>> {
        let mut settings = self.chain.iter().flat_map(|link| link.slot.settings());
        settings.find(|setting| setting.annotation.is_some() && setting.name.text == name)
    }

    /// Returns the annotations, which are properties without a meaning in the language (spec 2).
    pub(super) fn annotations(&self) -> BTreeMap<String, String> {
        let mut out = BTreeMap::new();
        for setting in self.chain.iter().flat_map(|link| link.slot.settings()) {
            let name = setting.name.text;
            if let Some(text) = setting.annotation.as_ref().filter(|_| !out.contains_key(name)) {
                out.insert(name.to_owned(), text.to_string());
            }
        }
        out
    }
}
