//! Hot and cold contexts, by LLVM's rule.

use serde::Serialize;

use super::info::HeapInfo;

/// When a context counts as hot or cold. The defaults are LLVM's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Thresholds {
    /// Cold contexts have at most this many accesses to a byte in a second of lifetime ..
    pub cold_density: f64,
    /// .. and blocks that live on average at least this many seconds.
    pub cold_lifetime: f64,
    /// Hot contexts have more accesses than this to a byte in a second of lifetime.
    pub hot_density: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { cold_density: 0.05, cold_lifetime: 200.0, hot_density: 1000.0 }
    }
}

/// What a context is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// Accessed often for its size and lifetime.
    Hot,
    /// Long-lived, and hardly accessed.
    Cold,
    /// Neither.
    NotCold,
    /// Accesses or lifetimes are not known.
    Unknown,
    /// Accesses are not known, and blocks live as long as cold ones.
    LongLived,
}

impl Thresholds {
    /// Returns what a context is, whose ticks have this many nanoseconds.
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
            // Accesses that were not counted may keep it warm.
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
