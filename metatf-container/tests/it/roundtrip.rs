//! Checks that traces are read back as written with all versions, classes, byte orders, codecs, filters, sources and
//! sinks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::io::{Seek, Write};

use metatf_container::{
    ChunkSpec, ChunkWriter, Class, Codec, Content, ErrorKind, ExtentWriter, Filter, Forward, Order, Part, Reader,
    Seekable, Warning, WriteOptions,
};

const DTD: &[u8] = b"section s 1 { r: (tag, x) { tag.value = 4; x.width = 2; x.interpretation = none; } }";

fn all_options() -> Vec<WriteOptions> {
    let mut all = Vec::new();
    for class in [Class::Bits32, Class::Bits64] {
        for order in [Order::Little, Order::Big] {
            let all_codecs = [Codec::Stored, Codec::Zstd(1), Codec::Zstd(19), Codec::Lz4, Codec::Zlib(6)];
            for codec in all_codecs.into_iter().filter(|codec| codec.is_built_in()) {
                for filter in
                    [Filter::None, Filter::Transpose, Filter::RecordDictionary, Filter::SplitSuffix, Filter::Auto]
                {
                    let dtd_url = "format.dtd".to_owned();
                    all.push(WriteOptions { class, order, codec, filter, dtd_url, ..WriteOptions::default() });
                }
            }
        }
    }
    all
}

fn numbers(n: u32) -> Vec<u8> {
    (0..n).flat_map(|i| (i * 3).to_le_bytes()).collect()
}

/// Returns bytes that no codec can shorten.
fn noise(n: usize) -> Vec<u8> {
    let mut x = 1_u64;
    let step = |_| {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        x.to_be_bytes()[0]
    };
    (0..n).map(step).collect()
}

/// Returns two groups, a shared table, an empty chunk, and noise.
fn specs() -> Vec<(ChunkSpec, Vec<u8>)> {
    let spec = ChunkSpec { reset: true, ..ChunkSpec::default() };
    vec![
        (ChunkSpec { section: 3, shared: true, records: 2, ..spec }, b"\x03int\x04char".to_vec()),
        (ChunkSpec { section: 2, group_start: true, width: 4, records: 5000, ..spec }, numbers(5000)),
        (ChunkSpec { section: 1, element: 3, records: 700, ..spec }, [4, 0, 1].repeat(700)),
        (ChunkSpec { section: 1, reset: false, ..spec }, Vec::new()),
        (ChunkSpec { section: 2, reset: false, width: 8, records: 500, ..spec }, numbers(1000)),
        (ChunkSpec { section: 3, shared: true, records: 1, ..spec }, b"\x02ab".to_vec()),
        (ChunkSpec { section: 1, group_start: true, group: 1, records: 9, ..spec }, noise(3000)),
        (ChunkSpec { section: 0, group: 1, records: 1, element: 2, ..spec }, b"\x09\x09".to_vec()),
    ]
}

fn write(options: &WriteOptions) -> Vec<u8> {
    let mut writer = ChunkWriter::new(Vec::new(), options, DTD).unwrap();
    for (i, (spec, raw)) in specs().iter().enumerate() {
        // The chunk with 3-byte elements has records of three elements.
        let ends: Vec<u32> =
            if spec.element == 3 { (1..).map(|n| n * 9).take_while(|&n| n < 2100).collect() } else { Vec::new() };
        let ends = if ends.is_empty() { ends } else { [ends, vec![2100]].concat() };
        writer.data_records(*spec, raw, &ends).unwrap();
        if i == 3 {
            writer.user_metadata("{\"a\":1}").unwrap();
        }
    }
    writer.user_metadata("{}").unwrap();
    writer.finish(711).unwrap()
}

fn check_part(part: &Part, bytes: &[u8], spec: &ChunkSpec, raw: &[u8], base: u64) {
    assert_eq!((part.section, part.reset, part.group_start), (spec.section, spec.reset, spec.group_start));
    assert_eq!((part.shared, part.group, part.records), (spec.shared, spec.group, Some(spec.records)));
    assert_eq!(part.base, base);
    assert!(spec.width == 0 || part.width == spec.width);
    assert!(!part.damage_before && !part.group_damaged && !part.follow);
    assert!(bytes == raw);
}

