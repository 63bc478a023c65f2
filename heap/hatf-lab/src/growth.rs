//! Bytes copied by `realloc` and slack of blocks, by site.

use hatf_trace::event::{Call, UNKNOWN_SIZE};
use hatf_trace::{Event, EventKind};

use crate::heap::Heap;
use crate::objects::{Change, ObjectEvent};
use crate::observer::Observer;
use crate::site_counts::Amount;
use crate::{Error, Result};

/// The copied bytes and slack of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Growth {
    /// The number of blocks that `realloc` moved to this site, and the copied bytes.
    pub copied: Amount,
    /// The number of blocks larger than requested, and their excess bytes.
    pub slack: Amount,
}

/// An observer that counts [`Growth`] by site.
///
/// # Examples
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_lab::blocks::Growths;
/// use hatf_trace::event::{Call, Event, EventKind, EventSink, Function};
///
/// let mut tracker = HeapTracker::new(Growths::new());
/// let call = Call { size: 100, usable: 112, address: 0x1000, ..Call::new(Function::Malloc) };
/// tracker.event(&Event::new(EventKind::Call(call)))?;
/// tracker.event(&Event::realloc(0x1000, 0x2000, 200))?;
/// let growth = tracker.observer().sites()[0];
/// assert_eq!((growth.slack.bytes, growth.copied.bytes), (12, 100));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Growths {
    sites: Vec<Growth>,
    /// The address and size of the last block ended by a realloc.
    moved: Option<(u64, u64)>,
    /// The address and site of the last allocated block.
    last: Option<(u64, u64)>,
    has_usable: bool,
}

impl Growths {
    /// Creates an observer without counts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the growth of each site, indexed by site number. Trailing sites without growth may be missing.
    #[must_use]
    pub fn sites(&self) -> &[Growth] {
        &self.sites
    }

    /// Returns whether the trace contains usable block sizes.
    #[must_use]
    pub fn has_usable(&self) -> bool {
        self.has_usable
    }

    /// Processes an allocating call. The object events of the call must have been processed before.
    #[inline]
    fn call(&mut self, call: &Call) -> Result<()> {
        if call.usable == 0 || call.size == UNKNOWN_SIZE {
            return Ok(());
        }
        self.has_usable = true;
        let slack = call.usable.saturating_sub(call.size);
        if let Some((_, site)) = self.last.filter(|(address, _)| *address == call.address)
            && slack > 0
        {
            self.site(site)?.slack.add_block(slack);
        }
        Ok(())
    }

    fn site(&mut self, number: u64) -> Result<&mut Growth> {
        let number = usize::try_from(number).map_err(|_| Error::Limit("number of sites"))?;
        if number >= self.sites.len() {
            self.sites.resize(number.checked_add(1).ok_or(Error::Limit("number of sites"))?, Growth::default());
        }
        self.sites.get_mut(number).ok_or(Error::Limit("number of sites"))
    }
}

impl Observer for Growths {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        let object = &event.object;
        match event.change {
            Change::Freed if event.is_realloc() => self.moved = Some((object.address, object.size)),
            Change::Freed => {}
            Change::Allocated => {
                self.last = Some((object.address, object.site));
                let moved = self.moved.take().filter(|(address, _)| event.is_realloc() && *address != object.address);
                if let Some((_, before)) = moved {
                    self.site(object.site)?.copied.add_block(before.min(object.size));
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn record(&mut self, record: &Event<'_>, _: &Heap) -> Result<()> {
        match &record.kind {
            EventKind::Call(call) | EventKind::ReallocEnd(call) => self.call(call),
            _ => Ok(()),
        }
    }
}
