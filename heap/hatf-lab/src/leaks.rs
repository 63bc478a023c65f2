//! Reports the live blocks at a point such as the end of the program, their ages, and whether their memory has grown.
//!
//! A block counts as part of *startup* if it was allocated no later than a chosen event. The time after startup is
//! divided into [`INTERVALS`] equal intervals (of events if the trace has no timestamps). For each interval, the
//! minimum live memory of each group is determined. A cache that fills and is emptied reaches the same minimum each
//! time. [`Trend`] determines whether the minima grow.
//!
//! # Examples
//!
//! Site 0 allocates a table during startup, and site 1 leaks a block every microsecond:
//!
//! ```
//! use hatf_lab::HeapTracker;
//! use hatf_lab::history::Direction;
//! use hatf_lab::leaks::Leaks;
//! use hatf_trace::{Event, EventSink};
//!
//! let mut tracker = HeapTracker::new(Leaks::new());
//! tracker.event(&Event::malloc(0x1000, 4_096))?;
//! for n in 1..=1_000 {
//!     let leak = Event { stack: (&[0x401136]).into(), ..Event::malloc(0x10_0000 + n * 64, 48) };
//!     tracker.event(&Event { time: n * 1_000, ..leak })?;
//! }
//! let (heap, leaks) = tracker.into_parts();
//! let groups = leaks.report(&heap).groups(1, |site| u32::try_from(site).ok());
//! let direction = |group: u32| groups[&group].growth.map(|growth| growth.direction);
//! assert_eq!([0, 1].map(direction), [Some(Direction::Steady), Some(Direction::Growing)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;

use hatf_trace::Event;
use serde::Serialize;

use crate::Result;
use crate::heap::Heap;
use crate::kept::Place;
use crate::live_by_site::{LiveBySite, LiveBytes};
use crate::moments::{Lived, Moment, Moments, SiteTimeline};
use crate::objects::{Cause, Change, Object, ObjectEvent};
use crate::observer::Observer;
use crate::site_counts::{Amount, Weight};
use crate::stretches::{MostAndLast, Stretches};
use crate::trend::{Direction, Trend};

/// The maximum number of intervals.
pub const INTERVALS: usize = 20;

/// Returns the last event of the startup if it is not known: the first 5% of the events.
#[must_use]
pub fn assumed_startup(last: u64) -> u64 {
    last / 20
}

/// A live block.
#[derive(Clone, Copy, Debug)]
struct Live {
    site: u64,
    /// The block's amount, multiplied by its weight if the trace is a sample.
    amount: Amount,
    tick: u64,
    age: u64,
}

/// An observer that collects the data for [`Leaks::report`].
///
/// Uses as much memory as [`Moments`], plus 40 bytes for each block that was live when its heap or program ended.
///
/// The [module's example](crate::leaks#examples) finds a leak.
#[derive(Clone, Debug, Default)]
pub struct Leaks {
    moments: Moments,
    last: Place,
    /// The time of the last record, which may be later than that of the last event.
    end: u64,
    /// The number of bytes allocated.
    allocated: u64,
    /// Blocks whose heap or program has ended.
    left: Vec<Live>,
    weight: Weight,
    has_times: bool,
}

impl Leaks {
    /// Creates an observer without data.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the live blocks. `heap` must have followed the same trace.
    #[must_use]
    pub fn report(&self, heap: &Heap) -> Leaked {
        let live = heap.objects.live().map(|object| self.live(&object));
        let blocks = live.chain(self.left.iter().copied()).collect();
        let timeline = self.moments.clone().timeline(&heap.objects);
        let (at, end) = (self.last, self.end.max(self.last.time));
        Leaked { at, end, has_times: self.has_times, blocks, timeline, weight: self.weight }
    }

    fn live(&self, object: &Object) -> Live {
        let age = if self.has_times {
            self.last.time.saturating_sub(object.time)
        } else {
            self.allocated.saturating_sub(object.allocated)
        };
        Live { site: object.site, amount: self.weight.amount(object.size), tick: object.tick, age }
    }
}

impl Observer for Leaks {
    #[inline]
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        self.last = Place { tick: event.tick, time: self.last.time.max(event.time), ..self.last };
        self.has_times |= event.time != 0;
        match event.change {
            Change::Allocated => self.allocated = self.allocated.saturating_add(event.object.size),
            Change::Freed if event.cause == Cause::Left => {
                let left = self.live(&event.object);
                self.left.push(left);
            }
            Change::Freed => {}
        }
        self.moments.event(event)
    }

    #[inline]
    fn record(&mut self, record: &Event<'_>, _: &Heap) -> Result<()> {
        self.end = self.end.max(record.time);
        Ok(())
    }

    fn sampled(&mut self, mean: u64) {
        self.weight = Weight::sampled(mean);
        self.moments.sampled(mean);
    }
}

