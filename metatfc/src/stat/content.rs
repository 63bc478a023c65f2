//! Counts the records of a trace and their values, group by group.

use metatf::dynamic::{Schema, Trace};
use metatf::format::Interpretation;
use metatf::reader::{At, Event};
use metatf_parser::schema::Format as PrintFormat;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// The predicted leaves and their models, by section and record. The map is valid until metadata changes.
type Predicted = BTreeMap<(usize, u16), Vec<(u8, u16)>>;

/// The counts of one record type in one section.
#[derive(Clone, Debug, Default)]
pub(super) struct Kind {
    pub(super) count: u64,
    pub(super) bytes: u64,
    /// The bytes and number of values of each leaf.
    pub(super) leaves: Vec<(u64, u64)>,
    /// For each predicted leaf, the number of values encoded by a code alone, and the number encoded by a code and
    /// elements.
    pub(super) predicted_counts: BTreeMap<u8, (u64, u64)>,
    /// The frequency of each value, for each leaf with named values and for the tag of a catch-all record. At most
    /// [`MOST_VALUES`] values of a leaf are counted.
    pub(super) value_counts: BTreeMap<u8, BTreeMap<u64, u64>>,
}

/// Maximum number of values counted per leaf.
const MOST_VALUES: usize = 1000;

impl Kind {
    fn add(&mut self, other: Self) {
        self.count += other.count;
        self.bytes += other.bytes;
        for (leaf, (bytes, values)) in self.leaves.iter_mut().zip(other.leaves) {
            leaf.0 += bytes;
            leaf.1 += values;
        }
        for (leaf, (codes, elements)) in other.predicted_counts {
            let counts = self.predicted_counts.entry(leaf).or_default();
            counts.0 += codes;
            counts.1 += elements;
        }
        for (leaf, values) in other.value_counts {
            for (value, count) in values {
                self.count_value(leaf, value, count);
            }
        }
    }

    fn count_value(&mut self, leaf: u8, value: u64, count: u64) {
        let values = self.value_counts.entry(leaf).or_default();
        if values.len() < MOST_VALUES || values.contains_key(&value) {
            *values.entry(value).or_default() += count;
        }
    }
}

/// The counts of all record types.
pub(super) struct Content {
    schema: Schema,
    /// The counts, by section and record.
    pub(super) kinds: BTreeMap<(usize, u16), Kind>,
    pub(super) groups: u64,
    pub(super) resets: u64,
}

/// Number of events between progress reports.
pub(super) const TELL: u64 = 1 << 16;

/// A message from a counting thread.
pub(super) enum Counted {
    /// This many more events were counted.
    Events(u64),
    /// The counts of a group, or of an entire trace that is read as a single group.
    Content(Content),
}

impl Content {
    pub(super) fn new(schema: &Schema) -> Self {
        Self { schema: schema.clone(), kinds: BTreeMap::new(), groups: 0, resets: 0 }
    }

    /// Creates counts that include the first group of the trace, whose start is not an event.
    pub(super) fn first(schema: &Schema) -> Self {
        Self { groups: 1, ..Self::new(schema) }
    }

    /// Adds the counts of another group.
    pub(super) fn add(&mut self, other: Self) {
        self.groups += other.groups;
        self.resets += other.resets;
        for (place, kind) in other.kinds {
            match self.kinds.entry(place) {
                Entry::Vacant(entry) => drop(entry.insert(kind)),
                Entry::Occupied(mut entry) => entry.get_mut().add(kind),
            }
        }
    }

