//! Short-lived blocks by site, and possible replacements for them.
//!
//! A block is *short-lived* if it is freed within a time limit and before a given number of bytes is allocated after it
//! by any thread. A realloc does not end its block; the block continues as the new block. If nearly all blocks of a
//! site are short-lived, their overlap determines which replacement (see [`Instead`]) would avoid an allocation per
//! block.

use std::collections::HashSet;

use serde::Serialize;

use crate::objects::{Cause, Change, ObjectEvent};
use crate::observer::Observer;
use crate::site_counts::{Amount, SHORT_BYTES, SHORT_LIFE};
use crate::{Error, Result};

/// The limits that define a short-lived block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// The maximum time from allocation to free, in nanoseconds. Ignored if the trace has no timestamps.
    pub within: u64,
    /// The maximum number of bytes allocated between the allocation and the free.
    pub meanwhile: u64,
}

impl Default for Settings {
    /// Returns the limits of [`Measure::Short`](crate::site_counts::Measure::Short): one millisecond and 64 KiB.
    fn default() -> Self {
        Self { within: SHORT_LIFE, meanwhile: SHORT_BYTES }
    }
}

/// The minimum percentage of a site's blocks that must be short-lived to justify a replacement.
const NEARLY_ALL: u64 = 90;
/// The minimum number of blocks at a site that justifies a replacement.
const FEW: u64 = 16;
/// The minimum average number of blocks per arena batch, which ends when no block of the site is live.
const BATCH: u64 = 4;

/// A replacement for the blocks of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Instead {
    /// One buffer per thread, as large as the site's largest block, because no thread ever has two live blocks of the
    /// site.
    Buffer,
    /// An arena that is reset when its last block ends, because the blocks begin one after the other and end together.
    Arena,
    /// A free list. Its number of blocks equals the number of simultaneously live blocks.
    Pool,
}

/// The lifetime statistics of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Churn {
    /// The number of the site.
    #[serde(skip)]
    pub site: u64,
    /// The short-lived blocks of the site.
    pub short: Amount,
    /// All blocks of the site.
    pub allocated: Amount,
    /// The maximum number of simultaneously live blocks.
    pub most_live: u64,
    /// The maximum number of simultaneously live bytes.
    pub most_bytes: u64,
    /// The size of the largest block in bytes.
    pub largest: u64,
    /// The number of threads that allocated the blocks.
    pub threads: u64,
    /// The mean lifetime of the short-lived blocks in nanoseconds, or `None` if the trace has no timestamps.
    pub mean_life: Option<u64>,
    /// The number of times that the site's only live block ended.
    pub emptied: u64,
    /// The suggested replacement, or `None` if the data does not support one or the blocks are a sample.
    pub instead: Option<Instead>,
}

/// The state of a site during the pass.
#[derive(Clone, Debug, Default)]
struct Site {
    short: Amount,
    allocated: Amount,
    live: Amount,
    most_live: u64,
    most_bytes: u64,
    largest: u64,
    /// The threads that allocated blocks.
    threads: HashSet<u64>,
    last: u64,
    life: u64,
    emptied: u64,
}

/// An observer that collects [`Churn`] in one pass.
///
/// # Examples
///
/// A single buffer could replace these blocks, which never overlap:
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_lab::blocks::{Churns, Instead, Settings};
/// use hatf_trace::{Event, EventSink};
///
/// let mut tracker = HeapTracker::new(Churns::new(Settings::default()));
/// for _ in 0..20 {
///     tracker.event(&Event::malloc(0x1000, 100))?;
///     tracker.event(&Event::free(0x1000))?;
/// }
/// let report = tracker.observer().report();
/// assert_eq!((report[0].short.blocks, report[0].instead), (20, Some(Instead::Buffer)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Churns {
    settings: Settings,
    sites: Vec<Site>,
    bytes: u64,
    timed: bool,
    sampled: bool,
}

impl Churns {
    /// Creates an observer without data.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Returns the limits that define a short-lived block.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings
    }

    fn site(&mut self, number: u64) -> Result<&mut Site> {
        let number = usize::try_from(number).map_err(|_| Error::Limit("number of sites"))?;
        if number >= self.sites.len() {
            self.sites.resize(number.checked_add(1).ok_or(Error::Limit("number of sites"))?, Site::default());
        }
        self.sites.get_mut(number).ok_or(Error::Limit("number of sites"))
    }

    /// Returns the sites with short-lived blocks, in descending order of the number of these blocks.
    #[must_use]
    pub fn report(&self) -> Vec<Churn> {
        let (timed, sampled) = (self.timed, self.sampled);
        let churn = |(number, site): (u64, &Site)| Churn {
            site: number,
            short: site.short,
            allocated: site.allocated,
            most_live: site.most_live,
            most_bytes: site.most_bytes,
            largest: site.largest,
            threads: site.threads.len() as u64,
            mean_life: if timed { site.life.checked_div(site.short.blocks) } else { None },
            emptied: site.emptied,
            instead: if sampled { None } else { site.instead() },
        };
        let of_site = (0..).zip(&self.sites).filter(|(_, site)| site.short.blocks > 0);
        let mut all: Vec<_> = of_site.map(churn).collect();
        all.sort_by_key(|churn| (std::cmp::Reverse(churn.short.blocks), churn.site));
        all
    }
}

