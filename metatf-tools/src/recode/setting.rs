//! A leaf's encoding as metadata changes it, and what such a change costs (spec 4, 4.1).

use metatf::Change;
use metatf::format::{Interpretation, Leaf, LeafKind};
use metatf::reader::Metadata;

/// A leaf's encoding: what metadata changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) interpretation: Interpretation,
    /// Bytes stored where the interpretation stores any.
    pub(crate) width: u8,
    /// Last non-zero width.
    pub(crate) remembered: u8,
}

impl Setting {
    /// What the DTD says.
    pub(crate) fn of(leaf: &Leaf) -> Self {
        let (width, interpretation) = match leaf.kind {
            LeafKind::Number { width, interpretation } => (width, interpretation),
            _ => (0, Interpretation::None),
        };
        Self { interpretation, width, remembered: width }
    }

    /// What a metadata record makes of it (spec 4); `None` where it may not stand.
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

/// Changes of one leaf, each before the step of this index.
pub(crate) type Path = Vec<(u32, Change)>;

/// Bytes of metadata records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MetadataBytes {
    /// Those without values.
    pub(crate) header: u32,
    /// Of a value of an interpretation, at least.
    pub(crate) argument: u8,
}

/// The bytes of the metadata record that makes a change.
pub(crate) fn change_cost(bytes: MetadataBytes, change: Change) -> u32 {
    let metadata = Metadata::new(0, 0, change).with_arguments(bytes.argument);
    bytes.header + u32::from(metadata.count) * u32::from(metadata.property >> 4)
}