/// The live blocks at a point in a trace.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Leaked {
    /// The point in the trace.
    pub at: Place,
    /// Whether ages are in nanoseconds. Otherwise, the age of a block is the number of bytes allocated since.
    pub has_times: bool,
    /// The time of the last record, which may be later than that of the last event.
    pub end: u64,
    blocks: Vec<Live>,
    timeline: SiteTimeline,
    weight: Weight,
}

/// Block ages in nanoseconds, or in bytes allocated since the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Ages {
    /// The age of the youngest block.
    pub youngest: u64,
    /// The median age.
    pub median: u64,
    /// The age of the oldest block.
    pub oldest: u64,
}

/// The growth of live memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Growth {
    /// The direction of the trend.
    pub direction: Direction,
    /// The rate in bytes per second, or per thousand events if the trace has no timestamps.
    pub rate: f64,
    /// The lower bound of the 95% confidence interval.
    pub low: f64,
    /// The upper bound of the 95% confidence interval.
    pub high: f64,
    /// The number of intervals examined.
    pub intervals: usize,
    /// The estimated growth in all intervals together, in bytes.
    pub total: f64,
}

impl Growth {
    /// Returns the growth of a quantity over the run after its first twentieth, or `None` if the run is too short. Each
    /// interval counts with its minimum.
    #[must_use]
    pub fn of_curve(curve: &Stretches<MostAndLast>, duration: u64) -> Option<Self> {
        let count = INTERVALS as u64;
        let start = duration / (count + 1);
        let span = duration - start;
        let at = |interval: u64| {
            let time = u128::from(start) + u128::from(span) * u128::from(interval) / u128::from(count);
            usize::try_from(time / u128::from(curve.step.max(1))).unwrap_or(usize::MAX)
        };
        let mut before = 0;
        let mut low = |interval: u64| {
            let (from, to) = (at(interval), at(interval + 1));
            let points = curve.points.iter().take(to.saturating_add(1)).skip(from);
            before = points.map(|point| point.last).min().unwrap_or(before);
            before
        };
        let lows: Vec<u64> = (0..count).map(&mut low).collect();
        #[expect(clippy::cast_precision_loss, reason = "the result is an estimate")]
        let length = span as f64 / count as f64 / 1e9;
        (span > 0).then(|| Self::of_lows(&lows, length)).flatten()
    }

    /// Returns the rate in whole bytes, or 0 if it is negative.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
    pub fn rounded_rate(&self) -> u64 {
        self.rate.round() as u64
    }

    /// Returns the growth of minima in intervals of this length in seconds or in thousands of events.
    fn of_lows(lows: &[u64], length: f64) -> Option<Self> {
        let Trend { direction, change, low, high, .. } = Trend::of(lows)?;
        let (rate, intervals) = (|change: f64| change / length, lows.len());
        #[expect(clippy::cast_precision_loss, reason = "there are few intervals")]
        let total = change * intervals as f64;
        Some(Self { direction, rate: rate(change), low: rate(low), high: rate(high), intervals, total })
    }
}

/// The growth of a trace's live memory after the startup, as a whole and by group.
///
/// # Examples
///
/// ```
/// use hatf_lab::history::{Direction, LiveBySiteBuilder};
/// use hatf_lab::leaks::Growths;
/// use hatf_lab::sites::Sites;
/// use hatf_lab::{Objects, Observer as _};
/// use hatf_trace::Event;
///
/// let (mut objects, mut sites, mut live) = (Objects::new(), Sites::with_changes(), LiveBySiteBuilder::default());
/// for n in 1..=1_000 {
///     let event = Event { time: n * 1_000, ..Event::malloc(n * 64, 48) };
///     objects.follow(&event, 0, &mut |event| {
///         live.before(event, &mut sites);
///         sites.event(event)
///     })?;
/// }
/// let growths = Growths::new(&live.finish(&sites), 1_000_000, |_| None);
/// assert_eq!(growths.whole.map(|growth| growth.direction), Some(Direction::Growing));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Growths {
    /// Whether rates are per second. Otherwise, they are per thousand events.
    pub has_times: bool,
    /// The growth of all live memory, or `None` if there are too few snapshots.
    pub whole: Option<Growth>,
    /// The growth of each group.
    pub groups: BTreeMap<u32, Growth>,
}

