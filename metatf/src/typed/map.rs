//! How the records of a trace's format become those of a reader's: by name (spec 5.3).

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
}

/// Byte arrays that a trace lacks are zeros, up to this many.
pub(crate) static ZEROS: [u8; 4096] = [0; 4096];

impl Map {
    /// Maps `theirs`, the trace's format, to `ours`.
    pub(crate) fn new(ours: &Format, theirs: &Format) -> Result<Self, String> {
        let mut map =
            Self { records: vec![Vec::new(); theirs.sections.len()], sections: vec![None; ours.sections.len()] };
        for (i, section) in ours.sections.iter().enumerate() {
            let same = |s: &Section| s.name == section.name && (s.number == 0) == (section.number == 0);
            let Some(j) = theirs.sections.iter().position(same) else { continue };
            let Some(other) = theirs.sections.get(j) else { continue };
            if section.stream != other.stream {
                let kind = |stream| if stream { "a stream section" } else { "a section of tagged records" };
                let (ours, theirs) = (kind(section.stream), kind(other.stream));
                return Err(format!("section `{}` is {ours} in the reader's, {theirs} in the trace's", section.name));
            }
            if let Some(slot) = map.sections.get_mut(i) {
                *slot = Some(j);
            }
            let records = section.records.iter().filter(|&&r| r > METADATA);
            for (index, record) in records.filter_map(|&r| Some((r, ours.records.get(usize::from(r))?))) {
                let twin = other.records.iter().filter(|&&r| r > METADATA).find_map(|&r| {
                    let twin = theirs.records.get(usize::from(r))?;
                    (section.stream || twin.name == record.name).then_some((r, twin))
                });
                let Some((theirs, twin)) = twin else { continue };
                let leaves = leaves(&section.name, record, twin)?;
                if let Some(records) = map.records.get_mut(j) {
                    records.push((theirs, RecordMap { section: i, record: index, leaves }));
                }
            }
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

fn leaves(section: &str, ours: &Record, theirs: &Record) -> Result<Vec<MappedFrom>, String> {
    let (our_counts, their_counts) = (counts(ours), counts(theirs));
    let mut map = Vec::with_capacity(ours.leaves.len());
    for (i, leaf) in ours.leaves.iter().enumerate() {
        let place = format!("`{section}.{}.{}`", ours.name, leaf.path);
        let Some(j) = theirs.leaves.iter().position(|l| l.path == leaf.path) else {
            map.push(
                missing(leaf)
                    .ok_or_else(|| format!("{place} has no place in the trace's, and is too long to be made up"))?,
            );
            continue;
        };
        let kinds = (describe(&leaf.kind), theirs.leaves.get(j).map(|l| describe(&l.kind)).unwrap_or_default());
        if kinds.0 != kinds.1 {
            return Err(format!("{place} is {} in the reader's, {} in the trace's", kinds.0, kinds.1));
        }
        if our_counts.get(i) != their_counts.get(j) {
            let how = |counts: Option<&Vec<String>>| match counts.map(|c| c.join("*")) {
                Some(counts) if !counts.is_empty() => format!("repeated by `{counts}`"),
                _ => "not repeated".to_owned(),
            };
            let (ours, theirs) = (how(our_counts.get(i)), how(their_counts.get(j)));
            return Err(format!("{place} is {ours} in the reader's, {theirs} in the trace's"));
        }
        map.push(MappedFrom::Leaf(u8::try_from(j).unwrap_or(u8::MAX)));
    }
    Ok(map)
}

/// What a leaf is, in words that are equal where two leaves are of one kind.
fn describe(kind: &LeafKind) -> String {
    match kind {
        LeafKind::Tag => "the tag".to_owned(),
        LeafKind::Number { .. } => "a number".to_owned(),
        LeafKind::Array(n) => format!("an array of {n} bytes"),
        LeafKind::Variable(_) => "a byte array of variable length".to_owned(),
    }
}

/// What stands for a leaf that the trace lacks: the reader's default value, or 0.
fn missing(leaf: &Leaf) -> Option<MappedFrom> {
    Some(match leaf.kind {
        LeafKind::Number { interpretation: Interpretation::Default(value), .. } => MappedFrom::Number(value),
        LeafKind::Number { .. } | LeafKind::Tag => MappedFrom::Number(leaf.constant.unwrap_or(0)),
        LeafKind::Array(n) => MappedFrom::Zeros((n as usize <= ZEROS.len()).then_some(n)?),
        LeafKind::Variable(_) => MappedFrom::Zeros(0),
    })
}

/// For each leaf: the paths of the counts it is repeated by, from outside in.
fn counts(record: &Record) -> Vec<Vec<String>> {
    let mut counts = vec![Vec::new(); record.leaves.len()];
    let mut open: Vec<(usize, String)> = Vec::new();
    for (at, step) in record.steps.iter().enumerate() {
        open.retain(|(end, _)| *end > at);
        match *step {
            Step::Repeat { count, end } => {
                let path = record.leaves.get(usize::from(count)).map(|l| l.path.to_string());
                open.push((usize::from(end), path.unwrap_or_default()));
            }
            Step::Number(leaf) | Step::Bytes(leaf) => {
                if let Some(slot) = counts.get_mut(usize::from(leaf)) {
                    *slot = open.iter().map(|(_, path)| path.clone()).collect();
                }
            }
        }
    }
    counts
}
