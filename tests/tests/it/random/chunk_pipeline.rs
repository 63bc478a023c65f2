//! A trace has the same bytes for any number of compressing threads.

use super::common::{config, seed};
use metatf::container::{ChunkSpec, ChunkWriter, Codec, Filter, Trial, WriteOptions};
use metatf_tests::example::Example;
use metatf_tests::runtime;
use proptest::collection::vec;
use proptest::prelude::*;

fn trial(codecs: &[Codec], slack: u8) -> Option<Trial> {
    (!codecs.is_empty()).then(|| Trial { codecs: codecs.to_vec(), slack })
}

proptest! {
    #![proptest_config(config(40))]

    /// Writers produce the same chunks and groups for all kinds of sections, tables and metadata.
    #[test]
    fn threads_write_the_same(seed in seed(300, 900), threads in 2_usize..5, chunk in 1_usize..200, tried in 0_usize..3) {
        let mut seed = seed;
        if let Some(version) = seed.options.first_mut() {
            *version = 0;
        }
        let example = Example::new(&seed, true);
        let codecs = [Codec::Lz4, Codec::Zstd(3)].get(..tried).unwrap_or_default().to_vec();
        let one = WriteOptions { chunk_size: chunk, trial: trial(&codecs, 2), filter: Filter::Auto, ..example.options.clone() };
        let several = WriteOptions { threads, ..one.clone() };
        let (one, _) = runtime::write(&example.schema, &example.done, &one);
        let (several, _) = runtime::write(&example.schema, &example.done, &several);
        prop_assert_eq!(one, several, "{}", example.about());
    }

    /// The trial of codecs and filters has the same results in three sections whose content changes from chunk to
    /// chunk. Some chunks are so long that only a sample is tried.
    #[test]
    fn what_is_found_out_is_the_same(kinds in vec((1_u8..4, 0_u8..4, 1_usize..400), 1..120), threads in 2_usize..5, slack in 0_u8..20) {
        let write = |threads| {
            let trial = trial(&[Codec::Lz4, Codec::Zstd(1), Codec::Zlib(1)], slack);
            let options = WriteOptions { threads, trial, embed_dtd: false, dtd_url: "x.dtd".to_owned(), ..WriteOptions::default() };
            let mut writer = ChunkWriter::new(Vec::new(), &options, b"")?;
            for (n, &(section, kind, length)) in kinds.iter().enumerate() {
                let length = if length > 392 { length * 180 } else { length };
                let raw: Vec<u8> = (0..length * 4).map(|i| byte(kind, i, n)).collect();
                let ends: Vec<u32> = (0..=raw.len()).step_by(4).skip(1).filter_map(|end| u32::try_from(end).ok()).collect();
                let element = if section == 3 { 4 } else { 0 };
                let ends = if section == 3 { &[][..] } else { &ends };
                let spec = ChunkSpec { section, element, reset: n < 1, group_start: n == 0, ..ChunkSpec::default() };
                let spec = ChunkSpec { reset: true, ..spec };
                writer.data_records(spec, &raw, ends)?;
                if n % 50 == 49 {
                    writer.user_metadata("{}")?;
                }
            }
            writer.finish(0)
        };
        prop_assert_eq!(write(1), write(threads));
    }
}

/// Returns a byte of content that suits a certain filter or codec.
fn byte(kind: u8, i: usize, n: usize) -> u8 {
    let mixed = (i * 31 + n).wrapping_mul(0x9e37_79b9) >> 13;
    let [low, ..] = mixed.to_le_bytes();
    match kind {
        0 => low,
        1 => [4, low & 1, 0, 7][i % 4],
        2 => (i / 4 % 251).to_le_bytes()[0],
        _ => 9,
    }
}
