//! How far simulators were from replays on the real allocators.

use serde::{Deserialize, Serialize};

/// A simulator with a greater error says so: parts of the measured peak.
pub const BOUND: f64 = 0.15;

/// The comparison with replays, which `scripts/measure simulators` writes.
const VALIDATION: &str = include_str!("validation.json");

/// A simulation beside a replay: bytes of pages held, and bytes resident.
#[derive(Debug, Deserialize)]
struct Compared {
    program: String,
    allocator: String,
    simulated_peak: f64,
    measured_peak: f64,
}

/// How far a simulator was off, of the peak that a replay measured, over all programs and settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KnownError {
    /// The mean, without sign: 0.05 is 5 %.
    pub mean: f64,
    /// The greatest.
    pub worst: f64,
    /// The program and the settings that this was with.
    pub worst_of: String,
    /// Comparisons made.
    pub comparisons: usize,
}

/// Returns what is known of the simulator of an allocator; `None`: nothing.
#[must_use]
pub fn known_error(family: &str) -> Option<KnownError> {
    let compared: Vec<Compared> = serde_json::from_str(VALIDATION).unwrap_or_default();
    let of = |compared: &&Compared| compared.allocator.split(':').next() == Some(family);
    let mut known: Option<KnownError> = None;
    for Compared { program, allocator, simulated_peak, measured_peak } in compared.iter().filter(of) {
        let error = (simulated_peak / measured_peak - 1.0).abs();
        let known = known.get_or_insert(KnownError { mean: 0.0, worst: 0.0, worst_of: String::new(), comparisons: 0 });
        known.mean += error;
        known.comparisons += 1;
        if error >= known.worst {
            known.worst = error;
            known.worst_of = format!("{program}, {allocator}");
        }
    }
    if let Some(known) = &mut known {
        known.mean /= f64::from(u32::try_from(known.comparisons).unwrap_or(u32::MAX));
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_compared() {
        assert!(serde_json::from_str::<Vec<Compared>>(VALIDATION).is_ok());
        for family in super::super::NOW {
            let known = known_error(family).unwrap();
            assert!(known.comparisons >= 4 && known.mean <= known.worst, "{family}: {known:?}");
        }
        assert_eq!(known_error("bump"), None);
    }
}