fn check(mut reader: Reader<'_>, options: &WriteOptions, from: usize) {
    let header = reader.header();
    assert_eq!((header.class, header.order, header.version), (options.class, options.order, 1));
    assert_eq!((header.nrecords, header.dtd_url.as_str()), (711, "format.dtd"));
    assert_eq!(reader.dtd_text(), Some(DTD));
    let mut bases = [0; 256];
    for (i, (spec, raw)) in specs().iter().enumerate() {
        let base = bases[usize::from(spec.section)];
        bases[usize::from(spec.section)] += raw.len() as u64;
        if i < from {
            continue;
        }
        let part = reader.next_part().unwrap().expect("a part");
        check_part(&part, reader.bytes(&part.content), spec, raw, base);
    }
    assert!(reader.next_part().unwrap().is_none());
    assert!(reader.warnings().is_empty());
}

#[test]
fn version_1() {
    for options in all_options() {
        let trace = write(&options);
        check(Reader::from_slice(&trace).unwrap(), &options, 0);
        check(Reader::from_read(&trace[..]).unwrap(), &options, 0);
        check(Reader::salvage_slice(&trace).unwrap(), &options, 0);
        let reader = Reader::from_slice(&trace).unwrap();
        let mut fork = reader.fork().unwrap();
        assert_eq!(fork.next_part().unwrap().map(|part| part.section), Some(3));
    }
}

#[test]
fn codecs_make_it_shorter() {
    let stored = write(&WriteOptions { codec: Codec::Stored, filter: Filter::None, ..WriteOptions::default() });
    for codec in [Codec::Zstd(3), Codec::Lz4, Codec::Zlib(6)].into_iter().filter(|codec| codec.is_built_in()) {
        let len = |filter| write(&WriteOptions { codec, filter, ..WriteOptions::default() }).len();
        assert!(len(Filter::Transpose) < stored.len() / 2, "{codec:?}");
        assert!(len(Filter::Auto) <= len(Filter::Transpose).min(len(Filter::None)), "{codec:?}");
    }
}

#[test]
fn section_options() {
    let mut options = WriteOptions::default();
    options.section_options.insert(2, (Codec::Stored, Filter::None));
    let trace = write(&options);
    let mut reader = Reader::from_slice(&trace).unwrap();
    let codecs: Vec<(u8, u8)> = reader.chunks().unwrap().iter().map(|c| (c.section, c.codec)).collect();
    assert!(codecs.iter().all(|&(section, codec)| section != 2 || codec == 0));
    assert!(codecs.contains(&(1, Codec::default().number())));
}

#[test]
fn files_are_mapped_and_stored_chunks_not_copied() {
    let options = WriteOptions { codec: Codec::Stored, filter: Filter::None, ..WriteOptions::default() };
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&write(&options)).unwrap();
    let mut reader = Reader::open(file.path()).unwrap();
    while let Some(part) = reader.next_part().unwrap() {
        assert!(matches!(part.content, Content::Mapped(_)));
    }
    assert_eq!(reader.user_metadata(), [b"{\"a\":1}".to_vec(), b"{}".to_vec()]);
    assert_eq!(reader.input().map(<[u8]>::len), Some(write(&options).len()));
}