impl Growths {
    /// Estimates the growth up to `end`, the time at which the program ended. `group` maps a site to its group, or to
    /// `None` if it has no group.
    #[must_use]
    pub fn new(live: &LiveBySite, end: u64, group: impl Fn(u64) -> Option<u32>) -> Self {
        let Some(last) = live.moments.last() else { return Self::default() };
        let has_times = last.time > 0;
        let Some(grid) = Grid::new(&live.moments, assumed_startup(last.tick), has_times, end) else {
            return Self { has_times, ..Self::default() };
        };
        let mut sites: BTreeMap<u32, Vec<&[LiveBytes]>> = BTreeMap::new();
        for values in live.values.chunk_by(|one, next| one.site == next.site) {
            let group = values.first().and_then(|value| group(u64::from(value.site)));
            group.iter().for_each(|group| sites.entry(*group).or_default().push(values));
        }
        let growth = |sites: &[&[LiveBytes]]| grid.growth(live_in(sites, live.moments.len()));
        let groups = sites.into_iter().filter_map(|(group, sites)| Some((group, growth(&sites)?)));
        let groups = groups.collect();
        let all: Vec<_> = live.values.chunk_by(|one, next| one.site == next.site).collect();
        Self { has_times, whole: growth(&all), groups }
    }
}

/// The live memory of a group of sites.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct GroupLeak {
    /// The live blocks of the group.
    pub live: Amount,
    /// The blocks allocated during the startup.
    pub startup: Amount,
    /// The ages of the live blocks.
    pub ages: Ages,
    /// The growth after the startup, or `None` if there are too few snapshots after the startup.
    pub growth: Option<Growth>,
}

impl Leaked {
    /// Returns the live memory of each site that has live blocks, ordered by site.
    #[must_use]
    pub fn sites(&self) -> BTreeMap<u64, Amount> {
        let mut sites: BTreeMap<u64, Amount> = BTreeMap::new();
        self.blocks.iter().for_each(|block| sites.entry(block.site).or_default().sum(block.amount));
        sites.values_mut().for_each(|amount| *amount = self.weight.whole(*amount));
        sites
    }

    /// Returns the live memory of each group. `group` maps a site to its group, or to `None` to omit the site. Events
    /// up to `startup` count as part of startup.
    #[must_use]
    pub fn groups(&self, startup: u64, group: impl Fn(u64) -> Option<u32>) -> BTreeMap<u32, GroupLeak> {
        let mut blocks: BTreeMap<u32, Vec<Live>> = BTreeMap::new();
        for block in &self.blocks {
            group(block.site).iter().for_each(|group| blocks.entry(*group).or_default().push(*block));
        }
        let mut lived: BTreeMap<u32, Vec<Lived>> = BTreeMap::new();
        for one in &self.timeline.lived {
            let group = group(u64::from(one.site)).filter(|group| blocks.contains_key(group));
            group.iter().for_each(|group| lived.entry(*group).or_default().push(*one));
        }
        let grid = Grid::new(&self.timeline.moments, startup, self.has_times, self.end);
        let of = |(group, blocks): (u32, Vec<Live>)| {
            let growth = grid.as_ref().and_then(|grid| {
                let lived = lived.get(&group).map_or(&[][..], Vec::as_slice);
                grid.growth(live_after(lived, self.timeline.moments.len()))
            });
            (group, GroupLeak { growth, ..self.group(startup, blocks) })
        };
        blocks.into_iter().map(of).collect()
    }

    /// Returns the live bytes of a group at the end of each snapshot interval, as (time or event number, bytes).
    #[must_use]
    pub fn over_time(&self, group: impl Fn(u64) -> bool) -> Vec<(u64, u64)> {
        let lived: Vec<Lived> = self.timeline.lived.iter().filter(|one| group(u64::from(one.site))).copied().collect();
        let place = |moment: &Moment| if self.has_times { moment.time } else { moment.tick };
        let live = live_after(&lived, self.timeline.moments.len());
        self.timeline.moments.iter().map(place).zip(live).collect()
    }

