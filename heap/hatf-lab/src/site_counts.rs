//! Allocations of each stack, in total, live at the peak, never freed, and freed immediately.

use serde::Serialize;

use crate::heap::Heap;
use crate::objects::{Cause, Change, ObjectEvent};
use crate::observer::Observer;
use crate::{Error, Result};

/// A number of blocks and their bytes.
///
/// # Examples
///
/// ```
/// use hatf_lab::sites::Amount;
///
/// let mut amount = Amount::default();
/// amount.add_block(100);
/// amount.sum(Amount { blocks: 2, bytes: 48 });
/// assert_eq!(amount, Amount { blocks: 3, bytes: 148 });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Amount {
    /// The number of blocks.
    pub blocks: u64,
    /// The number of requested bytes.
    pub bytes: u64,
}

impl Amount {
    /// Adds one block.
    pub fn add_block(&mut self, bytes: u64) {
        self.sum(Self { blocks: 1, bytes });
    }

    #[inline]
    pub(crate) fn remove(&mut self, other: Self) {
        self.blocks = self.blocks.saturating_sub(other.blocks);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }

    /// Adds another amount.
    #[inline]
    pub fn sum(&mut self, other: Self) {
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Merges neighbours with equal keys by summing their amounts.
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

/// The number of fractional units per block in a sample.
const PARTS: u64 = 1 << 10;

/// The weight of blocks. In a sample, the weight is the inverse of a block's probability: see [`Observer::sampled`].
///
/// # Examples
///
/// In a sample with one block per 1,000 bytes, a block of 1,000 bytes is recorded with a probability of 63%. Two
/// recorded blocks of this size therefore represent about three blocks of the program:
///
/// ```
/// use hatf_lab::sites::{Amount, Weight};
///
/// let weight = Weight::sampled(1_000);
/// let mut sum = Amount::default();
/// sum.sum(weight.amount(1_000));
/// sum.sum(weight.amount(1_000));
/// assert_eq!(weight.whole(sum), Amount { blocks: 3, bytes: 3_164 });
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Weight {
    /// The mean number of bytes per sampled object, if objects are a sample.
    mean: Option<u64>,
}

impl Weight {
    /// Returns the weight for a sample with one object per `mean` bytes on average.
    #[must_use]
    pub fn sampled(mean: u64) -> Self {
        Self { mean: Some(mean.max(1)) }
    }

    /// Returns the weighted amount of a block of this many bytes. In a sample, blocks are counted in fractional units:
    /// see [`whole`](Self::whole).
    #[must_use]
    #[inline]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    pub fn amount(self, size: u64) -> Amount {
        let Some(mean) = self.mean else { return Amount { blocks: 1, bytes: size } };
        let blocks = 1.0 / chance(size, mean);
        let size = size.max(1) as f64;
        Amount { blocks: libm::round(blocks * PARTS as f64) as u64, bytes: libm::round(blocks * size) as u64 }
    }

    /// Returns what a block of this amount adds to the allocated memory, given its size before the realloc, or 0 if it
    /// is new.
    #[inline]
    pub(crate) fn grown(self, amount: Amount, before: u64) -> Amount {
        if before == 0 {
            return amount;
        }
        Amount { bytes: amount.bytes.saturating_sub(self.amount(before).bytes), ..amount }
    }

    /// Rounds blocks counted in fractional units to an integer.
    #[must_use]
    pub fn whole(self, amount: Amount) -> Amount {
        let blocks = self.mean.map_or(amount.blocks, |_| amount.blocks.saturating_add(PARTS / 2) / PARTS);
        Amount { blocks, ..amount }
    }
}

/// Returns the probability that a block of `size` bytes is in a sample with one block per `mean` bytes: `1 - exp(-size
/// / mean)`.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "sizes and means are far below 2^53 or need no exact value")]
pub fn chance(size: u64, mean: u64) -> f64 {
    -libm::expm1(-(size.max(1) as f64) / mean.max(1) as f64)
}

/// The maximum lifetime of a short-lived block in nanoseconds.
pub const SHORT_LIFE: u64 = 1_000_000;
/// The maximum number of bytes that all threads allocate during a short life. Up to this number, the CPU caches still
/// contain the block.
pub const SHORT_BYTES: u64 = 64 << 10;

/// A measure for ranking sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// Live when the number of live bytes first reached its maximum.
    Peak,
    /// Live at the end.
    Leaked,
    /// Allocated in total. A realloc adds only the bytes by which it enlarges its block.
    Allocated,
    /// Freed by the event right after the allocation, as heaptrack defines it.
    Temporary,
    /// Freed within [`SHORT_LIFE`] and before more than [`SHORT_BYTES`] bytes were allocated after the block. A realloc
    /// does not end its block: the block continues as the new block.
    Short,
    /// Live at a chosen point: see [`Kept`](crate::kept::Kept).
    At,
    /// Allocated in a chosen range and live at its end.
    Between,
    /// Copied by `realloc`: see [`Growths`](crate::blocks::Growths).
    Copied,
    /// Allocated in excess of the requested sizes.
    Slack,
    /// Never touched, in whole pages of large blocks: see [`Untouched`](crate::blocks::Untouched).
    Untouched,
}

