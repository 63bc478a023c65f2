//! The time range and maximum allocation size of each site.

use crate::objects::{Change, ObjectEvent};
use crate::observer::Observer;
use crate::{Error, Result};

/// The bounds of a site's allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// The largest requested size in bytes.
    pub max_size: u64,
    /// The time of the first allocation in nanoseconds.
    pub first: u64,
    /// The time of the last allocation in nanoseconds.
    pub last: u64,
}

impl Bounds {
    /// The bounds of a site without allocations.
    pub const NONE: Self = Self { max_size: 0, first: u64::MAX, last: 0 };

    /// Extends the bounds to include `other`.
    pub fn add(&mut self, other: Self) {
        let Self { max_size, first, last } = *self;
        *self =
            Self { max_size: max_size.max(other.max_size), first: first.min(other.first), last: last.max(other.last) };
    }
}

/// An [`Observer`] that determines the bounds of each site.
///
/// # Examples
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_lab::sites::SiteBounds;
/// use hatf_trace::{Event, EventSink};
///
/// // The events have no stack, so they belong to site 0.
/// let mut tracker = HeapTracker::new(SiteBounds::default());
/// tracker.event(&Event { time: 10, ..Event::malloc(0x1000, 24) })?;
/// tracker.event(&Event { time: 30, ..Event::malloc(0x2000, 100) })?;
/// let bounds = tracker.observer().get(0);
/// assert_eq!((bounds.max_size, bounds.first, bounds.last), (100, 10, 30));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct SiteBounds(Vec<Bounds>);

impl SiteBounds {
    /// Returns the bounds of the site with this number.
    #[must_use]
    pub fn get(&self, site: usize) -> Bounds {
        self.0.get(site).copied().unwrap_or(Bounds::NONE)
    }
}

impl Observer for SiteBounds {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        if event.change == Change::Freed {
            return Ok(());
        }
        let site = usize::try_from(event.object.site).map_err(|_| Error::Limit("number of sites"))?;
        if site >= self.0.len() {
            self.0.resize(site.checked_add(1).ok_or(Error::Limit("number of sites"))?, Bounds::NONE);
        }
        if let Some(bounds) = self.0.get_mut(site) {
            bounds.add(Bounds { max_size: event.object.size, first: event.time, last: event.time });
        }
        Ok(())
    }
}
