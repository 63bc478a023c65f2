//! Code generated for each version of the interface (`metatf::generated`) compiles with this version of the runtime,
//! and reads what it writes. The files in `interface-*` are never generated again.
#![deny(missing_docs, unused, clippy::all, clippy::pedantic, nonstandard_style)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that goes wrong has to panic")]

use metatf::container::{Order, WriteOptions};
use metatf::format::Format;
use metatf::typed::{Event, NestedWriter, TraceOptions};
use std::path::Path;

/// Heap models, predictors, streams and an expected width, for interface 1.0.
pub mod blocks {
    include!("../interface-1.0/blocks.rs");
}
/// A file without a header, a catch-all record, and byte arrays of varying length, for interface 1.0.
pub mod packets {
    include!("../interface-1.0/packets.rs");
}
/// Optional, repeated and nested records, tables, and values of every type, for interface 1.0.
pub mod requests {
    include!("../interface-1.0/requests.rs");
}

fn options() -> impl Iterator<Item = WriteOptions> {
    [Order::Little, Order::Big].into_iter().map(|order| WriteOptions { order, ..WriteOptions::default() })
}

#[test]
fn requests_are_read_as_written() {
    use requests::{Columns, Element, Flags, Kind, Log, Mark, Method, Record, Request, RequestGroupsItem};
    use requests::{RequestItemsItem, Restart, Span, Trace, Writer};
    for options in options() {
        let mut writer = Writer::with_options(Vec::new(), &options).unwrap();
        writer.set_keep_order(true);
        let path = writer.paths().intern("/index.html").unwrap();
        assert_eq!(writer.paths().intern(b"/index.html").unwrap(), path);
        let number = writer.numbers().push(7_u64).unwrap();
        let span = |took: u64| Span { kind: Kind::Cache, took, vfield: b"query".to_vec() };
        let full = Request {
            time: 1_000_000,
            id: 1,
            path,
            method: Method::Post,
            flags: Flags::HAS_USER | Flags::TRACED,
            user: Some(70_000_000_000),
            span: Some(span(5)),
            items: None,
            score: 0.5,
            change: -3,
            hash: u64::MAX,
            digest: vec![9; 40],
            span_2: vec![span(6), Span::default()],
            vfield: vec![b"a".to_vec(), Vec::new()],
            value: vec![1.5, -2.5],
            groups_items: vec![RequestGroupsItem { code: 1, code_2: vec![2, 3] }, RequestGroupsItem::default()],
        };
        let items = Some(RequestItemsItem { code: 3, extra: *b"123456789" });
        let flags = Flags::default();
        let empty = Request { id: 2, items, flags, digest: vec![0; 40], value: vec![0.0; 2], ..Request::default() };
        let restart = Restart { time: 5, vfield: b"v2".to_vec(), last: 300 };
        let records = vec![
            Record::Log(Log::Request(full)),
            Record::Log(Log::Request(empty)),
            Record::Log(Log::Restart(restart)),
            Record::Log(Log::Mark(Mark { place: 1 })),
            Record::Other(requests::Other::Empty(requests::Empty {})),
            Record::Other(requests::Other::Mark(Mark { place: 2 })),
        ];
        for record in &records {
            writer.write(&record.borrow()).unwrap();
        }
        writer.restart(&Restart { time: 6, vfield: b"v3", last: 301 }).unwrap();
        let bytes = writer.finish().unwrap();

        let mut trace = Trace::from_slice(&bytes).unwrap();
        let read: Vec<Record> = trace.records().map(Result::unwrap).collect();
        assert_eq!(read[..records.len()], records);
        assert_eq!(trace.paths().get(path).unwrap().vfield, b"/index.html");
        assert_eq!(trace.numbers().get(number).unwrap().number, 7);
        let mut borrowed = Vec::new();
        Trace::from_read(&bytes[..]).unwrap().for_each(|record| borrowed.push(record.to_owned())).unwrap();
        assert_eq!(borrowed, read);
        let mut trace = Trace::from_slice(&bytes).unwrap();
        assert_eq!(trace.only::<Mark>().records().map(|mark| mark.unwrap().place).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(Trace::from_slice(&bytes).unwrap().log().count(), 5);
        let mut columns = Columns::default();
        assert!(Trace::from_slice(&bytes).unwrap().next_columns(&mut columns).unwrap());
        assert_eq!((columns.request().id, columns.request().change), (&[1, 2][..], &[-3, 0][..]));
        assert_eq!(columns.restart().vfield.iter().collect::<Vec<_>>(), [&b"v2"[..], b"v3"]);
        let mut trace = Trace::from_slice(&bytes).unwrap();
        trace.set_all(true);
        let mut elements = 0;
        while let Some(event) = trace.next_event().unwrap() {
            elements += u32::from(matches!(event, Event::Element(Element::Paths(_) | Element::Numbers(_), _)));
        }
        assert_eq!(elements, 2);
    }
    assert_eq!(requests::Flags::HAS_USER.to_string(), "has_user");
}

#[test]
fn blocks_are_read_as_written() {
    use blocks::{Alloc, Free, Heap, Record, Switch, Touch, Trace, Writer};
    for options in options() {
        let mut writer = Writer::with_options(Vec::new(), &options).unwrap();
        let mut expected = Vec::new();
        for i in 0..200 {
            let address = 0x7f00_0000 + i % 7 * 64;
            expected.extend([
                Heap::Switch(Switch { thread: i % 2 }),
                Heap::Alloc(Alloc { time: 10 * i, size: 48, address }),
                Heap::Touch(Touch { address, value: i * i % 5 }),
                Heap::Free(Free { address }),
            ]);
        }
        writer.write_all(&expected).unwrap();
        let bytes = writer.finish().unwrap();
        let mut trace = Trace::from_slice(&bytes).unwrap();
        let read: Vec<Heap> = trace.heap().map(Result::unwrap).collect();
        assert_eq!(read, expected);
        let mut trace = Trace::from_slice(&bytes).unwrap();
        assert_eq!(trace.next().unwrap(), Some(Record::Heap(expected[0].clone())));
        assert_eq!(trace.times().get(0).unwrap().time, 0);
    }
    let widths: Vec<_> = blocks::FORMAT.expected.iter().map(|width| (width.record, width.leaf, width.width)).collect();
    assert_eq!(widths, [(3, 2, 2)]);
}

/// The bytes of a file in the format of `packets.dtd`, with its options.
fn packet_file() -> (Vec<u8>, Vec<u8>) {
    let mut options = NestedWriter::<packets::Protocol>::new(3, Order::Little).unwrap();
    options.write_element(&packets::OptionsOption { code: 1, vfield: "hi" }).unwrap();
    let options = options.finish();
    let packet = [&[4, 0, 4, 0][..], &options, &[8, 9]].concat();
    let unknown = [0x34, 0x12, 6, 0, 7, 7];
    let length = u8::try_from(packet.len() + unknown.len()).unwrap();
    let header = [&b"pack"[..], &[length, 0, 0, 0], b"eth\0", &[0xff]].concat();
    ([header, packet, unknown.to_vec(), b"end".to_vec()].concat(), options)
}

#[test]
fn packets_are_read_without_a_header() {
    use packets::{Byte, Element, Magic, OptionsOption, Packet, Packets, Prologue, Record, Trace, Unknown};
    let (bytes, options) = packet_file();
    let mut trace = Trace::from_opened(TraceOptions::new().raw_from_slice(&bytes).unwrap());
    trace.set_all(true);
    let mut nested = trace.nested(3).unwrap();
    let (mut records, mut prologues, mut trailer) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(event) = trace.next_event().unwrap() {
        match event {
            Event::Record(record) => records.push(record.to_owned()),
            Event::Element(Element::Header(Prologue { magic, name, zone, .. }), _) => {
                prologues.push((magic, name.to_vec(), zone));
            }
            Event::Element(Element::Rest(Byte { value }), _) => trailer.push(value),
            _ => {}
        }
    }
    assert_eq!(prologues, [(Magic::Seconds, b"eth".to_vec(), -1)]);
    let packet = Packet { size: 4, options: options.clone(), item: vec![8, 9] };
    let unknown = Unknown { tag: 0x1234, size: 6, rest: vec![7, 7] };
    assert_eq!(records, [Record::Packets(Packets::Packet(packet)), Record::Packets(Packets::Unknown(unknown))]);
    assert_eq!(trailer, b"end".map(u64::from));
    let mut read = Vec::new();
    let each = |element: Element<&[u8]>| {
        if let Element::Options(OptionsOption { code, vfield }) = element {
            read.push((code, vfield.to_vec()));
        }
    };
    nested.for_each_element(&options, each).unwrap();
    assert_eq!(read, [(1, b"hi".to_vec())]);

    let mut writer = packets::Writer::new(Vec::new()).unwrap();
    writer.write_all(&records).unwrap();
    let bytes = writer.finish().unwrap();
    let written: Vec<Record> = Trace::from_slice(&bytes).unwrap().into_iter().map(Result::unwrap).collect();
    assert_eq!(written, records);
}

/// The tables contain what the DTD declares, including earlier names, initial values and layouts.
#[test]
fn tables_are_those_of_the_dtds() {
    for format in [&requests::FORMAT, &packets::FORMAT] {
        let parsed = Format::from_dtd(&metatf_parser::parse("", format.dtd.as_bytes()).dtd.unwrap());
        assert_eq!(format!("{format:#?}"), format!("{parsed:#?}"));
    }
}

/// Each directory contains code for one version of the interface, and this file includes all of that code.
#[test]
fn directories_contain_code_for_their_version() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut minors = Vec::new();
    for directory in std::fs::read_dir(&tests).unwrap().map(|entry| entry.unwrap().path()) {
        let name = directory.file_name().unwrap().to_str().unwrap().to_owned();
        let Some((major, minor)) = name.strip_prefix("interface-").and_then(|version| version.split_once('.')) else {
            continue;
        };
        minors.push(minor.parse::<u16>().unwrap());
        for path in std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()) {
            if path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            let code = std::fs::read_to_string(&path).unwrap();
            assert!(code.contains(&format!("check_version({major}, {minor})")), "{}", path.display());
            let included = format!("include!(\"../{name}/{}\")", path.file_name().unwrap().to_str().unwrap());
            assert!(include_str!("interface.rs").contains(&included), "{included}");
        }
    }
    minors.sort_unstable();
    assert_eq!(minors, (0..=metatf::generated::MINOR).collect::<Vec<_>>(), "a directory for each minor version");
}

