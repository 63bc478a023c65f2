//! Which codec a section's chunks take, found by trying.

use super::options::{Codec, Trial};

/// Chunks of a section between two that are tried.
const RETRY: u8 = 16;

/// What was found out about each section.
#[derive(Debug)]
pub(super) struct Trials {
    /// By section: the codec, and chunks until it is looked for again.
    best: Box<[Option<(Codec, u8)>; 256]>,
}

impl Trials {
    pub(super) fn new() -> Self {
        Self { best: Box::new([None; 256]) }
    }

    /// The codec for the next chunk of a section, if it is known.
    pub(super) fn known(&mut self, section: u8) -> Option<Codec> {
        let (codec, left) = self.best[usize::from(section)].as_mut()?;
        *left = left.checked_sub(1)?;
        Some(*codec)
    }

    /// The codec to take after a trial, whose results are the bytes each codec makes of a chunk of `raw` bytes.
    pub(super) fn settle(&mut self, section: u8, trial: &Trial, raw: usize, results: &[(Codec, usize)]) -> Codec {
        let least = results.iter().map(|(_, length)| *length).min().unwrap_or(raw).min(raw);
        let most = least.saturating_add(least.saturating_mul(trial.slack.into()) / 100);
        let stored = (raw <= most).then_some(Codec::Stored);
        let codec = stored.or_else(|| results.iter().find(|(_, length)| *length <= most).map(|(codec, _)| *codec));
        let codec = codec.unwrap_or(Codec::Stored);
        self.best[usize::from(section)] = Some((codec, RETRY - 1));
        codec
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_within_the_slack_is_taken() {
        let trial = |slack| Trial { codecs: vec![Codec::Lz4, Codec::Zstd(3)], slack };
        let settle = |slack, raw, lz4, zstd| {
            let results = [(Codec::Lz4, lz4), (Codec::Zstd(3), zstd)];
            Trials::new().settle(1, &trial(slack), raw, &results)
        };
        assert_eq!(settle(0, 1000, 600, 500), Codec::Zstd(3));
        assert_eq!(settle(20, 1000, 600, 500), Codec::Lz4);
        assert_eq!(settle(20, 590, 600, 500), Codec::Stored);
        assert_eq!(settle(0, 1000, 500, 500), Codec::Lz4);
        assert_eq!(settle(0, 1000, 1000, 1000), Codec::Stored);
        let mut trials = Trials::new();
        assert_eq!(trials.known(3), None);
        trials.settle(3, &trial(0), 10, &[(Codec::Lz4, 5)]);
        let known: Vec<_> = (0..=RETRY).map(|_| trials.known(3)).collect();
        assert_eq!(known.iter().flatten().count(), usize::from(RETRY - 1));
        assert_eq!(known.first(), Some(&Some(Codec::Lz4)));
        assert_eq!(known.last(), Some(&None));
    }
}