    fn group(&self, startup: u64, mut blocks: Vec<Live>) -> GroupLeak {
        let sum = |sum: &mut Amount, block: &Live| sum.sum(block.amount);
        let (mut live, mut of_startup) = (Amount::default(), Amount::default());
        blocks.iter().for_each(|block| sum(&mut live, block));
        blocks.iter().filter(|block| block.tick <= startup).for_each(|block| sum(&mut of_startup, block));
        blocks.sort_unstable_by_key(|block| block.age);
        let age = |block: Option<&Live>| block.map_or(0, |block| block.age);
        let mut before = 0_u64;
        let median = blocks.iter().find(|block| {
            before = before.saturating_add(block.amount.blocks);
            before >= live.blocks.div_ceil(2)
        });
        let ages = Ages { youngest: age(blocks.first()), median: age(median), oldest: age(blocks.last()) };
        let [live, startup] = [live, of_startup].map(|amount| self.weight.whole(amount));
        GroupLeak { live, startup, ages, growth: None }
    }
}

/// Intervals of equal length that divide the time after startup.
struct Grid {
    /// The interval of each snapshot, or `None` for snapshots before the first interval.
    parts: Vec<Option<usize>>,
    count: usize,
    /// The length of an interval in seconds or in thousands of events.
    length: f64,
}

impl Grid {
    /// Divides the time up to `end` into intervals. Returns `None` if there are too few snapshots.
    fn new(moments: &[Moment], startup: u64, has_times: bool, end: u64) -> Option<Self> {
        let place = |moment: &Moment| if has_times { moment.time } else { moment.tick };
        let behind: Vec<&Moment> = moments.iter().skip_while(|moment| moment.tick < startup).collect();
        let (start, last) = (place(behind.first()?), place(behind.last()?));
        let end = if has_times { last.max(end) } else { last };
        let count = INTERVALS.min(behind.len());
        let span = u128::from(end.checked_sub(start).filter(|span| *span > 0)?);
        let part = |moment: &Moment| {
            let part = u128::from(place(moment).saturating_sub(start)) * count as u128 / span;
            usize::try_from(part).unwrap_or(0).min(count - 1)
        };
        let parts = moments.iter().map(|moment| (moment.tick >= startup).then(|| part(moment))).collect();
        let unit = if has_times { 1e9 } else { 1e3 };
        #[expect(clippy::cast_precision_loss, reason = "the result is an estimate")]
        let length = span as f64 / count as f64 / unit;
        Some(Self { parts, count, length })
    }

    /// Returns the growth of a group with these live bytes after each snapshot.
    fn growth(&self, live: impl IntoIterator<Item = u64>) -> Option<Growth> {
        let mut lows: Vec<Option<u64>> = vec![None; self.count];
        for (live, part) in live.into_iter().zip(&self.parts) {
            let low = part.and_then(|part| lows.get_mut(part));
            low.into_iter().for_each(|low| *low = Some(low.unwrap_or(live).min(live)));
        }
        // In an interval without a snapshot, the live memory does not change, so use the previous minimum.
        let mut before = 0;
        let filled = lows.into_iter().map(|low| {
            before = low.unwrap_or(before);
            before
        });
        Growth::of_lows(&filled.collect::<Vec<_>>(), self.length)
    }
}

/// Returns the live bytes after each snapshot.
fn live_after(lived: &[Lived], moments: usize) -> impl Iterator<Item = u64> {
    let mut changes = Changes::new(moments);
    for Lived { from, to, amount, .. } in lived {
        changes.add(*from, amount.bytes, 0);
        to.iter().for_each(|to| changes.add(*to, 0, amount.bytes));
    }
    changes.sums()
}

/// Returns the live bytes of some sites after each snapshot.
fn live_in(sites: &[&[LiveBytes]], moments: usize) -> impl Iterator<Item = u64> {
    let mut changes = Changes::new(moments);
    for values in sites {
        let mut before = 0;
        for LiveBytes { moment, bytes, .. } in *values {
            changes.add(*moment, *bytes, before);
            before = *bytes;
        }
    }
    changes.sums()
}

/// The bytes that were allocated and freed before each snapshot.
struct Changes(Vec<(u64, u64)>);

impl Changes {
    fn new(moments: usize) -> Self {
        Self(vec![(0, 0); moments])
    }

    fn add(&mut self, moment: u16, came: u64, went: u64) {
        self.0.get_mut(usize::from(moment)).into_iter().for_each(|(before, gone)| {
            (*before, *gone) = (before.saturating_add(came), gone.saturating_add(went));
        });
    }

    /// Returns the live bytes after each snapshot.
    fn sums(self) -> impl Iterator<Item = u64> {
        let mut live = 0_u64;
        self.0.into_iter().map(move |(came, went)| {
            live = live.saturating_add(came).saturating_sub(went);
            live
        })
    }
}

#[cfg(test)]
mod tests;
