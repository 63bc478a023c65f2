//! Models and their stream sections if a writer rolls a record back: elements of a model were lost if a `sectionStride`
//! leaf had added them as well, a strict writer kept elements of refused records, and a repeated leaf whose later items
//! did not fit had already trained its model with the earlier ones.

use metatf::container::WriteOptions;
use metatf::dynamic::Writer;
use metatf::{Error, ErrorKind};
use metatf_tests::random::Action;
use metatf_tests::{Value, runtime};

fn number(n: u64) -> Value {
    Value::Number(n)
}

/// Both cursors see the elements 0 and 0 that open the heap.
#[test]
fn a_stride_and_a_heap_take_the_same_elements() {
    let text = "section m 1 { e: (x) { x.width = 8; x.interpretation = none; } }
        section s 2 { t: (tag, a, p) {
            tag.value = 4; a.interpretation = sectionStride 1 1;
            p.width = 0; p.interpretation = predicted 1 heap freed 1;
        } }";
    let records: Vec<Action> = [(0, 0x1000), (0, 0x2000), (9, 0x3000), (9, 0x3000)]
        .map(|(a, p)| Action::Record(2, 4, vec![number(a), number(p)]))
        .into();
    for version in [0, 1] {
        runtime::comes_back(&runtime::schema(text), &records, &WriteOptions { version, ..WriteOptions::default() });
    }
}

/// Two sections store their values in one stream section, so the second one meets the elements of the first.
#[test]
fn items_of_a_leaf_that_finds_no_room() {
    let text = "section m 1 { e: (x) { x.width = 8; x.interpretation = none; } }
        section s 2 { t: (tag, p) { tag.value = 4; p.interpretation = predicted 1 lastValue 2 1; } }
        section r 3 { u: (tag, k*(p, q)) {
            tag.value = 5; k.width = 1; k.interpretation = none;
            p.interpretation = predicted 1 lastValue 2 1; q.interpretation = predicted 1 (lastValue 1, stride) 1;
        } }";
    let one = |n| Action::Record(2, 4, vec![number(n)]);
    let items = |values: &[u64]| {
        let count = values.len() as u64 / 2;
        Action::Record(3, 5, std::iter::once(count).chain(values.iter().copied()).map(number).collect())
    };
    let actions = [one(7), one(8), items(&[7, 7, 9, 14, 8, 21]), items(&[9, 9, 8, 30]), one(1), items(&[8, 8]), one(7)];
    for version in [0, 1] {
        runtime::comes_back(&runtime::schema(text), &actions, &WriteOptions { version, ..WriteOptions::default() });
    }
}

#[test]
fn a_strict_writer_forgets_what_it_refuses() {
    let schema = runtime::schema(
        "section m 1 { e: (x) { x.width = 8; x.interpretation = none; } }
         section s 2 { t: (tag, a, b) {
            tag.value = 4; a.interpretation = predicted 1 (lastValue 2, stride) 1;
            b.width = 0; b.interpretation = predicted 1 lastValue 1 1;
         } }",
    );
    for version in [0, 1] {
        let options = WriteOptions { version, ..WriteOptions::default() };
        let mut writer = Writer::new(Vec::new(), &schema, &options).unwrap();
        writer.inner().set_strict(true);
        let mut done = Vec::new();
        for (a, b) in [(5, 0), (7, 1), (7, 0), (5, 0), (9, 9), (11, 0)] {
            let action = Action::Record(2, 4, vec![number(a), number(b)]);
            match runtime::perform(&mut writer, &action) {
                Ok(()) => done.push(action),
                Err(Error { kind: ErrorKind::DoesNotFit { value, width: 0 }, .. }) => assert_eq!(value, b),
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(done.len(), 4);
        let (seen, result) = runtime::read(&schema, &writer.finish().unwrap());
        assert_eq!(result, Ok(()));
        let read = runtime::records_of(seen, version, &|_| false);
        assert_eq!(read, runtime::expected(&schema, &done, version));
    }
}
