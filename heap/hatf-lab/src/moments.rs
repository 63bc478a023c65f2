//! Memory of each site over time, from which users can choose points and ranges after the pass.
//!
//! A trace is divided into 500 to 1,000 intervals, called *moments*, regardless of its length. As the trace grows,
//! neighbouring moments are joined. For each site and moment, the collector stores the memory allocated in the moment
//! and the parts that were freed in each later moment. These sums determine the blocks live at the end of any moment,
//! and the blocks allocated in any range and still live at its end. Blocks that end in the moment of their allocation
//! are only counted.

mod ends;

use hashbrown::HashMap;

pub(crate) use ends::Ends;

use crate::objects::{Change, ObjectEvent, Objects};
use crate::observer::Observer;
use crate::site_counts::{Amount, Weight, sum_equal};
use crate::{Error, Result};

/// The maximum number of stored [`Lived`] entries.
const MOST_LIVED: usize = 2 << 20;

/// A moment: its last event, and its maximum number of live bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Moment {
    /// The number of the last event in the moment.
    pub tick: u64,
    /// The time of the last event in nanoseconds.
    pub time: u64,
    /// The maximum number of live bytes in the moment.
    pub highest: u64,
    /// Whether the end of the moment was requested and must be preserved: see [`Moments::cut`].
    pub kept: bool,
    /// Whether all later events have later times, so that `time` identifies the end of the moment.
    pub exact: bool,
}

/// Blocks of a site allocated in one moment and freed in a later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lived {
    /// The site.
    pub site: u32,
    /// The number of the moment of allocation.
    pub from: u16,
    /// The moment in which the blocks were freed, or `None` if they were never freed.
    pub to: Option<u16>,
    /// The number of blocks and their bytes.
    pub amount: Amount,
}

impl Lived {
    /// Returns the site and the two moments as one number, by which the stored entries are ordered.
    #[must_use]
    #[inline]
    pub fn key(&self) -> u64 {
        key(self.site, self.from) << 16 | self.to.map_or(0, |to| u64::from(to) + 1)
    }
}

/// Blocks of a site allocated in one moment, including those that ended in that moment. A realloc adds only the bytes by
/// which it enlarges its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Allocated {
    /// The site.
    pub site: u32,
    /// The number of the moment.
    pub moment: u16,
    /// The number of blocks and their bytes.
    pub amount: Amount,
}

impl Allocated {
    /// Returns the site and the moment as one number, by which entries can be ordered.
    #[must_use]
    #[inline]
    pub fn key(&self) -> u64 {
        key(self.site, self.moment)
    }
}

/// The memory of each site over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SiteTimeline {
    /// The moments, in order.
    pub moments: Vec<Moment>,
    /// Blocks that outlived their moment, ordered by site and moments.
    pub lived: Vec<Lived>,
    /// Allocations with one entry per site and moment, in arbitrary order.
    pub allocated: Vec<Allocated>,
}

impl SiteTimeline {
    /// Returns a timeline with about half as many moments by joining neighbours, except across a preserved end.
    #[must_use]
    pub fn halved(&self) -> Self {
        let (mut moments, mut now, mut open) = (Vec::<Moment>::new(), Vec::new(), false);
        for moment in &self.moments {
            match moments.last_mut() {
                Some(last) if open && !last.kept => {
                    *last = Moment { highest: last.highest.max(moment.highest), ..*moment };
                    open = false;
                }
                _ => {
                    moments.push(*moment);
                    open = true;
                }
            }
            now.push(number_of(moments.len() - 1));
        }
        let of = |moment: u16| now.get(usize::from(moment)).copied().unwrap_or(moment);
        let lived = self.lived.iter().map(|one| Lived { from: of(one.from), to: one.to.map(of), ..*one });
        let mut lived: Vec<_> = lived.filter(|one| one.to != Some(one.from)).collect();
        lived.sort_by_key(Lived::key);
        sum_equal(&mut lived, Lived::key, |one| &mut one.amount);
        let allocated = self.allocated.iter().map(|one| Allocated { moment: of(one.moment), ..*one });
        let mut allocated: Vec<_> = allocated.collect();
        allocated.sort_by_key(Allocated::key);
        sum_equal(&mut allocated, Allocated::key, |one| &mut one.amount);
        Self { moments, lived, allocated }
    }
}

