//! Usable sizes of blocks, which can exceed the requested sizes.

use hatf_lab::AddressMap;
use serde::Serialize;

use hatf_trace::event::{Call, UNKNOWN_SIZE};

/// Usable bytes of blocks whose usable size is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UsableReport {
    /// Blocks whose usable size is known.
    pub blocks: u64,
    /// Requested bytes of the blocks whose usable size is known.
    pub asked: u64,
    /// Usable bytes of the blocks whose usable size is known.
    pub usable: u64,
    /// Usable bytes in excess of the requested sizes, in the blocks that were live at the peak of live bytes.
    pub spare_at_peak: u64,
}

/// A collector of usable sizes.
#[derive(Clone, Debug, Default)]
pub(super) struct Usable {
    report: UsableReport,
    /// Excess bytes of live blocks, by address. Blocks without excess bytes are not included.
    spare: AddressMap<u64>,
    /// The total excess bytes of live blocks.
    live: u64,
}

impl Usable {
    /// Handles an allocated block.
    #[inline]
    pub(super) fn began(&mut self, call: &Call) {
        if call.usable != 0 && call.size != UNKNOWN_SIZE {
            self.add(call);
        }
    }

    #[cold]
    fn add(&mut self, call: &Call) {
        let Call { size, usable, address, .. } = *call;
        self.report.blocks += 1;
        self.report.asked = self.report.asked.saturating_add(size);
        self.report.usable = self.report.usable.saturating_add(usable);
        let spare = usable.saturating_sub(size);
        // In a sizes-only trace, blocks have no addresses.
        if spare > 0 && address != 0 {
            self.ended(address);
            self.spare.insert(address, spare);
            self.live = self.live.wrapping_add(spare);
        }
    }

    /// Handles the end of a block.
    #[inline]
    pub(super) fn ended(&mut self, address: u64) {
        if !self.spare.is_empty()
            && let Some(spare) = self.spare.remove(&address)
        {
            self.live = self.live.wrapping_sub(spare);
        }
    }

    /// Handles the end of all blocks.
    pub(super) fn all_ended(&mut self) {
        self.spare.clear();
        self.live = 0;
    }

    /// Handles a new peak of live bytes.
    #[inline]
    pub(super) fn peak(&mut self) {
        self.report.spare_at_peak = self.live;
    }

    pub(super) fn report(&self) -> Option<UsableReport> {
        (self.report.blocks > 0).then_some(self.report)
    }
}
