//! Encodes JSON lines (spec 8) as a trace.

use crate::{Result, check};
use metatf::container::{Class, Codec, Order, WriteOptions};
use metatf::dynamic::{OwnedRecord, Schema, Strides, Writer};
use serde::Deserialize;

/// Options for writing a trace.
#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Whether the trace is big endian.
    #[serde(default)]
    pub big: bool,
    /// Whether the trace is a 32-bit trace.
    #[serde(default)]
    pub narrow: bool,
    /// Whether the trace has version 0, which is the layout of the paper.
    #[serde(default)]
    pub version_0: bool,
    /// Whether chunks are compressed with LZ4. Otherwise they are stored, so that each byte has a position in the file.
    #[serde(default)]
    pub lz4: bool,
}

/// Encodes JSON lines as a trace, like `metatfc convert` does.
///
/// # Errors
/// Returns an error if the DTD has errors, a line does not match any of its records, or a value cannot be stored.
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
    let (mut owned, mut strides) = (OwnedRecord::default(), Strides::new(&schema));
    for (number, line) in (1_u64..).zip(lines.split(|&byte| byte == b'\n')) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let written = writer.read_json(line, &mut owned, &mut strides).map_err(|error| error.to_string());
        let written = written.and_then(|read| writer.write(&read, &owned).map_err(explain));
        if let Err(error) = written {
            writer.abandon();
            return Err(format!("line {number}: {error}"));
        }
    }
    writer.finish().map_err(explain)
}
