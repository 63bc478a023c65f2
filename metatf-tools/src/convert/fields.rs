//! Finds the source of each field of a target record.

use crate::field_names::FieldNames;
use crate::stream_sections::offset_into;
use crate::value_indices::ValueIndices;
use metatf::dynamic::Schema;
use metatf::format::{self, ExprOp, LeafKind, Step};
use metatf_parser::schema::{self, Interpretation, Leaf, LeafId, Record, Width};

/// The source of a leaf's value. Leaf indices refer to the source record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// This leaf.
    Field(u8),
    /// This leaf, which is an offset into a section of the source. The offset is converted to a section of the target.
    Offset { leaf: u8, from: usize, to: usize },
    /// The length of this byte array.
    LengthOf(u8),
    /// No source. The value is this number, or one zero for each byte of the leaf.
    Value(u64),
    /// No source. The value is computed by the count expression in the target's DTD.
    Computed,
}

/// The sources of a record's leaves.
#[derive(Clone, Debug, Default)]
pub(super) struct FieldSources {
    origins: Vec<Origin>,
    /// The positions of the source record's values, if they are always the same.
    pub(super) fixed: Option<ValueIndices>,
}

impl FieldSources {
    pub(super) fn origin(&self, leaf: u8) -> Origin {
        self.origins.get(usize::from(leaf)).copied().unwrap_or(Origin::Value(0))
    }

    /// Returns the tables that the record's offsets refer to, as pairs of a source section and a target section.
    pub(super) fn tables(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.origins.iter().filter_map(|origin| match origin {
            Origin::Offset { from, to, .. } => Some((*from, *to)),
            _ => None,
        })
    }
}

/// The result of matching two records.
#[derive(Clone, Debug, Default)]
pub(super) struct Matched {
    pub(super) fields: FieldSources,
    /// Fields of the source without a counterpart.
    pub(super) lost: Vec<String>,
    /// Descriptions of mismatches.
    pub(super) wrong: Vec<String>,
}

/// One of the two records, identified by its schema and index.
#[derive(Clone, Copy)]
pub(super) struct Side<'s> {
    pub(super) schema: &'s Schema,
    pub(super) index: u16,
}

