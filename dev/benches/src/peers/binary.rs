//! binrw and deku, which derive readers and writers of a given binary layout. Here, it consists of a one-byte tag and
//! 8-byte numbers.

use super::Call;
use crate::{Counts, Result};
use binrw::{BinRead, BinWrite};
use deku::reader::Reader;
use deku::writer::Writer;
use deku::{DekuReader, DekuWriter};
use std::io::Cursor;

/// Writes the events using binrw.
///
/// # Errors
/// Not expected to fail.
pub fn binrw_encode(calls: &[Call], out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    let mut cursor = Cursor::new(out);
    for call in calls {
        call.write(&mut cursor)?;
    }
    Ok(())
}

fn binrw_each(bytes: &[u8], mut visit: impl FnMut(&Call)) -> Result<()> {
    let mut cursor = Cursor::new(bytes);
    while cursor.position() < bytes.len() as u64 {
        visit(&Call::read(&mut cursor)?);
    }
    Ok(())
}

/// Returns the sum of all fields, using binrw.
///
/// # Errors
/// Fails if the bytes are invalid.
pub fn binrw_all(bytes: &[u8]) -> Result<u64> {
    let mut sum = 0_u64;
    binrw_each(bytes, |call| sum = sum.wrapping_add(call.sum()))?;
    Ok(sum)
}

/// Returns the number of events of each kind, using binrw.
///
/// # Errors
/// Fails if the bytes are invalid.
pub fn binrw_count(bytes: &[u8]) -> Result<Counts> {
    let mut counts = [0; 3];
    binrw_each(bytes, |call| call.note(&mut counts))?;
    Ok(counts)
}

/// Writes the events using deku.
///
/// # Errors
/// Not expected to fail.
pub fn deku_encode(calls: &[Call], out: &mut Vec<u8>) -> Result<()> {
    out.clear();
    let mut cursor = Cursor::new(out);
    let mut writer = Writer::new(&mut cursor);
    for call in calls {
        call.to_writer(&mut writer, ())?;
    }
    writer.finalize()?;
    Ok(())
}

fn deku_each(bytes: &[u8], mut visit: impl FnMut(&Call)) -> Result<()> {
    let mut cursor = Cursor::new(bytes);
    let mut reader = Reader::new(&mut cursor);
    let bits = bytes.len() * 8;
    while reader.bits_read < bits {
        visit(&Call::from_reader_with_ctx(&mut reader, ())?);
    }
    Ok(())
}

/// Returns the sum of all fields, using deku.
///
/// # Errors
/// Fails if the bytes are invalid.
pub fn deku_all(bytes: &[u8]) -> Result<u64> {
    let mut sum = 0_u64;
    deku_each(bytes, |call| sum = sum.wrapping_add(call.sum()))?;
    Ok(sum)
}

/// Returns the number of events of each kind, using deku.
///
/// # Errors
/// Fails if the bytes are invalid.
pub fn deku_count(bytes: &[u8]) -> Result<Counts> {
    let mut counts = [0; 3];
    deku_each(bytes, |call| call.note(&mut counts))?;
    Ok(counts)
}
