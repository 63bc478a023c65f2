//! Blocks that live shortly, by site, and what could take their place.
//!
//! A block *lives shortly* if it is freed within a time and before this many bytes were allocated after it, by anybody. The block of a realloc
//! does not end there: it goes on as the new one. Where nearly all blocks of a site live shortly, how they overlap decides what would do as
//! well without a call for each: see [`Instead`].

use std::collections::HashSet;

use serde::Serialize;

use crate::objects::{Cause, Change, ObjectEvent};
use crate::observer::Observer;
use crate::sites::{Amount, SHORT_BYTES, SHORT_LIFE};
use crate::{Error, Result};

/// What living shortly means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// Nanoseconds from allocation to free, at most. Of traces without times it does not count.
    pub within: u64,
    /// Bytes that are allocated between the two, at most.
    pub meanwhile: u64,
}

impl Default for Settings {
    /// Those of [`Measure::Short`](crate::sites::Measure::Short): a millisecond, and 64 KiB.
    fn default() -> Self {
        Self { within: SHORT_LIFE, meanwhile: SHORT_BYTES }
    }
}

/// Of this many blocks of a site, in percent, at least this many live shortly where something else could take their place.
const NEARLY_ALL: u64 = 90;
/// Blocks of a site below which nothing is said.
const FEW: u64 = 16;
/// Blocks that an arena has on average from one moment at which none is live to the next, at least.
const BATCH: u64 = 4;

/// What could take the place of a site's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Instead {
    /// One block for each thread, as large as the largest: of no thread are two live at once.
    Buffer,
    /// An arena that is emptied when the last of them ends: they begin one after the other, and end together.
    Arena,
    /// A list of free blocks, as many as are live at once.
    Pool,
}

/// What is known of a site's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Churn {
    /// The number of the site.
    #[serde(skip)]
    pub site: u64,
    /// Its blocks that lived shortly.
    pub short: Amount,
    /// All of them.
    pub allocated: Amount,
    /// Blocks that were live at once, at most.
    pub most_live: u64,
    /// Their bytes, at most.
    pub most_bytes: u64,
    /// Bytes of the largest.
    pub largest: u64,
    /// Threads that allocated them.
    pub threads: u64,
    /// Nanoseconds that those that lived shortly lived, on average; `None` where the trace has no times.
    pub mean_life: Option<u64>,
    /// How often the last that was live ended.
    pub emptied: u64,
    /// What could take their place; `None`: nothing that is known of them speaks for it, or they are a sample.
    pub instead: Option<Instead>,
}

/// A site while the trace is read.
#[derive(Clone, Debug, Default)]
struct Site {
    short: Amount,
    allocated: Amount,
    live: Amount,
    most_live: u64,
    most_bytes: u64,
    largest: u64,
    /// Threads, and the last of them.
    threads: HashSet<u64>,
    last: u64,
    life: u64,
    emptied: u64,
}

/// Finds them in one pass.
#[derive(Clone, Debug, Default)]
pub struct Churns {
    settings: Settings,
    sites: Vec<Site>,
    bytes: u64,
    timed: bool,
    sampled: bool,
}

impl Churns {
    /// Starts with nothing.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Returns what living shortly means.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.settings
    }

    fn site(&mut self, number: u64) -> Result<&mut Site> {
        let number = usize::try_from(number).map_err(|_| Error::Limit("sites"))?;
        if number >= self.sites.len() {
            self.sites.resize(number.checked_add(1).ok_or(Error::Limit("sites"))?, Site::default());
        }
        self.sites.get_mut(number).ok_or(Error::Limit("sites"))
    }

    /// Returns the sites with blocks that lived shortly: those with most of them first.
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
                // Nobody freed what ended with its heap or its program.
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

    /// Calls: the address that begins, with its site and thread, or that ends; times are their places.
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
        // One after the other; in batches that end together; two that overlap without an end; two threads, one of each.
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
