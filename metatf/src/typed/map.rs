//! Maps the records of a trace's format to the records of the reader's format by name (spec 5.3).

use super::unmatched::Unmatched;
use crate::format::{Format, Interpretation, Leaf, LeafKind, METADATA, Record, Section, Step};

/// The source of the values of one reader leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MappedFrom {
    /// This leaf of the trace's record.
    Leaf(u8),
    /// This constant, because the trace's record lacks the leaf.
    Number(u64),
    /// This many zero bytes, because the trace's record lacks the leaf.
    Zeros(u32),
}

/// The mapping of one trace record to a reader record.
#[derive(Clone, Debug)]
pub(crate) struct RecordMap {
    /// Index of the section in the reader's format.
    pub(crate) section: usize,
    pub(crate) record: u16,
    /// The source of each of the reader's leaves.
    pub(crate) leaves: Vec<MappedFrom>,
}

/// The mapping of all records, by section and record of the trace's format.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    records: Vec<Vec<(u16, RecordMap)>>,
    /// The trace's section for each of the reader's sections.
    sections: Vec<Option<usize>>,
    pub(crate) unmatched: Unmatched,
}

/// Zeros that replace byte arrays missing from a trace. A longer array cannot be replaced.
pub(crate) static ZEROS: [u8; 4096] = [0; 4096];

impl Map {
    /// Maps `theirs`, the trace's format, to `ours`.
    pub(crate) fn new(ours: &Format, theirs: &Format) -> Result<Self, String> {
        let mut map = Self {
            records: vec![Vec::new(); theirs.sections.len()],
            sections: vec![None; ours.sections.len()],
            unmatched: Unmatched::default(),
        };
        for (i, section) in ours.sections.iter().enumerate() {
            let same = |s: &Section| s.name == section.name && (s.number == 0) == (section.number == 0);
            let found = theirs.sections.iter().position(same);
            let Some((j, other)) = found.and_then(|j| Some((j, theirs.sections.get(j)?))) else {
                let absent = own(ours, section, i).map(|(_, record)| place(section, &record.name, None));
                map.unmatched.absent.extend(absent);
                continue;
            };
            if section.stream != other.stream {
                let kind = |stream| if stream { "a stream section" } else { "a section of tagged records" };
                let (ours, theirs) = (kind(section.stream), kind(other.stream));
                return Err(format!(
                    "section `{}` is {ours} in the reader's DTD, but {theirs} in the trace's",
                    section.name
                ));
            }
            if let Some(slot) = map.sections.get_mut(i) {
                *slot = Some(j);
            }
            for (index, record) in data_records(ours, section) {
                let Some((their_index, twin)) = twin(ours, section, record, theirs, other) else {
                    if is_own(ours, i, index) {
                        map.unmatched.absent.push(place(section, &record.name, None));
                    }
                    continue;
                };
                let counted = is_own(ours, i, index).then_some(&mut map.unmatched);
                let leaves = TwinRecords { section, ours: record, theirs: twin }.leaves(counted)?;
                if let Some(records) = map.records.get_mut(j) {
                    records.push((their_index, RecordMap { section: i, record: index, leaves }));
                }
            }
        }
        for (j, (section, records)) in theirs.sections.iter().zip(&map.records).enumerate() {
            let unread = own(theirs, section, j).filter(|(index, _)| !records.iter().any(|(known, _)| known == index));
            map.unmatched.unread.extend(unread.map(|(_, record)| place(section, &record.name, None)));
        }
        Ok(map)
    }

    /// Returns the mapping of a trace record, or `None` if the reader does not know the record.
    pub(crate) fn record(&self, section: usize, record: u16) -> Option<&RecordMap> {
        self.records.get(section)?.iter().find(|(r, _)| *r == record).map(|(_, map)| map)
    }

    /// Returns the trace's section with the same name as the reader's section.
    pub(crate) fn section(&self, ours: usize) -> Option<usize> {
        self.sections.get(ours).copied().flatten()
    }
}

/// Returns the data records of a section.
fn data_records<'f>(format: &'f Format, section: &'f Section) -> impl Iterator<Item = (u16, &'f Record)> {
    let records = section.records.iter().filter(|&&record| record > METADATA);
    records.filter_map(|&record| Some((record, format.records.get(usize::from(record))?)))
}

