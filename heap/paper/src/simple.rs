//! Formats other than Meta-TF, which are ASCII and the simple binary (raw records), and compression of complete files.

use std::io::{Read as _, Write as _};

use super::column::Packing;
use super::tools;
use hatf_trace::{Error, Result};

/// Bytes per raw record.
pub(super) const RECORD: usize = 32;

/// Returns the fields of a raw record, which are tag, size, address and old address.
pub(super) fn fields(record: &[u8; RECORD]) -> [u64; 4] {
    let mut fields = [0; 4];
    for (field, bytes) in fields.iter_mut().zip(record.as_chunks::<8>().0) {
        *field = u64::from_le_bytes(*bytes);
    }
    fields
}

/// Appends a raw record.
pub(super) fn push(fields: [u64; 4], raw: &mut Vec<u8>) {
    for field in fields {
        raw.extend_from_slice(&field.to_le_bytes());
    }
}

/// Converts the fields of raw records to 32 bits. Returns `None` if a field does not fit.
pub(super) fn narrow(raw: &[u8]) -> Option<Vec<u8>> {
    let mut narrow = Vec::with_capacity(raw.len() / 2);
    for field in raw.as_chunks::<RECORD>().0.iter().flat_map(fields) {
        narrow.extend_from_slice(&u32::try_from(field).ok()?.to_le_bytes());
    }
    Some(narrow)
}

/// Converts the fields back to 64 bits.
pub(super) fn widen(narrow: &[u8]) -> Vec<u8> {
    narrow.as_chunks::<4>().0.iter().flat_map(|field| u64::from(u32::from_le_bytes(*field)).to_le_bytes()).collect()
}

/// Prints a line per record. A line contains the tag, the size (except for frees) and the address in hexadecimal; for a
/// realloc, also the old address.
pub(super) fn to_ascii(raw: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(raw.len());
    for record in raw.as_chunks::<RECORD>().0 {
        let [tag, size, address, old] = fields(record);
        // Writing to memory does not fail.
        let _ = match tag {
            2 => writeln!(text, "{tag} {address:x}"),
            4 => writeln!(text, "{tag} {size} {address:x} {old:x}"),
            _ => writeln!(text, "{tag} {size} {address:x}"),
        };
    }
    text
}

/// Returns a line of text with the number of raw records, and the exclusive or of each field over all records.
pub(super) fn fields_together(raw: &[u8]) -> String {
    let mut all = [0; 4];
    for record in raw.as_chunks::<RECORD>().0 {
        all.iter_mut().zip(fields(record)).for_each(|(all, field)| *all ^= field);
    }
    let [tag, size, address, old] = all;
    format!("{} {tag} {size} {address} {old}\n", raw.len() / RECORD)
}

/// Parses the lines that [`to_ascii`] prints.
pub(super) fn from_ascii(text: &[u8], raw: &mut Vec<u8>) -> Result<()> {
    let number = |word: Option<&[u8]>, radix| {
        let word = std::str::from_utf8(word?).ok()?;
        u64::from_str_radix(word, radix).ok()
    };
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let mut words = line.trim_ascii_end().split(|&byte| byte == b' ');
        let record = (|| {
            let tag = number(words.next(), 10)?;
            let size = if tag == 2 { 0 } else { number(words.next(), 10)? };
            let address = number(words.next(), 16)?;
            let old = if tag == 4 { number(words.next(), 16)? } else { 0 };
            Some([tag, size, address, old])
        })();
        push(record.ok_or_else(|| Error::Trace("a line is not a record".into()))?, raw);
    }
    Ok(())
}

/// Compresses a file. Returns `None` if the required command is not installed.
pub(super) fn pack(bytes: Vec<u8>, packing: Packing) -> Result<Option<Vec<u8>>> {
    Ok(Some(match packing {
        Packing::Raw => bytes,
        Packing::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
            encoder.write_all(&bytes)?;
            encoder.finish()?
        }
        Packing::Zstd3 => zstd::bulk::compress(&bytes, 3)?,
        Packing::Zstd19 => zstd::bulk::compress(&bytes, 19)?,
        Packing::Xz => return tools::xz(&bytes),
    }))
}

/// Decompresses a file.
pub(super) fn unpacked(bytes: &[u8], packing: Packing) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    match packing {
        Packing::Gzip => drop(flate2::bufread::GzDecoder::new(bytes).read_to_end(&mut out)?),
        Packing::Zstd3 | Packing::Zstd19 => zstd::stream::copy_decode(bytes, &mut out)?,
        Packing::Raw | Packing::Xz => out.extend_from_slice(bytes),
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_and_back() {
        let mut raw = Vec::new();
        for record in [[1, 24, 0x55d0_1230, 0], [2, 0, 0x55d0_1230, 0], [4, 0, 0, 7], [3, u64::MAX - 1, 1, 0]] {
            push(record, &mut raw);
        }
        let text = to_ascii(&raw);
        assert!(text.starts_with(b"1 24 55d01230\n2 55d01230\n4 0 0 7\n3 "));
        let mut back = Vec::new();
        from_ascii(&text, &mut back).unwrap();
        assert_eq!(back, raw);
        assert!(from_ascii(b"1 2\n", &mut back).is_err());
    }

    #[test]
    fn files_and_back() {
        let bytes: Vec<u8> = (0..200_u8).cycle().take(100_000).collect();
        for packing in [Packing::Raw, Packing::Gzip, Packing::Zstd3, Packing::Zstd19] {
            let packed = pack(bytes.clone(), packing).unwrap().unwrap();
            assert!(packed.len() < 5000 || packing == Packing::Raw);
            assert_eq!(unpacked(&packed, packing).unwrap(), bytes);
        }
    }

    #[test]
    fn fields_of_32_bits_where_they_fit() {
        let mut raw = Vec::new();
        push([1, 24, u64::from(u32::MAX), 0], &mut raw);
        assert_eq!(narrow(&raw).unwrap(), [1, 0, 0, 0, 24, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0]);
        assert_eq!(widen(&narrow(&raw).unwrap()), raw);
        push([2, 0, 1 << 32, 0], &mut raw);
        assert_eq!(narrow(&raw), None);
    }
}
