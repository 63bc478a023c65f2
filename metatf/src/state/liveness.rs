//! Tracks which cells of a section may be read later, so that other values need not be saved.
//!
//! A *previous* value is needed while a leaf that shares its cell is `delta` or `stride`. A metadata record that sets
//! one of these interpretations also sets the previous value (spec 4.1), as does a reset, so values that the cell
//! missed before are never needed. A *last* value is needed if the DTD uses it in a width or a count, and while a leaf
//! is based on it or predicted by it. Metadata can end such a reference, and only a reset, which also clears the cell,
//! can restore it.

use crate::format::{ExprOp, Format, HeapRole, Interpretation, LeafKind, LeafRef, ModelKind, Record, Section, Step};
use crate::formula::{LAST, REFERENCED};

/// The liveness of the cells of one section, in the order of its plans.
#[derive(Clone, Debug, Default)]
pub(crate) struct Liveness {
    /// For each plan, the flags `LAST` if the DTD requires the last value, and `REFERENCED` while that value is
    /// referenced.
    last: Vec<u8>,
    /// Plans that refer to the last value of another plan, as sorted pairs of the referring index and the target index.
    references: Vec<(u32, u32)>,
    /// For each plan, the number of plans that currently refer to its last value.
    referrers: Vec<u32>,
    /// For each plan, the next plan that shares the cell of its previous value. The plans sharing a cell form a ring.
    ring: Vec<u32>,
    /// For each cell of a previous value, the number of leaves that are currently `delta` or `stride` on it.
    users: Vec<u32>,
}

impl Liveness {
    /// Creates the state. `first` returns the index of the first plan of the record at a position of the section, and
    /// `plans` is the total number of plans.
    pub(crate) fn new(
        format: &Format,
        section: &Section,
        first: impl Fn(usize) -> Option<usize>,
        plans: usize,
    ) -> Self {
        let mut liveness = Self { last: vec![0; plans], ..Self::default() };
        if section.stream {
            // For a section of single numbers, mark the last value as needed, because the writer reads the values from
            // its cell.
            liveness.mark(Some(0), LAST);
        }
        for (position, record) in section.records.iter().enumerate() {
            let Some(record) = format.records.get(usize::from(*record)) else { continue };
            for leaf in lengths_and_counts(record) {
                liveness.mark(first(position).map(|f| f + usize::from(leaf)), LAST);
            }
            for (from, (record, leaf)) in references(format, record) {
                let target = section.records.iter().position(|&listed| listed == record).and_then(&first);
                let index = |first: Option<usize>, leaf: u8| u32::try_from(first? + usize::from(leaf)).ok();
                liveness.references.extend(index(first(position), from).zip(index(target, leaf)));
            }
        }
        liveness.ring = ring(section, plans);
        liveness
    }

    fn mark(&mut self, index: Option<usize>, flag: u8) {
        if let Some(flags) = index.and_then(|i| self.last.get_mut(i)) {
            *flags |= flag;
        }
    }

    /// Marks all previous values, which occupy `cells` cells, as unused and restores all references of the DTD.
    pub(crate) fn reset(&mut self, cells: usize) {
        self.users.clear();
        self.users.resize(cells, 0);
        self.referrers.clear();
        self.referrers.resize(self.last.len(), 0);
        for &(_, target) in &self.references {
            if let (Some(referrers), Some(flags)) =
                (self.referrers.get_mut(target as usize), self.last.get_mut(target as usize))
            {
                *referrers += 1;
                *flags |= REFERENCED;
            }
        }
    }

    /// Ends all references of a plan to last values. Returns the plans that are no longer referenced.
    pub(crate) fn end_references(&mut self, index: usize) -> Vec<usize> {
        let Self { last, references, referrers, .. } = self;
        let ended = references.iter().filter(|(from, _)| *from as usize == index).map(|(_, target)| *target as usize);
        let drop_one = |target: &usize| {
            let Some((referrers, flags)) = referrers.get_mut(*target).zip(last.get_mut(*target)) else { return false };
            *referrers = referrers.saturating_sub(1);
            if *referrers == 0 {
                *flags &= !REFERENCED;
            }
            *referrers == 0
        };
        ended.filter(drop_one).collect()
    }

