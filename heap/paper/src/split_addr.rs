//! The paper's HATF SplitAddr: "splits all unencoded addresses (i.e., addresses not encoded by BaseOffset or Stride field
//! interpretations) from the rest of the HATF (best) trace, and compresses the two streams independently" (section 3).
//!
//! Both directions are a single walk along the chunks, metadata records and records of an uncompressed version 1 file.
//! The walk determines the length of each item from the tables of the schema (spec 4.1, 5.2) and never depends on the
//! bytes of an address. The addresses are moved unchanged, so the two streams together are exactly as long as the file.

use metatf::container::Order;
use metatf::format::{Format, Interpretation, LeafKind, METADATA, Record};

use hatf_trace::{Error, Result};

/// Bytes of the class 2 file header before the URL of the DTD, and the offset of the header's total length.
const HEADER: usize = 40;
const HEADER_START: usize = 24;
/// Bytes in a chunk header, and bytes in the footer after the index.
const CHUNK: usize = 48;
const FOOTER: usize = 16;
const DATA: u8 = 0;
const INDEX: u8 = 2;
const RESET: u8 = 1;

/// The two streams, which contain the rest of the trace and its addresses.
pub(super) type Streams<T> = [T; 2];

/// Splits a file.
pub(super) fn split(format: &Format, file: &[u8]) -> Result<Streams<Vec<u8>>> {
    let mut split = Split { file, streams: [Vec::new(), Vec::new()] };
    walk(format, &mut split).map(|()| split.streams)
}

/// Merges the streams to the original file.
pub(super) fn merge(format: &Format, streams: Streams<&[u8]>) -> Result<Vec<u8>> {
    let mut merge = Merge { streams, file: Vec::new() };
    walk(format, &mut merge)?;
    if merge.streams.iter().all(|stream| stream.is_empty()) { Ok(merge.file) } else { Err(wrong("bytes left over")) }
}

/// A source of the pieces of a file, which may be stored in one file or in two streams.
trait Pieces {
    /// Takes the next bytes, which may be an address.
    fn take(&mut self, length: usize, is_address: bool) -> Option<&[u8]>;
}

struct Split<'a> {
    file: &'a [u8],
    streams: Streams<Vec<u8>>,
}

impl Pieces for Split<'_> {
    fn take(&mut self, length: usize, is_address: bool) -> Option<&[u8]> {
        let piece = self.file.split_off(..length)?;
        self.streams[usize::from(is_address)].extend_from_slice(piece);
        Some(piece)
    }
}

struct Merge<'a> {
    streams: Streams<&'a [u8]>,
    file: Vec<u8>,
}

impl Pieces for Merge<'_> {
    fn take(&mut self, length: usize, is_address: bool) -> Option<&[u8]> {
        let piece = self.streams[usize::from(is_address)].split_off(..length)?;
        self.file.extend_from_slice(piece);
        Some(piece)
    }
}

/// The state of a leaf that metadata can change.
#[derive(Clone, Copy)]
struct Leaf {
    is_address: bool,
    interpretation: u8,
    /// The number of bytes stored at present. `last_width` is the number to restore after an interpretation that stores
    /// no bytes.
    width: u8,
    last_width: u8,
}

fn walk(format: &Format, file: &mut impl Pieces) -> Result<()> {
    let header: [u8; HEADER] = array(file)?;
    let length = number(header.get(HEADER_START..HEADER_START + 8));
    take(file, usize::try_from(length).ok().and_then(|length| length.checked_sub(HEADER)), false)?;
    let mut state = initial(format)?;
    loop {
        let chunk: [u8; CHUNK] = array(file)?;
        let [_, _, _, _, _section, kind, _codec, _filter, flags, _, _, _, length @ ..] = chunk;
        let length = usize::try_from(number(length.get(..4))).ok();
        match kind {
            DATA => {
                if flags & RESET != 0 {
                    state = initial(format)?;
                }
                records(format, &mut state, file, length.unwrap_or(0))?;
            }
            INDEX => {
                take(file, length.and_then(|length| length.checked_add(FOOTER)), false)?;
                return Ok(());
            }
            _ => drop(take(file, length, false)?),
        }
    }
}

