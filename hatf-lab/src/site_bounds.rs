//! When each site allocated, and how much at most.

use crate::objects::{Change, ObjectEvent};
use crate::observer::Observer;
use crate::{Error, Result};

/// The bounds of what a site allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most bytes that were asked for at once.
    pub max_size: u64,
    /// When it first allocated, in nanoseconds.
    pub first: u64,
    /// When it last did.
    pub last: u64,
}

impl Bounds {
    /// Those of a site that allocated nothing.
    pub const NONE: Self = Self { max_size: 0, first: u64::MAX, last: 0 };

    /// Takes another's in.
    pub fn add(&mut self, other: Self) {
        let Self { max_size, first, last } = *self;
        *self =
            Self { max_size: max_size.max(other.max_size), first: first.min(other.first), last: last.max(other.last) };
    }
}

/// An [`Observer`] that finds the bounds of each site.
#[derive(Clone, Debug, Default)]
pub struct SiteBounds(Vec<Bounds>);

impl SiteBounds {
    /// Returns those of the site of a number.
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
        let site = usize::try_from(event.object.site).map_err(|_| Error::Limit("sites"))?;
        if site >= self.0.len() {
            self.0.resize(site.checked_add(1).ok_or(Error::Limit("sites"))?, Bounds::NONE);
        }
        if let Some(bounds) = self.0.get_mut(site) {
            bounds.add(Bounds { max_size: event.object.size, first: event.time, last: event.time });
        }
        Ok(())
    }
}
