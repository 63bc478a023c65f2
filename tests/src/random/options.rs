//! Random write options.

use super::Choices;
use metatf::container::{Class, Codec, Filter, Order, WriteOptions};

/// Returns random options: every version, class, byte order, codec and filter, including small chunks and groups.
#[must_use]
pub fn options(c: &mut Choices<'_>) -> WriteOptions {
    WriteOptions {
        version: if c.chance(30) { 0 } else { 1 },
        class: if c.chance(50) { Class::Bits32 } else { Class::Bits64 },
        order: if c.chance(50) { Order::Big } else { Order::Little },
        dtd_url: if c.chance(30) { "random.dtd".into() } else { String::new() },
        codec: *c.pick(&[Codec::Stored, Codec::Stored, Codec::Lz4, Codec::Zstd(1), Codec::Zlib(1)]),
        filter: *c.pick(&[
            Filter::None,
            Filter::Transpose,
            Filter::RecordDictionary,
            Filter::SplitSuffix,
            Filter::Columns,
            Filter::Columns,
            Filter::Auto,
        ]),
        chunk_size: *c.pick(&[1 << 20, 1, 20, 100, 1000]),
        group_size: *c.pick(&[16 << 20, 16 << 20, 1, 200, 1000]),
        ..WriteOptions::default()
    }
}
