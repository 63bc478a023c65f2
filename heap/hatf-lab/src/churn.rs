//! Short-lived blocks by site, and possible replacements for them.
//!
//! A block is *short-lived* if it is freed within a time limit and before a given number of bytes is allocated after it
//! by any thread. A realloc does not end its block; the block continues as the new block. If nearly all blocks of a
//! site are short-lived, their overlap determines which replacement (see [`Instead`]) would avoid an allocation per
//! block. The other blocks of the site, which would not use the replacement, do not count.
//!
//! Only the end of a block shows whether it was short-lived, so the number of simultaneously live short-lived blocks is
//! computed later. Each block that may still become short-lived starts a [`Stretch`], which sums up the events up to the
//! next such block. Once the block is known to be short-lived or not, its stretch is appended to the previous one.

use std::collections::{BTreeMap, HashSet};

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
    /// One buffer per thread, as large as the site's largest block, because no thread ever has two short-lived blocks
    /// of the site.
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
    /// The maximum number of simultaneously live short-lived blocks.
    pub most_live: u64,
    /// The maximum number of bytes in simultaneously live short-lived blocks.
    pub most_bytes: u64,
    /// The size of the largest short-lived block in bytes.
    pub largest: u64,
    /// The number of threads that allocated the blocks.
    pub threads: u64,
    /// The mean lifetime of the short-lived blocks in nanoseconds, or `None` if the trace has no timestamps.
    pub mean_life: Option<u64>,
    /// The number of times that the site's only short-lived block ended.
    pub emptied: u64,
    /// The suggested replacement, or `None` if the data does not support one or the blocks are a sample.
    pub instead: Option<Instead>,
}

/// The short-lived blocks that began and ended during a sequence of events, relative to the start of the sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stretch {
    /// The change in the number of blocks and in their bytes.
    change: [i64; 2],
    /// The maximum change at any point, which is at least 0.
    most: [i64; 2],
    /// The minimum change in the number of blocks after the end of a block.
    least: i64,
    /// The number of times that an end reached the minimum; 0 if no block ended.
    times: u64,
}

impl Stretch {
    /// Returns the stretch in which one block begins.
    fn begin(size: u64) -> Self {
        let one = [1, i64::try_from(size).unwrap_or(i64::MAX)];
        Self { change: one, most: one, ..Self::default() }
    }

    /// Returns the stretch in which one block ends.
    fn end(size: u64) -> Self {
        let bytes = i64::try_from(size).unwrap_or(i64::MAX);
        Self { change: [-1, -bytes], most: [0; 2], least: -1, times: 1 }
    }

    /// Appends the next stretch.
    fn append(&mut self, next: Self) {
        let [blocks, _] = self.change;
        for ((most, change), next) in self.most.iter_mut().zip(self.change).zip(next.most) {
            *most = (*most).max(change.saturating_add(next));
        }
        let least = blocks.saturating_add(next.least);
        (self.least, self.times) = match () {
            () if next.times == 0 => (self.least, self.times),
            () if self.times == 0 || least < self.least => (least, next.times),
            () if least == self.least => (least, self.times + next.times),
            () => (self.least, self.times),
        };
        for (change, next) in self.change.iter_mut().zip(next.change) {
            *change = change.saturating_add(next);
        }
    }
}

/// A block that may still become short-lived.
#[derive(Clone, Copy, Debug)]
struct Young {
    size: u64,
    time: u64,
    /// The number of bytes allocated up to and including the block.
    allocated: u64,
    /// The known short-lived blocks between this block and the next one in [`Site::young`].
    after: Stretch,
}

/// The state of a site during the pass.
#[derive(Clone, Debug, Default)]
struct Site {
    short: Amount,
    allocated: Amount,
    largest: u64,
    /// The live blocks that may still become short-lived, by the tick of their allocation.
    young: BTreeMap<u64, Young>,
    /// The known short-lived blocks before the first one in `young`.
    known: Stretch,
    /// The threads that allocated blocks.
    threads: HashSet<u64>,
    last: u64,
    life: u64,
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
        let churn = |(number, site): (u64, &Site)| {
            let Stretch { most: [most_live, most_bytes], least, times, .. } = site.all_known();
            let churn = Churn {
                site: number,
                short: site.short,
                allocated: site.allocated,
                most_live: most_live.unsigned_abs(),
                most_bytes: most_bytes.unsigned_abs(),
                largest: site.largest,
                threads: site.threads.len() as u64,
                mean_life: if timed { site.life.checked_div(site.short.blocks) } else { None },
                emptied: if least == 0 { times } else { 0 },
                instead: None,
            };
            Churn { instead: if sampled { None } else { instead(&churn) }, ..churn }
        };
        let of_site = (0..).zip(&self.sites).filter(|(_, site)| site.short.blocks > 0);
        let mut all: Vec<_> = of_site.map(churn).collect();
        all.sort_by_key(|churn| (std::cmp::Reverse(churn.short.blocks), churn.site));
        all
    }
}

