//! Compresses and filters chunks being written (spec 5.2). This is the inverse of the decoder.

use super::codec::{self, Codec, Compress};
use super::columns::Rows;
use super::options::{Filter, Trial};
use super::raw_content::RawContent;
use super::sample::Sample;
use super::trial::{Filters, Found, How, Ranking};
use super::{chunk, columns, filter, record_dictionary};
use crate::Result;

/// In a trial on a sample, the split suffix filter is chosen only if its result is shorter by at least 1/18. With this
/// handicap, trials on samples chose the same filter as trials on the complete content for 14 heap trace contents,
/// including 5 close decisions.
const SPLIT_HANDICAP: usize = 18;

/// An encoder for chunks, which reuses its engines and buffers. The caller stores the findings about each section.
pub(crate) struct Encoder {
    engines: [Option<Box<dyn Compress>>; codec::COUNT],
    filtered: Vec<u8>,
    /// The content after the record dictionary filter and after the split suffix filter, if any codec requested them.
    dictionary: [Vec<u8>; 2],
    memory: record_dictionary::Memory,
    has_dictionary: [bool; 2],
    /// Whether the suffixes differ.
    suffixes_differ: bool,
    /// The most recent payload, the shortest payload of a codec, and the payloads of a trial.
    tried: Vec<u8>,
    chosen: Vec<u8>,
    trials: Vec<Vec<u8>>,
    sample: Sample,
    /// Whether the content being encoded is a sample.
    sampling: bool,
}

/// The encoding chosen for a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoded {
    pub(crate) codec: u8,
    pub(crate) filter: u8,
    /// The filtered length for the chunk header.
    pub(crate) filtered_len: usize,
    length: usize,
}

impl Encoded {
    pub(super) fn plain(raw: &[u8]) -> Self {
        Self { codec: codec::STORED, filter: 0, filtered_len: 0, length: raw.len() }
    }

    /// Returns whether the payload is the unchanged content.
    pub(crate) fn is_plain(&self) -> bool {
        self.filter == 0 && self.codec == codec::STORED
    }
}

impl Encoder {
    pub(crate) fn new() -> Self {
        Self {
            engines: Default::default(),
            filtered: Vec::new(),
            dictionary: Default::default(),
            memory: record_dictionary::Memory::default(),
            has_dictionary: [false; 2],
            suffixes_differ: false,
            tried: Vec::new(),
            chosen: Vec::new(),
            trials: Vec::new(),
            sample: Sample::default(),
            sampling: false,
        }
    }

    /// Returns the shortest allowed payload, which is `raw` itself if no encoding is shorter. `found` contains the
    /// findings about the section and is updated.
    pub(crate) fn encode(&mut self, found: &mut Found, how: &How, content: &RawContent<'_>) -> Result<Encoded> {
        if let (Filter::Columns, Some(rows)) = (how.filter, content.rows) {
            return self.encode_columns(how, rows, content.raw);
        }
        // Without slack, find the shortest encoding of the complete content.
        let exact = how.trial.as_ref().is_some_and(|trial| trial.slack == 0);
        if !exact && found.predict(how, content).is_none() {
            let mut sample = std::mem::take(&mut self.sample);
            if let Some(sample) = sample.of(content) {
                let mut by_sample = *found;
                // A sample does not reveal repetitions over distances longer than the sample itself.
                self.sampling = true;
                let encoded = self.encode_content(&mut by_sample, how, &sample);
                self.sampling = false;
                // Elements repeat over longer distances than records do. If a sample is inconclusive, try the complete
                // content.
                let tells = !content.ends.is_empty() || !by_sample.is_close();
                if !encoded?.is_plain() && tells {
                    by_sample.was_sample();
                    *found = by_sample;
                }
            }
            self.sample = sample;
        }
        self.encode_content(found, how, content)
    }

