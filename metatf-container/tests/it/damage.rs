//! Tests invalid input: every rule for chunks, every flipped byte, every truncation, and garbage. No input may cause a
//! panic or an endless loop, and salvage may return only data that was written.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use metatf_container::{
    ChunkSpec, ChunkWriter, Class, Codec, ErrorKind, ExtentWriter, Filter, LossCause, Order, Reader, WriteOptions,
};
use metatf_test::thread_time;

const DTD: &[u8] = b"section s 1 { r: (tag, x) { tag.value = 4; x.width = 2; x.interpretation = none; } }";

/// Writes two groups of two sections and a shared table. The content of each chunk is unique.
fn trace(codec: Codec) -> Vec<u8> {
    let options = WriteOptions { codec, filter: Filter::Auto, class: Class::Bits32, ..WriteOptions::default() };
    let mut writer = ChunkWriter::new(Vec::new(), &options, DTD).unwrap();
    let spec = ChunkSpec { section: 1, reset: true, element: 4, records: 10, ..ChunkSpec::default() };
    writer.data(ChunkSpec { section: 3, shared: true, ..spec }, b"table").unwrap();
    writer.data(ChunkSpec { section: 2, group_start: true, width: 4, ..spec }, &b"2222".repeat(10)).unwrap();
    writer.data(spec, &b"aaaa".repeat(10)).unwrap();
    writer.data(ChunkSpec { reset: false, ..spec }, &b"bbbb".repeat(10)).unwrap();
    writer.user_metadata("{}").unwrap();
    writer.data(ChunkSpec { section: 2, group_start: true, width: 4, group: 1, ..spec }, &b"3333".repeat(10)).unwrap();
    writer.data(ChunkSpec { group: 1, ..spec }, &b"cccc".repeat(10)).unwrap();
    writer.finish(60).unwrap()
}

/// Returns the offsets of the chunks.
fn chunks(trace: &[u8]) -> Vec<usize> {
    let mut reader = Reader::from_slice(trace).unwrap();
    reader.chunks().unwrap().iter().map(|c| usize::try_from(c.offset).unwrap()).collect()
}

/// The section, base and content of a part.
type Seen = (u8, u64, Vec<u8>);

/// Reads all parts and returns them with the final result.
fn drain(mut reader: Reader<'_>) -> (Vec<Seen>, Result<(), metatf_container::Error>) {
    let mut parts = Vec::new();
    loop {
        match reader.next_part() {
            Ok(Some(part)) => parts.push((part.section, part.base, reader.bytes(&part.content).to_vec())),
            Ok(None) => return (parts, Ok(())),
            Err(error) => return (parts, Err(error)),
        }
    }
}