/// The documentation of the interface lists every item of the runtime that generated code names.
#[test]
fn the_interface_lists_what_generated_code_names() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let runtime = include_str!("../../../metatf/src/generated.rs");
    let docs: String = runtime.lines().filter(|line| line.starts_with("//!")).collect();
    let mut names = 0;
    for path in std::fs::read_dir(tests.join("golden")).unwrap().map(|entry| entry.unwrap().path()) {
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let code = std::fs::read_to_string(path).unwrap();
        let end = |text: &str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap();
        let direct = code.split("runtime::").skip(1).map(|rest| &rest[..end(rest)]);
        let (_, tables) = code.split_once("use super::runtime::tables::{").unwrap();
        let tables = tables.split_once('}').unwrap().0.split(',').map(str::trim);
        let functions = code.split_once("pub static FORMAT").unwrap().1;
        let functions = functions.split(['.', ':']).filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
        let functions = functions.filter_map(|rest| Some(rest.split_once('(')?.0)).filter(|name| is_function(name));
        for name in direct.chain(tables).chain(functions).filter(|name| !name.is_empty()) {
            assert!(
                docs.contains(&format!("`{name}`")) || docs.contains(&format!("::{name}`")),
                "`{name}` is not listed"
            );
            names += 1;
        }
    }
    assert!(names > 1000);
}

fn is_function(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}