    fn encode_content(&mut self, found: &mut Found, how: &How, content: &RawContent<'_>) -> Result<Encoded> {
        self.has_dictionary = [false; 2];
        self.suffixes_differ = false;
        let Some(trial) = &how.trial else { return self.by_codec(found, how.codec, how.filter, content) };
        match found.next_codec() {
            Some(codec) => self.by_codec(found, codec, how.filter, content),
            None => self.by_trial(found, trial, how.filter, content),
        }
    }

    /// Returns the payload of the most recent encoding, whose content is `raw`.
    pub(crate) fn payload<'p>(&'p self, encoded: &Encoded, raw: &'p [u8]) -> &'p [u8] {
        if encoded.is_plain() { raw } else { &self.chosen }
    }

    /// Returns the [`payload`](Self::payload) by value, replacing it with `buffer`. Must not be called for a payload
    /// that is the unchanged content.
    #[cfg(feature = "parallel")]
    pub(crate) fn take_payload(&mut self, buffer: Vec<u8>) -> Vec<u8> {
        std::mem::replace(&mut self.chosen, buffer)
    }

    /// Tries all codecs of a trial. The first codec is tried with all filters, and the remaining codecs are tried with
    /// the two best filters of the first codec.
    fn by_trial(
        &mut self,
        found: &mut Found,
        trial: &Trial,
        filter: Filter,
        content: &RawContent<'_>,
    ) -> Result<Encoded> {
        let mut results: Vec<(Codec, Encoded, Found)> =
            trial.codecs.iter().map(|&codec| (codec, Encoded::plain(content.raw), *found)).collect();
        self.trials.resize(trial.codecs.len(), Vec::new());
        let mut filters = None;
        for (n, codec) in trial.by_strength() {
            let (Some(result), Some(mut kept)) = (results.get_mut(n), self.trials.get_mut(n).map(std::mem::take))
            else {
                continue;
            };
            result.2.forget_filter();
            let wanted = match result.2.next_filters(codec, filter, content) {
                Filters::BestOf(all) => Filters::BestOf(filters.unwrap_or(all)),
                one => one,
            };
            let ranking;
            (result.1, ranking) = self.best_of(&mut result.2, codec, wanted, content)?;
            let two = |r: Ranking| (r.best.0, r.second.map_or(r.best.0, |second| second.0));
            filters = filters.or(ranking.map(two).map(|(best, second)| [best, second, best, second]));
            std::mem::swap(&mut kept, &mut self.chosen);
            if let Some(place) = self.trials.get_mut(n) {
                *place = kept;
            }
        }
        let lengths: Vec<(Codec, usize)> = results.iter().map(|(codec, encoded, _)| (*codec, encoded.length)).collect();
        let codec = trial.choose(content.raw.len(), &lengths);
        let known = results.iter().position(|(tried, ..)| *tried == codec);
        let encoded = match known.and_then(|n| results.get(n).zip(self.trials.get_mut(n))) {
            Some((&(_, encoded, by_codec), kept)) => {
                *found = by_codec;
                std::mem::swap(kept, &mut self.chosen);
                encoded
            }
            None => {
                found.forget_filter();
                self.by_codec(found, codec, filter, content)?
            }
        };
        found.commit(codec);
        Ok(encoded)
    }

    fn by_codec(
        &mut self,
        found: &mut Found,
        codec: Codec,
        filter: Filter,
        content: &RawContent<'_>,
    ) -> Result<Encoded> {
        let filters = found.next_filters(codec, filter, content);
        Ok(self.best_of(found, codec, filters, content)?.0)
    }