/// A file is read piece by piece: in order, from any position, split into groups, and when salvaging. Truncating it
/// causes an error.
#[test]
fn files_are_read_in_pieces() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.mtf");
    for options in all_options() {
        let trace = write(&options);
        std::fs::write(&path, &trace).unwrap();
        check(Reader::read(&path).unwrap(), &options, 0);
        let mut salvaged = Reader::read(&path).unwrap();
        salvaged.set_salvage(true);
        check(salvaged, &options, 0);
        let mut reader = Reader::read(&path).unwrap();
        let chunks = reader.chunks().unwrap().to_vec();
        assert_eq!(chunks, Reader::from_slice(&trace).unwrap().chunks().unwrap());
        let mut fork = reader.fork().unwrap();
        fork.seek_chunk(8).unwrap();
        check(fork, &options, 6);
        assert!(reader.input().is_none());

        let (pieces, memory) = (Reader::read(&path).unwrap(), Reader::from_slice(&trace).unwrap());
        let (split, expected) = (pieces.split().unwrap(), memory.split().unwrap());
        assert_eq!((split.groups(), split.groups_in(&(0..u64::MAX))), (2, 0..2));
        // Each group belongs to the range that contains its first byte.
        let second = chunks[split.chunks_of(1).start].offset;
        assert_eq!((split.groups_in(&(0..second)), split.groups_in(&(second..second + 1))), (0..1, 1..2));
        assert!(split.groups_in(&(second + 1..u64::MAX)).is_empty());
        for group in 0..2 {
            let (mut reader, mut expected) = (split.reader(group), expected.reader(group));
            while let Some(part) = expected.next_part().unwrap() {
                let found = reader.next_part().unwrap().unwrap();
                assert!(reader.bytes(&found.content) == expected.bytes(&part.content));
            }
            assert!(reader.next_part().unwrap().is_none());
        }
        // Truncating the file causes an error for every group, even one whose bytes still exist.
        for length in [second, second - 1, 100, 0] {
            std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length).unwrap();
            let mut first = split.reader(0);
            let end = std::iter::from_fn(|| first.next_part().transpose()).last();
            assert!(end.is_some_and(|end| end.is_err()), "{length}");
            assert!(split.reader(1).next_part().is_err(), "{length}");
        }
    }
}

#[test]
fn random_access() {
    for (options, cut) in [(WriteOptions::default(), 0), (WriteOptions::default(), 16)] {
        let options = WriteOptions { dtd_url: "format.dtd".into(), ..options };
        let mut trace = write(&options);
        trace.truncate(trace.len() - cut); // Without a footer, the reader follows the chunk headers.
        let mut reader = Reader::from_slice(&trace).unwrap();
        assert_eq!(reader.scan_user_metadata().unwrap(), [b"{\"a\":1}".to_vec(), b"{}".to_vec()]);
        let chunks = reader.chunks().unwrap().to_vec();
        assert_eq!(chunks.len(), 11);
        let starts: Vec<usize> = (0..chunks.len()).filter(|&n| chunks[n].is_group_start()).collect();
        assert_eq!(starts, [2, 8]);

        let table = reader.read_chunk(7).unwrap();
        assert_eq!((table.shared, table.base, reader.bytes(&table.content)), (true, 9, &b"\x02ab"[..]));
        assert!(matches!(reader.read_chunk(5).unwrap_err().kind, ErrorKind::Usage(_)));
        assert!(matches!(reader.read_chunk(11).unwrap_err().kind, ErrorKind::Usage(_)));
        assert!(matches!(reader.seek_chunk(3).unwrap_err().kind, ErrorKind::Usage(_)));
        assert!(reader.seek_chunk(12).is_err());

        let memory = Reader::from_slice(&trace).unwrap();
        let mut fork = memory.fork().unwrap();
        fork.seek_chunk(8).unwrap();
        if cut == 0 {
            check(fork, &options, 6);
        } else {
            while fork.next_part().unwrap().is_some() {}
            assert_eq!(fork.warnings(), [Warning::NotClosed]);
        }
        reader.seek_chunk(11).unwrap();
        assert!(reader.next_part().unwrap().is_none());
        reader.seek_chunk(2).unwrap();
        assert_eq!(reader.next_part().unwrap().unwrap().records, Some(5000));
    }
    let trace = write(&WriteOptions::default());
    assert!(Reader::from_read(&trace[..]).unwrap().chunks().is_err());
    assert!(Reader::from_read(&trace[..]).unwrap().fork().is_none());
}

