//! JSON lines (spec 8) as a trace.

use crate::{Result, check};
use metatf::container::{Class, Codec, Order, WriteOptions};
use metatf::dynamic::{OwnedRecord, Schema, Writer};
use serde::Deserialize;

/// How a trace is written.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Big endian.
    #[serde(default)]
    pub big: bool,
    /// 32 bits.
    #[serde(default)]
    pub narrow: bool,
    /// Version 0, the paper's layout.
    #[serde(default)]
    pub version_0: bool,
    /// Chunks are compressed by LZ4; else they are stored as they are, so that each byte has its place in the file.
    #[serde(default)]
    pub lz4: bool,
}

/// Writes a trace of JSON lines, as `metatfc encode` does.
///
/// # Errors
/// The DTD has errors; a line is not one of its records, or has a value that cannot be stored.
pub fn encode(dtd: &str, lines: &[u8], how: Options) -> Result<Vec<u8>> {
    let schema = Schema::parse(check::NAME, dtd.as_bytes()).map_err(|error| error.to_string())?;
    let order = if how.big { Order::Big } else { Order::Little };
    let options = WriteOptions {
        version: u8::from(!how.version_0),
        class: if how.narrow { Class::Bits32 } else { Class::Bits64 },
        order,
        dtd_url: check::NAME.to_owned(),
        embed_dtd: true,
        codec: if how.lz4 { Codec::Lz4 } else { Codec::Stored },
        ..WriteOptions::default()
    };
    let explain = |error: metatf::Error| metatf::explain(&schema.format, &error).to_string();
    let mut writer = Writer::new(Vec::new(), &schema, &options).map_err(explain)?;
    let mut owned = OwnedRecord::default();
    for (number, line) in (1_u64..).zip(lines.split(|&byte| byte == b'\n')) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let written = schema.read_json_in(order, line, &mut owned).map_err(|error| error.to_string());
        let written = written.and_then(|read| writer.write(&read, &owned).map_err(explain));
        if let Err(error) = written {
            writer.abandon();
            return Err(format!("line {number}: {error}"));
        }
    }
    writer.finish().map_err(explain)
}
