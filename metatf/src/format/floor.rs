//! What a leaf can be at best, by the DTD.

use super::{ExprOp, Interpretation, LeafKind, Record, Step, borrowed};

/// What a leaf of a record can be at best, by the DTD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// Its tier goes by its plan.
    Stored,
    /// Its tier goes by its plan; the only kind that a model may predict.
    Predicted,
    /// `default` with this value.
    Fixed(u64),
    /// A byte array of this length.
    Array(u32),
    /// A byte array as long as the number right before it says.
    Counted,
    /// Always general.
    General,
}

impl Floor {
    /// Bytes of a byte array: as many as the DTD says, or as the number right before it.
    #[inline(always)]
    pub(crate) fn length(self, previous: u64) -> u64 {
        match self {
            Self::Array(length) => length.into(),
            _ => previous,
        }
    }
}

/// What the leaf can be at best.
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
        // Its record is found by no tag of its own.
        LeafKind::AnyTag | LeafKind::Computed(_) | LeafKind::Until(_) => Floor::General,
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

const fn repeats(record: &Record) -> bool {
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
