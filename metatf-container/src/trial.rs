//! Chooses the codec and filter for a section's chunks by trying them.

use super::chunk;
use super::codec::Codec;
use super::options::{Filter, Trial};
use super::raw_content::RawContent;

/// Number of chunks of a section between trials of all codecs or filters.
const RETRY: u8 = 16;
/// Number of chunks between the first trial of filters and the second. It is smaller than [`RETRY`], because the
/// beginning of a section is less representative.
const FIRST_RETRY: u8 = 4;
/// Filters are retried sooner (after one, two, four, .. chunks) while the result of another filter is at most this many
/// percent longer.
const CLOSE: usize = 10;

/// The options for storing a chunk.
#[derive(Clone, Debug)]
pub(crate) struct How {
    pub(crate) codec: Codec,
    pub(crate) filter: Filter,
    /// Codecs to try instead of using `codec`.
    pub(crate) trial: Option<Trial>,
}

impl How {
    /// Returns the options for text, such as a DTD or user metadata.
    pub(super) fn of_text(codec: Codec) -> Self {
        Self { codec, filter: Filter::None, trial: None }
    }
}

/// The findings about a section.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    /// The codec, and the number of chunks until codecs are tried again.
    codec: Option<(Codec, u8)>,
    filter: FilterFound,
}

/// The findings about filters.
#[derive(Clone, Copy, Debug, Default)]
struct FilterFound {
    best: u8,
    /// Number of chunks until filters are tried again.
    left: u8,
    /// The value to which `left` was set after the last trial.
    wait: u8,
    /// Whether the result of the second-best filter is at most [`CLOSE`] percent longer.
    close: bool,
}

/// The filters for a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filters {
    One(u8),
    /// The best of these filters, which may contain duplicates.
    BestOf([u8; 4]),
}

/// All filters.
pub(super) const ALL: [u8; 4] = [0, chunk::TRANSPOSE, chunk::RECORD_DICTIONARY, chunk::SPLIT_SUFFIX];

/// The best and the second-best filter, with the sizes of their results for a chunk in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ranking {
    pub(super) best: (u8, usize),
    pub(super) second: Option<(u8, usize)>,
}

impl Found {
    /// Returns the codec for the next chunk, if it is known.
    pub(super) fn next_codec(&mut self) -> Option<Codec> {
        let (codec, left) = self.codec.as_mut()?;
        *left = left.checked_sub(1)?;
        Some(*codec)
    }

    /// Adopts the codec chosen by a trial.
    pub(super) fn commit(&mut self, codec: Codec) {
        self.codec = Some((codec, RETRY - 1));
    }

    /// Returns the filters for the next chunk.
    pub(super) fn next_filters(&mut self, codec: Codec, filter: Filter, content: &RawContent<'_>) -> Filters {
        let FilterFound { best, left, .. } = self.filter;
        match filter {
            Filter::Transpose => return Filters::One(chunk::TRANSPOSE),
            Filter::RecordDictionary => return Filters::One(chunk::RECORD_DICTIONARY),
            Filter::SplitSuffix => return Filters::One(chunk::SPLIT_SUFFIX),
            Filter::Auto | Filter::Columns if codec != Codec::Stored => {}
            Filter::None | Filter::Auto | Filter::Columns => return Filters::One(0),
        }
        match left.checked_sub(1).filter(|_| content.can(best)) {
            Some(left) => {
                self.filter.left = left;
                Filters::One(best)
            }
            None => Filters::BestOf(ALL),
        }
    }

    /// Adopts the filter that was best in a trial.
    pub(super) fn commit_filter(&mut self, Ranking { best, second }: Ranking) {
        let second = second.map_or(usize::MAX, |second| second.1);
        let close = second.saturating_sub(best.1).saturating_mul(100) <= best.1.saturating_mul(CLOSE);
        let wait = match (close, self.filter.wait) {
            (true, before) => (2 * before).clamp(1, RETRY),
            (false, 0) => FIRST_RETRY,
            (false, _) => RETRY,
        };
        self.filter = FilterFound { best: best.0, left: wait - 1, wait, close };
    }

    /// Requests that all filters be tried on the next chunk.
    pub(super) fn forget_filter(&mut self) {
        self.filter.left = 0;
    }

    /// Returns whether another filter is nearly as good as the best one.
    pub(super) fn is_close(&self) -> bool {
        self.filter.close
    }

    /// Marks the findings as based on a sample, which makes them valid for one more chunk.
    pub(super) fn was_sample(&mut self) {
        if let Some((_, left)) = &mut self.codec {
            *left += 1;
        }
        self.filter.left += 1;
    }

    /// Returns the findings as they will be after the next chunk, or `None` if encoding that chunk is a trial that
    /// determines them.
    pub(super) fn predict(mut self, how: &How, content: &RawContent<'_>) -> Option<Self> {
        if how.filter == Filter::Columns && content.rows.is_some() {
            return Some(self);
        }
        let codec = if how.trial.is_some() { self.next_codec()? } else { how.codec };
        matches!(self.next_filters(codec, how.filter, content), Filters::One(_)).then_some(self)
    }
}

impl Trial {
    /// Returns the codecs with their indices, strongest first, because the filter that suits a stronger codec suits
    /// weaker codecs, too.
    pub(super) fn by_strength(&self) -> Vec<(usize, Codec)> {
        let strength = |codec: Codec| codec.entry().map_or(0, |entry| entry.strength);
        let mut codecs: Vec<(usize, Codec)> = self.codecs.iter().copied().enumerate().collect();
        codecs.sort_by_key(|(_, codec)| std::cmp::Reverse(strength(*codec)));
        codecs
    }

    /// Chooses a codec, given the sizes of each codec's result for a chunk of `raw` bytes.
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
            found.commit_filter(Ranking { best: (2, 100), second: Some((3, second)) });
            found.filter.left
        };
        assert_eq!([105, 110, 100, 105, 105, 105].map(|second| waits(&mut found, second)), [0, 1, 3, 7, 15, 15]);
        let mut clear = Found::default();
        assert_eq!([111, 111].map(|second| waits(&mut clear, second)), [FIRST_RETRY - 1, RETRY - 1]);
    }

    #[test]
    fn those_that_find_most_are_tried_first() {
        let trial = Trial { codecs: vec![Codec::Lz4, Codec::Zlib(9), Codec::Zstd(3)], slack: 2 };
        assert_eq!(trial.by_strength(), [(2, Codec::Zstd(3)), (1, Codec::Zlib(9)), (0, Codec::Lz4)]);
    }

    #[test]
    fn it_is_looked_for_again() {
        let mut found = Found::default();
        assert_eq!(found.next_codec(), None);
        found.commit(Codec::Lz4);
        let known: Vec<_> = (0..=RETRY).map(|_| found.next_codec()).collect();
        assert_eq!(known.iter().flatten().count(), usize::from(RETRY - 1));
        assert_eq!(known.first(), Some(&Some(Codec::Lz4)));
        assert_eq!(known.last(), Some(&None));
    }
}