/// Returns the replacement for the short-lived blocks of a site.
fn instead(churn: &Churn) -> Option<Instead> {
    let Churn { short, allocated, most_live, emptied, threads, .. } = *churn;
    let nearly_all = short.blocks.saturating_mul(100) >= allocated.blocks.saturating_mul(NEARLY_ALL);
    if allocated.blocks < FEW || !nearly_all {
        return None;
    }
    // Blocks that end together are all live before, so no batch is larger than the number of live blocks.
    let end_together = emptied.saturating_mul(most_live) >= short.blocks;
    Some(if most_live <= threads {
        Instead::Buffer
    } else if emptied.saturating_mul(BATCH) <= short.blocks && end_together {
        Instead::Arena
    } else {
        Instead::Pool
    })
}

impl Site {
    /// Appends events to those after the last block that may still become short-lived.
    fn append(&mut self, stretch: Stretch) {
        match self.young.last_entry() {
            Some(mut last) => last.get_mut().after.append(stretch),
            None => self.known.append(stretch),
        }
    }

    /// Counts a block as short-lived or not, and appends the events after it to those before it.
    fn settle(&mut self, tick: u64, is_short: bool) {
        let Some(Young { size, after, .. }) = self.young.remove(&tick) else { return };
        let before = match self.young.range_mut(..tick).next_back() {
            Some((_, before)) => &mut before.after,
            None => &mut self.known,
        };
        if is_short {
            before.append(Stretch::begin(size));
        }
        before.append(after);
    }

    /// Settles the oldest blocks that have become too old to be short-lived.
    fn settle_old(&mut self, settings: Settings, time: u64, bytes: u64) {
        let Settings { within, meanwhile } = settings;
        let is_old = |young: &Young| {
            time.saturating_sub(young.time) > within || bytes.saturating_sub(young.allocated) > meanwhile
        };
        while let Some(tick) = self.young.first_key_value().filter(|(_, young)| is_old(young)).map(|(tick, _)| *tick) {
            self.settle(tick, false);
        }
    }

    /// Returns all known short-lived blocks.
    fn all_known(&self) -> Stretch {
        let mut all = self.known;
        self.young.values().for_each(|young| all.append(young.after));
        all
    }
}

impl Observer for Churns {
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        let (object, size) = (&event.object, event.object.size);
        self.timed |= event.time != 0;
        match event.change {
            Change::Allocated => {
                self.bytes = self.bytes.saturating_add(size);
                let (settings, bytes) = (self.settings, self.bytes);
                let site = self.site(object.site)?;
                site.allocated.add_block(size);
                site.settle_old(settings, event.time, bytes);
                let young = Young { size, time: object.time, allocated: object.allocated, after: Stretch::default() };
                site.young.insert(object.tick, young);
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
                if is_short {
                    site.short.add_block(size);
                    site.life = site.life.saturating_add(life);
                    site.largest = site.largest.max(size);
                    site.append(Stretch::end(size));
                }
                site.settle(object.tick, is_short);
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
        assert_eq!((site.instead, site.short.blocks, site.allocated.blocks, site.most_live), (None, 20, 40, 1));
    }

    /// One block in ten leaks, so the others, which never overlap, need only one buffer.
    #[test]
    fn leaked_blocks_need_no_replacement() {
        let acts = repeated(|n| {
            let short = (0..9).flat_map(|_| [Begin(1000, 1, 1), End(1000)]);
            short.chain([Begin(5000 + 1000 * n, 1, 1)]).collect()
        });
        let site = churn(&acts, Settings::default())[0];
        let expected = (Some(Instead::Buffer), 180, 200, 1, 180);
        assert_eq!(
            (site.instead, site.short.blocks, site.allocated.blocks, site.most_live, site.emptied),
            expected,
            "{site:?}"
        );
    }

    /// The overlap equals the one found by testing all pairs of blocks, in any order of begins and ends.
    #[test]
    fn overlap_is_that_of_all_pairs() {
        let mut state = 1_u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for within in [50, 200, 1000] {
            let (mut acts, mut live, mut blocks, mut time) = (Vec::new(), Vec::<(u64, u64)>::new(), Vec::new(), 1);
            for number in 1..400 {
                time += 10;
                if live.is_empty() || random(2) == 0 {
                    acts.push(Begin(number * 1000, 1, 1));
                    live.push((number * 1000, time));
                } else {
                    let (address, began) = live.swap_remove(usize::try_from(random(live.len() as u64)).unwrap());
                    acts.push(End(address));
                    blocks.push((began, time));
                }
            }
            blocks.retain(|(began, ended)| ended - began <= within);
            let overlap = |at: u64| blocks.iter().filter(|(began, ended)| *began <= at && at < *ended).count() as u64;
            let most = blocks.iter().map(|(began, _)| overlap(*began)).max().unwrap();
            let emptied = blocks.iter().filter(|(_, ended)| overlap(*ended) == 0).count() as u64;
            let site = churn(&acts, Settings { within, ..Settings::default() })[0];
            assert_eq!((site.most_live, site.most_bytes, site.emptied), (most, most * 100, emptied), "{within}");
        }
    }
}
