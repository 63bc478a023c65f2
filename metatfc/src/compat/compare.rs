//! Compares two DTDs, including their file-level settings, sections and records.

use super::change::{Change, Kind, Place};
use super::fields::{self, LeafPair, Of};
use metatf_parser::schema::{COMMENT, Dtd, METADATA, Record, RecordId, SECTION, Section};
use std::collections::{HashMap, HashSet};

/// Returns all changes of the format and its documented meaning, in the order of the new DTD.
pub(super) fn compare(old: &Dtd, new: &Dtd) -> Vec<Change> {
    let mut comparison = Comparison { old, new, changes: Vec::new(), pairs: Vec::new() };
    comparison.file();
    comparison.sections();
    comparison.changes
}

/// A record that both DTDs contain.
struct Pair {
    old: RecordId,
    new: RecordId,
    leaves: Vec<LeafPair>,
}

struct Comparison<'d> {
    old: &'d Dtd,
    new: &'d Dtd,
    changes: Vec<Change>,
    /// The record pairs found so far. Pairs of global records come first.
    pairs: Vec<Pair>,
}

impl<'d> Comparison<'d> {
    fn file(&mut self) {
        let tags = |id: RecordId| (self.old.record(id).and_then(|r| r.tag), self.new.record(id).and_then(|r| r.tag));
        let (old, new) = (self.old.tag_width, self.new.tag_width);
        let width = (Kind::TagWidth, "tag width".to_owned(), (Some(old.into()), Some(new.into())));
        let names = [("comment", COMMENT), ("section", SECTION), ("metadata", METADATA)];
        let predefined = names.map(|(name, id)| (Kind::PredefinedTag, format!("tag of {name}"), tags(id)));
        for (kind, what, (old, new)) in std::iter::once(width).chain(predefined) {
            if old != new {
                let text = |n: Option<u32>| n.map(|n| n.to_string());
                self.changes.push(Change::of(kind, Place::default(), &what, text(old), text(new)));
            }
        }
    }

    fn sections(&mut self) {
        let (old, new) = (self.old, self.new);
        for section in old.sections.iter().filter(|section| twin(new, section).is_none()) {
            self.changes.push(Change::new(Kind::SectionRemoved, Place::section(section), "section removed"));
        }
        for section in &new.sections {
            match twin(old, section) {
                Some(before) => self.section(before, section),
                None => self.changes.push(Change::new(Kind::SectionAdded, Place::section(section), "section added")),
            }
        }
        // Records may have moved between the global section and other sections, so unpaired records are known only
        // after all sections are compared.
        let (before, after): (HashSet<_>, HashSet<_>) = self.pairs.iter().map(|pair| (pair.old, pair.new)).unzip();
        self.unpaired(old, new, &before, Kind::RecordRemoved, "record removed");
        self.unpaired(new, old, &after, Kind::RecordAdded, "record added");
    }

    /// Lists the unpaired records of `dtd` in sections that both DTDs contain.
    fn unpaired(&mut self, dtd: &Dtd, other: &Dtd, paired: &HashSet<RecordId>, kind: Kind, text: &str) {
        for section in &dtd.sections {
            if twin(other, section).is_none_or(|twin| twin.stream.is_some() != section.stream.is_some()) {
                continue;
            }
            for (_, record) in own(dtd, section).filter(|(id, _)| !paired.contains(id)) {
                self.changes.push(Change::new(kind, Place::record(section, record), text));
            }
        }
    }

    fn section(&mut self, old: &'d Section, new: &'d Section) {
        let place = Place::section(new);
        let text = |n: u8| Some(n.to_string());
        if old.number != new.number {
            let change = Change::of(Kind::SectionNumber, place.clone(), "number", text(old.number), text(new.number));
            self.changes.push(change);
        }
        let kind = |section: &Section| section.stream.map_or("tagged records", |_| "a stream").to_owned();
        if old.stream.is_some() != new.stream.is_some() {
            self.changes.push(Change::of(Kind::SectionForm, place, "kind", Some(kind(old)), Some(kind(new))));
            return;
        }
        let first = self.pairs.len();
        for (before, after) in pair(self.old, old, self.new, new) {
            self.record(new, before, after);
        }
        self.previous(old, new, first);
    }

    fn record(&mut self, section: &Section, before: RecordId, after: RecordId) {
        let (Some(old), Some(new)) = (self.old.record(before), self.new.record(after)) else { return };
        let place = Place::record(section, new);
        if old.name != new.name {
            self.changes.push(Change::renamed(Kind::RecordRenamed, place.clone(), &old.name, &new.name));
        }
        let scope = |record: &Record| Some(record.section.map_or("all sections", |_| "one section").to_owned());
        if old.section.is_some() != new.section.is_some() {
            self.changes.push(Change::of(Kind::RecordScope, place.clone(), "scope", scope(old), scope(new)));
        }
        let tag =
            |record: &Record| record.tag.map(|tag| if record.catch_all { "other".into() } else { tag.to_string() });
        if tag(old) != tag(new) {
            self.changes.push(Change::of(Kind::RecordTag, place.clone(), "tag", tag(old), tag(new)));
        }
        let (of_old, of_new) = (Of { dtd: self.old, record: old }, Of { dtd: self.new, record: new });
        let leaves = fields::compare(of_old, of_new, &place, &mut self.changes);
        self.pairs.push(Pair { old: before, new: after, leaves });
    }