fn seal(trace: &mut [u8], at: usize) {
    let stored = u32::from_le_bytes(trace[at + 12..at + 16].try_into().unwrap()) as usize;
    let crc = crc32c::crc32c_append(crc32c::crc32c(&trace[at..at + 44]), &trace[at + 48..at + 48 + stored]);
    trace[at + 44..at + 48].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn each_byte_flipped() {
    for codec in [Codec::Stored, Codec::default()] {
        let good = trace(codec);
        let (all, end) = drain(Reader::from_slice(&good).unwrap());
        end.unwrap();
        assert_eq!(all.len(), 6);
        for at in 0..good.len() {
            for bit in [1, 0x80] {
                let mut bad = good.clone();
                bad[at] ^= bit;
                if let Ok(reader) = Reader::from_slice(&bad) {
                    let (parts, end) = drain(reader);
                    let stream = drain(Reader::from_read(&bad[..]).unwrap());
                    assert_eq!(stream, (parts.clone(), end), "offset {at}");
                    let nrecords = (24..28).contains(&at);
                    // A header with version 0 turns the rest of the file into one part, whose records cannot be read.
                    assert!(end.is_err() || nrecords || at == 7, "offset {at} is not checked");
                    assert!(at == 7 || all.starts_with(&parts), "offset {at}");
                }
                let mut reader = Reader::salvage_slice(&bad).unwrap();
                reader.set_salvage(true);
                let (parts, end) = drain(reader);
                end.unwrap();
                assert!(parts.iter().all(|part| all.contains(part)), "offset {at}");
                // At most one chunk is corrupt, and at most one more depends on it.
                assert!(parts.len() + 2 >= all.len(), "offset {at}: {} parts", parts.len());
                assert_eq!(drain(Reader::salvage_read(&bad[..]).unwrap()).0, parts, "offset {at}");
            }
        }
    }
}

#[test]
fn each_truncation() {
    for codec in [Codec::Stored, Codec::Lz4].into_iter().filter(|codec| codec.is_built_in()) {
        let good = trace(codec);
        let (all, _) = drain(Reader::from_slice(&good).unwrap());
        let starts = chunks(&good);
        for len in 0..good.len() {
            let cut = &good[..len];
            let Ok(reader) = Reader::from_slice(cut) else {
                assert!(len < starts[0]);
                assert!(Reader::salvage_slice(cut).is_err());
                continue;
            };
            let (parts, end) = drain(reader);
            assert_eq!(drain(Reader::from_read(cut).unwrap()), (parts.clone(), end));
            assert!(all.starts_with(&parts));
            match end {
                Ok(()) => assert!(starts.contains(&len) || len == good.len() - 16 || len == good.len() - 16 - 48 - 256),
                Err(error) => {
                    assert!(matches!(error.kind, ErrorKind::Truncated(_)), "{len}: {error}");
                    let torn = starts.iter().rev().find(|start| **start < len).copied().unwrap();
                    assert!(error.place.offset >= torn as u64);
                }
            }
            let (salvaged, end) = drain(Reader::salvage_slice(cut).unwrap());
            end.unwrap();
            assert_eq!(salvaged, parts);
        }
    }
}

#[test]
fn version_0_flipped_and_cut() {
    for class in [Class::Bits32, Class::Bits64] {
        let options = WriteOptions { version: 0, class, order: Order::Big, ..WriteOptions::default() };
        let mut writer = ExtentWriter::new(Vec::new(), &options, 2).unwrap();
        writer.extent(1, b"one").unwrap();
        writer.extent(0, b"global").unwrap();
        writer.extent(2, b"two").unwrap();
        let good = writer.finish(0).unwrap();
        let read = |bytes: &[u8]| {
            let mut reader = Reader::from_slice(bytes).ok()?;
            reader.set_tag_width(2);
            Some(drain(reader))
        };
        for len in 0..good.len() {
            assert!(read(&good[..len]).is_none_or(|(_, end)| end.is_err()), "{len}");
        }
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                let _ = read(&bad);
            }
        }
    }
}

/// A violated rule of the chunk header: the chunk, the byte, its value, and the byte named by the error. The test
/// updates the CRC.
type Rule = (usize, usize, u8, usize);