#[test]
fn a_wrong_index_entry_is_found_when_followed() {
    let options = WriteOptions { dtd_url: "format.dtd".into(), ..WriteOptions::default() };
    let trace = write(&options);
    let mut reader = Reader::from_slice(&trace).unwrap();
    let end = reader.chunks().unwrap().last().map(|c| c.offset + 48 + u64::from(c.stored_len)).unwrap();
    let index = usize::try_from(end).unwrap();
    let mut bad = trace.clone();
    bad[index + 48 + 8 * 32 + 28] ^= 1; // nrecords of the second group's first chunk
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bad[index..index + 44]), &bad[index + 48..bad.len() - 16]);
    bad[index + 44..index + 48].copy_from_slice(&crc.to_le_bytes());
    let mut reader = Reader::from_slice(&bad).unwrap();
    reader.seek_chunk(8).unwrap();
    assert!(matches!(reader.next_part().unwrap_err().kind, ErrorKind::Invalid { .. }));
    assert!(reader.next_part().unwrap().is_none());
    assert!(reader.read_chunk(8).is_err());
    let mut reader = Reader::from_slice(&bad).unwrap();
    let error = loop {
        match reader.next_part() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the index is wrong"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.place.offset, end + 48 + 8 * 32 + 28);
}

#[test]
fn sinks() {
    let options = WriteOptions::default();
    let nrecords = |trace: &[u8]| Reader::from_slice(trace).unwrap().header().nrecords;
    let finish = |writer: ChunkWriter<Box<dyn Write>>| writer.finish(5).map(|_| ()).unwrap();
    finish(ChunkWriter::new(Box::new(Vec::new()) as Box<dyn Write>, &options, DTD).unwrap());
    let forward = ChunkWriter::new(Forward(Vec::new()), &options, DTD).unwrap().finish(5).unwrap();
    assert_eq!(nrecords(&forward.0), 0);
    let cursor = std::io::Cursor::new(Vec::new());
    let seeks = ChunkWriter::new(Seekable(cursor), &options, DTD).unwrap().finish(5).unwrap();
    assert_eq!(nrecords(seeks.0.get_ref()), 5);
    assert_eq!(ChunkWriter::new(Vec::new(), &options, DTD).unwrap().finish(5).unwrap(), *seeks.0.get_ref());

    // The trace may start at a later position in a file, and its record count may not fit in class 1.
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"before").unwrap();
    let options = WriteOptions { class: Class::Bits32, ..options };
    let mut file = ChunkWriter::new(file, &options, DTD).unwrap().finish(7).unwrap();
    file.rewind().unwrap();
    let mut all = Vec::new();
    std::io::Read::read_to_end(&mut file, &mut all).unwrap();
    assert_eq!(nrecords(&all[6..]), 7);
    let many = ChunkWriter::new(Vec::new(), &options, DTD).unwrap().finish(1 << 32).unwrap();
    assert_eq!(nrecords(&many), 0);
}

#[test]
fn without_dtd_and_unfinished() {
    let options = WriteOptions { embed_dtd: false, ..WriteOptions::default() };
    let mut sink = Vec::new();
    let mut writer = ChunkWriter::new(&mut sink, &options, DTD).unwrap();
    writer.data(specs()[1].0, &specs()[1].1).unwrap();
    writer.flush().unwrap();
    drop(writer);
    let mut reader = Reader::from_slice(&sink).unwrap();
    assert_eq!((reader.dtd_text(), reader.opening_error()), (None, None));
    assert!(reader.next_part().unwrap().is_some());
    assert!(reader.next_part().unwrap().is_none());
    assert_eq!(reader.warnings(), [Warning::NotClosed]);
}

#[test]
fn what_a_chunk_cannot_hold() {
    let mut writer = ChunkWriter::new(std::io::sink(), &WriteOptions::default(), DTD).unwrap();
    let long = vec![0; (64 << 20) + 1];
    assert!(matches!(writer.data(specs()[1].0, &long).unwrap_err().kind, ErrorKind::Limit(_)));
    let wrong = ChunkSpec { shared: true, group_start: true, reset: true, ..ChunkSpec::default() };
    assert!(matches!(writer.data(wrong, b"").unwrap_err().kind, ErrorKind::Usage(_)));
    let options = WriteOptions { dtd_url: "x".repeat(256), ..WriteOptions::default() };
    assert!(ChunkWriter::new(Vec::new(), &options, DTD).is_err());
    assert!(ExtentWriter::new(Vec::new(), &options, 1).is_err());
}

