//! Determines the target record of each source record.

use super::fields::{self, FieldSources, Side};
use super::values::Seen;
use super::{ConvertOptions, Converter, Destination, ElementSection, ElementTarget, Unconvertible, element_of};
use crate::field_names::FieldNames;
use crate::stream_sections::{filled, reached};
use crate::value_indices::ValueIndices;
use metatf::dynamic::{OwnedRecord, Schema};
use metatf::format::METADATA;
use metatf_parser::schema::Record;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Matches all records of two DTDs.
pub(super) fn resolve(source: &Schema, target: &Schema, options: &ConvertOptions) -> Result<Converter, Unconvertible> {
    let dropped = FieldNames::new(&options.drop);
    let mut matcher = RecordMatcher {
        source,
        target,
        drop_records: &options.drop_records,
        dropped: &dropped,
        wrong: Unconvertible { unknown: unknown(source, &dropped, options), ..Unconvertible::default() },
        tables: HashMap::new(),
    };
    let records = (0..source.dtd.sections.len()).map(|s| matcher.records(s)).collect::<Vec<_>>();
    let comments = (0..source.dtd.sections.len()).map(|s| matcher.comments(s, &records)).collect();
    let elements = (0..source.dtd.sections.len()).map(|s| matcher.elements(s)).collect::<Vec<_>>();
    matcher.elements_of_tables();
    let elements = matcher.with_tables(elements);
    if !matcher.wrong.is_empty() {
        return Err(matcher.wrong);
    }
    Ok(Converter {
        source: source.clone(),
        target: target.clone(),
        records,
        comments,
        elements,
        tables: matcher.tables.into_iter().filter_map(|(key, fields)| Some((key, Arc::new(fields?)))).collect(),
        offsets: HashMap::new(),
        kept: BTreeMap::new(),
        under_way: Vec::new(),
        read: OwnedRecord::default(),
        indices: ValueIndices::default(),
        seen: Seen::default(),
        owned: OwnedRecord::default(),
    })
}

/// Returns the names to drop that do not exist in the source.
fn unknown(source: &Schema, dropped: &FieldNames, options: &ConvertOptions) -> Vec<String> {
    let known = |name: &str| source.dtd.records.iter().skip(3).any(|r| r.name == name);
    let fields = dropped.unknown(&[source]).into_iter().map(|name| format!("field {name}"));
    let records = options.drop_records.iter().filter(|name| !known(name)).map(|name| format!("record {name}"));
    fields.chain(records).collect()
}

struct RecordMatcher<'m> {
    source: &'m Schema,
    target: &'m Schema,
    drop_records: &'m [String],
    dropped: &'m FieldNames,
    wrong: Unconvertible,
    /// Field mappings of table elements, keyed by source section and target section; `None` until they are matched.
    tables: HashMap<(usize, usize), Option<FieldSources>>,
}