#[test]
fn each_rule() {
    let good = trace(Codec::Stored);
    let starts = chunks(&good);
    // 0 DTD, 1 table, 2 stream, 3 and 4 section 1, 5 user, 6 stream, 7 section 1
    let rules: &[Rule] = &[
        (0, 4, 1, 4),   // section of a DTD chunk
        (0, 8, 1, 8),   // flags of a DTD chunk
        (0, 20, 1, 20), // nrecords of a DTD chunk
        (0, 24, 1, 24), // group of a DTD chunk
        (5, 5, 1, 5),   // a second DTD chunk
        (5, 5, 4, 5),   // kinds between 4 and 127
        (5, 5, 127, 5),
        (3, 6, 4, 6),   // codec
        (3, 7, 2, 7),   // filter
        (3, 8, 9, 8),   // flags
        (3, 9, 9, 9),   // width of nonexistent elements
        (3, 10, 2, 10), // class
        (3, 10, 0, 10),
        (3, 11, 2, 11),  // byte order
        (3, 16, 39, 16), // raw_len of a stored chunk
        (3, 19, 4, 16),  // raw_len over 64 MiB
        (3, 28, 4, 28),  // sequence
        (4, 28, 3, 28),
        (3, 32, 1, 32),  // base of a section's first chunk
        (4, 32, 39, 32), // base of a later chunk
        (3, 43, 1, 40),  // reserved
        (1, 8, 4, 8),    // a shared table without reset
        (1, 8, 7, 8),    // a shared table in a group
        (1, 24, 1, 24),  // a shared table with a group number
        (2, 8, 1, 8),    // a first data chunk that does not begin a group
        (2, 8, 2, 8),    // the first chunk of a group without reset
        (2, 24, 1, 24),  // a first group other than 0
        (3, 8, 0, 8),    // a section's first chunk in a group without reset
        (3, 24, 1, 24),  // a different group number in the middle of a group
        (6, 24, 2, 24),  // a skipped group
        (6, 24, 0, 24),  // a repeated group
        (6, 8, 1, 24),   // a new group without a group start
        (7, 8, 5, 8),    // a section that becomes a shared table
        (7, 4, 3, 8),    // a shared table's section that is no longer shared
    ];
    for &(chunk, at, value, named) in rules {
        let mut bad = good.clone();
        bad[starts[chunk] + at] = value;
        seal(&mut bad, starts[chunk]);
        let reader = Reader::from_slice(&bad).unwrap();
        let opening = reader.opening_error();
        let (_, end) = drain(reader);
        let error = end.expect_err("a rule is broken");
        let place = (starts[chunk] + named) as u64;
        assert_eq!(error.place.offset, place, "chunk {chunk}, byte {at} = {value}: {error}");
        assert_eq!(opening, (chunk == 0).then_some(error));
        let mut salvage = Reader::salvage_slice(&bad).unwrap();
        while salvage.next_part().unwrap().is_some() {}
        assert!(!salvage.loss_report().unwrap().is_empty(), "chunk {chunk}, byte {at} = {value}");
    }
    let mut skipped = good.clone();
    skipped[starts[5] + 5] = 200; // An unknown kind is skipped, but it differs from the index.
    seal(&mut skipped, starts[5]);
    let (parts, end) = drain(Reader::from_slice(&skipped).unwrap());
    assert_eq!((parts.len(), end.unwrap_err().place.offset), (6, good.len() as u64 - 16 - 256 + 5 * 32 + 17));
}

#[test]
fn codecs_that_are_not_built_in() {
    let good = trace(Codec::Stored);
    let start = chunks(&good)[3];
    for (codec, feature) in [(Codec::Zstd(3), "zstd"), (Codec::Lz4, "lz4"), (Codec::Zlib(6), "zlib")] {
        let missing = ErrorKind::MissingCodec(feature);
        let options = WriteOptions { codec, ..WriteOptions::default() };
        let refused = ChunkWriter::new(Vec::new(), &options, DTD).err().map(|error| error.kind);
        let mut packed = good.clone();
        packed[start + 6] = codec.number();
        seal(&mut packed, start);
        let error = drain(Reader::from_slice(&packed).unwrap()).1.unwrap_err();
        if codec.is_built_in() {
            assert_eq!(refused, None);
            assert_ne!(error.kind, missing);
        } else if feature == "zstd" && cfg!(feature = "zstd-decode") {
            // The codec can be read but not written.
            assert_eq!(
                (refused, error.kind),
                (Some(missing), ErrorKind::Decompress("the payload is not a zstd frame"))
            );
        } else {
            assert_eq!(refused, Some(missing));
            assert_eq!((error.kind, error.place.offset), (missing, start as u64 + 6));
            let told = format!("{feature} is required, but this program was built without the feature `{feature}`");
            assert_eq!(missing.to_string(), told);
        }
    }
}

