//! Optional items, computed counts, and byte arrays that contain records (spec 3.3, 3.7).

use super::evolution;
use super::optional::{
    Columns, Element, Flags, OptionsOption, Parts, Point, Protocol, R, RItemsItem, Record, S, Step, Text,
};
use super::optional::{Trace, Writer};
use metatf::container::{Order, WriteOptions};
use metatf::typed::NestedWriter;

fn options(order: Order) -> Vec<u8> {
    let mut options = NestedWriter::<Protocol>::new(2, order).unwrap();
    options.write_element(&OptionsOption { code: 1, vfield: "hi" }).unwrap();
    options.write_element(&OptionsOption { code: 0, vfield: "" }).unwrap();
    options.finish()
}

fn parts(order: Order) -> Vec<u8> {
    let mut parts = NestedWriter::<Protocol>::new(3, order).unwrap();
    parts.write(&Parts::<&[u8]>::Step(Step { t: 5 })).unwrap();
    parts.write(&Parts::Text(Text { vfield: b"abc" })).unwrap();
    parts.write(&Parts::<&[u8]>::Step(Step { t: 7 })).unwrap();
    // The difference does not fit in one byte, and an array cannot contain the metadata that would widen it.
    assert!(parts.write(&Parts::<&[u8]>::Step(Step { t: 700 })).is_err());
    assert!(parts.write(&S::R(R::<Vec<u8>>::default())).is_err(), "a record of another section");
    parts.finish()
}

fn records(order: Order) -> Vec<R> {
    let all = R {
        flags: Flags(15),
        time: Some(70_000_000_000),
        point: Some(Point { x: 1, y: 2 }),
        items: None,
        vfield: Some(parts(order)),
        size: 6,
        item: vec![1, 2, 3],
        options: options(order),
        magic: Some(()),
    };
    let items = Some(RItemsItem { x: 3, n: *b"123456789" });
    vec![all.clone(), R { items, ..R::default() }, R { vfield: Some(Vec::new()), ..all }]
}

#[test]
fn there_and_back() {
    for order in [Order::Little, Order::Big] {
        let records = records(order);
        let mut writer = Writer::with_options(Vec::new(), &WriteOptions { order, ..WriteOptions::default() }).unwrap();
        for record in &records {
            writer.write(&Record::S(S::R(record.clone()))).unwrap();
            writer.r(&record.borrow()).unwrap();
        }
        let bytes = writer.finish().unwrap();
        let read: Vec<Record> = Trace::from_slice(&bytes).unwrap().into_iter().map(Result::unwrap).collect();
        let twice = records.iter().flat_map(|record| [record.clone(), record.clone()]);
        assert_eq!(read, twice.map(|record| Record::S(S::R(record))).collect::<Vec<_>>());

        let mut columns = Columns::default();
        assert!(Trace::from_slice(&bytes).unwrap().next_columns(&mut columns).unwrap());
        let r = columns.r();
        assert_eq!((r.time_count, r.time), (&[1, 1, 0, 0, 1, 1][..], &[70_000_000_000; 4][..]));
        assert_eq!((r.items_count, r.items_x), (&[0, 0, 1, 1, 0, 0][..], &[3, 3][..]));
        assert_eq!(r.item, [1, 2, 3].repeat(4));
    }
}

#[test]
fn what_the_expression_does_not_say() {
    let wrong = [
        R { flags: Flags(1), items: None, ..R::default() },
        R { time: Some(1), ..R::default() },
        R { size: 4, options: vec![0; 4], item: vec![1], ..R::default() },
    ];
    for record in wrong {
        let mut writer = Writer::new(Vec::new()).unwrap();
        let error = writer.r(&record.borrow()).unwrap_err().to_string();
        assert!(error.contains("their count expression yields"), "{error}");
        assert_eq!(writer.records_written(), 0);
    }
}

#[test]
fn records_in_byte_arrays() {
    for order in [Order::Little, Order::Big] {
        let mut writer = Writer::with_options(Vec::new(), &WriteOptions { order, ..WriteOptions::default() }).unwrap();
        for record in records(order) {
            writer.r(&record.borrow()).unwrap();
        }
        let bytes = writer.finish().unwrap();
        let mut trace = Trace::from_slice(&bytes).unwrap();
        let (mut options, mut parts) = (trace.nested(2).unwrap(), trace.nested(3).unwrap());
        assert!(trace.nested(4).is_err());
        let (mut codes, mut steps, mut texts) = (Vec::new(), Vec::new(), 0);
        while let Some(record) = trace.next().unwrap() {
            let Record::S(S::R(r)) = record else { panic!() };
            let read = options.for_each_element(r.options, |element| match element {
                Element::Options(OptionsOption { code, vfield }) => codes.push((code, vfield.len())),
            });
            read.unwrap();
            let read = parts.for_each(r.vfield.unwrap_or_default(), |part| match part {
                Record::Parts(Parts::Step(step)) => steps.push(step.t),
                Record::Parts(Parts::Text(text)) => texts += text.vfield.len(),
                Record::S(_) => panic!(),
            });
            read.unwrap();
        }
        assert_eq!((codes, steps, texts), (vec![(1, 2), (0, 0), (1, 2), (0, 0)], vec![5, 7], 3));
        // An unknown tag, truncated records, and metadata.
        for bytes in [&[9][..], &[4], &[5, 3, 0], &[3, 4, 1, 0x10, 2]] {
            let mut given = 0;
            let whole = [&[4, 1][..], bytes].concat();
            let error = parts.for_each(&whole, |_| given += 1).unwrap_err();
            assert_eq!((given, error.place.offset >= 2), (1, true), "{error}");
        }
    }
}

/// Items that the trace's DTD does not define read as absent, and an additional field in its nested records is skipped.
#[test]
fn another_version() {
    let dtd = "section s 1 { r: (tag, size, options, flags) { tag.value = 4;
            size.width = 1; size.interpretation = none; flags.width = 1; flags.interpretation = none;
            options.width = size.value; options.interpretation = none; options.section = 2; } }
        section options 2 { option: (more, code, vfield) { code.width = 1; code.interpretation = none;
            more.width = 1; more.interpretation = none; } }";
    let line = r#"{"@section":"s","@record":"r","size":6,"options":[{"@record":"option","more":9,"code":8,"vfield":"616263"}],"flags":0}"#;
    let bytes = evolution::write(dtd, &[line]);
    let mut trace = Trace::from_slice(&bytes).unwrap();
    let mut options = trace.nested(2).unwrap();
    let mut none = trace.nested(3).unwrap();
    let Some(Record::S(S::R(r))) = trace.next().unwrap() else { panic!() };
    assert_eq!((r.time, r.items, r.item.len()), (None, None, 0));
    let mut seen = Vec::new();
    let mut element = |element: Element<&[u8]>| match element {
        Element::Options(OptionsOption { code, vfield }) => seen.push((code, vfield.to_vec())),
    };
    options.for_each_element(r.options, &mut element).unwrap();
    assert_eq!(seen, [(8, b"abc".to_vec())]);
    none.for_each(&[9], |_| panic!("the trace has no such section")).unwrap();
}
