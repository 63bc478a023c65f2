//! Tests of traces that are continued: after every possible end of the previous writer, and for files that must not be
//! changed.
#![allow(clippy::unwrap_used, reason = "tests")]

use metatf_container::{
    AppendFile, ChunkSpec, ChunkWriter, Class, Codec, Error, ErrorKind, ExtentWriter, Order, Reader, Result,
    WriteOptions,
};
use std::path::Path;

const DTD: &[u8] = b"section s 1 { r: (tag, x) { tag.value = 4; x.width = 2; x.interpretation = none; } }";
/// Bytes of content of a chunk.
const CONTENT: usize = 300;

fn options() -> WriteOptions {
    WriteOptions { codec: Codec::Stored, class: Class::Bits32, order: Order::Big, ..WriteOptions::default() }
}

/// Appends a group with two chunks of one record each. Returns the writer before it is finished.
fn append(path: &Path) -> Result<ChunkWriter<AppendFile>> {
    // The class and the byte order are those of the file.
    let mut writer = ChunkWriter::new(
        AppendFile::open(path)?,
        &WriteOptions { codec: Codec::Stored, ..WriteOptions::default() },
        DTD,
    )?;
    let groups = writer.chunks().iter().filter(|chunk| chunk.is_group_start()).count();
    let group = u32::try_from(groups).unwrap();
    let spec = ChunkSpec { section: 1, reset: true, group_start: true, records: 1, group, ..ChunkSpec::default() };
    writer.data(spec, &[1; CONTENT])?;
    writer.data(ChunkSpec { reset: false, group_start: false, ..spec }, &[2; CONTENT])?;
    writer.flush()?;
    Ok(writer)
}

fn finish(writer: ChunkWriter<AppendFile>) {
    let records: u64 = writer.chunks().iter().filter(|c| c.is_data()).map(|c| u64::from(c.nrecords)).sum();
    writer.finish(records).unwrap();
}

/// Returns the number of chunks of records, and the error at the end.
fn read(bytes: &[u8]) -> (usize, Option<Error>) {
    let Ok(mut reader) = Reader::from_slice(bytes) else { return (0, None) };
    let mut chunks = 0;
    loop {
        match reader.next_part() {
            Ok(Some(_)) => chunks += 1,
            Ok(None) => return (chunks, None),
            Err(error) => return (chunks, Some(error)),
        }
    }
}

/// A writer may end after any byte. Whatever was complete is kept, and the continued trace is intact.
#[test]
fn every_end_can_be_continued() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.mtf");
    let mut writer = ChunkWriter::new(Vec::new(), &options(), DTD).unwrap();
    let spec = ChunkSpec { section: 1, reset: true, group_start: true, records: 1, ..ChunkSpec::default() };
    writer.data(spec, &[7; CONTENT]).unwrap();
    writer.data(ChunkSpec { group: 1, ..spec }, &[8; CONTENT]).unwrap();
    let whole = writer.finish(2).unwrap();
    for length in 0..=whole.len() {
        let ended = &whole[..length];
        std::fs::write(&path, ended).unwrap();
        let (kept, error) = read(ended);
        let sink = AppendFile::open(&path).unwrap();
        let is_torn =
            error.is_some_and(|error| matches!(error.kind, ErrorKind::Truncated("a chunk" | "a chunk header")));
        assert!(sink.torn_bytes() > 0 || !is_torn, "{length}");
        drop(sink);
        assert!(std::fs::read(&path).unwrap() == ended, "{length}: opening changed the file");
        // The appending writer is killed, and another one continues.
        drop(append(&path).unwrap());
        let (chunks, error) = read(&std::fs::read(&path).unwrap());
        assert_eq!((chunks, error), (kept + 2, None), "{length}");
        finish(append(&path).unwrap());
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(read(&bytes), (kept + 4, None), "{length}");
        let mut reader = Reader::from_slice(&bytes).unwrap();
        assert_eq!(reader.header().nrecords, kept as u64 + 4);
        while reader.next_part().unwrap().is_some() {}
        assert!(reader.warnings().is_empty());
        if length == whole.len() {
            assert_eq!((reader.header().class, reader.header().order), (Class::Bits32, Order::Big));
        }
    }
}

/// An appending writer may end after any byte, too. Nothing that was complete before is lost.
#[test]
fn a_killed_appender_loses_nothing_of_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.mtf");
    finish(append(&path).unwrap());
    let before = std::fs::read(&path).unwrap();
    let index = Reader::from_slice(&before).unwrap().chunks().unwrap().last().map(|c| c.offset).unwrap();
    let index = usize::try_from(index).unwrap() + 48 + CONTENT;
    finish(append(&path).unwrap());
    let after = std::fs::read(&path).unwrap();
    // The header differs in the number of records, which is set to 0 first.
    let same = 28 + 2 * 8..index;
    assert!(after[same.clone()] == before[same]);
    for length in index..=after.len() {
        let (chunks, _) = read(&after[..length]);
        assert!(chunks >= 2, "{length}");
        let mut salvaged = Reader::salvage_slice(&after[..length]).unwrap();
        assert_eq!(std::iter::from_fn(|| salvaged.next_part().unwrap()).count(), chunks, "{length}");
    }
}

#[test]
fn corrupt_and_foreign_files_are_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.mtf");
    drop(append(&path).unwrap());
    finish(append(&path).unwrap());
    let good = std::fs::read(&path).unwrap();
    let offsets: Vec<usize> = Reader::from_slice(&good)
        .unwrap()
        .chunks()
        .unwrap()
        .iter()
        .map(|c| usize::try_from(c.offset).unwrap())
        .collect();
    let refused = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let error = append(&path).map(drop).unwrap_err();
        assert!(std::fs::read(&path).unwrap() == bytes, "{error}");
        error
    };
    // A wrong length in the middle looks like an incomplete chunk at the end.
    let mut bytes = good.clone();
    bytes[offsets[2] + 14] = 0x20;
    assert!(matches!(refused(&bytes).kind, ErrorKind::Truncated(_)));
    // The last chunk is corrupt.
    let mut bytes = good.clone();
    bytes[offsets[4] + 48] ^= 1;
    assert_eq!(refused(&bytes).kind, ErrorKind::Checksum);
    // Unknown bytes follow the footer.
    assert!(matches!(refused(&[&good[..], b"!"].concat()).kind, ErrorKind::Invalid { .. }));
    assert!(matches!(refused(b"not a trace").kind, ErrorKind::NotATrace(..)));
    let other = ChunkWriter::new(Vec::new(), &options(), b"section other 1 { }").unwrap().finish(0).unwrap();
    assert!(matches!(refused(&other).kind, ErrorKind::Mismatch(_)));
    let bare = ChunkWriter::new(Vec::new(), &WriteOptions { embed_dtd: false, ..options() }, DTD).unwrap();
    assert!(matches!(refused(&bare.finish(0).unwrap()).kind, ErrorKind::Dtd(_)));

    std::fs::write(&path, &good).unwrap();
    let extents = ExtentWriter::new(AppendFile::open(&path).unwrap(), &WriteOptions::default(), 1).unwrap();
    assert!(matches!(extents.finish(0).map(drop).unwrap_err().kind, ErrorKind::Io(_)));
    assert!(std::fs::read(&path).unwrap() == good);
    let open = AppendFile::open(&path).unwrap();
    assert!(matches!(AppendFile::open(&path).unwrap_err().kind, ErrorKind::Usage(_)), "the file is locked");
    drop(open);
    assert!(AppendFile::open(&path).is_ok());
}
