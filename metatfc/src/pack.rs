//! How a trace that is written is packed: `--profile`, and what is said in its place.

use clap::ValueEnum;
use metatf::container::{Codec, Filter, WriteOptions};
use metatf::recode::Profile;

/// What the profiles are, for help texts.
pub(crate) const PROFILES: &str = "\
Profiles (what --codec, --filter, --chunk and others say comes first):
  fast      for a trace that is read at once: LZ4 where it saves a tenth, else
            nothing; no filter; chunks of 256K; plan naive
  default   zstd:3, or LZ4 or nothing where that is no 2 per cent longer; the
            filter that makes chunks shorter; chunks of 4M; plan optimal or naive
  archive   the smaller of zstd:19 and zlib:9; the filter that makes chunks
            shorter; chunks of 16M; plan optimal or naive
Codec and filter are found for each section: all are tried on its first chunk,
and on one in 16 behind it. `metatfc stat` shows what was taken.";

#[derive(clap::Args, Clone, Debug)]
pub(crate) struct PackArgs {
    /// What the trace is for: fast, default or archive
    #[arg(long, value_name = "PROFILE", default_value_t = Profile::Default)]
    pub(crate) profile: Profile,
    /// stored, lz4, zstd or zlib, with a level if wanted (zstd:19, zlib:9) [default: the profile's]
    #[arg(long, value_name = "CODEC")]
    codec: Option<Codec>,
    /// What is done to chunks before they are compressed [default: the profile's]
    #[arg(long, value_enum, value_name = "FILTER")]
    filter: Option<FilterArg>,
    /// Close a chunk at this many bytes of content (K and M may follow the number) [default: the profile's]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    chunk: Option<usize>,
}

impl PackArgs {
    /// Sets codec, filter, chunks and groups.
    pub(crate) fn apply(&self, write: &mut WriteOptions) {
        self.profile.apply(write);
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
    /// Nothing
    None,
    /// The bytes of elements of one size are transposed
    Transpose,
    /// Records that come again become a byte or two
    #[value(alias = "phrases")]
    RecordDictionary,
    /// The same but for the last byte of each record; these are sorted by what is before them
    #[value(alias = "tails")]
    SplitSuffix,
    /// What makes chunks shortest
    Auto,
}

impl From<FilterArg> for Filter {
    fn from(arg: FilterArg) -> Self {
        match arg {
            FilterArg::None => Self::None,
            FilterArg::Transpose => Self::Transpose,
            FilterArg::RecordDictionary => Self::RecordDictionary,
            FilterArg::SplitSuffix => Self::SplitSuffix,
            FilterArg::Auto => Self::Auto,
        }
    }
}

/// Of a chunk: at most 32 MiB, so that a record that ends behind the limit still fits (spec 5.2: 64 MiB).
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..).unwrap_or_default() {
        "" => 1,
        "K" | "k" | "KiB" => 1 << 10,
        "M" | "m" | "MiB" => 1 << 20,
        _ => return Err("a number, K or M may follow".to_owned()),
    };
    let size = digits.replace('_', "").parse::<usize>().ok().and_then(|n| n.checked_mul(unit));
    size.filter(|n| (1..=32 << 20).contains(n)).ok_or_else(|| "1 to 32M".to_owned())
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