/// Returns whether a record is declared in this section. Every section also lists the global records.
fn is_own(format: &Format, section: usize, record: u16) -> bool {
    section == 0 || !format.sections.first().is_some_and(|global| global.records.contains(&record))
}

fn own<'f>(format: &'f Format, section: &'f Section, index: usize) -> impl Iterator<Item = (u16, &'f Record)> {
    data_records(format, section).filter(move |(record, _)| is_own(format, index, *record))
}

/// Returns the trace's counterpart of a reader record. This is the record of the same name, or else a record that has
/// an earlier name of the reader record, provided that no other reader record uses that earlier name.
fn twin<'f>(
    ours: &Format,
    section: &Section,
    record: &Record,
    theirs: &'f Format,
    other: &'f Section,
) -> Option<(u16, &'f Record)> {
    let taken = |name: &str| data_records(ours, section).any(|(_, record)| record.name == name);
    let named = |name: &str| data_records(theirs, other).find(|(_, twin)| section.stream || twin.name == name);
    named(&record.name).or_else(|| record.was.iter().filter(|was| !taken(was)).find_map(|was| named(was)))
}

/// Formats a name as `section.record` or `section.record.path`.
fn place(section: &Section, record: &str, path: Option<&str>) -> String {
    let parts = [Some(&*section.name).filter(|name| !name.is_empty()), Some(record), path];
    parts.into_iter().flatten().collect::<Vec<_>>().join(".")
}

/// A record of the reader and its counterpart in the trace.
struct TwinRecords<'f> {
    section: &'f Section,
    ours: &'f Record,
    theirs: &'f Record,
}

impl TwinRecords<'_> {
    /// Returns the source of each reader leaf, matched by name, and adds leaves without a counterpart to `unmatched`.
    fn leaves(&self, unmatched: Option<&mut Unmatched>) -> Result<Vec<MappedFrom>, String> {
        let twins = self.twins();
        let (our_counts, their_counts) = (counts(self.ours), counts(self.theirs));
        let mut map = Vec::with_capacity(self.ours.leaves.len());
        let mut absent = Vec::new();
        for (i, leaf) in self.ours.leaves.iter().enumerate() {
            let place = place(self.section, &self.ours.name, Some(&leaf.path));
            let Some((j, twin)) = twins.get(i).copied().flatten().and_then(|j| Some((j, self.theirs.leaves.get(j)?)))
            else {
                map.push(missing(leaf).ok_or_else(|| {
                    format!("`{place}` does not exist in the trace's DTD and is too long to be filled with zeros")
                })?);
                let declared = matches!(
                    leaf.kind,
                    LeafKind::Tag
                        | LeafKind::Computed(_)
                        | LeafKind::Scanned(_)
                        | LeafKind::Number { interpretation: Interpretation::Default(_), .. }
                );
                if !declared && leaf.constant.is_none() {
                    absent.push(place);
                }
                continue;
            };
            let kinds = (describe(&leaf.kind), describe(&twin.kind));
            if kinds.0 != kinds.1 {
                return Err(format!("`{place}` is {} in the reader's DTD, but {} in the trace's", kinds.0, kinds.1));
            }
            let (own, other) = (our_counts.get(i), their_counts.get(j));
            // Compare counts by their counterparts, because a count may have been renamed. Computed counts are compared
            // by their expressions, because several counts can have the same expression.
            let counts_of = |record: &Record, counts: Option<&Vec<usize>>, twin: &dyn Fn(usize) -> Option<usize>| {
                let count = |&count: &usize| match record.leaves.get(count) {
                    Some(Leaf { kind: LeafKind::Computed(_) | LeafKind::Scanned(_), field, .. }) => {
                        Err(field.to_string())
                    }
                    _ => Ok(twin(count)),
                };
                counts.map(|counts| counts.iter().map(count).collect::<Vec<_>>())
            };
            let same = counts_of(self.ours, own, &|count| twins.get(count).copied().flatten())
                == counts_of(self.theirs, other, &Some);
            if !same {
                let how = |record: &Record, counts: Option<&Vec<usize>>| match counts {
                    Some(counts) if !counts.is_empty() => {
                        let paths = counts.iter().filter_map(|count| record.leaves.get(*count)).map(|l| &*l.path);
                        format!("repeated by `{}`", paths.collect::<Vec<_>>().join("*"))
                    }
                    _ => "not repeated".to_owned(),
                };
                let (ours, theirs) = (how(self.ours, own), how(self.theirs, other));
                return Err(format!("`{place}` is {ours} in the reader's DTD, but {theirs} in the trace's"));
            }
            map.push(MappedFrom::Leaf(u8::try_from(j).unwrap_or(u8::MAX)));
        }
        if let Some(unmatched) = unmatched {
            let unread = self.theirs.leaves.iter().enumerate().filter(|(j, _)| !twins.contains(&Some(*j)));
            let unread = unread.filter(|(_, leaf)| {
                let is_stored = !matches!(leaf.kind, LeafKind::Tag | LeafKind::Computed(_) | LeafKind::Scanned(_));
                leaf.constant.is_none() && is_stored
            });
            unmatched.unread.extend(unread.map(|(_, leaf)| place(self.section, &self.theirs.name, Some(&leaf.path))));
            unmatched.absent.append(&mut absent);
        }
        Ok(map)
    }

    /// Returns the trace's counterpart of each reader leaf: the leaf with the same path, or the leaf with an earlier
    /// path that no other reader leaf uses.
    fn twins(&self) -> Vec<Option<usize>> {
        let position = |path: &str| self.theirs.leaves.iter().position(|leaf| leaf.path == path);
        let taken = |path: &str| self.ours.leaves.iter().any(|leaf| leaf.path == path);
        let twin = |leaf: &Leaf| {
            let earlier = || leaf.was.iter().filter(|was| !taken(was)).find_map(|was| position(was));
            position(&leaf.path).or_else(earlier)
        };
        self.ours.leaves.iter().map(twin).collect()
    }
}

