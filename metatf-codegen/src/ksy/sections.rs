//! The types of sections: sequences of tagged records, or of the elements of stream sections.

use metatf_parser::schema::{LeafId, METADATA, Record, RecordId, SECTION, Section};

use super::names::{Of, take};
use super::types::{Paths, Presence, Types};
use super::yaml::{Map, Yaml};
use crate::names::Scope;

impl Types<'_> {
    /// Adds the type of a section with all its records. The header of a file consists of a single element. Returns the
    /// paths of the element's fields.
    pub(super) fn section(&mut self, section: &Section, is_header: bool) -> Paths {
        let presence = if is_header { Presence::Once } else { Presence::ToEnd };
        self.open();
        match section.stream.and_then(|id| self.dtd.record(id)) {
            Some(element) => self.element(section, element, &presence),
            None => self.tagged(section, &presence),
        }
        self.close_section(section)
    }

    /// Ends the type of a section, whose name is reserved.
    fn close_section(&mut self, section: &Section) -> Paths {
        let name = section.name.as_deref().unwrap_or_default();
        let id = self.sections.get(&section.number).cloned().unwrap_or_default();
        self.close_as(id, name, section.doc.as_deref())
    }

    fn element(&mut self, section: &Section, element: &Record, presence: &Presence) {
        if let ([_], [_]) = (element.items.as_slice(), element.leaves.as_slice()) {
            // A sequence of single fields needs no type for each field.
            self.leaf(element, LeafId(0), presence);
            return;
        }
        self.open();
        self.items(element, &element.items);
        let (name, paths) = self.close_record(section, element);
        let id = self.attribute(&element.name, Map::new().scalar("type", name).and(presence.map()));
        paths.into_iter().for_each(|(leaf, path)| self.reach(leaf, format!("{id}.{path}")));
    }

    /// Adds the type that selects a record by its tag.
    fn tagged(&mut self, section: &Section, presence: &Presence) {
        let name = section.name.as_deref().unwrap_or_default();
        let is_data = |id: &&RecordId| **id != SECTION && **id != METADATA;
        let dtd = self.dtd;
        let records: Vec<&Record> = section.records.iter().filter(is_data).filter_map(|id| dtd.record(*id)).collect();
        let own = records.iter().filter(|record| !record.catch_all);
        let own: Vec<(String, &str)> =
            own.filter_map(|record| Some((record.tag?.to_string(), record.name.as_str()))).collect();
        let tags = self.values(&format!("{name}_tag"), &format!("{name}_tags"), &own);
        // The enumeration assigns the same identifiers in the same order.
        let mut ids = Scope::default();

        self.open();
        let catch_all = records.iter().any(|record| record.catch_all);
        let valid = if catch_all { self.not_metadata() } else { Map::new().scalar("in-enum", "true") };
        let tag = Map::new().scalar("type", format!("u{}", dtd.tag_width)).scalar("enum", &tags);
        let tag = self.attribute("tag", tag.entry("valid", Yaml::Map(valid)));
        self.reach(LeafId(0), format!("{tag}.to_i"));
        let cases = records.iter().fold(Map::new(), |cases, record| {
            self.open();
            self.items(record, &record.items);
            let (name, _) = self.close_record(section, record);
            match record.catch_all {
                true => cases.scalar("_", name),
                false => cases.scalar(format!("{tags}::{}", take(&mut ids, &[&record.name], Of::Value)), name),
            }
        });
        let switch = Map::new().scalar("switch-on", tag).entry("cases", Yaml::Map(cases));
        self.attribute("record", Map::new().entry("type", Yaml::Map(switch)));
        let doc = format!("A record of the section `{name}`.");
        let (entry, _) = self.close(&[&format!("{name}_record"), &format!("{name}_tagged")], Some(&doc));
        self.attribute("records", Map::new().scalar("type", entry).and(presence.map()));
    }

    /// Returns the check that a tag is neither that of `section` nor that of `metadata`, which a catch-all record does
    /// not match.
    fn not_metadata(&self) -> Map {
        let tags = [SECTION, METADATA].into_iter().filter_map(|id| self.dtd.record(id)?.tag);
        let tests: Vec<String> =
            tags.map(|tag| format!("_.to_i != {}", super::expression::number_text(tag.into()))).collect();
        Map::new().scalar("expr", tests.join(" and "))
    }

    fn close_record(&mut self, section: &Section, record: &Record) -> (String, Paths) {
        let longer = format!("{}_{}", section.name.as_deref().unwrap_or_default(), record.name);
        self.close(&[&record.name, &longer], record.doc.as_deref())
    }
}
