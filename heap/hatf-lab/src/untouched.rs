//! The untouched pages of large blocks, by site.

use hatf_trace::{Event, EventKind};

use crate::address::AddressMap;
use crate::heap::Heap;
use crate::objects::{Cause, Change, ObjectEvent};
use crate::observer::Observer;
use crate::site_counts::{Amount, Counts};
use crate::{Error, Result};

/// The blocks of a site whose untouched pages are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Site {
    /// The blocks, and their requested bytes.
    examined: Amount,
    /// The blocks with untouched pages, and the bytes of these pages.
    untouched: Amount,
}

impl Site {
    fn add(&mut self, block: Examined) {
        self.examined.add_block(block.size);
        if block.untouched > 0 {
            self.untouched.add_block(block.untouched);
        }
    }
}

/// A live block whose untouched pages were counted.
#[derive(Clone, Copy, Debug)]
struct Examined {
    site: u64,
    size: u64,
    untouched: u64,
}

/// An observer that counts the untouched pages of large blocks by site, in a trace recorded with stacks.
///
/// A block that a `realloc` ends is not counted, because it continues as the new block.
///
/// # Examples
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_lab::blocks::Untouched;
/// use hatf_lab::sites::Counts;
/// use hatf_trace::{Event, EventKind, EventSink};
///
/// let mut tracker = HeapTracker::new(Untouched::new());
/// tracker.event(&Event::malloc(0x1000, 100_000))?;
/// tracker.event(&Event::new(EventKind::Untouched { address: 0x1000, bytes: 65_536 }))?;
/// tracker.event(&Event::free(0x1000))?;
/// let mut counts = [Counts::default()];
/// tracker.observer().fill(&mut counts);
/// assert_eq!(counts[0].untouched.map(|untouched| untouched.bytes), Some(65_536));
/// assert_eq!(counts[0].examined.map(|examined| examined.bytes), Some(100_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Untouched {
    sites: Vec<Site>,
    /// The live blocks whose untouched pages were counted, by address.
    live: AddressMap<Examined>,
    is_known: bool,
}

impl Untouched {
    /// Creates an observer without counts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns whether the trace contains untouched pages.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.is_known
    }

    /// Sets [`Counts::untouched`] and [`Counts::examined`] of each site, indexed by site number, if the trace contains
    /// untouched pages. Blocks that are live count with the untouched pages that were recorded last.
    pub fn fill(&self, counts: &mut [Counts]) {
        if !self.is_known {
            return;
        }
        let mut sites = self.sites.clone();
        sites.resize(sites.len().max(counts.len()), Site::default());
        for block in self.live.values() {
            let site = usize::try_from(block.site).ok().and_then(|site| sites.get_mut(site));
            site.into_iter().for_each(|site| site.add(*block));
        }
        for (counts, site) in counts.iter_mut().zip(sites) {
            (counts.untouched, counts.examined) = (Some(site.untouched), Some(site.examined));
        }
    }

    /// Handles the end of a block.
    #[cold]
    fn ended(&mut self, event: &ObjectEvent) -> Result<()> {
        let Some(block) = self.live.remove(&event.object.address) else { return Ok(()) };
        match event.cause {
            Cause::Call | Cause::Left => {
                let site = usize::try_from(block.site).map_err(|_| Error::Limit("number of sites"))?;
                if site >= self.sites.len() {
                    self.sites.resize(site.checked_add(1).ok_or(Error::Limit("number of sites"))?, Site::default());
                }
                self.sites.get_mut(site).ok_or(Error::Limit("number of sites"))?.add(block);
            }
            // The block continues, or its pages were not examined when it ended.
            Cause::Realloc | Cause::Exec | Cause::Overlaid | Cause::Resumed => {}
        }
        Ok(())
    }
}

impl Observer for Untouched {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        if event.change == Change::Freed && !self.live.is_empty() { self.ended(event) } else { Ok(()) }
    }

    #[inline]
    fn record(&mut self, record: &Event<'_>, heap: &Heap) -> Result<()> {
        if let EventKind::Untouched { address, bytes } = record.kind
            && let Some(object) = heap.objects.at(address)
        {
            self.is_known = true;
            let (site, size) = (object.site, object.size);
            self.live.insert(address, Examined { site, size, untouched: bytes.min(size) });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use hatf_trace::EventSink as _;

    use super::*;
    use crate::HeapTracker;

    const SIZE: u64 = 1 << 20;

    /// Returns the untouched and the examined amounts of all blocks.
    fn counted(events: &[Event<'_>]) -> Option<(Amount, Amount)> {
        let mut tracker = HeapTracker::new(Untouched::new());
        events.iter().for_each(|event| tracker.event(event).unwrap());
        let mut counts = [Counts::default()];
        tracker.observer().fill(&mut counts);
        counts[0].untouched.zip(counts[0].examined)
    }

    fn untouched(address: u64, bytes: u64) -> Event<'static> {
        Event::new(EventKind::Untouched { address, bytes })
    }

    #[test]
    fn each_end_of_a_block() {
        let (one, amount) = (Event::malloc(16, SIZE), |blocks, bytes| Amount { blocks, bytes });
        assert_eq!(counted(&[one, Event::free(16)]), None);
        let whole = amount(1, SIZE);
        // The last record counts, also of a live block.
        let twice = [one, untouched(16, 9000), untouched(16, 4096)];
        assert_eq!(counted(&twice), Some((amount(1, 4096), whole)));
        assert_eq!(counted(&[&twice[..], &[Event::free(16)]].concat()), Some((amount(1, 4096), whole)));
        let next = Event { heap: 2, ..Event::new(EventKind::Image { process: 1, path: b"" }) };
        let exit = Event::new(EventKind::Exit { status: 0 });
        assert_eq!(counted(&[&twice[..], &[exit, next]].concat()), Some((amount(1, 4096), whole)));
        // Exec ends a block at an unknown time after its record.
        assert_eq!(counted(&[&twice[..], &[next]].concat()), Some((amount(0, 0), amount(0, 0))));
        // A block in which everything was touched is examined, too.
        assert_eq!(counted(&[one, untouched(16, 0), Event::free(16)]), Some((amount(0, 0), whole)));
        // A block that realloc ends continues.
        let moved = [one, untouched(16, 4096), Event::realloc(16, 32, SIZE)];
        assert_eq!(counted(&moved), Some((amount(0, 0), amount(0, 0))));
    }

    /// No record makes the numbers exceed the size of its block, and a record without a block is ignored.
    #[test]
    fn hostile_records() {
        let one = Event::malloc(16, SIZE);
        assert_eq!(counted(&[one, untouched(32, 4096)]), None);
        let (bytes, blocks) = (SIZE, 1);
        let whole = Amount { blocks, bytes };
        assert_eq!(counted(&[one, untouched(16, u64::MAX), Event::free(16)]), Some((whole, whole)));
    }
}
