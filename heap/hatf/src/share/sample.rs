//! Samples the blocks of a trace in the same way as the recorder.
//!
//! A block of `s` bytes is in the sample with probability `1 - exp(-s / mean)`, because every allocated byte selects
//! its block with the same small probability. The selection depends only on the block number and the seed, so it is
//! reproducible.

use std::collections::BTreeMap;

use hatf_lab::sampling;
use hatf_lab::sites::chance;
use serde::Serialize;
use serde_json::json;

use super::subset::{Subset, Wanted};
use hatf_trace::event::{Call, Event, EventKind, EventSink, UNKNOWN_SIZE, UserMetadata};
use hatf_trace::{Error, Result};

/// The size of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SampleCounts {
    /// Mean number of bytes per selected block.
    pub mean: u64,
    /// Blocks in the sample.
    pub blocks: u64,
    /// Bytes in the sample.
    pub bytes: u64,
    /// Blocks in the trace.
    pub of_blocks: u64,
    /// Bytes in the trace.
    pub of_bytes: u64,
}

/// A sink that forwards a sample of the blocks.
pub struct Sampler<'s> {
    subset: Subset<'s, Chosen>,
}

/// The selected blocks.
struct Chosen {
    mean: u64,
    /// The mean number of bytes per block of the trace's own sample, if the trace is already a sample.
    before: Option<u64>,
    number: u64,
    seed: u64,
}

impl<'s> Sampler<'s> {
    /// Creates a sampler that forwards to a sink. A different seed selects a different sample.
    pub fn new(mean: u64, seed: u64, sink: &'s mut dyn EventSink) -> Self {
        let chosen = Chosen { mean: mean.max(1), before: None, number: 0, seed };
        Self { subset: Subset::new(chosen, sink) }
    }

    /// Returns the size of the sample.
    #[must_use]
    pub fn counts(&self) -> SampleCounts {
        let [(blocks, bytes), (of_blocks, of_bytes)] = self.subset.counts();
        SampleCounts { mean: self.subset.wanted().mean, blocks, bytes, of_blocks, of_bytes }
    }
}

/// Computes the finalizer of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators",
/// OOPSLA 2014).
fn mix(number: u64) -> u64 {
    let mut x = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Returns a pseudorandom number in `0.0..1.0` for a block.
///
/// The seed is hashed before it is combined with the block number. If the two were merely added, seed `s + 1` would
/// select the same blocks as seed `s`, shifted by one.
#[expect(clippy::cast_precision_loss, reason = "the value has 53 bits")]
fn spread(number: u64, seed: u64) -> f64 {
    (mix(mix(seed.wrapping_add(1)).wrapping_add(number)) >> 11) as f64 / (1_u64 << 53) as f64
}

impl Wanted for Chosen {
    fn block(&mut self, _: &Event<'_>, call: &Call) -> bool {
        let number = self.number;
        self.number += 1;
        let size = if call.size == UNKNOWN_SIZE { 0 } else { call.size };
        // If the trace is already a sample, each of its blocks was selected with probability `before`.
        let before = self.before.map_or(1.0, |mean| chance(size, mean));
        spread(number, self.seed) * before < chance(size, self.mean)
    }

    fn other(&mut self, _: &Event<'_>) -> bool {
        true
    }

    fn failed(&mut self, _: &Event<'_>) -> bool {
        false
    }
}

impl EventSink for Sampler<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.subset.event(event)
    }

    fn comment(&mut self, text: &[u8]) -> Result<()> {
        self.subset.comment(text)
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        let mut user_metadata = user_metadata.clone();
        let chosen = self.subset.wanted_mut();
        if let Some(before) = sampling(&user_metadata).map(|mean| mean.max(1)) {
            if before > chosen.mean {
                let why = format!(
                    "it is already a sample of one block per {before} bytes: use a larger mean, such as --sample {}",
                    before * 2
                );
                return Err(Error::Trace(why.into()));
            }
            chosen.before = Some(before);
        }
        // Remove the number of events, because it counts all events of the input trace.
        user_metadata.remove("events");
        user_metadata.insert("sampling".to_owned(), json!({"bytes": chosen.mean}));
        self.subset.user_metadata(&user_metadata)
    }
}