impl<'s> Side<'s> {
    fn record(self) -> Option<&'s Record> {
        self.schema.record(self.index)
    }

    fn format(self) -> Option<&'s format::Record> {
        self.schema.format.records.get(usize::from(self.index))
    }

    /// Returns, for each leaf, the leaves that count the enclosing repetitions, outermost first.
    fn counts(self) -> Vec<Vec<u8>> {
        let Some(record) = self.format() else { return Vec::new() };
        let mut counts = vec![Vec::new(); record.leaves.len()];
        let mut open: Vec<(u8, u16)> = Vec::new();
        for (at, step) in (0_u16..).zip(record.steps.iter()) {
            open.retain(|&(_, end)| at < end);
            match *step {
                Step::Number(leaf) | Step::Bytes(leaf) => {
                    if let Some(counts) = counts.get_mut(usize::from(leaf)) {
                        *counts = open.iter().map(|(count, _)| *count).collect();
                    }
                }
                Step::Repeat { count, end } => open.push((count, end)),
            }
        }
        counts
    }

    /// Returns the leaf that stores the length of a byte array, unless the length is a longer expression.
    fn length_of(self, leaf: usize) -> Option<u8> {
        match self.format()?.leaves.get(leaf).map(|l| &l.kind)? {
            LeafKind::Variable(program) => match **program {
                [ExprOp::Leaf(length)] => Some(length),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Matches the fields of two records by path, except for `dropped` fields.
pub(super) fn resolve(source: Side<'_>, target: Side<'_>, dropped: &FieldNames) -> Matched {
    let (Some(from), Some(to)) = (source.record(), target.record()) else { return Matched::default() };
    let mut matcher = FieldMatcher {
        source,
        target,
        from,
        to,
        twins: vec![None; to.leaves.len()],
        used: vec![false; from.leaves.len()],
        out: Matched::default(),
    };
    let left_out: Vec<bool> = from.leaves.iter().map(|l| dropped.mean(from, source.index, &l.path)).collect();
    matcher.pair(&left_out);
    matcher.repetitions();
    matcher.lengths();
    matcher.operands();
    matcher.origins();
    for (leaf, (used, left_out)) in from.leaves.iter().zip(matcher.used.iter().zip(&left_out)) {
        if !used && !left_out && !leaf.is_tag() && leaf.computed.is_none() {
            matcher.out.lost.push(name(from, leaf));
        }
    }
    matcher.out
}

fn name(record: &Record, leaf: &Leaf) -> String {
    format!("{}.{}", record.name, leaf.path.join("."))
}

/// Returns the expression for a leaf's number of items or bytes.
fn expression(leaf: &Leaf) -> Option<&[schema::ExprOp]> {
    match (&leaf.computed, &leaf.width) {
        (Some(expression), _) | (None, Width::Variable(expression)) => Some(&expression.0),
        _ => None,
    }
}

/// Returns the corresponding leaves of two expressions as pairs, or `None` if the expressions differ in anything else.
fn operands(a: &[schema::ExprOp], b: &[schema::ExprOp]) -> Option<Vec<(LeafId, LeafId)>> {
    let mut pairs = Vec::new();
    for (a, b) in a.iter().zip(b) {
        match (*a, *b) {
            (schema::ExprOp::Leaf(a), schema::ExprOp::Leaf(b)) => pairs.push((a, b)),
            (a, b) if a == b => {}
            _ => return None,
        }
    }
    (a.len() == b.len()).then_some(pairs)
}

struct FieldMatcher<'s> {
    source: Side<'s>,
    target: Side<'s>,
    from: &'s Record,
    to: &'s Record,
    /// The source of each target leaf.
    twins: Vec<Option<Origin>>,
    /// For each source leaf, whether its values are used in the target.
    used: Vec<bool>,
    out: Matched,
}

impl FieldMatcher<'_> {
    /// Pairs leaves with the same path. If several leaves have the same path, pairs them in order.
    fn pair(&mut self, left_out: &[bool]) {
        let mut taken = vec![false; self.from.leaves.len()];
        let names: Vec<String> = self.to.leaves.iter().map(|leaf| leaf.path.join(".")).collect();
        let earlier = self.to.earlier_paths();
        for (j, leaf) in self.to.leaves.iter().enumerate().filter(|(_, leaf)| !leaf.is_tag()) {
            let candidate = |is: &dyn Fn(&Leaf) -> bool| {
                let mut candidates = (0..=u8::MAX).zip(&self.from.leaves);
                candidates.find(|(i, l)| !l.is_tag() && is(l) && taken.get(usize::from(*i)) == Some(&false))
            };
            let was = earlier.iter().find(|(id, _)| usize::from(id.0) == j).map_or(&[][..], |(_, paths)| paths);
            let mut was = was.iter().filter(|was| !names.contains(was));
            let twin = candidate(&|l| l.path == leaf.path)
                .or_else(|| was.find_map(|was| candidate(&|l| l.path.join(".") == *was)));
            let Some((i, from)) = twin else { continue };
            if let Some(taken) = taken.get_mut(usize::from(i)) {
                *taken = true;
            }
            if left_out.get(usize::from(i)) == Some(&true) {
                continue;
            }
            self.use_leaf(i);
            let named = name(self.from, from);
            if from.is_numeric() != leaf.is_numeric() {
                let kind = |l: &Leaf| if l.is_numeric() { "a number" } else { "bytes" };
                self.out.wrong.push(format!("{named} is {} in the trace but {} in the target", kind(from), kind(leaf)));
                continue;
            }
            let tables = (
                offset_into(self.source.schema, from.interpretation),
                offset_into(self.target.schema, leaf.interpretation),
            );
            let origin = match tables {
                (Some(from), Some(to)) => Origin::Offset { leaf: i, from, to },
                (None, None) => Origin::Field(i),
                (Some(_), None) => {
                    self.out.wrong.push(format!("{named} is a section offset in the trace, but not in the target"));
                    continue;
                }
                (None, Some(_)) => {
                    self.out.wrong.push(format!("{named} is a section offset in the target, but not in the trace"));
                    continue;
                }
            };
            if let Some(slot) = self.twins.get_mut(j) {
                *slot = Some(origin);
            }
        }
    }

    fn use_leaf(&mut self, leaf: u8) {
        if let Some(used) = self.used.get_mut(usize::from(leaf)) {
            *used = true;
        }
    }

    /// Pairs the counts of matching repetitions, regardless of the field names.
    fn repetitions(&mut self) {
        let (from, to) = (self.source.counts(), self.target.counts());
        let mut counted: Vec<Option<u8>> = vec![None; self.to.leaves.len()];
        for (j, twin) in self.twins.clone().into_iter().enumerate() {
            let Some(Origin::Field(i) | Origin::Offset { leaf: i, .. }) = twin else { continue };
            let (a, b) = (from.get(usize::from(i)), to.get(j));
            let (Some(a), Some(b)) = (a, b) else { continue };
            if a.len() != b.len() {
                let named = self.from.leaves.get(usize::from(i)).map(|l| name(self.from, l)).unwrap_or_default();
                self.out.wrong.push(format!("the trace and the target repeat {named} differently"));
                continue;
            }
            for (&count, &target) in a.iter().zip(b) {
                let Some(slot) = counted.get_mut(usize::from(target)) else { continue };
                if slot.is_some_and(|known| known != count) {
                    let named = self.to.leaves.get(usize::from(target)).map(|l| name(self.to, l)).unwrap_or_default();
                    self.out.wrong.push(format!("{named} of the target would replace several counts of the trace"));
                }
                *slot = Some(count);
            }
        }
        for (j, count) in counted.into_iter().enumerate() {
            if let (Some(count), Some(slot)) = (count, self.twins.get_mut(j)) {
                *slot = Some(Origin::Field(count));
                self.use_leaf(count);
            }
        }
        // Do not report a count as lost if none of the fields that it counts remain in the target.
        for (count, used) in (0..=u8::MAX).zip(self.used.clone()) {
            let counts = |c: &&Vec<u8>| c.contains(&count);
            let mut inside = from.iter().zip(&self.used).filter(|(c, _)| counts(c));
            let any = from.iter().any(|c| counts(&c));
            if !used && any && inside.all(|(_, used)| !used) {
                self.use_leaf(count);
            }
        }
    }

    /// Derives a length from its byte array, if the length has no source but the array has one.
    fn lengths(&mut self) {
        for (j, twin) in self.twins.clone().into_iter().enumerate() {
            let Some(Origin::Field(i)) = twin.filter(|_| self.to.leaves.get(j).is_some_and(|l| !l.is_numeric())) else {
                continue;
            };
            if let Some(length) = self.source.length_of(usize::from(i)) {
                self.use_leaf(length);
            }
            if let Some(slot) = self.target.length_of(j).and_then(|l| self.twins.get_mut(usize::from(l)))
                && slot.is_none()
            {
                *slot = Some(Origin::LengthOf(i));
            }
        }
    }

    /// Pairs the operands of the source's and the target's expression for a count or a length, if both DTDs compute it
    /// in the same way.
    fn operands(&mut self) {
        let (from_counts, to_counts) = (self.source.counts(), self.target.counts());
        for (j, twin) in self.twins.clone().into_iter().enumerate() {
            let Some(Origin::Field(i)) = twin else { continue };
            let (from, to) = (self.from.leaves.get(usize::from(i)), self.to.leaves.get(j));
            let (Some(from), Some(to)) = (from.and_then(expression), to.and_then(expression)) else { continue };
            for (LeafId(a), LeafId(b)) in operands(from, to).unwrap_or_default() {
                let is_tag = |record: &Record, leaf| record.leaf(LeafId(leaf)).is_none_or(Leaf::is_tag);
                let counts = (from_counts.get(usize::from(a)), to_counts.get(usize::from(b)));
                let (Some(from), Some(to)) = counts else { continue };
                let repeated = from.iter().map(|&count| Some(Origin::Field(count)));
                let counted = to.iter().map(|&count| self.twins.get(usize::from(count)).copied().flatten());
                // A value is used only once, so a leaf with a counterpart in the target is used only there.
                let taken = self.twins.iter().flatten().any(|twin| match *twin {
                    Origin::Field(leaf) | Origin::Offset { leaf, .. } => leaf == a,
                    _ => false,
                });
                if taken || is_tag(self.from, a) || is_tag(self.to, b) || !counted.eq(repeated) {
                    continue;
                }
                if let Some(slot) = self.twins.get_mut(usize::from(b)).filter(|slot| slot.is_none()) {
                    *slot = Some(Origin::Field(a));
                    self.use_leaf(a);
                }
            }
        }
    }

    fn origins(&mut self) {
        if self.to.catch_all && !self.from.catch_all {
            self.out.wrong.push(format!("{} has one tag in the trace but any tag in the target", self.from.name));
        }
        let default = |leaf: &Leaf| match (leaf.constant, leaf.interpretation) {
            _ if leaf.computed.is_some() => Origin::Computed,
            (Some(constant), _) => Origin::Value(constant),
            (None, Interpretation::Default(value)) => Origin::Value(value),
            _ => Origin::Value(0),
        };
        let leaves = self.to.leaves.iter().zip(&self.twins);
        self.out.fields.fixed = self.source.format().and_then(ValueIndices::fixed);
        self.out.fields.origins = leaves.map(|(l, twin)| twin.unwrap_or_else(|| default(l))).collect();
    }
}