/// Describes the kind of a leaf. Leaves of the same kind have equal descriptions.
fn describe(kind: &LeafKind) -> String {
    match kind {
        LeafKind::Tag => "its own tag".to_owned(),
        LeafKind::AnyTag => "any tag not used by another record".to_owned(),
        LeafKind::Number { .. } => "a number".to_owned(),
        LeafKind::Computed(_) => "a computed count".to_owned(),
        LeafKind::Array(n) => format!("an array of {n} bytes"),
        LeafKind::Until(end) => format!("a byte array terminated by byte {end}"),
        LeafKind::Rest => "a byte array up to the end".to_owned(),
        LeafKind::Scanned(_) => "a count of items that end by their content".to_owned(),
        LeafKind::Variable(_) => "a byte array of variable length".to_owned(),
    }
}

/// Returns the substitute for a leaf that the trace lacks, which is the reader's default value or 0.
fn missing(leaf: &Leaf) -> Option<MappedFrom> {
    Some(match leaf.kind {
        LeafKind::Number { interpretation: Interpretation::Default(value), .. } => MappedFrom::Number(value),
        LeafKind::Number { .. } | LeafKind::Tag | LeafKind::AnyTag => MappedFrom::Number(leaf.constant.unwrap_or(0)),
        LeafKind::Computed(_) | LeafKind::Scanned(_) => MappedFrom::Number(0),
        LeafKind::Array(n) => MappedFrom::Zeros((n as usize <= ZEROS.len()).then_some(n)?),
        LeafKind::Variable(_) | LeafKind::Until(_) | LeafKind::Rest => MappedFrom::Zeros(0),
    })
}

/// Returns, for each leaf, the counts of the repetitions that contain it, outermost first.
fn counts(record: &Record) -> Vec<Vec<usize>> {
    let mut counts = vec![Vec::new(); record.leaves.len()];
    let mut open: Vec<(usize, usize)> = Vec::new();
    for (at, step) in record.steps.iter().enumerate() {
        open.retain(|(end, _)| *end > at);
        match *step {
            Step::Repeat { count, end } => open.push((usize::from(end), usize::from(count))),
            Step::Number(leaf) | Step::Bytes(leaf) => {
                if let Some(slot) = counts.get_mut(usize::from(leaf)) {
                    *slot = open.iter().map(|(_, count)| *count).collect();
                }
            }
        }
    }
    counts
}
