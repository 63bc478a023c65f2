//! How the records of a trace's format become those of a reader's: by name (spec 5.3).

use super::unmatched::Unmatched;
use crate::format::{Format, Interpretation, Leaf, LeafKind, METADATA, Record, Section, Step};

/// Where a leaf of the reader gets its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MappedFrom {
    /// This leaf of the trace's record.
    Leaf(u8),
    /// The trace has no such leaf: always this number.
    Number(u64),
    /// The trace has no such leaf: always this many zero bytes.
    Zeros(u32),
}

/// How a record of the trace becomes one of the reader's.
#[derive(Clone, Debug)]
pub(crate) struct RecordMap {
    /// Indices in the reader's format.
    pub(crate) section: usize,
    pub(crate) record: u16,
    /// For each of the reader's leaves.
    pub(crate) leaves: Vec<MappedFrom>,
}

/// Section by section of the trace's format, record by record.
#[derive(Clone, Debug)]
pub(crate) struct Map {
    records: Vec<Vec<(u16, RecordMap)>>,
    /// The trace's section for each of the reader's.
    sections: Vec<Option<usize>>,
    pub(crate) unmatched: Unmatched,
}

/// Byte arrays that a trace lacks are zeros, up to this many.
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
                return Err(format!("section `{}` is {ours} in the reader's, {theirs} in the trace's", section.name));
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

    /// What a record of the trace becomes; `None` where the reader does not know it.
    pub(crate) fn record(&self, section: usize, record: u16) -> Option<&RecordMap> {
        self.records.get(section)?.iter().find(|(r, _)| *r == record).map(|(_, map)| map)
    }

    /// The trace's section that goes by the name of the reader's.
    pub(crate) fn section(&self, ours: usize) -> Option<usize> {
        self.sections.get(ours).copied().flatten()
    }
}

/// The records of a section that carry data.
fn data_records<'f>(format: &'f Format, section: &'f Section) -> impl Iterator<Item = (u16, &'f Record)> {
    let records = section.records.iter().filter(|&&record| record > METADATA);
    records.filter_map(|&record| Some((record, format.records.get(usize::from(record))?)))
}

/// Whether a section is where a record is named: every section lists the global records, too.
fn is_own(format: &Format, section: usize, record: u16) -> bool {
    section == 0 || !format.sections.first().is_some_and(|global| global.records.contains(&record))
}

fn own<'f>(format: &'f Format, section: &'f Section, index: usize) -> impl Iterator<Item = (u16, &'f Record)> {
    data_records(format, section).filter(move |(record, _)| is_own(format, index, *record))
}

/// The record of the trace that is this one of the reader: by its name, or by an earlier one that no record of the reader has.
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

/// `section.record` or `section.record.path`, as people name it.
fn place(section: &Section, record: &str, path: Option<&str>) -> String {
    let parts = [Some(&*section.name).filter(|name| !name.is_empty()), Some(record), path];
    parts.into_iter().flatten().collect::<Vec<_>>().join(".")
}

/// A record of the reader and that of the trace.
struct TwinRecords<'f> {
    section: &'f Section,
    ours: &'f Record,
    theirs: &'f Record,
}

impl TwinRecords<'_> {
    /// Where the reader's leaves get their values, by names. What has no twin is noted.
    fn leaves(&self, unmatched: Option<&mut Unmatched>) -> Result<Vec<MappedFrom>, String> {
        let twins = self.twins();
        let (our_counts, their_counts) = (counts(self.ours), counts(self.theirs));
        let mut map = Vec::with_capacity(self.ours.leaves.len());
        let mut absent = Vec::new();
        for (i, leaf) in self.ours.leaves.iter().enumerate() {
            let place = place(self.section, &self.ours.name, Some(&leaf.path));
            let Some((j, twin)) = twins.get(i).copied().flatten().and_then(|j| Some((j, self.theirs.leaves.get(j)?)))
            else {
                map.push(
                    missing(leaf).ok_or_else(|| {
                        format!("`{place}` has no place in the trace's, and is too long to be made up")
                    })?,
                );
                let declared = matches!(
                    leaf.kind,
                    LeafKind::Tag
                        | LeafKind::Computed(_)
                        | LeafKind::Number { interpretation: Interpretation::Default(_), .. }
                );
                if !declared && leaf.constant.is_none() {
                    absent.push(place);
                }
                continue;
            };
            let kinds = (describe(&leaf.kind), describe(&twin.kind));
            if kinds.0 != kinds.1 {
                return Err(format!("`{place}` is {} in the reader's, {} in the trace's", kinds.0, kinds.1));
            }
            let (own, other) = (our_counts.get(i), their_counts.get(j));
            // A count may have had another name. Of those that are computed the expression counts: there may be several of one.
            let counts_of = |record: &Record, counts: Option<&Vec<usize>>, twin: &dyn Fn(usize) -> Option<usize>| {
                let count = |&count: &usize| match record.leaves.get(count) {
                    Some(Leaf { kind: LeafKind::Computed(_), field, .. }) => Err(field.to_string()),
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
                return Err(format!("`{place}` is {ours} in the reader's, {theirs} in the trace's"));
            }
            map.push(MappedFrom::Leaf(u8::try_from(j).unwrap_or(u8::MAX)));
        }
        if let Some(unmatched) = unmatched {
            let unread = self.theirs.leaves.iter().enumerate().filter(|(j, _)| !twins.contains(&Some(*j)));
            let unread = unread.filter(|(_, leaf)| {
                leaf.constant.is_none() && !matches!(leaf.kind, LeafKind::Tag | LeafKind::Computed(_))
            });
            unmatched.unread.extend(unread.map(|(_, leaf)| place(self.section, &self.theirs.name, Some(&leaf.path))));
            unmatched.absent.append(&mut absent);
        }
        Ok(map)
    }

    /// For each of the reader's leaves the trace's: that of its path, or of an earlier path that no leaf of the reader has.
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

/// What a leaf is, in words that are equal where two leaves are of one kind.
fn describe(kind: &LeafKind) -> String {
    match kind {
        LeafKind::Tag => "a tag of its own".to_owned(),
        LeafKind::AnyTag => "any tag that no other record has".to_owned(),
        LeafKind::Number { .. } => "a number".to_owned(),
        LeafKind::Computed(_) => "a count that is computed".to_owned(),
        LeafKind::Array(n) => format!("an array of {n} bytes"),
        LeafKind::Until(end) => format!("a byte array up to a byte {end}"),
        LeafKind::Variable(_) => "a byte array of variable length".to_owned(),
    }
}

/// What stands for a leaf that the trace lacks: the reader's default value, or 0.
fn missing(leaf: &Leaf) -> Option<MappedFrom> {
    Some(match leaf.kind {
        LeafKind::Number { interpretation: Interpretation::Default(value), .. } => MappedFrom::Number(value),
        LeafKind::Number { .. } | LeafKind::Tag | LeafKind::AnyTag => MappedFrom::Number(leaf.constant.unwrap_or(0)),
        LeafKind::Computed(_) => MappedFrom::Number(0),
        LeafKind::Array(n) => MappedFrom::Zeros((n as usize <= ZEROS.len()).then_some(n)?),
        LeafKind::Variable(_) | LeafKind::Until(_) => MappedFrom::Zeros(0),
    })
}

/// For each leaf: the counts it is repeated by, from outside in.
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
