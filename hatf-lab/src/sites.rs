//! What each stack allocated: in all, live at the peak, never freed, and freed at once.

use serde::Serialize;

use crate::heap::Heap;
use crate::objects::{Cause, Change, ObjectEvent};
use crate::observer::Observer;
use crate::{Error, Result};

/// Blocks, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Amount {
    /// Blocks.
    pub blocks: u64,
    /// The bytes that were asked for.
    pub bytes: u64,
}

impl Amount {
    /// Counts one block more.
    pub fn add_block(&mut self, bytes: u64) {
        self.sum(Self { blocks: 1, bytes });
    }

    /// Counts one block less.
    pub(crate) fn remove_block(&mut self, bytes: u64) {
        self.remove(Self { blocks: 1, bytes });
    }

    #[inline]
    pub(crate) fn remove(&mut self, other: Self) {
        self.blocks = self.blocks.saturating_sub(other.blocks);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }

    /// Adds another.
    #[inline]
    pub fn sum(&mut self, other: Self) {
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Sums the amounts of neighbours that have the same key, into one of them.
pub fn sum_equal<T>(list: &mut Vec<T>, key: impl Fn(&T) -> u64, amount: impl Fn(&mut T) -> &mut Amount) {
    list.dedup_by(|one, before| {
        let same = key(one) == key(before);
        if same {
            let more = *amount(one);
            amount(before).sum(more);
        }
        same
    });
}

/// Of a sample, blocks are counted in these parts.
const PARTS: u64 = 1 << 10;

/// What a block counts. Of a sample it stands for the inverse of its probability: see [`Observer::sampled`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Weight {
    /// Objects are a sample, of which one stands for this many bytes on average.
    mean: Option<u64>,
}

impl Weight {
    /// Objects are a sample, of which one stands for this many bytes on average.
    #[must_use]
    pub fn sampled(mean: u64) -> Self {
        Self { mean: Some(mean.max(1)) }
    }

    /// Returns what a block of this many bytes counts. Of a sample, blocks are in parts: see [`whole`](Self::whole).
    #[must_use]
    #[inline]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    pub fn amount(self, size: u64) -> Amount {
        let Some(mean) = self.mean else { return Amount { blocks: 1, bytes: size } };
        let blocks = 1.0 / chance(size, mean);
        let size = size.max(1) as f64;
        Amount { blocks: libm::round(blocks * PARTS as f64) as u64, bytes: libm::round(blocks * size) as u64 }
    }

    /// Rounds blocks that were counted in parts to whole ones.
    #[must_use]
    pub fn whole(self, amount: Amount) -> Amount {
        let blocks = self.mean.map_or(amount.blocks, |_| amount.blocks.saturating_add(PARTS / 2) / PARTS);
        Amount { blocks, ..amount }
    }
}

/// Returns the probability that a block of `size` bytes is in a sample that has one block for `mean` bytes: `1 - exp(-size / mean)`.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "sizes and means are far below 2^53, or as good as that")]
pub fn chance(size: u64, mean: u64) -> f64 {
    -libm::expm1(-(size.max(1) as f64) / mean.max(1) as f64)
}

/// A block that is freed within this many nanoseconds lived shortly, if few bytes were allocated meanwhile.
pub const SHORT_LIFE: u64 = 1_000_000;
/// The most bytes that were allocated after it, by anybody: caches hold it still.
pub const SHORT_BYTES: u64 = 64 << 10;

/// A measure by which sites are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Live when most bytes were live, for the first time.
    Peak,
    /// Live at the end.
    Leaked,
    /// Allocated in all.
    Allocated,
    /// Freed by the event that follows the allocation, as heaptrack defines it.
    Temporary,
    /// Freed within [`SHORT_LIFE`], and before more than [`SHORT_BYTES`] were allocated after it. The block of a realloc does not end there:
    /// it goes on as the new one.
    Short,
    /// Live at a moment that somebody chose: see [`Kept`](crate::kept::Kept).
    At,
    /// Allocated in a range that somebody chose, and live at its end.
    Between,
    /// Copied by `realloc`: see [`growth`](crate::growth).
    Copied,
    /// Beyond what was asked for.
    Slack,
}