#[test]
fn version_0() {
    for class in [Class::Bits32, Class::Bits64] {
        for order in [Order::Little, Order::Big] {
            for tag_width in [1_u8, 2, 4] {
                for global in [&b""[..], b"global"] {
                    extents(&WriteOptions { version: 0, class, order, ..WriteOptions::default() }, tag_width, global);
                }
            }
        }
    }
}

fn extents(options: &WriteOptions, tag_width: u8, global: &[u8]) {
    let mut writer = ExtentWriter::new(Vec::new(), options, tag_width).unwrap();
    writer.extent(1, b"one").unwrap();
    writer.extent(0, global).unwrap();
    writer.extent(1, b", two").unwrap();
    writer.extent(2, b"").unwrap();
    writer.extent(1, b"three").unwrap();
    let trace = writer.finish(12).unwrap();
    for mut reader in [Reader::from_slice(&trace).unwrap(), Reader::from_read(&trace[..]).unwrap()] {
        reader.set_tag_width(tag_width);
        assert_eq!(reader.header().nrecords, 12);
        let mut parts = Vec::new();
        while let Some(part) = reader.next_part().unwrap() {
            let bytes = reader.bytes(&part.content).to_vec();
            let at = usize::try_from(part.base).unwrap();
            assert_eq!(trace[at..at + bytes.len()], bytes);
            parts.push((part.section, part.reset, bytes));
        }
        let mut expected = vec![(0, true, global.to_vec())];
        expected.retain(|_| !global.is_empty());
        expected.push((1, true, b"one, two".to_vec()));
        expected.push((2, true, Vec::new()));
        expected.push((1, false, b"three".to_vec()));
        assert_eq!(parts, expected);
    }

    let mut writer = ExtentWriter::without_table(Vec::new(), options, tag_width).unwrap();
    writer.extent(0, global).unwrap();
    writer.extent(1, b"one").unwrap();
    assert!(writer.extent(0, b"late").is_err());
    let trace = writer.finish(12).unwrap();
    let mut reader = Reader::from_slice(&trace).unwrap();
    let part = reader.next_part().unwrap().unwrap();
    assert!(part.follow && part.section == 0);
    let bytes = reader.bytes(&part.content);
    assert_eq!(bytes.len(), global.len() + usize::from(tag_width) + 4);
    assert!(bytes.ends_with(b"\x01one"));
    assert!(reader.next_part().unwrap().is_none());
}

#[test]
fn raw_streams() {
    let read = |mut reader: Reader<'_>| {
        let part = reader.next_part().unwrap().unwrap();
        let bytes = reader.bytes(&part.content).to_vec();
        assert!(reader.next_part().unwrap().is_none());
        assert_eq!(reader.header().order, Order::Big);
        (part.section, part.reset, bytes)
    };
    for bytes in [&b""[..], b"a log", b"\x7fMTFnot a header"] {
        let expected = (7, true, bytes.to_vec());
        assert_eq!(read(Reader::raw_from_slice(bytes, Class::Bits32, Order::Big, 7).unwrap()), expected);
        assert_eq!(read(Reader::raw_from_read(bytes, Class::Bits32, Order::Big, 7).unwrap()), expected);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        assert_eq!(read(Reader::open_raw(file.path(), Class::Bits32, Order::Big, 7).unwrap()), expected);
    }
}

#[test]
fn integers() {
    assert_eq!(Order::Little.read(&[1, 2, 3]), 0x03_02_01);
    assert_eq!(Order::Big.read(&[1, 2, 3]), 0x01_02_03);
    assert_eq!(Order::Big.read(&[]), 0);
    for order in [Order::Little, Order::Big] {
        for width in 0..=8_usize {
            let mut out = Vec::new();
            order.write(0x0102_0304_0506_0708, width, &mut out);
            assert_eq!(out.len(), width);
            let mask = if width == 8 { u64::MAX } else { (1 << (8 * width)) - 1 };
            assert_eq!(order.read(&out), 0x0102_0304_0506_0708 & mask);
        }
    }
}
