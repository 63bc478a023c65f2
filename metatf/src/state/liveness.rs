//! Who looks at the cells of a section's leaves, so that values nobody asks for are not noted.
//!
//! A *previous* value is looked at while a leaf that shares the cell is `delta` or `stride`. When a metadata record makes
//! a leaf so, it gives the previous value again (spec 4.1), and a reset does, too: what the cell missed before is never
//! asked for. A *last* value is looked at where the DTD names it in a width or a count, and while a leaf is based on it or predicted by
//! it: metadata can end that, and only a reset, which empties the cell, begins it again.

use crate::format::{ExprOp, Format, HeapRole, Interpretation, LeafKind, LeafRef, ModelKind, Record, Section, Step};
use crate::formula::{LAST, REFERENCED};

/// For the leaves of one section, in the order of its plans.
#[derive(Clone, Debug, Default)]
pub(crate) struct Liveness {
    /// For each plan: `LAST`, where the DTD has it so, and `REFERENCED` while it is.
    last: Vec<u8>,
    /// Plans that refer to the last value of another: its index behind their own, in order.
    references: Vec<(u32, u32)>,
    /// For each plan: how many refer to its last value now.
    referrers: Vec<u32>,
    /// For each plan: the next one with the same cell for its previous value, round in a ring.
    ring: Vec<u32>,
    /// For each cell of a previous value: how many leaves are `delta` or `stride` on it now.
    users: Vec<u32>,
}

impl Liveness {
    /// `first` gives the index of the first plan of the record at a position of the section; there are `plans` in all.
    pub(crate) fn new(
        format: &Format,
        section: &Section,
        first: impl Fn(usize) -> Option<usize>,
        plans: usize,
    ) -> Self {
        let mut liveness = Self { last: vec![0; plans], ..Self::default() };
        if section.stream {
            // The writer takes the values of a section of one number from the cell.
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

    /// No leaf uses a previous value; there are `cells` of them. All references of the DTD are in force.
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

    /// A plan refers to no last value any more. Gives those to which nobody refers now.
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

    /// `LAST` and `REFERENCED` of a plan.
    pub(crate) fn last(&self, index: usize) -> u8 {
        self.last.get(index).copied().unwrap_or(0)
    }

    /// Whether a leaf uses the previous value in this cell.
    pub(crate) fn is_used(&self, cell: u32) -> bool {
        self.users.get(cell as usize).is_some_and(|&users| users > 0)
    }

    /// A leaf on this cell uses the previous value from now on, or no longer. True where that is news for those who
    /// share it.
    pub(crate) fn change(&mut self, cell: u32, uses: bool) -> bool {
        let Some(users) = self.users.get_mut(cell as usize) else { return false };
        let before = *users > 0;
        *users = if uses { *users + 1 } else { users.saturating_sub(1) };
        before != (*users > 0)
    }

    /// The next plan with the same cell as this one.
    pub(crate) fn sharer(&self, index: usize) -> usize {
        self.ring.get(index).map_or(index, |&next| next as usize)
    }
}

/// Leaves of the record that its widths and counts name.
fn lengths_and_counts(record: &Record) -> impl Iterator<Item = u8> {
    let counts = record.steps.iter().filter_map(|step| match *step {
        Step::Repeat { count, .. } => Some(count),
        _ => None,
    });
    let programs = record.leaves.iter().filter_map(|leaf| match &leaf.kind {
        LeafKind::Variable(program) | LeafKind::Computed(program) => Some(&**program),
        _ => None,
    });
    counts.chain(programs.flatten().filter_map(|op| match *op {
        ExprOp::Leaf(leaf) => Some(leaf),
        _ => None,
    }))
}

/// Leaves of the record with the leaf whose last value is their base, or what they are predicted by.
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

/// For each plan: the next one with the same cell. Twice round, backwards: each plan's next is the one met before it.
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