impl Site {
    fn instead(&self) -> Option<Instead> {
        let Self { short, allocated, most_live, emptied, .. } = self;
        let nearly_all = short.blocks.saturating_mul(100) >= allocated.blocks.saturating_mul(NEARLY_ALL);
        if allocated.blocks < FEW || !nearly_all {
            return None;
        }
        Some(if *most_live <= self.threads.len() as u64 {
            Instead::Buffer
        } else if emptied.saturating_mul(BATCH) <= allocated.blocks && *emptied > 0 {
            Instead::Arena
        } else {
            Instead::Pool
        })
    }
}

impl Observer for Churns {
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        let (object, size) = (&event.object, event.object.size);
        self.timed |= event.time != 0;
        match event.change {
            Change::Allocated => {
                self.bytes = self.bytes.saturating_add(size);
                let site = self.site(object.site)?;
                site.allocated.add_block(size);
                site.live.add_block(size);
                site.most_live = site.most_live.max(site.live.blocks);
                site.most_bytes = site.most_bytes.max(site.live.bytes);
                site.largest = site.largest.max(size);
                if site.threads.is_empty() || site.last != event.thread {
                    site.last = event.thread;
                    site.threads.insert(event.thread);
                }
            }
            Change::Freed => {
                let meanwhile = self.bytes.saturating_sub(object.allocated);
                let life = event.time.saturating_sub(object.time);
                let Settings { within, meanwhile: most } = self.settings;
                // Blocks that ended with their heap or program were not freed.
                let is_freed = matches!(event.cause, Cause::Call | Cause::Overlaid);
                let is_short = is_freed && life <= within && meanwhile <= most;
                let site = self.site(object.site)?;
                site.live.remove_block(size);
                site.emptied += u64::from(site.live.blocks == 0);
                if is_short {
                    site.short.add_block(size);
                    site.life = site.life.saturating_add(life);
                }
            }
        }
        Ok(())
    }

    fn sampled(&mut self, _: u64) {
        self.sampled = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Objects;
    use hatf_trace::Event;

    /// A call to replay, which begins a block with an address, site and thread, or ends the block at an address. The
    /// position of the call is its time.
    enum Act {
        Begin(u64, u64, u64),
        End(u64),
        Pause(u64),
    }
    use Act::{Begin, End, Pause};

    fn churn(acts: &[Act], settings: Settings) -> Vec<Churn> {
        let (mut objects, mut churns, mut time) = (Objects::new(), Churns::new(settings), 1);
        let mut give = |event: Event<'_>, site| objects.follow(&event, site, &mut |event| churns.event(event)).unwrap();
        for act in acts {
            time += 10;
            match *act {
                Begin(address, site, thread) => give(Event { time, thread, ..Event::malloc(address, 100) }, site),
                End(address) => give(Event { time, ..Event::free(address) }, 0),
                Pause(length) => time += length,
            }
        }
        churns.report()
    }

    fn repeated(acts: impl Fn(u64) -> Vec<Act>) -> Vec<Act> {
        (0..20).flat_map(acts).collect()
    }

    #[test]
    fn each_has_what_would_do() {
        // The cases are sequential blocks, batches that end together, blocks that always overlap the next one, and one
        // block on each of two threads.
        let buffer = repeated(|_| vec![Begin(1000, 1, 1), End(1000)]);
        let batch = |_| (1..9).map(|n| Begin(n * 1000, 1, 1)).chain((1..9).map(|n| End(n * 1000))).collect();
        let mut pool = vec![Begin(1000, 1, 1)];
        pool.extend(repeated(|n| vec![Begin(1000 * (n + 2), 1, 1), End(1000 * (n + 1))]));
        let threads = repeated(|_| vec![Begin(1000, 1, 1), Begin(2000, 1, 2), End(1000), End(2000)]);
        let expected = [(Instead::Buffer, 1), (Instead::Arena, 8), (Instead::Pool, 2), (Instead::Buffer, 2)];
        for (acts, (instead, most_live)) in [buffer, repeated(batch), pool, threads].iter().zip(expected) {
            let [site] = churn(acts, Settings::default())[..] else { panic!("{instead:?}") };
            assert_eq!((site.instead, site.most_live), (Some(instead), most_live), "{site:?}");
            assert_eq!((site.largest, site.most_bytes), (100, most_live * 100));
        }
    }

    #[test]
    fn short_is_what_the_settings_say() {
        let late = repeated(|_| vec![Begin(1000, 1, 1), Pause(1000), End(1000)]);
        let of = |settings| churn(&late, settings).first().map(|site| (site.short.blocks, site.mean_life));
        assert_eq!(of(Settings { within: 1020, ..Settings::default() }), Some((20, Some(1020))));
        assert_eq!(of(Settings { within: 1019, ..Settings::default() }), None);
        let amid = repeated(|_| vec![Begin(1000, 1, 1), Begin(2000, 2, 1), End(1000), Pause(2_000_000), End(2000)]);
        let of = |meanwhile| churn(&amid, Settings { meanwhile, ..Settings::default() }).len();
        assert_eq!((of(100), of(99)), (1, 0));
    }

    #[test]
    fn few_and_mixed_blocks_say_nothing() {
        let few = [Begin(1000, 1, 1), End(1000)];
        assert_eq!(churn(&few, Settings::default())[0].instead, None);
        let mixed = repeated(|n| vec![Begin(1000, 1, 1), End(1000), Begin(5000 + 1000 * n, 1, 1)]);
        let site = churn(&mixed, Settings::default())[0];
        assert_eq!((site.instead, site.short.blocks, site.allocated.blocks, site.most_live), (None, 20, 40, 20));
    }
}