impl Measure {
    /// Returns whether the measure is meaningful for the sites of a heap.
    #[must_use]
    pub fn is_known(self, heap: &Heap) -> bool {
        let sizes_only = heap.has_sizes_only();
        match self {
            Self::Allocated => true,
            // In a sample, the event after an allocation is not the one that followed it in the program, and the trace
            // contains fewer of the bytes allocated in between. The block that a realloc ended may be missing from the
            // sample.
            Self::Temporary | Self::Short | Self::Copied | Self::Slack | Self::Untouched => {
                heap.sampling.is_none() && !sizes_only
            }
            // A sizes-only trace does not contain the ends of blocks.
            Self::Peak | Self::Leaked | Self::At | Self::Between => !sizes_only,
        }
    }

    /// The measures that [`Sites`] itself counts.
    pub const ALL: [Self; 5] = [Self::Peak, Self::Leaked, Self::Allocated, Self::Temporary, Self::Short];
}

/// The amounts of one stack, or of all stacks.
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
    /// See [`Measure::Untouched`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untouched: Option<Amount>,
    /// The blocks whose untouched pages are known, and their requested bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub examined: Option<Amount>,
}

impl Counts {
    /// Returns the amount of a measure.
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
            Measure::Untouched => self.untouched.unwrap_or_default(),
        }
    }

    /// Adds the counts of `other`.
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
            (&mut self.untouched, other.untouched),
            (&mut self.examined, other.examined),
        ];
        for (sum, other) in asked_for {
            other.iter().for_each(|other| sum.get_or_insert_default().sum(*other));
        }
    }
}

/// The state of a site during the pass.
#[derive(Clone, Copy, Debug, Default)]
struct Site {
    live: Amount,
    allocated: Amount,
    temporary: Amount,
    short: Amount,
    /// The live amount at peak number `peak`.
    at_peak: Amount,
    peak: u64,
    /// The period in which the site changed last, or 0 if changes are not noted.
    period: u64,
    /// The amount that was live when its heap ended.
    left: Amount,
}

/// Returns the sites with a nonzero measure by number, with their amounts, in descending order of the amount.
#[must_use]
pub fn ranked(sites: &[Counts], measure: Measure, by_blocks: bool) -> Vec<(usize, Amount)> {
    let rank = |amount: Amount| if by_blocks { amount.blocks } else { amount.bytes };
    let amounts = sites.iter().map(|site| site.get(measure)).enumerate();
    let mut ranked: Vec<_> = amounts.filter(|(_, amount)| rank(*amount) > 0).collect();
    ranked.sort_by_key(|(site, amount)| (std::cmp::Reverse(rank(*amount)), *site));
    ranked
}

/// An observer that counts blocks by site: see [`Object::site`](crate::Object::site).
///
/// The [module's example](crate::sites#examples) finds the stack that allocated a leaked block.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    sites: Vec<Site>,
    /// The total number of bytes allocated.
    allocated: u64,
    live: u64,
    most: u64,
    /// The number of times that live bytes exceeded their previous maximum.
    peaks: u64,
    /// The number of the period whose changed sites are noted, starting at 1, or 0 if they are not noted.
    period: u64,
    /// The sites that have changed in this period.
    changed: Vec<u32>,
    weight: Weight,
    /// The size of the block that the current realloc resizes.
    resized: u64,
}

impl Sites {
    /// Creates an observer without counts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an observer without counts that notes which sites [change](Self::changes).
    #[must_use]
    pub fn with_changes() -> Self {
        Self { period: 1, ..Self::default() }
    }