impl RecordMatcher<'_> {
    /// Returns the destination of each record of a section, by record index.
    fn records(&mut self, section: usize) -> Vec<Destination> {
        let mut all = vec![Destination::Dropped; self.source.dtd.records.len()];
        let Some(s) = self.source.format.sections.get(section).filter(|s| !s.stream) else { return all };
        let own: Vec<u16> = s.records.iter().copied().filter(|&r| r > METADATA).collect();
        let sections: Vec<(u16, Vec<(usize, u16)>)> =
            own.into_iter().map(|record| (record, self.candidates(section, record))).collect();
        // If a record of this source section has only one candidate, records with several candidates go to the section
        // of that candidate.
        let clear = sections.iter().find_map(|(_, found)| if let [one] = **found { Some(one.0) } else { None });
        for (record, found) in sections {
            let Some(r) = self.source.record(record).filter(|r| !self.drop_records.contains(&r.name)) else { continue };
            let meant = match *found {
                [] => {
                    note(&mut self.wrong.records, r.name.clone());
                    continue;
                }
                [one] => Some(one),
                _ => found.iter().copied().find(|&(s, _)| Some(s) == clear),
            };
            let place = all.get_mut(usize::from(record));
            if let Some(place) = place {
                *place = match meant {
                    Some((s, to)) => Destination::Record(s, to, self.fields(record, to)),
                    None => Destination::Unclear,
                };
            }
        }
        all
    }

    /// Returns the candidate target records, which are in the section with the same name or, failing that, in any
    /// section.
    fn candidates(&self, section: usize, record: u16) -> Vec<(usize, u16)> {
        let Some(name) = self.source.record(record).map(|r| &r.name) else { return Vec::new() };
        let section_name = self.source.section(section).and_then(|s| s.name.as_deref());
        let mut found = Vec::new();
        for (index, s) in self.target.dtd.sections.iter().enumerate().filter(|(_, s)| s.stream.is_none()) {
            let records = self.target.format.sections.get(index).map_or(&[][..], |s| &s.records);
            let data = || records.iter().filter(|r| **r > METADATA);
            let is = |r: &&u16, is: &dyn Fn(&Record) -> bool| self.target.record(**r).is_some_and(is);
            let same = data().find(|r| is(r, &|record| record.name == *name));
            if let Some(&twin) = same.or_else(|| data().find(|r| is(r, &|record| record.was.contains(name)))) {
                if s.name.as_deref() == section_name {
                    return vec![(index, twin)];
                }
                found.push((index, twin));
            }
        }
        found
    }

    fn fields(&mut self, from: u16, to: u16) -> FieldSources {
        let source = Side { schema: self.source, index: from };
        let matched = fields::resolve(source, Side { schema: self.target, index: to }, self.dropped);
        matched.lost.into_iter().for_each(|name| note(&mut self.wrong.fields, name));
        matched.wrong.into_iter().for_each(|what| note(&mut self.wrong.others, what));
        for table in matched.fields.tables() {
            self.tables.entry(table).or_insert(None);
        }
        matched.fields
    }

    /// Returns the target section for the comments of a section, which is the section with the same name or the
    /// destination of the section's records.
    fn comments(&self, section: usize, records: &[Vec<Destination>]) -> usize {
        let name = self.source.section(section).and_then(|s| s.name.as_deref());
        let same = self.target.dtd.sections.iter().position(|s| s.stream.is_none() && s.name.as_deref() == name);
        let fellow = || {
            records.get(section).into_iter().flatten().find_map(|destination| match destination {
                Destination::Record(section, ..) => Some(*section),
                _ => None,
            })
        };
        same.filter(|_| name.is_some()).or_else(fellow).unwrap_or(0)
    }

    /// Returns the destination of a stream section's elements. The elements of tables are matched later, by
    /// `elements_of_tables`.
    fn elements(&mut self, section: usize) -> ElementTarget {
        let Some(element) = element_of(self.source, section) else { return ElementTarget::Dropped };
        let number = self.source.format.sections.get(section).map_or(0, |s| usize::from(s.number));
        let Some(record) = self.source.record(element) else { return ElementTarget::Dropped };
        if reached(self.source)[number] || self.drop_records.contains(&record.name) {
            return ElementTarget::Dropped;
        }
        let name = self.source.section(section).and_then(|s| s.name.as_deref());
        let streams = || (0..self.target.dtd.sections.len()).filter_map(|s| Some((s, element_of(self.target, s)?)));
        let by_section = streams().find(|(s, _)| self.target.section(*s).and_then(|s| s.name.as_deref()) == name);
        let by_record = || streams().find(|(_, r)| self.target.record(*r).is_some_and(|r| r.name == record.name));
        let Some((to, twin)) = by_section.or_else(by_record) else {
            note(&mut self.wrong.records, record.name.clone());
            return ElementTarget::Dropped;
        };
        let target_number = self.target.format.sections.get(to).map_or(0, |s| usize::from(s.number));
        if filled(self.target)[target_number] {
            let what = format!(
                "cannot copy the elements `{}`, because the target DTD fills their section from records",
                record.name
            );
            note(&mut self.wrong.others, what);
            return ElementTarget::Dropped;
        }
        let table = reached(self.target)[target_number];
        ElementTarget::Given(Arc::new(ElementSection {
            section: to,
            element: twin,
            table,
            fields: self.fields(element, twin),
        }))
    }

    /// Matches the elements of tables, which may refer to further tables.
    fn elements_of_tables(&mut self) {
        while let Some(&(from, to)) = self.tables.iter().find(|(_, fields)| fields.is_none()).map(|(key, _)| key) {
            let fields = match (element_of(self.source, from), element_of(self.target, to)) {
                (Some(a), Some(b)) => self.fields(a, b),
                _ => FieldSources::default(),
            };
            self.tables.insert((from, to), Some(fields));
        }
    }

    /// Includes all elements of tables, even elements that no offset refers to.
    fn with_tables(&self, elements: Vec<ElementTarget>) -> Vec<ElementTarget> {
        let tables = |section: usize| {
            let mut to: Vec<usize> =
                self.tables.keys().filter(|(from, _)| *from == section).map(|(_, to)| *to).collect();
            to.sort_unstable();
            to
        };
        let all = elements.into_iter().enumerate();
        all.map(|(section, elements)| match (elements, tables(section)) {
            (ElementTarget::Dropped, to) if !to.is_empty() => ElementTarget::Tables(to.into()),
            (elements, _) => elements,
        })
        .collect()
    }
}

/// Adds an item unless the list contains it.
fn note(list: &mut Vec<String>, what: String) {
    if !list.contains(&what) {
        list.push(what);
    }
}