    /// Returns the best encoding among the filters. If there was a choice, records how the filters compared.
    fn best_of(
        &mut self,
        found: &mut Found,
        codec: Codec,
        filters: Filters,
        content: &RawContent<'_>,
    ) -> Result<(Encoded, Option<Ranking>)> {
        let raw = content.raw;
        let (wanted, choice_of) = match filters {
            Filters::One(filter) => ([filter; 4], false),
            Filters::BestOf(filters) => (filters, true),
        };
        let mut chosen: Option<Encoded> = None;
        let mut tried = [false; 4];
        let mut second: Option<(u8, usize)> = None;
        for filter in wanted.into_iter().map(|filter| if content.can(filter) { filter } else { 0 }) {
            if !std::mem::replace(&mut tried[usize::from(filter)], true) {
                let Some(choice) = self.try_filter(codec, filter, content, choice_of)? else { continue };
                let shorter = |best: &Encoded| choice.length < best.length;
                if chosen.as_ref().is_none_or(shorter) {
                    second = chosen.map(|best| (best.filter, best.length));
                    chosen = Some(choice);
                    std::mem::swap(&mut self.chosen, &mut self.tried);
                } else if second.is_none_or(|second| choice.length < second.1) {
                    second = Some((choice.filter, choice.length));
                }
            }
        }
        let choice = chosen.filter(|c| c.length < raw.len() || codec == Codec::Stored);
        let choice = choice.unwrap_or_else(|| Encoded::plain(raw));
        let ranking = choice_of.then_some(Ranking { best: (choice.filter, choice.length), second });
        if let Some(ranking) = ranking {
            found.commit_filter(ranking);
        }
        Ok((choice, ranking))
    }

    /// Computes the payload for this filter in `self.tried`, unless the payload is the unchanged content. If there is a
    /// `choice` of filters, returns `None` for a filter that cannot win.
    fn try_filter(
        &mut self,
        codec: Codec,
        filter: u8,
        content: &RawContent<'_>,
        choice: bool,
    ) -> Result<Option<Encoded>> {
        let mut filtered = std::mem::take(&mut self.filtered);
        let mut tried = std::mem::take(&mut self.tried);
        match filter {
            chunk::TRANSPOSE => {
                filtered.resize(content.raw.len(), 0);
                filter::transpose(content.raw, content.element.into(), &mut filtered);
            }
            // The result is reused by every codec of a trial.
            chunk::RECORD_DICTIONARY | chunk::SPLIT_SUFFIX => {
                let split = usize::from(filter == chunk::SPLIT_SUFFIX);
                if !std::mem::replace(&mut self.has_dictionary[split], true) {
                    let filtered = &mut self.dictionary[split];
                    let differ =
                        record_dictionary::filter(content.raw, content.ends, split == 1, &mut self.memory, filtered);
                    self.suffixes_differ |= differ;
                }
            }
            _ => {}
        }
        // If all suffixes are equal, they compress better in their original places.
        if filter == chunk::SPLIT_SUFFIX && choice && !self.suffixes_differ {
            (self.filtered, self.tried) = (filtered, tried);
            return Ok(None);
        }
        let dictionary = std::mem::take(&mut self.dictionary);
        let input = match filter {
            chunk::TRANSPOSE => &filtered,
            chunk::RECORD_DICTIONARY => &dictionary[0],
            chunk::SPLIT_SUFFIX => &dictionary[1],
            _ => content.raw,
        };
        let packed = self.compress(codec, input, &mut tried)?;
        let mut length = if packed { tried.len() } else { input.len() };
        if self.sampling && filter == chunk::SPLIT_SUFFIX {
            // This filter's advantage is a smaller dictionary, and the dictionary is a smaller share of the complete
            // content than of a sample.
            length += length / SPLIT_HANDICAP;
        }
        // A payload that is the unchanged content is not copied; see `payload`.
        if !packed && filter != 0 {
            tried.clear();
            tried.extend_from_slice(input);
        }
        let filtered_len = if filter >= chunk::RECORD_DICTIONARY { input.len() } else { 0 };
        let codec = if packed { codec.number() } else { codec::STORED };
        let encoded = Encoded { filter, codec, filtered_len, length };
        (self.filtered, self.dictionary, self.tried) = (filtered, dictionary, tried);
        Ok(Some(encoded))
    }

