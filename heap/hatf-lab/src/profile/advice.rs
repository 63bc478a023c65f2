//! Classification of hot and cold contexts by LLVM's rule.

use serde::Serialize;

use super::info::HeapInfo;

/// The thresholds for hot and cold contexts. The defaults are LLVM's.
///
/// # Examples
///
/// The first block lived for 200 seconds, and the second block lived for one millisecond:
///
/// ```
/// use hatf_lab::profile::{Advice, Ended, HeapInfo, TICK, Thresholds};
/// use hatf_trace::event::Accesses;
///
/// let advice = |milliseconds, loads| {
///     let accesses = Some(Accesses { loads, touched: 1, granules: 1, ..Accesses::default() });
///     let block = Ended { size: 10, timestamps: Some((0, milliseconds)), accesses, ..Ended::default() };
///     Thresholds::default().advise(&HeapInfo::new(&block, TICK), TICK)
/// };
/// assert_eq!((advice(200_000, 10), advice(1, 11)), (Advice::Cold, Advice::Hot));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Thresholds {
    /// The maximum number of accesses per byte per second of lifetime in a cold context.
    pub cold_density: f64,
    /// The minimum average lifetime of blocks in a cold context, in seconds.
    pub cold_lifetime: f64,
    /// The number of accesses per byte per second of lifetime that a hot context exceeds.
    pub hot_density: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { cold_density: 0.05, cold_lifetime: 200.0, hot_density: 1000.0 }
    }
}

/// The classification of a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// Accessed frequently, considering its size and lifetime.
    Hot,
    /// Long-lived and rarely accessed.
    Cold,
    /// Neither hot nor cold.
    NotCold,
    /// Accesses or lifetimes are unknown.
    Unknown,
    /// Accesses are unknown, but the blocks live as long as those of cold contexts.
    LongLived,
}

impl Thresholds {
    /// Classifies a context. `tick` is the length of a tick in nanoseconds.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "averages of counts")]
    pub fn advise(&self, info: &HeapInfo, tick: u64) -> Advice {
        let blocks = info.alloc_count.max(1) as f64;
        let lived = info.lifetimes.as_ref().map(|times| {
            let ticks = times.lifetime.total as f64 / blocks;
            ticks * tick as f64 / 1e9 >= self.cold_lifetime
        });
        let density = info.lifetime_access_density.map(|density| density.total as f64 / blocks / 100.0);
        match (density, lived) {
            (None, Some(true)) => Advice::LongLived,
            // Uncounted accesses may keep the context warm.
            (Some(density), Some(true)) if density < self.cold_density => match info.loads {
                Some(loads) if loads.reached_count > 0 => Advice::Unknown,
                _ => Advice::Cold,
            },
            (Some(density), _) if density > self.hot_density => Advice::Hot,
            (Some(_), Some(_)) => Advice::NotCold,
            _ => Advice::Unknown,
        }
    }
}
