//! Tests that written streams are read back unchanged, and that malformed streams produce errors with positions.
use super::*;

fn read_all(bytes: &[u8]) -> (Vec<String>, Option<Error>) {
    let mut reader = Reader::new(bytes);
    let mut items = Vec::new();
    loop {
        match reader.next() {
            Ok(Some(item)) => items.push(format!("{item:?}")),
            Ok(None) => return (items, None),
            Err(error) => {
                assert!(matches!(reader.next(), Ok(None)), "something comes after an error");
                return (items, Some(error));
            }
        }
    }
}

/// Returns pseudo-random records with numbers and attributes of all widths.
fn records(count: u64) -> Vec<(Record<'static>, Vec<u8>)> {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    (0..count)
        .map(|n| {
            let kind = Kind::ALL[usize::try_from(random() % 10).unwrap()];
            let mut record = Record::new(kind);
            for &part in kind.numbers() {
                // Values are small at first, then wider.
                let shift = 63 - random() % (n * 64 / count).max(1);
                *record.number_mut(part) = random() >> shift;
            }
            let length = if n < count / 2 { 0 } else { random() % (n % 400 + 1) };
            (record, vec![b'x'; usize::try_from(length).unwrap()])
        })
        .collect()
}

#[test]
fn written_and_read() {
    let records = records(3000);
    let mut writer = Writer::new(Vec::new());
    writer.comment(b"first").unwrap();
    for (record, attributes) in &records {
        writer.record(&Record { attributes, ..*record }).unwrap();
    }
    let bytes = writer.finish().unwrap();
    let mut reader = Reader::new(&bytes[..]);
    assert_eq!(reader.next().unwrap(), Some(Item::Comment(b"first")));
    let mut expected = records.iter();
    let mut metadata = 0;
    while let Some(item) = reader.next().unwrap() {
        match item {
            Item::Record(record) => {
                let (wanted, attributes) = expected.next().unwrap();
                assert_eq!(record, Record { attributes, ..*wanted });
            }
            Item::Metadata(..) => metadata += 1,
            Item::Comment(_) => unreachable!(),
        }
    }
    assert!(expected.next().is_none());
    assert!(metadata < 40, "{metadata} metadata records");
}

/// Values that are not stored take no bytes; times take the bytes of their differences.
#[test]
fn no_more_bytes_than_needed() {
    let mut writer = Writer::new(Vec::new());
    let mut record = Record { size: 24, address: 4096, ..Record::new(Kind::Alloc) };
    writer.record(&record).unwrap();
    record.time = 1_000_000;
    writer.record(&record).unwrap();
    record.time = 1_000_001;
    writer.record(&record).unwrap();
    // 9 bytes for the first record, 4 and 12 to set the width and interpretation of time, then 9 and 4 for a record and
    // its time difference.
    assert_eq!(writer.finish().unwrap().len(), 9 + 4 + 12 + 2 * (9 + 4));
}

#[test]
fn settings_made_by_the_caller() {
    let mut writer = Writer::new(Vec::new());
    writer.set(Field::Address, Change::Interpretation(Interpretation::Stride(1000, 16))).unwrap();
    writer.set(Field::Size, Change::Interpretation(Interpretation::BaseOffset(1 << 40))).unwrap();
    writer.set(Field::Size, Change::Width(Width::Fixed(1))).unwrap();
    let wanted: Vec<_> = [(1 << 40, 1016), ((1 << 40) - 128, 1032), ((1 << 40) + 128, 5)]
        .map(|(size, address)| Record { size, address, ..Record::new(Kind::Alloc) })
        .into();
    for record in &wanted {
        writer.record(record).unwrap();
    }
    let refused = writer.set(Field::Thread, Change::Interpretation(Interpretation::Delta(0))).unwrap_err();
    assert!(matches!(refused.kind, ErrorKind::NoWidth));
    let refused = writer.set(Field::Time, Change::Width(Width::Variable(1))).unwrap_err();
    assert!(refused.to_string().contains("time"));
    let bytes = writer.finish().unwrap();
    let mut reader = Reader::new(&bytes[..]);
    let mut records = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        if let Item::Record(record) = item {
            records.push(Record { attributes: &[], ..record });
        }
    }
    assert_eq!(records, wanted);
}

/// A stream truncated at any offset either ends between records or produces an error within one.
#[test]
fn cut_anywhere() {
    let mut writer = Writer::new(Vec::new());
    for (record, attributes) in &records(60) {
        writer.record(&Record { attributes, ..*record }).unwrap();
    }
    writer.comment(b"the end").unwrap();
    let bytes = writer.finish().unwrap();
    let whole = read_all(&bytes).0;
    for cut in 0..bytes.len() {
        let (items, error) = read_all(&bytes[..cut]);
        assert_eq!(items, whole[..items.len()]);
        if let Some(error) = error {
            assert!(
                error.record < cut as u64
                    && error.offset <= cut as u64
                    && matches!(error.kind, ErrorKind::Truncated(_))
            );
        }
    }
}

/// Errors report the offset of the invalid byte.
#[test]
fn places() {
    for (bytes, offset, text) in [
        (&[12][..], 0, "expected tag 0 to 11, found 12"),
        (&[11, 3, 0, 0], 1, "expected op 1 (width) or 2 (interpretation), found 3"),
        (&[11, 1, 6, 0], 2, "expected field 0 to 5, found 6"),
        (&[11, 1, 0, 9], 3, "found 9"),
        (&[11, 2, 5, 2, 0, 0, 0, 0, 0, 0, 0, 0], 3, "found 2"),
        (&[11, 2, 5, 0], 3, "no width was set"),
        (&[0, 0, 0, 0, 1, 0], 5, "field address"),
        (&[1, 0, 0, 0, 1, 10, 0, 3, 1], 8, "truncated; 2 more bytes"),
    ] {
        let error = read_all(bytes).1.unwrap();
        assert_eq!(error.offset, offset, "{error}");
        assert!(error.to_string().contains(text), "{error}");
    }
}