    /// Returns the payload of filter 4, compressed by the strongest codec, or the unchanged content if it is shorter.
    fn encode_columns(&mut self, how: &How, rows: &Rows, raw: &[u8]) -> Result<Encoded> {
        let strongest = how.trial.as_ref().and_then(|trial| Some(trial.by_strength().first()?.1));
        let codec = strongest.unwrap_or(how.codec);
        let mut chosen = std::mem::take(&mut self.chosen);
        let split = columns::split(raw, rows, &mut |stream, out| self.compress(codec, stream, out), &mut chosen);
        self.chosen = chosen;
        let length = self.chosen.len();
        let shorter = split? && length < raw.len();
        let encoded = Encoded { codec: codec.number(), filter: chunk::COLUMNS, filtered_len: 0, length };
        Ok(if shorter { encoded } else { Encoded::plain(raw) })
    }

    /// Compresses `raw` into `out`. Returns `false` if the result is not shorter or the codec does not compress.
    fn compress(&mut self, codec: Codec, raw: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        out.clear();
        let make = codec.entry().and_then(|entry| entry.engine.as_ref()?.compress);
        let (Some(make), Some(made)) = (make, self.engines.get_mut(usize::from(codec.number()))) else {
            return Ok(false);
        };
        let made = made.get_or_insert_with(make);
        Ok(made.compress(codec.level(), raw, out)? && out.len() < raw.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Generates bytes that no codec can shorten.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_be_bytes()[0]
        };
        std::iter::repeat_with(next).take(length).collect()
    }

    fn encode(content: &RawContent<'_>, slack: u8) -> Encoded {
        let trial = Trial { codecs: vec![Codec::Zstd(3)], slack };
        let how = How { codec: Codec::Zstd(3), filter: Filter::Auto, trial: Some(trial) };
        Encoder::new().encode(&mut Found::default(), &how, content).unwrap()
    }

    #[test]
    #[cfg(feature = "zstd")]
    fn what_repeats_over_a_long_distance_is_found() {
        let raw = noise(300 << 10).repeat(2);
        let encoded = encode(&RawContent { raw: &raw, element: 0, ends: &[], rows: None }, 2);
        assert!(encoded.length < raw.len() * 6 / 10, "{encoded:?}");
    }

    #[test]
    fn a_sample_finds_what_the_whole_does() {
        // 50 different records in random order.
        let raw: Vec<u8> = noise(200_000).iter().flat_map(|n| [7, n % 50, 3, 1 + n % 2]).collect();
        let ends: Vec<u32> = (1..=200_000).map(|n| n * 4).collect();
        let content = RawContent { raw: &raw, element: 0, ends: &ends, rows: None };
        let [by_sample, by_whole] = [2, 0].map(|slack| encode(&content, slack));
        assert_eq!((by_sample.filter, by_sample.length), (by_whole.filter, by_whole.length));
        assert_eq!(by_sample.filter, chunk::RECORD_DICTIONARY);
    }

    #[test]
    fn elements_are_tried_whole_where_a_sample_cannot_tell() {
        // 60,000 different elements in random order, so few elements occur twice in a sample.
        let kinds = noise(60_000 * 7);
        let order = noise(200_000 * 4);
        let raw: Vec<u8> = order
            .chunks_exact(4)
            .flat_map(|n| {
                let kind = u32::from_le_bytes(n.try_into().unwrap()) as usize % 60_000 * 7;
                [&[7], &kinds[kind..kind + 7]].concat()
            })
            .collect();
        let content = RawContent { raw: &raw, element: 8, ends: &[], rows: None };
        let [by_sample, by_whole] = [2, 0].map(|slack| encode(&content, slack));
        assert_eq!((by_sample.filter, by_sample.length), (by_whole.filter, by_whole.length));
        assert_eq!(by_sample.filter, 0);
    }
}