/// The number of blocks of each size in a trace. Sizes are rounded to 128 values between consecutive powers of two.
#[derive(Clone, Debug, Default)]
pub struct SizesSeen {
    sizes: BTreeMap<u64, u64>,
    before: Option<u64>,
}

impl EventSink for SizesSeen {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        if let EventKind::Call(call) | EventKind::ReallocEnd(call) = event.kind
            && (call.address != 0 || call.old == 0)
            && call.size != UNKNOWN_SIZE
        {
            let spare = (u64::BITS - call.size.leading_zeros()).saturating_sub(7);
            *self.sizes.entry(call.size >> spare << spare).or_default() += 1;
        }
        Ok(())
    }

    fn comment(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn user_metadata(&mut self, user_metadata: &UserMetadata) -> Result<()> {
        self.before = sampling(user_metadata).or(self.before);
        Ok(())
    }
}

/// Returns the smallest power of two that, as the mean, leads to an expected sample of at most `blocks` blocks.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "an estimate")]
pub fn mean_for(seen: &SizesSeen, blocks: u64) -> u64 {
    let expected = |mean: u64| -> f64 {
        let of = |(size, count): (&u64, &u64)| {
            let before = seen.before.map_or(1.0, |before| chance(*size, before));
            *count as f64 * (chance(*size, mean) / before).min(1.0)
        };
        seen.sizes.iter().map(of).sum()
    };
    let least = seen.before.unwrap_or(1).max(1).next_power_of_two();
    let fits = |mean: &u64| expected(*mean) <= blocks as f64;
    std::iter::successors(Some(least), |mean| mean.checked_mul(2)).take(62).find(fits).unwrap_or(1 << 40)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: u64 = 4_374;
    const CHANCE: f64 = 0.06;

    fn sampled(seed: u64) -> impl Iterator<Item = bool> {
        (0..BLOCKS).map(move |number| spread(number, seed) < CHANCE)
    }

    /// The sizes of samples with 1,000 consecutive seeds are binomially distributed, so averages over seeds and their
    /// errors are correct.
    #[test]
    #[expect(clippy::cast_precision_loss, reason = "counts of thousands")]
    fn samples_of_1000_neighbouring_seeds_are_independent() {
        let counts: Vec<f64> = (0..1_000).map(|seed| sampled(seed).filter(|chosen| *chosen).count() as f64).collect();
        let expected = BLOCKS as f64 * CHANCE;
        let variance = expected * (1.0 - CHANCE);
        for part in counts.chunks(25) {
            let mean = part.iter().sum::<f64>() / part.len() as f64;
            let error = (variance / part.len() as f64).sqrt();
            assert!((mean - expected).abs() < 4.0 * error, "{mean} in place of {expected}");
        }
        let spread = counts.iter().map(|count| (count - expected).powi(2)).sum::<f64>() / counts.len() as f64;
        assert!((spread / variance - 1.0).abs() < 0.2, "variance {spread} in place of {variance}");
    }

    /// No sample is equal to another sample shifted by a few blocks.
    #[test]
    #[expect(clippy::cast_precision_loss, reason = "counts of thousands")]
    fn a_sample_is_not_its_neighbour_moved() {
        for seed in 0..200 {
            let next: Vec<bool> = sampled(seed + 1).collect();
            for moved in 0..4 {
                let both = sampled(seed).skip(moved).zip(&next).filter(|(first, second)| *first && **second).count();
                let expected = BLOCKS as f64 * CHANCE * CHANCE;
                assert!(
                    (both as f64 - expected).abs() < 6.0 * expected.sqrt(),
                    "{both} in place of {expected}, moved by {moved}"
                );
            }
        }
    }
}
