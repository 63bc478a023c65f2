//! Salvage lost a chunk with a valid CRC and invalid content completely, and for a stream section also everything that
//! strides through it. A reader that stops at the first error returns the records before the error, and salvage now
//! does the same.
#![allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation, reason = "helpers of a test")]

use metatf::container::{Codec, Reader, WriteOptions};
use metatf::dynamic::{Line, OwnedRecord, Schema, Trace, Writer};
use metatf::reader::{Event, Item};
use metatf_tests::runtime;
use metatf_tests::targets::crc32c;

const DTD: &str = "section x 1 { e: (n) { n.width = 2; n.interpretation = none; } }
    section s 2 { t: (tag, a, b) { tag.value = 4; a.interpretation = sectionStride 1 1; b.width = 1; b.interpretation = none; } }";

/// Returns an unclosed trace with five records in each of two groups.
fn written(schema: &Schema) -> Vec<u8> {
    let options = WriteOptions { codec: Codec::Stored, trial: None, ..WriteOptions::default() };
    let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), schema, &options).unwrap();
    let mut owned = OwnedRecord::default();
    for group in 0..2 {
        if group > 0 {
            writer.write(&Line::Group, &owned).unwrap();
        }
        for n in 0..5 {
            let line = format!(r#"{{"@section":"s","@record":"t","a":{},"b":{n}}}"#, 1000 + n);
            let line = schema.read_json(line.as_bytes(), &mut owned).unwrap();
            writer.write(&line, &owned).unwrap();
        }
    }
    let mut bytes = writer.finish().unwrap().into_inner();
    let index = chunks(&bytes).into_iter().find(|at| bytes[at + 5] == 2).unwrap();
    bytes.truncate(index);
    bytes
}

/// Returns the offsets of the chunks.
fn chunks(bytes: &[u8]) -> Vec<usize> {
    (0..bytes.len().saturating_sub(48)).filter(|&at| bytes[at..].starts_with(b"MTFC")).collect()
}

/// Changes the chunk of a section in a group and corrects its CRC.
fn change(bytes: &mut Vec<u8>, (section, group): (u8, u8), change: impl FnOnce(&mut Vec<u8>)) {
    let is_it = |at: &usize| (bytes[at + 4], bytes[at + 5], bytes[at + 24]) == (section, 0, group);
    let at = chunks(bytes).into_iter().find(is_it).unwrap();
    let length = u32::from_le_bytes(bytes[at + 12..at + 16].try_into().unwrap()) as usize;
    let mut payload = bytes[at + 48..at + 48 + length].to_vec();
    change(&mut payload);
    let now = (payload.len() as u32).to_le_bytes();
    bytes[at + 12..at + 16].copy_from_slice(&now);
    bytes[at + 16..at + 20].copy_from_slice(&now);
    let crc = crc32c(&[&bytes[at..at + 44], &payload].concat());
    bytes[at + 44..at + 48].copy_from_slice(&crc.to_le_bytes());
    bytes.splice(at + 48..at + 48 + length, payload);
}

/// Returns the records read, the number of elements, and whether reading succeeded.
fn read(schema: &Schema, bytes: &[u8], salvage: bool, all: bool) -> (Vec<u64>, usize, bool) {
    let reader = if salvage { Reader::salvage_slice(bytes) } else { Reader::from_slice(bytes) }.unwrap();
    let mut trace = Trace::new(schema.clone(), reader).unwrap();
    trace.reader_mut().set_all(all);
    trace.reader_mut().set_salvage(salvage);
    let (mut records, mut elements) = (Vec::new(), 0);
    loop {
        match trace.next_entry() {
            Ok(Some(entry)) => match entry.event {
                Event::Record(_) => match trace.record().get(0) {
                    Some(Item::Number(value)) => records.push(value),
                    other => panic!("{other:?}"),
                },
                Event::Element(..) => elements += 1,
                _ => {}
            },
            Ok(None) => {
                let lost = trace.reader().container().loss_report().is_some_and(|report| !report.is_empty());
                return (records, elements, !lost);
            }
            Err(_) => return (records, elements, false),
        }
    }
}

#[test]
fn bytes_behind_the_last_element() {
    let schema = runtime::schema(DTD);
    let mut bytes = written(&schema);
    let all = [1000, 1001, 1002, 1003, 1004, 1000, 1001, 1002, 1003, 1004];
    assert_eq!(read(&schema, &bytes, true, true), (all.to_vec(), 10, true));
    change(&mut bytes, (1, 1), |elements| elements.push(7));
    assert_eq!(read(&schema, &bytes, false, false), (all.to_vec(), 0, true), "nobody needs them");
    assert!(!read(&schema, &bytes, false, true).2, "whoever reads all finds them");
    assert_eq!(read(&schema, &bytes, true, false), (all.to_vec(), 0, false));
    assert_eq!(read(&schema, &bytes, true, true), (all.to_vec(), 10, false));
}

#[test]
fn records_before_an_error() {
    let schema = runtime::schema(DTD);
    let mut bytes = written(&schema);
    // Tag of the fourth of five two-byte records.
    change(&mut bytes, (2, 0), |records| records[6] = 99);
    assert_eq!(read(&schema, &bytes, false, false), (vec![1000, 1001, 1002], 0, false));
    let (salvaged, elements, whole) = read(&schema, &bytes, true, true);
    assert_eq!((salvaged, elements, whole), (vec![1000, 1001, 1002, 1000, 1001, 1002, 1003, 1004], 10, false));
}
