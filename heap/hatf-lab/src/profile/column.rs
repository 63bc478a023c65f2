//! Named numbers of a heap info block, which serve as columns of a table.

use std::str::FromStr;

use super::info::{Cpus, HeapInfo, Lifetimes, Spread};

/// A named number of a heap info block.
///
/// # Examples
///
/// ```
/// use hatf_lab::profile::{Column, HeapInfo};
/// use hatf_lab::sites::Amount;
///
/// let info = HeapInfo::of_sums(1, Amount { blocks: 4, bytes: 100 }, None);
/// let column: Column = "average_size".parse()?;
/// assert_eq!(column.get(&info), Some(25));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column(&'static (&'static str, Get));

/// The default column, which is the total size of all blocks.
impl Default for Column {
    fn default() -> Self {
        Self(&SPREADS[0][0])
    }
}

type Get = fn(&HeapInfo) -> Option<u64>;

/// Defines the columns for the three values of a spread, and for the average, which profiles do not store.
macro_rules! spread {
    ($get:expr, $total:literal, $min:literal, $max:literal, $average:literal) => {
        [
            ($total, |info| spread($get(info), |spread| spread.total)),
            ($min, |info| spread($get(info), |spread| spread.min)),
            ($max, |info| spread($get(info), |spread| spread.max)),
            ($average, |info| spread($get(info), |spread| spread.total)?.checked_div(info.alloc_count)),
        ]
    };
}

fn spread(spread: Option<Spread>, get: fn(&Spread) -> u64) -> Option<u64> {
    spread.as_ref().map(get)
}

fn times(info: &HeapInfo, get: fn(&Lifetimes) -> u64) -> Option<u64> {
    info.lifetimes.as_ref().map(get)
}

fn cpus(info: &HeapInfo, get: fn(&Cpus) -> u64) -> Option<u64> {
    info.cpus.as_ref().map(get)
}

static SPREADS: [[(&str, Get); 4]; 6] = [
    spread!(|info: &HeapInfo| Some(info.size), "total_size", "min_size", "max_size", "average_size"),
    spread!(
        |info: &HeapInfo| info.lifetimes.map(|times| times.lifetime),
        "total_lifetime",
        "min_lifetime",
        "max_lifetime",
        "average_lifetime"
    ),
    spread!(
        |info: &HeapInfo| info.access_count,
        "total_access_count",
        "min_access_count",
        "max_access_count",
        "average_access_count"
    ),
    spread!(
        |info: &HeapInfo| info.percent_utilized,
        "total_percent_utilized",
        "min_percent_utilized",
        "max_percent_utilized",
        "average_percent_utilized"
    ),
    spread!(
        |info: &HeapInfo| info.access_density,
        "total_access_density",
        "min_access_density",
        "max_access_density",
        "average_access_density"
    ),
    spread!(
        |info: &HeapInfo| info.lifetime_access_density,
        "total_lifetime_access_density",
        "min_lifetime_access_density",
        "max_lifetime_access_density",
        "average_lifetime_access_density"
    ),
];

static OTHERS: [(&str, Get); 23] = [
    ("context", |info| Some(info.context)),
    ("alloc_count", |info| Some(info.alloc_count)),
    ("alloc_timestamp", |info| times(info, |times| times.alloc_timestamp)),
    ("dealloc_timestamp", |info| times(info, |times| times.dealloc_timestamp)),
    ("num_lifetime_overlaps", |info| times(info, |times| times.num_lifetime_overlaps)),
    ("alloc_cpu_id", |info| cpus(info, |cpus| cpus.alloc_cpu_id)),
    ("dealloc_cpu_id", |info| cpus(info, |cpus| cpus.dealloc_cpu_id)),
    ("num_migrated_cpu", |info| cpus(info, |cpus| cpus.num_migrated_cpu)),
    ("num_same_alloc_cpu", |info| cpus(info, |cpus| cpus.num_same_alloc_cpu)),
    ("num_same_dealloc_cpu", |info| cpus(info, |cpus| cpus.num_same_dealloc_cpu)),
    ("first_alloc_timestamp", |info| info.lifetimes?.first_alloc_timestamp),
    ("first_alloc_cpu_id", |info| Some(info.cpus?.first?.first_alloc_cpu_id)),
    ("first_dealloc_cpu_id", |info| Some(info.cpus?.first?.first_dealloc_cpu_id)),
    ("data_type_id", |info| info.data_type_id),
    ("total_load_count", |info| Some(info.loads?.total_load_count)),
    ("total_store_count", |info| Some(info.loads?.total_store_count)),
    ("unread_count", |info| Some(info.loads?.unread_count)),
    ("unknown_count", |info| Some(info.loads?.unknown_count)),
    ("reached_count", |info| Some(info.loads?.reached_count)),
    ("peak_count", |info| Some(info.live?.peak.blocks)),
    ("peak_size", |info| Some(info.live?.peak.bytes)),
    ("end_count", |info| Some(info.live?.end.blocks)),
    ("end_size", |info| Some(info.live?.end.bytes)),
];

impl Column {
    /// Returns all columns.
    pub fn all() -> impl Iterator<Item = Self> {
        OTHERS.iter().chain(SPREADS.iter().flatten()).map(Self)
    }

    /// Returns the name of the column.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.0
    }

    /// Returns the number in a heap info block, or `None` if it is unknown.
    #[must_use]
    pub fn get(self, info: &HeapInfo) -> Option<u64> {
        (self.0.1)(info)
    }
}

impl FromStr for Column {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::all().find(|column| column.name() == text).ok_or_else(|| {
            let names: Vec<_> = Self::all().map(Self::name).collect();
            format!("expected one of {}", names.join(", "))
        })
    }
}