/// Returns the number of a moment. There are far fewer than 65,535 moments.
pub(crate) fn number_of(index: usize) -> u16 {
    u16::try_from(index).unwrap_or(u16::MAX - 1)
}

/// Returns a site and a moment as a 48-bit number, which sorts faster than a pair.
pub(crate) fn key(site: u32, moment: u16) -> u64 {
    u64::from(site) << 16 | u64::from(moment)
}

/// Splits the last moment off a key. Returns the rest of the key and the moment.
fn split(key: u64) -> (u64, u16) {
    (key >> 16, (key & 0xffff) as u16)
}

/// Returns the site and the moment encoded in a key.
pub(crate) fn parts(key: u64) -> (u32, u16) {
    let (site, moment) = split(key);
    (u32::try_from(site).unwrap_or(u32::MAX), moment)
}

/// A collector that builds a [`SiteTimeline`].
///
/// # Examples
///
/// A cut divides this trace into two moments:
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_lab::history::Moments;
/// use hatf_trace::{Event, EventSink};
///
/// let mut tracker = HeapTracker::new(Moments::new());
/// tracker.event(&Event::malloc(0x1000, 100))?;
/// tracker.observer_mut().cut();
/// tracker.event(&Event::malloc(0x2000, 20))?;
/// tracker.event(&Event::free(0x1000))?;
/// let (heap, moments) = tracker.into_parts();
/// let timeline = moments.timeline(&heap.objects);
/// assert_eq!(timeline.moments.iter().map(|moment| moment.highest).collect::<Vec<_>>(), [100, 120]);
/// let lived: Vec<_> = timeline.lived.iter().map(|lived| (lived.from, lived.to, lived.amount.bytes)).collect();
/// assert_eq!(lived, [(0, Some(1), 100), (1, None, 20)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Moments {
    ends: Ends,
    /// Amounts by site, moment of allocation and moment of the end, encoded as a single number: the [`key`] of the site
    /// and the moment of allocation, followed by the moment of the end. No number occurs twice.
    lived: Vec<(u64, Amount)>,
    /// Blocks that were allocated in earlier moments and freed in the current moment, by the key of site and moment of
    /// allocation.
    freed: HashMap<u64, Amount>,
    /// Amounts by the key of site and moment of allocation. Keys are distinct.
    allocated: Vec<(u64, Amount)>,
    /// The moment of allocation of each live object, indexed by slot.
    born: Vec<u16>,
    /// Allocations of each site in the current moment.
    current: Vec<Amount>,
    /// The sites that have allocated in the current moment.
    sites: Vec<u32>,
    live: u64,
    /// The size of the block that the current realloc resizes.
    resized: u64,
    /// The sampling weight of blocks.
    weight: Weight,
}

impl Moments {
    /// Creates a collector without moments.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the current moment and preserves its end when neighbours are joined, because something of interest has
    /// happened.
    ///
    /// After 250 preserved ends, further ends are not preserved.
    pub fn cut(&mut self) {
        if self.ends.keep() {
            self.end();
        }
    }

    /// Returns the timeline. `objects` are the objects live at the end.
    #[must_use]
    pub fn timeline(mut self, objects: &Objects) -> SiteTimeline {
        if self.ends.has_events() {
            self.end();
        }
        let mut left: HashMap<u64, Amount> = HashMap::new();
        for object in objects.live() {
            let Ok(site) = u32::try_from(object.site) else { continue };
            left.entry(key(site, self.moment_of(object.tick))).or_default().sum(self.weight.amount(object.size));
        }
        let weight = self.weight;
        let lived = |key, to, amount| {
            let (site, from) = parts(key);
            Lived { site, from, to, amount: weight.whole(amount) }
        };
        let never = left.into_iter().map(|(key, amount)| lived(key, None, amount));
        let freed = self.lived.into_iter().map(|(key, amount)| {
            let (key, to) = split(key);
            lived(key, Some(to), amount)
        });
        let mut lived: Vec<_> = freed.chain(never).collect();
        let allocated = self.allocated.into_iter().map(|(key, amount)| {
            let (site, moment) = parts(key);
            Allocated { site, moment, amount: weight.whole(amount) }
        });
        lived.sort_by_key(Lived::key);
        SiteTimeline { moments: self.ends.finish(), lived, allocated: allocated.collect() }
    }

