//! A leaf's encoding, and the cost of changing it by metadata (spec 4, 4.1).

use metatf::Change;
use metatf::format::{Interpretation, Leaf, LeafKind};
use metatf::reader::Metadata;

/// The parts of a leaf's encoding that metadata can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) interpretation: Interpretation,
    /// Number of bytes stored, if the interpretation stores bytes.
    pub(crate) width: u8,
    /// Last nonzero width.
    pub(crate) remembered: u8,
}

impl Setting {
    /// Returns the leaf's setting in the DTD.
    pub(crate) fn of(leaf: &Leaf) -> Self {
        let (width, interpretation) = match leaf.kind {
            LeafKind::Number { width, interpretation } => (width, interpretation),
            _ => (0, Interpretation::None),
        };
        Self { interpretation, width, remembered: width }
    }

    /// Returns the setting after a metadata record (spec 4), or `None` if the change is not allowed.
    pub(crate) fn apply(mut self, change: Change) -> Option<Self> {
        match change {
            Change::Width(width) => {
                if self.interpretation.stores() {
                    self.width = width;
                }
                if width != 0 {
                    self.remembered = width;
                }
            }
            Change::Interpretation(Interpretation::BaseOffsetOf(..)) => return None,
            Change::Interpretation(interpretation) => {
                self.interpretation = interpretation;
                if interpretation.stores() {
                    if self.remembered == 0 {
                        return None;
                    }
                    self.width = self.remembered;
                }
            }
        }
        Some(self)
    }
}

/// Changes to one leaf, each with the index of the step that it precedes.
pub(crate) type Path = Vec<(u32, Change)>;

/// The sizes of metadata records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetadataBytes {
    /// The size without values.
    pub(crate) header: u32,
    /// The minimum size of a value in a record that sets an interpretation.
    pub(crate) argument: u8,
}

/// Returns the size of the metadata record for a change.
pub(crate) fn change_cost(bytes: MetadataBytes, change: Change) -> u32 {
    let metadata = Metadata::new(0, 0, change).with_arguments(bytes.argument);
    bytes.header + u32::from(metadata.count) * u32::from(metadata.property >> 4)
}