    /// Counts all events. Calls `report` regularly, and stops if it returns false.
    pub(super) fn count(&mut self, trace: &mut Trace<'_>, report: &mut dyn FnMut() -> bool) -> metatf::Result<()> {
        let mut events = 0;
        let tag = u64::from(self.schema.dtd.tag_width);
        let order = trace.reader().container().header().order;
        // Clone this only once, because threads that update the reference count for every record would wait for each
        // other.
        let format = Arc::clone(&self.schema.format);
        let mut all_predicted = Predicted::new();
        while let Some(event) = trace.reader_mut().next_event()? {
            events += 1;
            if events == TELL {
                events = 0;
                if !report() {
                    return Ok(());
                }
            }
            if !matches!(event, Event::Record(_) | Event::Comment(_)) {
                all_predicted.clear();
            }
            match event {
                Event::Record(at) | Event::Comment(at) | Event::Element(at, _) => {
                    // The tag of a catch-all record is one of its fields.
                    let is_field = self.schema.record(at.record).is_some_and(|record| record.catch_all);
                    let tag = if is_field || matches!(event, Event::Element(..)) { 0 } else { tag };
                    let known = all_predicted.entry((at.section, at.record));
                    let predicted = known.or_insert_with(|| self.predicted(trace, at));
                    let kind = self.kind(at);
                    kind.count += 1;
                    kind.bytes += tag;
                    trace.reader_mut().decode(|row| {
                        row.walk_fields(&mut |leaf, bytes, value| {
                            if let (Some(value), true) = (value, kind.value_counts.contains_key(&leaf)) {
                                kind.count_value(leaf, value, 1);
                            }
                            kind.bytes += bytes.len() as u64;
                            let model = predicted.iter().find(|(predicted, _)| *predicted == leaf);
                            if let Some(model) = model.and_then(|(_, model)| format.models.get(usize::from(*model))) {
                                let counts = kind.predicted_counts.entry(leaf).or_default();
                                match model.takes_elements(order.read(bytes)) {
                                    false => counts.0 += 1,
                                    true => counts.1 += 1,
                                }
                            }
                            if let Some(counts) = kind.leaves.get_mut(usize::from(leaf)) {
                                counts.0 += bytes.len() as u64;
                                counts.1 += 1;
                            }
                        })
                    })?;
                    if tag > 0
                        && let Some(counts) = kind.leaves.first_mut()
                    {
                        counts.0 += tag;
                        counts.1 += 1;
                    }
                }
                Event::Metadata(at, _) => {
                    let bytes = trace.reader().bytes_of(at).map_or(0, |(_, bytes)| bytes.len());
                    let kind = self.kind(at);
                    kind.count += 1;
                    kind.bytes += bytes as u64;
                }
                Event::Section(at, _) => {
                    let kind = self.kind(At { section: 0, ..at });
                    kind.count += 1;
                    kind.bytes += tag + 1;
                }
                Event::Group(_) => self.groups += 1,
                Event::Reset(_) => self.resets += 1,
            }
        }
        Ok(())
    }

    /// Returns the leaves of a record that are currently predicted, and their models.
    fn predicted(&self, trace: &Trace<'_>, at: At) -> Vec<(u8, u16)> {
        if self.schema.format.models.is_empty() {
            return Vec::new();
        }
        let leaves = self.schema.record(at.record).map_or(0, |r| r.leaves.len());
        let predicted = |leaf: u8| match trace.reader().interpretation(at, leaf)? {
            Interpretation::Predicted(model) => Some((leaf, model)),
            _ => None,
        };
        (0..=u8::MAX).take(leaves).filter_map(predicted).collect()
    }

    fn kind(&mut self, at: At) -> &mut Kind {
        let leaves = self.schema.record(at.record).map_or(0, |r| r.leaves.len());
        let named = || {
            let record = self.schema.record(at.record);
            let leaves = (0_u8..=u8::MAX).zip(record.map_or(&[][..], |r| &r.leaves));
            let is_any_tag = |id: u8| id == 0 && record.is_some_and(|record| record.catch_all);
            let named = leaves.filter(|(id, leaf)| {
                !leaf.names.list().is_empty() || leaf.format == PrintFormat::Bool || is_any_tag(*id)
            });
            named.map(|(id, _)| (id, BTreeMap::new())).collect()
        };
        let new = || Kind { leaves: vec![(0, 0); leaves], value_counts: named(), ..Kind::default() };
        self.kinds.entry((at.section, at.record)).or_insert_with(new)
    }
}
