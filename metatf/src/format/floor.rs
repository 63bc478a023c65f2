//! The best tier that a leaf can have according to the DTD.

use super::{ExprOp, Interpretation, LeafKind, Record, Step, borrowed};

/// The best tier that a leaf of a record can have according to the DTD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// The tier depends on the leaf's plan.
    Stored,
    /// The tier depends on the leaf's plan. A model may predict only leaves of this kind.
    Predicted,
    /// `default` with this value.
    Fixed(u64),
    /// A byte array of this length.
    Array(u32),
    /// A byte array whose length is the number directly before it.
    Counted,
    /// The leaf is always in the general tier.
    General,
}

impl Floor {
    /// Returns the length of a byte array in bytes, as specified by the DTD or by the number directly before it.
    #[inline(always)]
    pub(crate) fn length(self, previous: u64) -> u64 {
        match self {
            Self::Array(length) => length.into(),
            _ => previous,
        }
    }
}

/// Returns the best tier that the leaf can have.
pub(crate) const fn floor(record: &Record, leaf: usize) -> Floor {
    if repeats(record) {
        return Floor::General;
    }
    let leaves = borrowed(&record.leaves);
    if leaf >= leaves.len() || leaves[leaf].constant.is_some() {
        return Floor::General;
    }
    match &leaves[leaf].kind {
        LeafKind::Tag => Floor::Stored,
        // A catch-all record always needs the general tier, because no single tag identifies it.
        LeafKind::AnyTag | LeafKind::Computed(_) | LeafKind::Scanned(_) | LeafKind::Until(_) | LeafKind::Rest => {
            Floor::General
        }
        LeafKind::Number { interpretation: Interpretation::Default(value), .. } => Floor::Fixed(*value),
        LeafKind::Number { interpretation: Interpretation::Predicted(_), .. } => Floor::Predicted,
        LeafKind::Number { .. } => Floor::Stored,
        LeafKind::Array(length) => Floor::Array(*length),
        LeafKind::Variable(program) => match borrowed(program) {
            [ExprOp::Leaf(length)]
                if *length as usize + 1 == leaf && matches!(leaves[*length as usize].kind, LeafKind::Number { .. }) =>
            {
                Floor::Counted
            }
            _ => Floor::General,
        },
    }
}

/// Returns whether the layout contains repetitions.
pub(crate) const fn repeats(record: &Record) -> bool {
    let steps = borrowed(&record.steps);
    let mut i = 0;
    while i < steps.len() {
        if matches!(steps[i], Step::Repeat { .. }) {
            return true;
        }
        i += 1;
    }
    false
}
