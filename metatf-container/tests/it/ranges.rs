//! Tests of byte ranges: what is fetched, and objects that answer wrongly.
#![allow(clippy::unwrap_used, reason = "tests")]

use metatf_container::{ByteRanges, ChunkSpec, ChunkWriter, Codec, ErrorKind, Filter, Reader, Warning, WriteOptions};
use std::io;
use std::sync::Mutex;

/// Bytes of content of each group.
const GROUP: usize = 50_000;
const GROUPS: u32 = 20;

/// An object that records what is fetched.
struct Object {
    bytes: Vec<u8>,
    length: u64,
    /// Maximum number of bytes that a read returns.
    most: usize,
    /// Offset from which reading fails, with this kind of error.
    fails: Option<(u64, io::ErrorKind)>,
    /// The offsets and lengths of the reads.
    reads: Mutex<Vec<(u64, usize)>>,
}

impl Object {
    fn new(bytes: Vec<u8>) -> Self {
        let length = bytes.len() as u64;
        Self { bytes, length, most: usize::MAX, fails: None, reads: Mutex::default() }
    }

    fn fetched(&self) -> usize {
        self.reads.lock().unwrap().drain(..).map(|(_, length)| length).sum()
    }
}

impl ByteRanges for &Object {
    fn length(&self) -> io::Result<u64> {
        Ok(self.length)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some((from, kind)) = self.fails
            && offset + buffer.len() as u64 > from
        {
            return Err(kind.into());
        }
        let rest = usize::try_from(offset).ok().and_then(|offset| self.bytes.get(offset..)).unwrap_or_default();
        let length = rest.len().min(buffer.len()).min(self.most);
        buffer[..length].copy_from_slice(&rest[..length]);
        self.reads.lock().unwrap().push((offset, length));
        Ok(length)
    }
}

fn trace() -> Vec<u8> {
    let options = WriteOptions { codec: Codec::Stored, filter: Filter::None, ..WriteOptions::default() };
    let mut writer = ChunkWriter::new(Vec::new(), &options, b"section log 1 { }").unwrap();
    for group in 0..GROUPS {
        let spec = ChunkSpec { section: 1, reset: true, group_start: true, records: 1, group, ..ChunkSpec::default() };
        writer.data(spec, &[group.to_le_bytes()[0]; GROUP]).unwrap();
    }
    writer.finish(GROUPS.into()).unwrap()
}

/// Reads to the end, and returns the groups that were read and the error.
fn groups(mut reader: Reader<'_>) -> (Vec<u32>, Option<ErrorKind>, Vec<Warning>) {
    let mut groups = Vec::new();
    loop {
        match reader.next_part() {
            Ok(Some(part)) => {
                let expected = [part.group.to_le_bytes()[0]; GROUP];
                assert_eq!(reader.bytes(&part.content), expected);
                groups.push(part.group);
            }
            Ok(None) => return (groups, None, reader.warnings().to_vec()),
            Err(error) => return (groups, Some(error.kind), reader.warnings().to_vec()),
        }
    }
}

#[test]
fn only_the_index_and_the_requested_groups_are_fetched() {
    let object = Object::new(trace());
    let beginning = 4096;
    let index = 48 + 32 * (GROUPS as usize + 1) + 16;
    let mut reader = Reader::from_ranges(&object).unwrap();
    assert!(object.fetched() <= beginning);
    assert_eq!(reader.chunks().unwrap().len(), GROUPS as usize + 1);
    let fetched = object.fetched();
    assert!(fetched <= index + 16, "{fetched} bytes");
    for group in [7, 3, 19] {
        reader.seek_chunk(group + 1).unwrap();
        assert_eq!(object.fetched(), 0);
        let part = reader.next_part().unwrap().unwrap();
        assert_eq!(part.group as usize, group);
        let fetched = object.fetched();
        assert!((GROUP..GROUP + 48 + beginning).contains(&fetched), "{fetched} bytes of group {group}");
    }
    // Each group reader fetches only its own group.
    let reader = Reader::from_ranges(&object).unwrap();
    let split = reader.split().unwrap();
    object.fetched();
    let mut group = split.reader(11);
    assert_eq!(group.next_part().unwrap().unwrap().group, 11);
    assert!(group.next_part().unwrap().is_none());
    assert!(object.fetched() <= GROUP + 48 + beginning);
}

#[test]
fn short_reads_and_interruptions_are_repeated() {
    let object = Object { most: 1000, ..Object::new(trace()) };
    let (read, error, warnings) = groups(Reader::from_ranges(&object).unwrap());
    assert_eq!((read, error, warnings), ((0..GROUPS).collect(), None, Vec::new()));
}

#[test]
fn an_error_ends_reading_at_its_chunk() {
    let kind = io::ErrorKind::ConnectionReset;
    let object = Object { fails: Some((3 * GROUP as u64, kind)), ..Object::new(trace()) };
    let mut reader = Reader::from_ranges(&object).unwrap();
    assert!(matches!(reader.chunks().unwrap_err().kind, ErrorKind::Io(why) if why.kind() == kind));
    let (read, error, _) = groups(reader);
    assert_eq!(read, [0, 1]);
    assert!(matches!(error, Some(ErrorKind::Io(why)) if why.kind() == kind));
}

/// Returns more bytes than it was asked for.
struct Liar;

impl ByteRanges for Liar {
    fn length(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    fn read_at(&self, _: u64, buffer: &mut [u8]) -> io::Result<usize> {
        buffer.fill(b'M');
        Ok(usize::MAX)
    }
}

#[test]
fn wrong_lengths_cause_errors() {
    let bytes = trace();
    let whole = bytes.len() as u64;
    for length in [0, 1, 20, 64, 100, 60_000, whole - 1, whole + 1, u64::MAX] {
        let object = Object { length, ..Object::new(bytes.clone()) };
        let Ok(mut reader) = Reader::from_ranges(&object) else { continue };
        let listed = reader.chunks().map(<[_]>::len);
        assert!(listed.is_err() || listed == Ok(GROUPS as usize + 1), "{length}: {listed:?}");
        let (read, error, warnings) = groups(reader);
        assert!(read.iter().copied().eq(0..u32::try_from(read.len()).unwrap()), "{length}: {read:?}");
        assert!(error.is_some() || !warnings.is_empty(), "{length}");
    }
    assert!(Reader::from_ranges(Liar).is_err());
}

/// A false length of a chunk allocates no more than a small multiple of the bytes that exist.
#[test]
fn memory_follows_the_bytes() {
    let mut bytes = trace();
    // The payload length of the DTD's chunk, which is the first chunk.
    let start = usize::try_from(Reader::from_slice(&bytes).unwrap().header().start).unwrap();
    bytes[start + 12..start + 16].copy_from_slice(&(100_u32 << 20).to_le_bytes());
    let object = Object { length: u64::MAX, ..Object::new(bytes) };
    assert!(Reader::from_ranges(&object).is_err_and(|error| matches!(error.kind, ErrorKind::Io(_))));
    let most = object.reads.lock().unwrap().iter().map(|read| read.1).max();
    assert!(most.unwrap() <= object.bytes.len());
}
