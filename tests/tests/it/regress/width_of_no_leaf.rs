//! A chunk header has a width if its section is a stream of single numbers or if the chunk was transposed. In any other
//! chunk the width was not checked.

use metatf::ErrorKind;
use metatf::container::{Codec, Filter, Reader, WriteOptions};
use metatf::dynamic::{OwnedRecord, Trace, Writer};
use metatf_tests::runtime;
use metatf_tests::targets::crc32c;

#[test]
fn a_width_in_a_tagged_section() {
    let schema =
        runtime::schema("section s 1 { r: (tag, a) { tag.value = 4; a.width = 1; a.interpretation = none; } }");
    let options = WriteOptions { codec: Codec::Stored, trial: None, filter: Filter::None, ..WriteOptions::default() };
    let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), &schema, &options).unwrap();
    let mut owned = OwnedRecord::default();
    let line = schema.read_json(br#"{"@section":"s","@record":"r","a":7}"#, &mut owned).unwrap();
    writer.write(&line, &owned).unwrap();
    let mut bytes = writer.finish().unwrap().into_inner();
    let at = (0..bytes.len() - 48).find(|&at| bytes[at..].starts_with(b"MTFC\x01\x00")).unwrap();
    let length = u32::from_le_bytes(bytes[at + 12..at + 16].try_into().unwrap()) as usize;
    bytes[at + 9] = 2;
    let crc = crc32c(&[&bytes[at..at + 44], &bytes[at + 48..at + 48 + length]].concat());
    bytes[at + 44..at + 48].copy_from_slice(&crc.to_le_bytes());
    let mut trace = Trace::new(schema.clone(), Reader::from_slice(&bytes).unwrap()).unwrap();
    let error = trace.next_entry().unwrap_err();
    assert!(matches!(error.kind, ErrorKind::Invalid { what: "width", found: 2, .. }), "{error}");
    assert_eq!(error.place.offset, at as u64 + 9);
}