#[test]
fn payloads_that_do_not_decompress() {
    let packed = |codec, raw: &[u8]| {
        let options = WriteOptions { codec, embed_dtd: false, ..WriteOptions::default() };
        let mut writer = ChunkWriter::new(Vec::new(), &options, b"").unwrap();
        let spec = ChunkSpec { section: 1, reset: true, group_start: true, ..ChunkSpec::default() };
        writer.data(spec, raw).unwrap();
        writer.finish(0).unwrap()
    };
    for codec in [Codec::Zstd(3), Codec::Lz4, Codec::Zlib(6)].into_iter().filter(|codec| codec.is_built_in()) {
        let good = packed(codec, &[7; 5000]);
        assert_eq!(good[40 + 6], codec.number());
        let len = u32::from_le_bytes(good[40 + 12..40 + 16].try_into().unwrap());
        let end = 40 + 48 + len as usize;
        for raw_len in [0_u32, 1, 4999, 5001, 64 << 20] {
            let mut bad = good.clone();
            bad[40 + 16..40 + 20].copy_from_slice(&raw_len.to_le_bytes());
            seal(&mut bad, 40);
            let error = drain(Reader::from_slice(&bad).unwrap()).1.unwrap_err();
            assert_eq!(error.place.offset, 56, "{codec:?} {raw_len}: {error}");
        }
        // One byte more or less of payload, and every payload byte flipped.
        for cut in [len - 1, len + 1] {
            let mut bad = good[..end].to_vec();
            bad.resize(40 + 48 + cut as usize, 0);
            bad[40 + 12..40 + 16].copy_from_slice(&cut.to_le_bytes());
            seal(&mut bad, 40);
            assert!(drain(Reader::from_slice(&bad).unwrap()).1.is_err(), "{codec:?} {cut}");
        }
        for at in 40 + 48..end {
            let mut bad = good[..end].to_vec();
            bad[at] ^= 0x55;
            seal(&mut bad, 40);
            let (parts, _) = drain(Reader::from_slice(&bad).unwrap());
            assert!(parts.iter().all(|part| part.2.len() == 5000));
        }
    }
}

#[test]
fn cut_out_chunks() {
    let good = trace(Codec::Stored);
    let starts = chunks(&good);
    let without = |chunk: usize| [&good[..starts[chunk]], &good[starts[chunk + 1]..]].concat();
    let run = |bytes: &[u8]| {
        let mut reader = Reader::salvage_slice(bytes).unwrap();
        let mut parts = Vec::new();
        while let Some(part) = reader.next_part().unwrap() {
            parts.push((part.section, part.group, part.damage_before, part.group_damaged));
        }
        (parts, reader.loss_report().unwrap().clone())
    };
    let (parts, report) = run(&without(3));
    // The next chunk depends on the state of the missing one.
    assert_eq!(parts, [(3, 0, false, false), (2, 0, false, false), (2, 1, true, false), (1, 1, false, false)]);
    assert_eq!((report.missing_chunks, report.records_lost(), report.losses.len()), (1, Some(20), 2));
    assert_eq!(report.losses[0].cause, LossCause::Missing { first: 3, chunks: 1 });
    assert_eq!((report.losses[0].start, report.losses[0].end), (starts[3] as u64, starts[3] as u64));

    let (parts, _) = run(&without(6)); // the start of group 1
    assert_eq!(parts[4..], [(1, 1, true, true)]);
    let (parts, report) = run(&without(0)); // the DTD
    assert_eq!(parts.len(), 6);
    assert_eq!(parts[..2], [(3, 0, true, false), (2, 0, true, false)]);
    assert_eq!(report.records_lost(), Some(0));

    let twice = [&good[..starts[4]], &good[starts[3]..]].concat();
    let (parts, report) = run(&twice);
    assert_eq!(parts.len(), 6);
    assert_eq!(report.losses[0].cause, LossCause::Repeated);
    assert_eq!(report.losses.len(), 1);
    assert!(report.to_string().contains("bytes"));

    let garbage = [&good[..starts[4]], &b"MTFCMTFC some garbage MTF"[..], &good[starts[4]..]].concat();
    let (parts, report) = run(&garbage);
    assert_eq!(parts.len(), 6);
    assert_eq!((report.missing_chunks, report.records_lost(), report.damaged_bytes()), (0, Some(0), 25));
    let strict = drain(Reader::from_slice(&garbage).unwrap()).1.unwrap_err();
    assert_eq!(strict.place.offset, starts[4] as u64 + 12);
}

