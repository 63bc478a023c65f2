//! Errors of the simulators, measured with real programs and replays.

use serde::{Deserialize, Serialize};

/// The error above which a simulator's predictions carry a warning, as a fraction of the measured peak.
pub const BOUND: f64 = 0.15;

/// The comparisons written by `dev/scripts/measure simulators`.
const VALIDATION: &str = include_str!("validation.json");

/// A simulated peak and a measured peak in bytes.
#[derive(Debug, Deserialize)]
struct Compared {
    program: String,
    allocator: String,
    against: Against,
    simulated_peak: f64,
    measured_peak: f64,
}

/// The measured process.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Against {
    /// The program itself, running with the allocator. The peaks are those of its whole memory.
    Program,
    /// A program that shows whether the errors of the other programs hold.
    HeldOut,
    /// A replay of the program's requests.
    Replay,
}

/// The error of a simulator, as fractions of the measured peak. The error is measured with real programs or, if no
/// program was measured, with replays.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct KnownError {
    /// The mean absolute error, where 0.05 means 5%.
    pub mean: f64,
    /// The maximum error.
    pub worst: f64,
    /// The program and settings with the maximum error.
    pub worst_of: String,
    /// The number of comparisons.
    pub comparisons: usize,
}

/// Returns the error of an allocator's simulator, or `None` if the simulator was never compared.
#[must_use]
pub fn known_error(family: &str) -> Option<KnownError> {
    let compared: Vec<Compared> = serde_json::from_str(VALIDATION).unwrap_or_default();
    let is_family = |compared: &&Compared| compared.allocator.split(':').next() == Some(family);
    let is_measured = compared.iter().filter(is_family).any(|compared| compared.against == Against::Program);
    let against = if is_measured { Against::Program } else { Against::Replay };
    let of = |compared: &&Compared| is_family(compared) && compared.against == against;
    let mut known: Option<KnownError> = None;
    for Compared { program, allocator, simulated_peak, measured_peak, .. } in compared.iter().filter(of) {
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
        let compared: Vec<Compared> = serde_json::from_str(VALIDATION).unwrap();
        for family in super::super::NOW {
            let known = known_error(family).unwrap();
            assert!(known.comparisons >= 4 && known.mean <= known.worst, "{family}: {known:?}");
            // A replay does not show the library's own data. Memory of programs is compared with glibc's.
            let of = compared.iter().filter(|compared| compared.allocator == *family);
            for against in [Against::Program, Against::HeldOut] {
                let programs = of.clone().filter(|compared| compared.against == against).count();
                assert_eq!(programs, if *family == "glibc" { 0 } else { 10 }, "{family}");
            }
        }
        assert_eq!(known_error("bump"), None);
    }
}
