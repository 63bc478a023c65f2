//! A stream of messages, each after its length, compressed by zstd at level 3.

use crate::Result;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};

/// Writes messages. `encode` appends the bytes of a message to the empty buffer.
///
/// # Errors
/// Returns an error of `encode` or of the file.
pub fn write<T>(
    file: &str,
    all: impl Iterator<Item = T>,
    encode: impl Fn(T, &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let mut out = zstd::Encoder::new(BufWriter::new(File::create(file)?), 3)?;
    let mut message = Vec::new();
    for each in all {
        message.clear();
        encode(each, &mut message)?;
        out.write_all(&u32::try_from(message.len())?.to_le_bytes())?;
        out.write_all(&message)?;
    }
    out.finish()?.flush()?;
    Ok(())
}

/// Passes each message to `decode`.
///
/// # Errors
/// Returns an error of `decode` or of the file.
pub fn read(file: &str, mut decode: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
    let mut input = BufReader::new(zstd::Decoder::new(File::open(file)?)?);
    let mut message = Vec::new();
    let mut length = [0; 4];
    while !input.fill_buf()?.is_empty() {
        input.read_exact(&mut length)?;
        message.resize(u32::from_le_bytes(length) as usize, 0);
        input.read_exact(&mut message)?;
        decode(&message)?;
    }
    Ok(())
}