/// Returns the initial state of all records' leaves, as defined by the DTD.
fn initial(format: &Format) -> Result<Vec<Vec<Leaf>>> {
    let leaf = |leaf: &metatf::format::Leaf| match leaf.kind {
        LeafKind::Tag => Some(Leaf { is_address: false, interpretation: 1, width: 1, last_width: 1 }),
        LeafKind::Number { width, interpretation: Interpretation::None } => {
            Some(Leaf { is_address: leaf.field == "address", interpretation: 1, width, last_width: width })
        }
        _ => None,
    };
    let leaves = |record: &Record| record.leaves.iter().map(leaf).collect::<Option<Vec<_>>>();
    // HATF does not use the predefined records, and [`metadata`] handles metadata records, so neither needs leaves.
    let own = |(index, record)| if index <= usize::from(METADATA) { Some(Vec::new()) } else { leaves(record) };
    format.records.iter().enumerate().map(own).collect::<Option<_>>().ok_or_else(|| wrong("a leaf unknown to HATF"))
}

/// Walks along the contents of a chunk.
fn records(format: &Format, state: &mut [Vec<Leaf>], file: &mut impl Pieces, length: usize) -> Result<()> {
    let mut done = 0;
    while done < length {
        let [tag] = array(file)?;
        let index = format.records.iter().position(|record| record.tag == u32::from(tag));
        done += 1;
        done += match index.and_then(|index| Some((index, state.get(index)?))) {
            Some((index, _)) if index == usize::from(METADATA) => metadata(format, state, file)?,
            Some((_, leaves)) if !leaves.is_empty() => {
                let mut bytes = 0;
                for leaf in leaves.iter().skip(1) {
                    take(file, Some(leaf.width.into()), leaf.is_address && leaf.interpretation == 1)?;
                    bytes += usize::from(leaf.width);
                }
                bytes
            }
            _ => return Err(wrong("a tag unknown to HATF")),
        };
    }
    Ok(())
}

/// Applies a metadata record (spec 4.1). Returns its number of bytes after the tag.
fn metadata(format: &Format, state: &mut [Vec<Leaf>], file: &mut impl Pieces) -> Result<usize> {
    let [tag, field, property] = array(file)?;
    let (kind, of_name, width) = (property & 7, property & 8 != 0, property >> 4);
    let width = if width == 0 { 8 } else { usize::from(width) };
    // All other widths and interpretations have one value each.
    let values = match kind {
        1 => 0,
        6 | 7 => 2,
        _ => 1,
    };
    let stored = number(take(file, Some(width * values), false)?.get(..width));
    let record = format.records.iter().find(|record| record.tag == u32::from(tag));
    let named = record.and_then(|record| record.leaves.get(usize::from(field)));
    let named = &named.ok_or_else(|| wrong("metadata without a leaf"))?.field;
    for (record, leaves) in format.records.iter().zip(state) {
        for (index, (leaf, state)) in record.leaves.iter().zip(leaves).enumerate() {
            let this = record.tag == u32::from(tag) && index == usize::from(field);
            if if of_name { leaf.is_settable() && leaf.field == *named } else { this } {
                state.change(kind, u8::try_from(stored).unwrap_or(u8::MAX));
            }
        }
    }
    Ok(3 + width * values)
}

impl Leaf {
    fn stores(self) -> bool {
        matches!(self.interpretation, 1 | 2 | 3 | 5)
    }

    fn change(&mut self, kind: u8, width: u8) {
        if kind > 0 {
            self.interpretation = kind;
            self.width = if self.stores() { self.last_width } else { 0 };
            return;
        }
        if self.stores() {
            self.width = width;
        }
        if width > 0 {
            self.last_width = width;
        }
    }
}