#[test]
fn records_that_are_wrong() {
    let good = trace(Codec::Stored);
    let mut reader = Reader::salvage_slice(&good).unwrap();
    let mut parts = Vec::new();
    while let Some(part) = reader.next_part().unwrap() {
        if parts.len() == 2 {
            let error = metatf_container::Error::at(5, ErrorKind::UnknownTag(9));
            reader.report_bad_content(&part, error);
        }
        if part.section == 2 && part.group == 1 {
            reader.report_lost(&part);
        }
        parts.push((part.section, part.group, part.damage_before, part.group_damaged));
    }
    // The second chunk of section 1 depends on the invalid chunk; group 1 does not.
    assert_eq!(parts.iter().map(|part| (part.0, part.1)).collect::<Vec<_>>(), [(3, 0), (2, 0), (1, 0), (2, 1), (1, 1)]);
    assert!(parts.iter().all(|part| !part.2 && !part.3));
    let causes: Vec<_> = reader.loss_report().unwrap().losses.iter().map(|loss| loss.cause).collect();
    assert!(matches!(causes[..], [LossCause::Content(_), LossCause::StateLost, LossCause::Dependent]));
    assert_eq!(reader.loss_report().unwrap().records_lost(), Some(30));
}

/// Salvages a file with a corrupt payload that contains a complete chunk, which the length of the corrupt chunk skips.
#[test]
fn a_chunk_in_a_damaged_payload() {
    let inner = trace(Codec::Stored);
    let at = chunks(&inner)[7];
    let options = WriteOptions { codec: Codec::Stored, class: Class::Bits32, ..WriteOptions::default() };
    let mut writer = ChunkWriter::new(Vec::new(), &options, DTD).unwrap();
    let spec = ChunkSpec { section: 1, reset: true, ..ChunkSpec::default() };
    writer.data(ChunkSpec { group_start: true, ..spec }, b"first").unwrap();
    writer.data(spec, &inner[at..at + 88]).unwrap();
    writer.data(spec, b"last").unwrap();
    let mut bad = writer.finish(0).unwrap();
    let start = chunks(&bad)[2];
    bad[start + 44] ^= 1;
    let (parts, _) = drain(Reader::salvage_slice(&bad).unwrap());
    assert_eq!(parts.iter().map(|part| &part.2[..]).collect::<Vec<_>>(), [&b"first"[..], b"last"]);
}

/// Salvaging takes little time even if each of many apparent chunks declares the rest of the file as its payload.
#[test]
fn would_be_chunks_without_end() {
    let good = trace(Codec::Stored);
    let at = chunks(&good)[3];
    let len = if cfg!(debug_assertions) { 1 << 20 } else { 64 << 20 };
    let mut bad = good[..at + 48].to_vec();
    while bad.len() + 48 <= len {
        let rest = u32::try_from(len - bad.len() - 48).unwrap();
        let mut header: [u8; 48] = good[at..at + 48].try_into().unwrap();
        header[12..16].copy_from_slice(&rest.to_le_bytes());
        header[16..20].copy_from_slice(&rest.to_le_bytes());
        bad.extend_from_slice(&header);
        bad.truncate(len);
    }
    let start = thread_time();
    let (parts, _) = drain(Reader::salvage_slice(&bad).unwrap());
    assert_eq!(parts.len(), 2);
    assert_eq!(drain(Reader::salvage_read(&bad[..]).unwrap()).0, parts);
    let took = thread_time() - start;
    assert!(took.as_secs() < 30, "{took:?}");
}