    /// Returns the number of the moment that contains an event.
    fn moment_of(&self, tick: u64) -> u16 {
        number_of(self.ends.ended().partition_point(|moment| moment.tick < tick))
    }

    /// Ends the current moment.
    #[cold]
    fn end(&mut self) {
        let number = self.ends.number();
        for site in self.sites.drain(..) {
            if let Some(amount) = self.current.get_mut(site as usize) {
                self.allocated.push((key(site, number), std::mem::take(amount)));
            }
        }
        self.lived.extend(self.freed.drain().map(|(key, amount)| (key << 16 | u64::from(number), amount)));
        self.ends.end(self.live);
        while let Some(now) = self.ends.join(self.lived.len() > MOST_LIVED) {
            self.number_again(&now);
        }
    }

    /// Renumbers the moments in all entries.
    fn number_again(&mut self, now: &[u16]) {
        let open = self.ends.number();
        let of = |moment: u16| now.get(usize::from(moment)).copied().unwrap_or(open);
        self.lived.retain_mut(|(lived, _)| {
            let (born, to) = split(*lived);
            let ((site, from), to) = (parts(born), of(to));
            let from = of(from);
            *lived = key(site, from) << 16 | u64::from(to);
            from != to
        });
        // The previously summed part is already sorted, which makes a stable sort fast.
        self.lived.sort_by_key(|(key, _)| *key);
        sum_equal(&mut self.lived, |(key, _)| *key, |(_, amount)| amount);
        for (allocated, _) in &mut self.allocated {
            let (site, moment) = parts(*allocated);
            *allocated = key(site, of(moment));
        }
        self.allocated.sort_by_key(|(key, _)| *key);
        sum_equal(&mut self.allocated, |(key, _)| *key, |(_, amount)| amount);
        self.born.iter_mut().for_each(|moment| *moment = of(*moment));
    }

    #[cold]
    fn first_of(&mut self, site: u32) {
        self.current.resize(site as usize + 1, Amount::default());
    }
}

impl Observer for Moments {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        if self.ends.are_before(event) {
            self.end();
        }
        self.ends.note(event);
        let object = &event.object;
        let weighed = self.weight.amount(object.size);
        let site = u32::try_from(object.site).map_err(|_| Error::Limit("number of sites"))?;
        match event.change {
            Change::Allocated => {
                self.live = self.live.saturating_add(weighed.bytes);
                self.ends.note_live(self.live);
                if self.current.len() <= site as usize {
                    self.first_of(site);
                }
                if let Some(amount) = self.current.get_mut(site as usize) {
                    if amount.blocks == 0 {
                        self.sites.push(site);
                    }
                    let before = if event.is_realloc() { std::mem::take(&mut self.resized) } else { 0 };
                    amount.sum(self.weight.grown(weighed, before));
                }
                let (slot, open) = (object.slot as usize, self.ends.number());
                match self.born.get_mut(slot) {
                    Some(born) => *born = open,
                    None => self.born.resize(slot + 1, open),
                }
            }
            Change::Freed => {
                if event.is_realloc() {
                    self.resized = object.size;
                }
                self.live = self.live.saturating_sub(weighed.bytes);
                let open = self.ends.number();
                let from = self.born.get(object.slot as usize).copied().unwrap_or(open);
                if from != open {
                    self.freed.entry(key(site, from)).or_default().sum(weighed);
                }
            }
        }
        Ok(())
    }

    fn sampled(&mut self, mean: u64) {
        self.weight = Weight::sampled(mean);
    }
}

#[cfg(test)]
mod tests;
