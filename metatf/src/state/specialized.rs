//! The encoding of a leaf in the state that generated code is specialized for.

use crate::format::{Format, Interpretation, LeafKind, borrowed};
use crate::formula::{Plan, Width};

/// Returns the encoding of a numeric leaf in the expected state if it is a stored integer, possibly with a base.
pub(crate) const fn expected(format: &Format, record: u16, leaf: usize) -> Option<Plan> {
    let (declared, interpretation) = match borrowed(&borrowed(&format.records)[record as usize].leaves)[leaf].kind {
        LeafKind::Number { width, interpretation } => (width, interpretation),
        LeafKind::Tag => return Some(Plan::straight(Width::saturating(format.tag_width as usize), None)),
        LeafKind::AnyTag
        | LeafKind::Computed(_)
        | LeafKind::Scanned(_)
        | LeafKind::Array(_)
        | LeafKind::Variable(_)
        | LeafKind::Until(_)
        | LeafKind::Rest => return None,
    };
    let mut width = declared;
    let (listed, mut i) = (borrowed(&format.expected), 0);
    while i < listed.len() {
        if listed[i].record == record && listed[i].leaf as usize == leaf && listed[i].width <= 8 {
            width = listed[i].width;
        }
        i += 1;
    }
    let width = Width::saturating(width as usize);
    match interpretation {
        Interpretation::None | Interpretation::SectionOffset(_) => Some(Plan::straight(width, None)),
        Interpretation::BaseOffset(base) => Some(Plan::straight(width, Some(base))),
        _ => None,
    }
}
