//! The generated reader reads the output of the generated writer.

use super::{hatf10, hostile, shapes, string_table};
use metatf::Change;
use metatf::container::{Class, Codec, Order, WriteOptions};
use metatf::format::Interpretation;
use metatf::typed::Event;

/// Returns write options with both versions, classes and byte orders, each with large and small chunks and groups.
fn options() -> impl Iterator<Item = WriteOptions> {
    let all = [(0, Class::Bits32, Order::Big), (0, Class::Bits64, Order::Little), (1, Class::Bits32, Order::Little)];
    let all = all.into_iter().chain([(1, Class::Bits64, Order::Big)]);
    all.flat_map(|(version, class, order)| {
        [1 << 20, 40].map(|size| WriteOptions {
            version,
            class,
            order,
            codec: Codec::Stored,
            chunk_size: size,
            group_size: 2 * size,
            ..WriteOptions::default()
        })
    })
}

#[test]
fn hatf() {
    use hatf10::{Alloc, Free, Heap, Record, Trace, Writer};
    for options in options() {
        let mut writer = Writer::with_options(Vec::new(), &options).unwrap();
        let mut expected = Vec::new();
        for i in 0..50 {
            let address = 0x7f00_0000_0000 + i * 16;
            let alloc = Alloc { size: i, address, thread: i % 2, vfield: &b"main"[..], ..Alloc::default() };
            writer.alloc(&alloc).unwrap();
            let free = Free { address, ..Free::default() };
            writer.free(&free).unwrap();
            expected.push(Record::Heap(Heap::Alloc(alloc.to_owned())));
            expected.push(Record::Heap(Heap::Free(free.to_owned())));
        }
        writer.write(&expected[0]).unwrap();
        writer.write(&expected[1].borrow()).unwrap();
        assert_eq!(writer.records_written(), 102);
        let bytes = writer.finish().unwrap();
        let owned: Vec<Record> = Trace::from_slice(&bytes).unwrap().into_iter().map(Result::unwrap).collect();
        assert_eq!(owned[..100], expected[..]);
        assert_eq!(owned[100..], expected[..2]);
        let mut trace = Trace::from_read(&bytes[..]).unwrap();
        trace.seek(2).unwrap();
        let mut lent = 2;
        while let Some(record) = trace.next().unwrap() {
            assert_eq!(record.to_owned(), owned[lent]);
            lent += 1;
        }
        assert_eq!(lent, 102);
    }
}