fn array<const N: usize>(file: &mut impl Pieces) -> Result<[u8; N]> {
    let piece = take(file, Some(N), false)?;
    piece.try_into().map_err(|_| wrong("unexpected length"))
}

fn take(file: &mut impl Pieces, length: Option<usize>, is_address: bool) -> Result<&[u8]> {
    length.and_then(|length| file.take(length, is_address)).ok_or_else(|| wrong("unexpected end of a stream"))
}

fn number(bytes: Option<&[u8]>) -> u64 {
    Order::Little.read(bytes.unwrap_or_default())
}

fn wrong(what: &str) -> Error {
    Error::Trace(format!("SplitAddr: {what}").into())
}

#[cfg(test)]
mod tests {
    use metatf::container::Filter;
    use metatf::dynamic::{OwnedRecord, Schema, Writer};
    use metatf::{Change, container::WriteOptions};

    use super::*;

    /// Covers metadata of each kind in HATF (best), for one leaf and for all leaves with a name. Also covers a width of
    /// 0, and a width that is set while no bytes are stored.
    #[test]
    fn every_kind_of_metadata() {
        let schema = Schema::parse("paper.dtd", include_bytes!("hatf.dtd").as_slice()).unwrap();
        let options = WriteOptions {
            codec: metatf::container::Codec::Stored,
            filter: Filter::None,
            trial: None,
            ..WriteOptions::default()
        };
        let mut writer = Writer::new(Vec::new(), &schema, &options).unwrap();
        let section = schema.format.section_named("heap").unwrap();
        let index =
            |name: &str| u16::try_from(schema.format.records.iter().position(|r| r.name == name).unwrap()).unwrap();
        let (malloc, free) = (index("malloc"), index("free"));
        let put = |writer: &mut Writer<Vec<u8>>, record: u16, values: &[u64]| {
            let mut owned = OwnedRecord::default();
            values.iter().for_each(|&value| owned.push_number(value));
            writer.record(section, record, &owned).unwrap();
        };
        let interpretations = [
            (Interpretation::BaseOffset(0x5000), 2),
            (Interpretation::Stride(0x5000, 16), 0),
            (Interpretation::Default(0x5010), 0),
            (Interpretation::None, 8),
        ];
        let mut unencoded = 0;
        for (interpretation, width) in interpretations {
            writer.inner().set_all(section, malloc, 2, Change::Interpretation(interpretation)).unwrap();
            writer.inner().set_all(section, malloc, 2, Change::Width(width.max(2))).unwrap();
            put(&mut writer, malloc, &[24, 0x5010]);
            writer.inner().set(section, free, 1, Change::Width(8)).unwrap();
            put(&mut writer, free, &[0x5010]);
            if interpretation == Interpretation::None {
                unencoded += 2 * 8;
            }
        }
        // The metadata has no address, and the width was 8 before.
        writer.inner().set(section, free, 1, Change::Width(0)).unwrap();
        put(&mut writer, free, &[0]);
        let file = writer.finish().unwrap();
        let [rest, addresses] = split(&schema.format, &file).unwrap();
        assert_eq!((rest.len() + addresses.len(), addresses.len()), (file.len(), unencoded));
        assert_eq!(addresses, [0x5010_u64.to_le_bytes(), 0x5010_u64.to_le_bytes()].concat());
        assert_eq!(merge(&schema.format, [&rest, &addresses]).unwrap(), file);
        // Streams that do not belong together are rejected.
        for (rest, addresses) in [
            (&rest[..rest.len() - 1], &addresses[..]),
            (&rest, &addresses[1..]),
            (&rest, &[addresses.as_slice(), &[0]].concat()),
        ] {
            assert!(merge(&schema.format, [rest, addresses]).is_err());
        }
        for length in 0..file.len() {
            assert!(split(&schema.format, &file[..length]).is_err());
        }
    }
}