    /// Returns the flags `LAST` and `REFERENCED` of a plan.
    pub(crate) fn last(&self, index: usize) -> u8 {
        self.last.get(index).copied().unwrap_or(0)
    }

    /// Returns whether a leaf uses the previous value in this cell.
    pub(crate) fn is_used(&self, cell: u32) -> bool {
        self.users.get(cell as usize).is_some_and(|&users| users > 0)
    }

    /// Records that a leaf on this cell starts or stops using the previous value. Returns true if this affects the
    /// leaves that share the cell.
    pub(crate) fn change(&mut self, cell: u32, uses: bool) -> bool {
        let Some(users) = self.users.get_mut(cell as usize) else { return false };
        let before = *users > 0;
        *users = if uses { *users + 1 } else { users.saturating_sub(1) };
        before != (*users > 0)
    }

    /// Returns the next plan that shares the cell of this plan.
    pub(crate) fn sharer(&self, index: usize) -> usize {
        self.ring.get(index).map_or(index, |&next| next as usize)
    }
}

/// Returns the leaves that the record uses in its widths and counts.
fn lengths_and_counts(record: &Record) -> impl Iterator<Item = u8> {
    let counts = record.steps.iter().filter_map(|step| match *step {
        Step::Repeat { count, .. } => Some(count),
        _ => None,
    });
    let programs = record.leaves.iter().filter_map(|leaf| match &leaf.kind {
        LeafKind::Variable(program) | LeafKind::Computed(program) | LeafKind::Scanned(program) => Some(&**program),
        _ => None,
    });
    counts.chain(programs.flatten().filter_map(|op| match *op {
        ExprOp::Leaf(leaf) => Some(leaf),
        _ => None,
    }))
}

/// Returns pairs of a leaf of the record and the leaf whose last value is its base or an input of its model.
fn references(format: &Format, record: &Record) -> Vec<(u8, LeafRef)> {
    let mut all = Vec::new();
    for (from, leaf) in (0..).zip(record.leaves.iter()) {
        let mut references = Vec::new();
        match leaf.kind {
            LeafKind::Number { interpretation: Interpretation::BaseOffsetOf(record, leaf), .. } => {
                references.push((record, leaf));
            }
            LeafKind::Number { interpretation: Interpretation::Predicted(model), .. } => {
                match format.models.get(usize::from(model)).map(|model| &model.kind) {
                    Some(ModelKind::Values(predictors)) => references.extend(predictors.iter().filter_map(|p| p.by)),
                    Some(ModelKind::Heap { role, by }) => {
                        references.extend(*by);
                        if let HeapRole::Allocated { size } = role {
                            references.push(*size);
                        }
                    }
                    None => {}
                }
            }
            _ => {}
        }
        all.extend(references.into_iter().map(|reference| (from, reference)));
    }
    all
}

/// Returns, for each plan, the next plan with the same cell. The plans are visited backward twice. Each time, the
/// successor of a plan is the most recently visited plan with the same cell.
fn ring(section: &Section, plans: usize) -> Vec<u32> {
    let cells = section.cells.get(..plans).unwrap_or(&section.cells);
    let mut met = vec![None; cells.iter().max().map_or(0, |&cell| cell as usize + 1)];
    let mut ring: Vec<u32> = (0..).take(plans).collect();
    for _ in 0..2 {
        for (index, &cell) in cells.iter().enumerate().rev() {
            let (Some(met), Some(next)) = (met.get_mut(cell as usize), ring.get_mut(index)) else { continue };
            if let Some(after) = met.replace(u32::try_from(index).unwrap_or(0)) {
                *next = after;
            }
        }
    }
    ring
}