#[test]
fn every_shape() {
    use shapes::{
        Constants, Direct, Early, Fixed, Groups, GroupsNItem, GroupsNItemMItem, Kinds, Leaves, Lists, Mark, Numbers,
        Other, OtherPair, Pair, Pairs, Record, Sized, Twice, TwiceNItem,
    };
    let pair = |n: u64| Pair { x: n, y: n + 1000 };
    let records: Vec<Record> = vec![
        Record::Numbers(Numbers::Kinds(Kinds {
            plain: 5,
            signed: -3,
            float: 0.25,
            name: *b"nine byte",
            blob: vec![7; 33],
        })),
        Record::Numbers(Numbers::Constants(Constants { x: 9 })),
        Record::Lists(Lists::Leaves(Leaves {
            x: vec![1, 2, 3],
            vfield: vec![b"a".to_vec(), Vec::new()],
            z: vec![[1; 10], [2; 10], [3; 10]],
            w: vec![-0.5],
        })),
        Record::Lists(Lists::Groups(Groups {
            n_items: vec![
                GroupsNItem {
                    x: 1,
                    m_items: vec![GroupsNItemMItem { x: 2, data: b"xyz".to_vec() }, GroupsNItemMItem::default()],
                    pair: pair(3),
                },
                GroupsNItem::default(),
            ],
        })),
        Record::Lists(Lists::Pairs(Pairs { pair: pair(1), pair_2: vec![pair(2), pair(3)], pair_3: pair(4) })),
        Record::Lists(Lists::Early(Early { x: 8, y: vec![1, 1 << 40] })),
        Record::Lists(Lists::Twice(Twice {
            n: 2,
            x: vec![1, 2],
            n_items: vec![TwiceNItem { y: 3, z: vec![4, 5] }, TwiceNItem { y: 6, z: vec![7, 8] }],
        })),
        Record::Lists(Lists::Fixed(Fixed { c: vec![(); 3] })),
        Record::Bytes(shapes::BytesSection::Direct(Direct { x: 1, data: vec![9; 300] })),
        Record::Bytes(shapes::BytesSection::Sized(Sized { size: 5, text: b"ab".to_vec() })),
        Record::Bytes(shapes::BytesSection::Other(Other { vfield: vec![1; 300], pair: OtherPair { y: 2 } })),
        Record::Lists(Lists::Mark(Mark { when: 70_000 })),
    ];
    for options in options() {
        let mut writer = shapes::Writer::with_options(Vec::new(), &options).unwrap();
        writer.set_keep_order(true);
        for record in &records {
            writer.write(record).unwrap();
            assert_eq!(&record.borrow().to_owned(), record);
        }
        let bytes = writer.finish().unwrap();
        let mut trace = shapes::Trace::from_slice(&bytes).unwrap();
        let read: Vec<Record> = trace.records().map(Result::unwrap).collect();
        assert_eq!(read, records);
        let lists = shapes::Trace::from_slice(&bytes).unwrap().lists().map(Result::unwrap).count();
        assert_eq!(lists, 7);
        let mut columns = shapes::Columns::default();
        assert!(shapes::Trace::from_slice(&bytes).unwrap().next_columns(&mut columns).unwrap());
        assert_eq!(columns.len(), records.len());
        let kinds = columns.kinds();
        assert_eq!((kinds.records, kinds.plain, kinds.signed, kinds.float), (1, &[5][..], &[-3][..], &[0.25][..]));
        assert_eq!(kinds.name.get(0), Some(&b"nine byte"[..]));
        let leaves = columns.leaves();
        assert_eq!((leaves.n, leaves.x, leaves.w), (&[3][..], &[1, 2, 3][..], &[-0.5][..]));
        assert_eq!(leaves.vfield.iter().collect::<Vec<_>>(), [&b"a"[..], b""]);
        assert_eq!(columns.groups().n_items_m_items_x, [2, 0]);
        assert_eq!(columns.pairs().pair_2_y, [1002, 1003]);
        assert_eq!((columns.lists_mark().when, columns.mark().records), (&[70_000][..], 0));
        // The columns of a different format contain none of these records.
        let mut trace = shapes::Trace::from_slice(&bytes).unwrap();
        let mut other = hatf10::Columns::default();
        assert!(trace.next_columns(&mut other).unwrap());
        assert_eq!((other.len(), other.alloc().records), (records.len(), 0));
    }
}

#[test]
fn one_type_alone() {
    use shapes::{Mark, Numbers, Pair, Pairs, Record, Trace};
    for options in options() {
        let mut writer = shapes::Writer::with_options(Vec::new(), &options).unwrap();
        writer.set_keep_order(true);
        for n in 0..100 {
            writer
                .pairs(&Pairs { pair: Pair { x: n, y: 2 * n }, pair_2: Vec::new(), pair_3: Pair::default() })
                .unwrap();
            writer.lists_mark(&Mark { when: n }).unwrap();
            writer.write(&Record::<&[u8]>::Numbers(Numbers::Mark(Mark { when: 1000 + n }))).unwrap();
        }
        let bytes = writer.finish().unwrap();
        let expected: Vec<u64> = (0..100).flat_map(|n| [n, 1000 + n]).collect();
        let mut trace = Trace::from_slice(&bytes).unwrap();
        let owned: Vec<u64> = trace.only::<Mark>().records().map(|mark| mark.unwrap().when).collect();
        assert_eq!(owned, expected);
        let mut looped = Vec::new();
        Trace::from_slice(&bytes).unwrap().only::<Mark>().for_each(|mark| looped.push(mark.when)).unwrap();
        assert_eq!(looped, expected);
        let mut sum = 0;
        let mut trace = Trace::from_slice(&bytes).unwrap();
        let mut pairs = trace.only::<Pairs>();
        while let Some(record) = pairs.next_record().unwrap() {
            sum += record.pair.y;
        }
        assert_eq!(sum, 2 * 99 * 50);
    }
}