    /// Returns the sites that have changed since [`forget_changes`](Self::forget_changes), with their live bytes.
    pub fn changes(&self) -> impl Iterator<Item = (u32, u64)> {
        let live = |number: &u32| Some((*number, self.sites.get(*number as usize)?.live.bytes));
        self.changed.iter().filter_map(live)
    }

    /// Forgets which sites have changed so far.
    pub fn forget_changes(&mut self) {
        self.changed.clear();
        self.period += 1;
    }

    /// Counts an event for site `number`, regardless of the object's own site. The number can also denote a size class
    /// or a thread.
    ///
    /// # Errors
    /// Fails if the number is too large.
    #[inline]
    pub fn count(&mut self, number: u64, event: &ObjectEvent) -> Result<()> {
        let object = &event.object;
        match (event.change, event.cause) {
            (Change::Allocated, cause) => {
                let before = if cause == Cause::Realloc { std::mem::take(&mut self.resized) } else { 0 };
                self.began(number, object.size, before)
            }
            (Change::Freed, Cause::Left) => self.left(number, object.size),
            // The block was not freed by the program.
            (Change::Freed, Cause::Exec | Cause::Resumed) => self.freed(number, object.size, false),
            (Change::Freed, Cause::Call | Cause::Realloc | Cause::Overlaid) => {
                if event.cause == Cause::Realloc {
                    self.resized = object.size;
                }
                let is_short = event.cause != Cause::Realloc && is_short(event, self.allocated);
                self.ended(number, object.size, event.tick == object.tick + 1, is_short)
            }
        }
    }

    /// Counts a block allocated by a site.
    ///
    /// # Errors
    /// Fails if the site number is too large.
    #[inline]
    pub fn allocated(&mut self, number: u64, size: u64) -> Result<()> {
        self.began(number, size, 0)
    }

    /// Counts a block that a site allocated, or enlarged from `before` bytes.
    #[inline]
    fn began(&mut self, number: u64, size: u64, before: u64) -> Result<()> {
        let amount = self.weight.amount(size);
        let grown = self.weight.grown(amount, before);
        self.allocated = self.allocated.saturating_add(size);
        let site = self.site(number)?;
        site.allocated.sum(grown);
        site.live.sum(amount);
        self.live = self.live.saturating_add(amount.bytes);
        if self.live > self.most {
            self.most = self.live;
            self.peaks += 1;
        }
        Ok(())
    }

    /// Counts the free of a block, which may be `temporary`.
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
        let amount = self.weight.amount(size);
        let site = self.site(number)?;
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

    /// Counts a block whose heap ended before the block was freed. The block is leaked and no longer live.
    ///
    /// # Errors
    /// As for [`allocated`](Self::allocated).
    pub fn left(&mut self, number: u64, size: u64) -> Result<()> {
        self.freed(number, size, false)?;
        let amount = self.weight.amount(size);
        self.site(number)?.left.sum(amount);
        Ok(())
    }

    #[inline]
    fn site(&mut self, number: u64) -> Result<&mut Site> {
        let number = usize::try_from(number).map_err(|_| Error::Limit("number of sites"))?;
        if self.sites.get(number).is_none_or(|site| site.period != self.period) {
            self.changes_first(number)?;
        }
        let Some(site) = self.sites.get_mut(number) else { return Err(Error::Limit("number of sites")) };
        site.see(self.peaks);
        Ok(site)
    }

    /// Handles the first change of a site, ever or in the current period.
    #[cold]
    fn changes_first(&mut self, number: usize) -> Result<()> {
        let site = u32::try_from(number).map_err(|_| Error::Limit("number of sites"))?;
        if number >= self.sites.len() {
            self.sites.resize(number + 1, Site::default());
        }
        if let Some(Site { period, .. }) = self.sites.get_mut(number)
            && *period != self.period
        {
            *period = self.period;
            self.changed.push(site);
        }
        Ok(())
    }

    /// Returns the counts of each site, indexed by site number.
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

/// Returns whether a block being freed is short-lived, given the total number of bytes allocated so far.
#[inline]
fn is_short(event: &ObjectEvent, allocated: u64) -> bool {
    let life = event.time.saturating_sub(event.object.time);
    life <= SHORT_LIFE && allocated.saturating_sub(event.object.allocated) <= SHORT_BYTES
}

impl Site {
    /// Prepares a site for a change. If the site has not changed since the last peak, its live amount is also its
    /// amount at that peak.
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
