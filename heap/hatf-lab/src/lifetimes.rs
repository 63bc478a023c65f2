//! Blocks of each site by size and lifetime.

use crate::objects::{Cause, Change, ObjectEvent, Objects};
use crate::observer::Observer;
use crate::site_counts::{Amount, Weight};
use crate::{Error, Result};

/// The lifetime class of a block that is never freed.
pub const NEVER: u8 = 21;

/// A size class and a lifetime class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Cell {
    /// The size class. It contains sizes below `2^(2 size + 1)` bytes that are at least a quarter of this bound.
    pub size: u8,
    /// The lifetime class, which is 0 for a lifetime of zero, or [`NEVER`]. Other classes contain lifetimes below
    /// `10^life` nanoseconds that are at least a tenth of this bound.
    pub life: u8,
}

impl Cell {
    /// Returns the cell for a size in bytes and a lifetime in nanoseconds, or `None` for a block that never ended.
    #[must_use]
    #[inline]
    pub fn new(size: u64, life: Option<u64>) -> Self {
        let bits = u64::BITS - size.leading_zeros();
        let life = life.map_or(u32::from(NEVER), |life| life.checked_ilog10().map_or(0, |log| log + 1));
        Self { size: u8::try_from(bits / 2).unwrap_or(u8::MAX), life: u8::try_from(life).unwrap_or(NEVER) }
    }
}

/// An observer that counts blocks by [`Cell`].
///
/// # Examples
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_lab::blocks::{Cell, Lifetimes};
/// use hatf_trace::{Event, EventSink};
///
/// let mut tracker = HeapTracker::new(Lifetimes::new());
/// tracker.event(&Event { time: 100, ..Event::malloc(0x1000, 24) })?;
/// tracker.event(&Event { time: 150, ..Event::free(0x1000) })?;
/// tracker.event(&Event { time: 200, ..Event::malloc(0x2000, 24) })?;
/// let (heap, lifetimes) = tracker.into_parts();
/// let sites = lifetimes.finish(&heap.objects)?;
/// let cells: Vec<_> = sites[0].iter().map(|(cell, amount)| (*cell, amount.blocks)).collect();
/// assert_eq!(cells, [(Cell::new(24, None), 1), (Cell::new(24, Some(50)), 1)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Lifetimes {
    /// The cells of each site, most recently used first. A site has only a few cells.
    sites: Vec<Vec<(Cell, Amount)>>,
    weight: Weight,
}

impl Lifetimes {
    /// Creates an observer without counts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the cells of each site, indexed by site number. `objects` are the objects live at the end.
    ///
    /// # Errors
    /// Fails if a site number is too large.
    pub fn finish(mut self, objects: &Objects) -> Result<Vec<Vec<(Cell, Amount)>>> {
        for object in objects.live() {
            self.count(object.site, Cell::new(object.size, None), object.size)?;
        }
        let weight = self.weight;
        let amounts = self.sites.iter_mut().flatten().map(|(_, amount)| amount);
        amounts.for_each(|amount| *amount = weight.whole(*amount));
        Ok(self.sites)
    }

    #[inline]
    fn count(&mut self, site: u64, cell: Cell, size: u64) -> Result<()> {
        let site = usize::try_from(site).map_err(|_| Error::Limit("number of sites"))?;
        if site >= self.sites.len() {
            self.sites.resize(site.checked_add(1).ok_or(Error::Limit("number of sites"))?, Vec::new());
        }
        let Some(cells) = self.sites.get_mut(site) else { return Err(Error::Limit("number of sites")) };
        let amount = self.weight.amount(size);
        match cells.iter_mut().position(|(known, _)| *known == cell) {
            Some(0) => {}
            Some(place) => cells.swap(0, place),
            None => {
                cells.push((cell, Amount::default()));
                let last = cells.len() - 1;
                cells.swap(0, last);
            }
        }
        cells.first_mut().into_iter().for_each(|(_, sum)| sum.sum(amount));
        Ok(())
    }
}

impl Observer for Lifetimes {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        let object = &event.object;
        let life = match (event.change, event.cause) {
            (Change::Freed, Cause::Call | Cause::Realloc) => Some(event.time.saturating_sub(object.time)),
            // The heap of the block was destroyed, but the block was never freed.
            (Change::Freed, Cause::Left) => None,
            _ => return Ok(()),
        };
        self.count(object.site, Cell::new(object.size, life), object.size)
    }

    fn sampled(&mut self, mean: u64) {
        self.weight = Weight::sampled(mean);
    }
}

#[cfg(test)]
mod tests {
    use hatf_trace::Event;

    use super::*;

    #[test]
    fn cells_have_bounds() {
        for size in [0, 1, 2, 7, 8, 31, 32, 100, 1 << 20, u64::MAX] {
            let cell = Cell::new(size, Some(0));
            let below = 1_u128 << (2 * u32::from(cell.size) + 1);
            assert!(u128::from(size) < below && (u128::from(size) >= below / 4 || cell.size == 0), "{size}");
        }
        for (time, life) in [(0, 0), (1, 1), (9, 1), (10, 2), (999, 3), (1000, 4), (u64::MAX, 20)] {
            assert_eq!(Cell::new(1, Some(time)).life, life, "{time}");
        }
        assert!(Cell::new(1, Some(u64::MAX)).life < NEVER);
    }

    /// Freed and unfreed blocks are in separate cells, and every block is counted once.
    #[test]
    fn blocks_are_counted_by_site() {
        let (mut objects, mut lifetimes) = (Objects::new(), Lifetimes::new());
        let mut follow = |event: Event<'_>, time, site| {
            objects.follow(&Event { time, ..event }, site, &mut |event| lifetimes.event(event)).unwrap();
        };
        follow(Event::malloc(16, 5), 100, 1);
        follow(Event::malloc(64, 5), 100, 1);
        follow(Event::malloc(128, 100), 100, 2);
        follow(Event::free(16), 150, 0);
        follow(Event::free(64), 1_100, 0);
        let sites = lifetimes.finish(&objects).unwrap();
        let amount = |bytes| Amount { blocks: 1, bytes };
        assert_eq!(sites[0], []);
        assert_eq!(sites[1], [(Cell { size: 1, life: 4 }, amount(5)), (Cell { size: 1, life: 2 }, amount(5))]);
        assert_eq!(sites[2], [(Cell { size: 3, life: NEVER }, amount(100))]);
    }
}