impl Measure {
    /// Returns whether it means something of the sites of a heap.
    #[must_use]
    pub fn is_known(self, heap: &Heap) -> bool {
        let sizes_only = heap.has_sizes_only();
        match self {
            Self::Allocated => true,
            // The event behind an allocation is not the one that was behind it in the program, and less was allocated meanwhile.
            // Of a sample, realloc may have ended a block that is not in it.
            Self::Temporary | Self::Short | Self::Copied | Self::Slack => heap.sampling.is_none() && !sizes_only,
            // It is not known when blocks end.
            Self::Peak | Self::Leaked | Self::At | Self::Between => !sizes_only,
        }
    }

    /// All measures that every trace has and that need no choice of a moment.
    pub const ALL: [Self; 5] = [Self::Peak, Self::Leaked, Self::Allocated, Self::Temporary, Self::Short];
}

/// What was allocated by one stack, or by all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// See [`Measure::Peak`].
    pub peak: Amount,
    /// See [`Measure::Leaked`].
    pub leaked: Amount,
    /// See [`Measure::Allocated`].
    pub allocated: Amount,
    /// See [`Measure::Temporary`].
    pub temporary: Amount,
    /// See [`Measure::Short`].
    pub short: Amount,
    /// See [`Measure::At`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Amount>,
    /// See [`Measure::Between`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<Amount>,
    /// See [`Measure::Copied`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copied: Option<Amount>,
    /// See [`Measure::Slack`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slack: Option<Amount>,
}

impl Counts {
    /// Returns one of the measures.
    #[must_use]
    pub fn get(&self, measure: Measure) -> Amount {
        match measure {
            Measure::Peak => self.peak,
            Measure::Leaked => self.leaked,
            Measure::Allocated => self.allocated,
            Measure::Temporary => self.temporary,
            Measure::Short => self.short,
            Measure::At => self.at.unwrap_or_default(),
            Measure::Between => self.between.unwrap_or_default(),
            Measure::Copied => self.copied.unwrap_or_default(),
            Measure::Slack => self.slack.unwrap_or_default(),
        }
    }

    /// Adds those of another.
    pub fn add(&mut self, other: &Self) {
        self.peak.sum(other.peak);
        self.leaked.sum(other.leaked);
        self.allocated.sum(other.allocated);
        self.temporary.sum(other.temporary);
        self.short.sum(other.short);
        let asked_for = [
            (&mut self.at, other.at),
            (&mut self.between, other.between),
            (&mut self.copied, other.copied),
            (&mut self.slack, other.slack),
        ];
        for (sum, other) in asked_for {
            other.iter().for_each(|other| sum.get_or_insert_default().sum(*other));
        }
    }
}

/// A site while the trace is read.
#[derive(Clone, Copy, Debug, Default)]
struct Site {
    live: Amount,
    allocated: Amount,
    temporary: Amount,
    short: Amount,
    /// What was live at the peak of this number.
    at_peak: Amount,
    peak: u64,
    /// What was live when its heap ended.
    left: Amount,
}

/// Returns the sites that have something of a measure, by their numbers: those with the most first.
#[must_use]
pub fn ranked(sites: &[Counts], measure: Measure, by_blocks: bool) -> Vec<(usize, Amount)> {
    let rank = |amount: Amount| if by_blocks { amount.blocks } else { amount.bytes };
    let amounts = sites.iter().map(|site| site.get(measure)).enumerate();
    let mut ranked: Vec<_> = amounts.filter(|(_, amount)| rank(*amount) > 0).collect();
    ranked.sort_by_key(|(site, amount)| (std::cmp::Reverse(rank(*amount)), *site));
    ranked
}

/// Counts by site: see [`Object::site`](crate::Object::site).
#[derive(Clone, Debug, Default)]
pub struct Sites {
    sites: Vec<Site>,
    /// All bytes that were allocated.
    allocated: u64,
    live: u64,
    most: u64,
    /// How often there were more bytes live than ever before.
    peaks: u64,
    weight: Weight,
}