#[test]
fn counts_are_checked() {
    let mut writer = shapes::Writer::new(Vec::new()).unwrap();
    let wrong = shapes::Twice { n: 2, x: vec![1], n_items: vec![] };
    let error = writer.twice(&wrong).unwrap_err();
    assert!(error.to_string().contains("the number of items differs from the count field"), "{error}");
    writer.finish().unwrap();
}

#[test]
fn tables_and_streams() {
    use shapes::{Pair, Point, Ref, Refs};
    for options in options() {
        let mut writer = shapes::Writer::with_options(Vec::new(), &options).unwrap();
        let mut expected = Vec::new();
        for i in 0..40 {
            let text = format!("name {}", i % 3);
            let name = writer.names().intern(text.as_str()).unwrap();
            let element = Point { pair: Pair { x: i % 2, y: 5 }, texts: vec![&b"ab"[..], b""] };
            let point = writer.points().intern(element).unwrap();
            writer.r#ref(&Ref { name, point, v: i * i }).unwrap();
            expected.push((text, i % 2, i * i));
        }
        let bytes = writer.finish().unwrap();
        let mut trace = shapes::Trace::from_slice(&bytes).unwrap();
        for (text, x, v) in expected {
            let record = trace.refs().next_record().unwrap().unwrap();
            let Refs::Ref(Ref { name, point, v: value }) = record else { panic!("{record:?}") };
            assert_eq!(trace.names().get(name).unwrap().vfield, text.as_bytes());
            assert_eq!(trace.points().get(point).unwrap().pair.x, x);
            assert_eq!(value, v);
        }
        assert!(trace.next().unwrap().is_none());
        assert!(trace.names().get(1).is_err());
    }
}

#[test]
fn events_beside_the_data() {
    use string_table::{Alloc, Element, Record, S, Trace, Writer};
    let mut writer = Writer::new(Vec::new()).unwrap();
    writer.user_metadata(r#"{"host":"here"}"#).unwrap();
    let int = writer.names().intern("int").unwrap();
    writer.comment(1, "begins").unwrap();
    writer.set("s", "alloc", "size", Change::Interpretation(Interpretation::BaseOffset(100))).unwrap();
    writer.alloc(&Alloc { r#type: int, size: 101 }).unwrap();
    assert!(writer.set("s", "alloc", "nothing", Change::Width(1)).is_err());
    assert!(writer.comment(3, "in a stream section").is_err());
    let bytes = writer.finish().unwrap();

    let mut trace = Trace::from_slice(&bytes).unwrap();
    trace.set_all(true);
    let mut seen = Vec::new();
    while let Some(event) = trace.next_event().unwrap() {
        seen.push(match event {
            Event::Record(record) => {
                assert_eq!(record, Record::S(S::Alloc(Alloc { r#type: int, size: 101 })));
                "record"
            }
            Event::Comment(1, b"begins") => "comment",
            Event::Metadata(1, _) => "metadata",
            Event::Element(Element::Names(name), true) if name.vfield == b"int" => "element",
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(seen, ["element", "comment", "metadata", "record"]);
    assert_eq!(trace.user_metadata(), [br#"{"host":"here"}"#]);
}

#[test]
fn hostile_names() {
    let mut writer = hostile::Writer::new(Vec::new()).unwrap();
    let record = hostile::SelfTypeSelfType { bytes2: &b"abc"[..], ..hostile::SelfTypeSelfType::default() };
    writer.self_self(&record).unwrap();
    let bytes = writer.finish().unwrap();
    let read = hostile::Trace::from_slice(&bytes).unwrap().next_owned().unwrap();
    assert_eq!(read, Some(hostile::Record::SelfType(hostile::SelfType::SelfType(record.to_owned()))));
}

#[test]
fn errors_have_names() {
    use hatf10::{Alloc, Trace, Writer};
    let options = WriteOptions { version: 0, ..WriteOptions::default() };
    let mut writer = Writer::with_options(Vec::new(), &options).unwrap();
    writer.alloc(&Alloc { size: 1, ..Alloc::default() }).unwrap();
    let mut bytes = writer.finish().unwrap();
    *bytes.last_mut().unwrap() = 9;
    let mut trace = Trace::from_slice(&bytes).unwrap();
    let error = trace.next().unwrap_err();
    let text = trace.explain(&error);
    assert!(text.contains("section heap, record alloc, leaf vfield.data"), "{text}");
    assert!(trace.next().unwrap().is_none());
}