/// Salvages a stream with chunks longer and shorter than a step of the salvage checksum.
#[test]
fn long_chunks() {
    let options = WriteOptions { codec: Codec::Stored, ..WriteOptions::default() };
    let mut writer = ChunkWriter::new(Vec::new(), &options, DTD).unwrap();
    let lengths = [0, 100_000, 16 << 10, 5, 40, (16 << 10) - 1, 300_000, 17, 50_000, 9];
    for (n, len) in (0_u8..).zip(lengths) {
        let spec = ChunkSpec { section: 1, reset: true, group_start: true, group: n.into(), ..ChunkSpec::default() };
        writer.data(spec, &vec![n; len]).unwrap();
    }
    let good = writer.finish(0).unwrap();
    let starts = chunks(&good);
    let lens = |bytes: &[u8]| {
        let (parts, end) = drain(Reader::salvage_slice(bytes).unwrap());
        assert!(drain(Reader::salvage_read(bytes).unwrap()) == (parts.clone(), end));
        parts.iter().map(|part| part.2.len()).collect::<Vec<_>>()
    };
    assert_eq!(lens(&good), lengths);
    for damaged in 0..lengths.len() {
        let mut expected = lengths.to_vec();
        expected.remove(damaged);
        let start = starts[damaged + 1];
        let mut bad = good.clone();
        bad[start + 20] ^= 1;
        assert_eq!(lens(&bad), expected);
        let mut bad = good.clone();
        bad[start + 15] ^= 1; // The length is now 16 MiB too large.
        assert_eq!(lens(&bad), expected);
        assert_eq!(
            lens(&[&good[..start], &good[starts.get(damaged + 2).map_or(good.len(), |s| *s)..]].concat()),
            expected
        );
    }
}

#[test]
fn garbage() {
    let good = trace(Codec::default());
    let mut x = 88_172_645_463_325_252_u64;
    let mut random = move || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x
    };
    for round in 0..2000 {
        let mut bad = good.clone();
        let pick = |n: u64, len: usize| usize::try_from(n % len as u64).unwrap();
        for _ in 0..=round % 4 {
            let at = pick(random(), bad.len());
            match random() % 4 {
                0 => bad[at] = random().to_le_bytes()[0],
                1 => {
                    let to = (at + pick(random(), 100)).min(bad.len());
                    bad.drain(at..to);
                }
                2 => bad.splice(at..at, good[pick(random(), good.len())..].iter().take(60).copied()).for_each(drop),
                _ => bad.truncate(at.max(60)),
            }
            for start in 28..bad.len().saturating_sub(48) {
                let stored = bad.get(start + 12..start + 16).map_or(0, |b| u32::from_le_bytes(b.try_into().unwrap()));
                let fits = start + 48 + stored as usize <= bad.len();
                if bad[start..].starts_with(b"MTFC") && fits && random() % 2 == 0 {
                    seal(&mut bad, start);
                }
            }
        }
        for salvage in [false, true] {
            let slice = if salvage { Reader::salvage_slice(&bad) } else { Reader::from_slice(&bad) };
            let stream = if salvage { Reader::salvage_read(&bad[..]) } else { Reader::from_read(&bad[..]) };
            assert_eq!(slice.is_ok(), stream.is_ok());
            let (Ok(slice), Ok(stream)) = (slice, stream) else { continue };
            assert_eq!(drain(slice), drain(stream), "round {round}");
        }
        if let Ok(mut reader) = Reader::from_slice(&bad) {
            let n = reader.chunks().map_or(0, <[_]>::len);
            for chunk in 0..=n {
                let _ = reader.read_chunk(chunk);
                if reader.seek_chunk(chunk).is_ok() {
                    while let Ok(Some(_)) = reader.next_part() {}
                }
            }
            let _ = reader.scan_user_metadata();
        }
    }
}