impl Sites {
    /// Starts with nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Counts an event for the site of this number, whatever the object's is: sites may be classes or threads.
    ///
    /// # Errors
    /// The number is too great to be kept.
    #[inline]
    pub fn count(&mut self, number: u64, event: &ObjectEvent) -> Result<()> {
        let object = &event.object;
        match (event.change, event.cause) {
            (Change::Allocated, _) => self.allocated(number, object.size),
            (Change::Freed, Cause::Left) => self.left(number, object.size),
            // Nobody freed it.
            (Change::Freed, Cause::Exec | Cause::Resumed) => self.freed(number, object.size, false),
            (Change::Freed, Cause::Call | Cause::Realloc | Cause::Overlaid) => {
                let is_short = event.cause != Cause::Realloc && is_short(event, self.allocated);
                self.ended(number, object.size, event.tick == object.tick + 1, is_short)
            }
        }
    }

    /// Counts a block that a site allocated.
    ///
    /// # Errors
    /// The site's number is too great to be kept.
    #[inline]
    pub fn allocated(&mut self, number: u64, size: u64) -> Result<()> {
        let peaks = self.peaks;
        let amount = self.weight.amount(size);
        self.allocated = self.allocated.saturating_add(size);
        let site = self.site(number, peaks)?;
        site.allocated.sum(amount);
        site.live.sum(amount);
        self.live = self.live.saturating_add(amount.bytes);
        if self.live > self.most {
            self.most = self.live;
            self.peaks += 1;
        }
        Ok(())
    }

    /// Counts the free of a block; whether it is `temporary`.
    ///
    /// # Errors
    /// As for [`allocated`](Self::allocated).
    #[inline]
    pub fn freed(&mut self, number: u64, size: u64, temporary: bool) -> Result<()> {
        self.ended(number, size, temporary, false)
    }

    /// Counts the end of a block.
    #[inline]
    fn ended(&mut self, number: u64, size: u64, temporary: bool, short: bool) -> Result<()> {
        let peaks = self.peaks;
        let amount = self.weight.amount(size);
        let site = self.site(number, peaks)?;
        site.live.remove(amount);
        if temporary {
            site.temporary.sum(amount);
        }
        if short {
            site.short.sum(amount);
        }
        self.live = self.live.saturating_sub(amount.bytes);
        Ok(())
    }

    /// Counts a block whose heap ended before it was freed: it is leaked, and not live from here on.
    ///
    /// # Errors
    /// As for [`allocated`](Self::allocated).
    pub fn left(&mut self, number: u64, size: u64) -> Result<()> {
        self.freed(number, size, false)?;
        let peaks = self.peaks;
        let amount = self.weight.amount(size);
        self.site(number, peaks)?.left.sum(amount);
        Ok(())
    }

    #[inline]
    fn site(&mut self, number: u64, peaks: u64) -> Result<&mut Site> {
        let number = usize::try_from(number).map_err(|_| Error::Limit("sites"))?;
        if number >= self.sites.len() {
            self.add_sites(number)?;
        }
        let Some(site) = self.sites.get_mut(number) else { return Err(Error::Limit("sites")) };
        site.see(peaks);
        Ok(site)
    }

    #[cold]
    fn add_sites(&mut self, number: usize) -> Result<()> {
        self.sites.resize(number.checked_add(1).ok_or(Error::Limit("sites"))?, Site::default());
        Ok(())
    }

    /// Returns the counts of each site, by its number.
    #[must_use]
    pub fn report(&self) -> Vec<Counts> {
        let counts = |mut site: Site| {
            site.see(self.peaks);
            site.live.sum(site.left);
            let amounts = [site.at_peak, site.live, site.allocated, site.temporary, site.short];
            let [peak, leaked, allocated, temporary, short] = amounts.map(|amount| self.weight.whole(amount));
            Counts { peak, leaked, allocated, temporary, short, ..Counts::default() }
        };
        self.sites.iter().copied().map(counts).collect()
    }
}

/// Returns whether a block that is freed lived shortly, where this many bytes were allocated in all.
#[inline]
fn is_short(event: &ObjectEvent, allocated: u64) -> bool {
    let life = event.time.saturating_sub(event.object.time);
    life <= SHORT_LIFE && allocated.saturating_sub(event.object.allocated) <= SHORT_BYTES
}

impl Site {
    /// Before a change: what is live now was so at the last peak, if nothing changed since.
    #[inline]
    fn see(&mut self, peaks: u64) {
        if self.peak != peaks {
            (self.peak, self.at_peak) = (peaks, self.live);
        }
    }
}

impl Observer for Sites {
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        self.count(event.object.site, event)
    }

    fn sampled(&mut self, mean: u64) {
        self.weight = Weight::sampled(mean);
    }
}
