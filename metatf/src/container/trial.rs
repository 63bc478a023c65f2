//! Which codec and filter a section's chunks take, found by trying.

use super::encode::Content;
use super::options::{Codec, Filter, Trial};

/// Chunks of a section between two on which all is tried.
const RETRY: u8 = 16;
/// How a section begins says less of it: filters are tried again after so many.
const FIRST_RETRY: u8 = 4;
/// Filters are tried again sooner while another one is at most so many per cent longer: after a chunk, two, four, ..
const CLOSE: usize = 10;

/// How a chunk is to be stored.
#[derive(Clone, Debug)]
pub(crate) struct How {
    pub(crate) codec: Codec,
    pub(crate) filter: Filter,
    /// Codecs to be tried in the place of `codec`.
    pub(crate) trial: Option<Trial>,
}

impl How {
    /// Of text: a DTD, user metadata.
    pub(super) fn of_text(codec: Codec) -> Self {
        Self { codec, filter: Filter::None, trial: None }
    }
}

/// What was found out about a section.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    /// The codec, and chunks until it is looked for again.
    codec: Option<(Codec, u8)>,
    /// The filter, chunks until all are tried again, and how many those were after the last trial.
    filter: (u8, u8, u8),
}

impl Found {
    /// The codec for the next chunk, if it is known.
    pub(super) fn next_codec(&mut self) -> Option<Codec> {
        let (codec, left) = self.codec.as_mut()?;
        *left = left.checked_sub(1)?;
        Some(*codec)
    }

    /// Takes the codec of a trial.
    pub(super) fn settle(&mut self, codec: Codec) {
        self.codec = Some((codec, RETRY - 1));
    }

    /// The filter for the next chunk; `None` where all are to be tried.
    pub(super) fn next_filter(&mut self, codec: Codec, filter: Filter, content: &Content<'_>) -> Option<u8> {
        let (best, left, _) = self.filter;
        match filter {
            Filter::Auto if codec != Codec::Stored && (left == 0 || !content.can(best)) => return None,
            Filter::Auto => self.filter.1 = left.saturating_sub(1),
            Filter::None | Filter::Transpose | Filter::Phrases | Filter::Tails => {}
        }
        Some(best)
    }

    /// Takes the filter that was best of all, by the bytes that the best and the second best made of the chunk.
    pub(super) fn settle_filter(&mut self, filter: u8, (best, second): (usize, usize)) {
        let close = second.saturating_sub(best).saturating_mul(100) <= best.saturating_mul(CLOSE);
        let wait = match (close, self.filter.2) {
            (true, before) => (2 * before).clamp(1, RETRY),
            (false, 0) => FIRST_RETRY,
            (false, _) => RETRY,
        };
        self.filter = (filter, wait - 1, wait);
    }

    /// All filters are tried on the next chunk.
    pub(super) fn forget_filter(&mut self) {
        self.filter.1 = 0;
    }

    /// What will be known when the next chunk is encoded; `None` where that is found out by encoding it.
    #[cfg(feature = "parallel")]
    pub(super) fn foresee(mut self, how: &How, content: &Content<'_>) -> Option<Self> {
        let codec = if how.trial.is_some() { self.next_codec()? } else { how.codec };
        self.next_filter(codec, how.filter, content)?;
        Some(self)
    }
}

impl Trial {
    /// The codec to take, whose results are the bytes each codec makes of a chunk of `raw` bytes.
    pub(super) fn choose(&self, raw: usize, results: &[(Codec, usize)]) -> Codec {
        let least = results.iter().map(|(_, length)| *length).min().unwrap_or(raw).min(raw);
        let most = least.saturating_add(least.saturating_mul(self.slack.into()) / 100);
        let stored = (raw <= most).then_some(Codec::Stored);
        let codec = stored.or_else(|| results.iter().find(|(_, length)| *length <= most).map(|(codec, _)| *codec));
        codec.unwrap_or(Codec::Stored)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_within_the_slack_is_taken() {
        let trial = |slack| Trial { codecs: vec![Codec::Lz4, Codec::Zstd(3)], slack };
        let choose = |slack, raw, lz4, zstd| trial(slack).choose(raw, &[(Codec::Lz4, lz4), (Codec::Zstd(3), zstd)]);
        assert_eq!(choose(0, 1000, 600, 500), Codec::Zstd(3));
        assert_eq!(choose(20, 1000, 600, 500), Codec::Lz4);
        assert_eq!(choose(20, 590, 600, 500), Codec::Stored);
        assert_eq!(choose(0, 1000, 500, 500), Codec::Lz4);
        assert_eq!(choose(0, 1000, 1000, 1000), Codec::Stored);
    }

    #[test]
    fn filters_are_tried_sooner_where_they_are_close() {
        let mut found = Found::default();
        let waits = |found: &mut Found, second| {
            found.settle_filter(2, (100, second));
            found.filter.1
        };
        assert_eq!([105, 110, 100, 105, 105, 105].map(|second| waits(&mut found, second)), [0, 1, 3, 7, 15, 15]);
        let mut clear = Found::default();
        assert_eq!([111, 111].map(|second| waits(&mut clear, second)), [FIRST_RETRY - 1, RETRY - 1]);
    }

    #[test]
    fn it_is_looked_for_again() {
        let mut found = Found::default();
        assert_eq!(found.next_codec(), None);
        found.settle(Codec::Lz4);
        let known: Vec<_> = (0..=RETRY).map(|_| found.next_codec()).collect();
        assert_eq!(known.iter().flatten().count(), usize::from(RETRY - 1));
        assert_eq!(known.first(), Some(&Some(Codec::Lz4)));
        assert_eq!(known.last(), Some(&None));
    }
}
