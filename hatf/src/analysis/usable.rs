//! What blocks have beyond what was asked for.

use hatf_lab::address::AddressMap;
use serde::Serialize;

use crate::event::{Call, UNKNOWN_SIZE};

/// Bytes that blocks really have, of those of which it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UsableReport {
    /// Blocks of which it is known.
    pub blocks: u64,
    /// Bytes that were asked for.
    pub asked: u64,
    /// Bytes that they have.
    pub usable: u64,
    /// Bytes beyond what was asked for in the blocks that were live when most bytes were.
    pub spare_at_peak: u64,
}

/// Sums up what blocks really have.
#[derive(Clone, Debug, Default)]
pub(super) struct Usable {
    report: UsableReport,
    /// By address, what live blocks have beyond what was asked for; not those that have nothing.
    spare: AddressMap<u64>,
    /// Their sum.
    live: u64,
}

impl Usable {
    /// A block begins.
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
        // Where only sizes are recorded, blocks are at no address.
        if spare > 0 && address != 0 {
            self.ended(address);
            self.spare.insert(address, spare);
            self.live = self.live.wrapping_add(spare);
        }
    }

    /// A block ends.
    #[inline]
    pub(super) fn ended(&mut self, address: u64) {
        if !self.spare.is_empty()
            && let Some(spare) = self.spare.remove(&address)
        {
            self.live = self.live.wrapping_sub(spare);
        }
    }

    /// All blocks end.
    pub(super) fn all_ended(&mut self) {
        self.spare.clear();
        self.live = 0;
    }

    /// More bytes are live than ever before.
    #[inline]
    pub(super) fn peak(&mut self) {
        self.report.spare_at_peak = self.live;
    }

    pub(super) fn report(&self) -> Option<UsableReport> {
        (self.report.blocks > 0).then_some(self.report)
    }
}