    /// Compares which fields of a section share a previous value (spec 4). Checks the fields of the section's own
    /// pairs, which start at `first`, against each other and against global fields.
    fn previous(&mut self, old: &Section, new: &Section, first: usize) {
        let (before, after) = (Cells::new(old), Cells::new(new));
        // The first field of each cell represents the cell.
        let (mut old_first, mut new_first) = (HashMap::new(), HashMap::new());
        for (index, pair) in self.pairs.iter().enumerate() {
            for &(i, j) in &pair.leaves {
                let cells = before.cell(pair.old, i).zip(after.cell(pair.new, j));
                let Some((old_cell, new_cell)) = cells else { continue };
                let id = (index, i, j);
                let same = *old_first.entry(old_cell).or_insert(id) == *new_first.entry(new_cell).or_insert(id);
                let records = self.old.record(pair.old).zip(self.new.record(pair.new));
                let leaves = records.and_then(|(old, new)| Some((old.leaves.get(i)?, new, new.leaves.get(j)?)));
                let Some((one, record, other)) = leaves.filter(|_| !same && index >= first) else { continue };
                // A change of the interpretation, which is reported separately, already explains the change of sharing.
                if one.interpretation.parts().word == other.interpretation.parts().word {
                    let place = Place::record(new, record).field(other.path.join("."));
                    let text = "shares its previous value with different fields";
                    self.changes.push(Change::new(Kind::FieldPrevious, place, text));
                }
            }
        }
    }
}

/// The previous-value cells used by the fields of a section.
struct Cells<'d> {
    section: &'d Section,
    positions: HashMap<RecordId, usize>,
}

impl<'d> Cells<'d> {
    fn new(section: &'d Section) -> Self {
        let positions = section.records.iter().enumerate().map(|(position, id)| (*id, position)).collect();
        Self { section, positions }
    }

    fn cell(&self, record: RecordId, leaf: usize) -> Option<u32> {
        self.section.cells.get(*self.positions.get(&record)?)?.get(leaf).copied()
    }
}

/// Returns the section that a reader matches with this section, which has the same name (spec 5.3).
fn twin<'d>(dtd: &'d Dtd, section: &Section) -> Option<&'d Section> {
    dtd.sections.iter().find(|other| other.name == section.name)
}

/// Returns the records that a section declares. The global section declares the global records.
fn own<'d>(dtd: &'d Dtd, section: &'d Section) -> impl Iterator<Item = (RecordId, &'d Record)> {
    let records = section.records.iter().filter(|id| **id > METADATA);
    let records = records.filter_map(|id| Some((*id, dtd.record(*id)?)));
    records.filter(|(_, record)| record.section.is_some() == (section.number != 0))
}

/// Pairs the records of a section by name, or else by an unused earlier name, as a new reader of an old trace does. Two
/// stream elements are always a pair, regardless of their names. Global records are paired only if one of the DTDs
/// declares the record in this section.
fn pair(old_dtd: &Dtd, old: &Section, new_dtd: &Dtd, new: &Section) -> Vec<(RecordId, RecordId)> {
    if let (Some(before), Some(after)) = (old.stream, new.stream) {
        return vec![(before, after)];
    }
    let visible = |dtd: &Dtd, section: &Section| -> HashMap<String, RecordId> {
        let records = section.records.iter().filter(|id| **id > METADATA);
        records.filter_map(|id| Some((dtd.record(*id)?.name.clone(), *id))).collect()
    };
    let (before, after) = (visible(old_dtd, old), visible(new_dtd, new));
    let in_old = |record: &Record| {
        let earlier = || record.was.iter().filter(|was| !after.contains_key(*was)).find_map(|was| before.get(was));
        before.get(&record.name).or_else(earlier).copied()
    };
    let is_global = |dtd: &Dtd, id: RecordId| dtd.record(id).is_some_and(|record| record.section.is_none());
    let mut pairs = Vec::new();
    for id in new.records.iter().filter(|id| **id > METADATA) {
        let Some(twin) = new_dtd.record(*id).and_then(in_old) else { continue };
        // A pair of global records belongs to the global section.
        if new.number == 0 || !(is_global(old_dtd, twin) && is_global(new_dtd, *id)) {
            pairs.push((twin, *id));
        }
    }
    pairs
}
