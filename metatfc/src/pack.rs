//! Options for compressing a trace, which are `--preset` and options that override it.

use clap::ValueEnum;
use metatf::container::{Codec, Filter, WriteOptions};
use metatf_tools::recode::Preset;

/// The description of the presets in help texts.
pub(crate) const PROFILES: &str = "\
Presets (options such as --codec, --filter and --chunk override them):
  fast      for traces that are read right away. Compresses with LZ4 if this saves
            10%, and does not compress otherwise. Uses no filter, chunks of 256K
            and the plan naive
  default   compresses with zstd level 3. Uses LZ4 or no compression instead if
            the result is less than 2% larger. Uses the filter with the shortest
            chunks, chunks of 4M and the plan optimal or naive
  archive   for traces to send or store. Takes at least four times as long as
            default. Compresses with zstd level 19 or zlib level 9, whichever is
            smaller. Uses the filter with the shortest chunks, chunks of 16M and
            the plan optimal or naive
  columns   for traces of which tables and queries need single fields. Stores each
            field by itself and compresses it with zstd level 3. Uses chunks of 4M
            and the plan naive
Each section has its own codec and filter. All codecs and filters of the preset
are tried on the first chunk and on every 16th chunk after it. `metatfc stat`
shows which of them were chosen.";

/// The message printed before slow work with the preset `archive` begins.
pub(crate) const SLOW: &str = "metatfc: --preset archive is slow: it takes at least four times as long as the default";

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct PackArgs {
    /// Trade size for speed, or store each field by itself: fast, default, archive or columns
    #[arg(long, alias = "profile", value_name = "PRESET", default_value_t = Preset::Default)]
    pub(crate) preset: Preset,
    /// Codec: stored, lz4, zstd or zlib; zstd:19 and zlib:9 also set the level [default: set by the preset]
    #[arg(long, value_name = "CODEC")]
    codec: Option<Codec>,
    /// Filter applied to chunks before compression [default: set by the preset]
    #[arg(long, value_enum, value_name = "FILTER")]
    filter: Option<FilterArg>,
    /// Size of a chunk before compression, such as 256K or 4M [default: set by the preset]
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = parse_size)]
    chunk: Option<usize>,
}

impl PackArgs {
    /// Returns whether any option is set to something other than its default.
    pub(crate) fn is_given(&self) -> bool {
        self.preset != Preset::Default || self.codec.is_some() || self.filter.is_some() || self.chunk.is_some()
    }

    /// Sets the codec, filter, chunk size and groups.
    pub(crate) fn apply(&self, write: &mut WriteOptions) {
        self.preset.apply(write);
        if let Some(codec) = self.codec {
            write.codec = codec;
            write.trial = None;
        }
        if let Some(filter) = self.filter {
            write.filter = filter.into();
        }
        if let Some(chunk) = self.chunk {
            write.chunk_size = chunk;
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FilterArg {
    /// No filter
    None,
    /// Transposes the bytes of fixed-size elements
    Transpose,
    /// Replaces repeated records with one or two bytes
    #[value(alias = "phrases")]
    RecordDictionary,
    /// Like record-dictionary, but the last byte of each record is split off and sorted by the preceding bytes
    #[value(alias = "tails")]
    SplitSuffix,
    /// Stores each field in its own stream, so that readers can leave out fields. Older versions cannot read it
    Columns,
    /// The filter with the shortest chunks
    Auto,
}

impl From<FilterArg> for Filter {
    fn from(arg: FilterArg) -> Self {
        match arg {
            FilterArg::None => Self::None,
            FilterArg::Transpose => Self::Transpose,
            FilterArg::RecordDictionary => Self::RecordDictionary,
            FilterArg::SplitSuffix => Self::SplitSuffix,
            FilterArg::Columns => Self::Columns,
            FilterArg::Auto => Self::Auto,
        }
    }
}

/// Parses a chunk size. The maximum is 32 MiB, so that a record that extends past this size still fits in a chunk (at
/// most 64 MiB, spec 5.2).
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..).unwrap_or_default() {
        "" => 1,
        "K" | "k" | "KiB" => 1 << 10,
        "M" | "m" | "MiB" => 1 << 20,
        _ => return Err("expected a size such as 4096, 256K or 4M".to_owned()),
    };
    let size = digits.replace('_', "").parse::<usize>().ok().and_then(|n| n.checked_mul(unit));
    size.filter(|n| (1..=32 << 20).contains(n)).ok_or_else(|| "expected a size from 1 to 32M".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_names_of_filters() {
        for (old, new) in [("phrases", FilterArg::RecordDictionary), ("tails", FilterArg::SplitSuffix)] {
            assert_eq!(FilterArg::from_str(old, false), Ok(new));
        }
    }
}
