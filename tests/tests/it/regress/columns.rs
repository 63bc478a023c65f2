//! Chunks stored in columns, of which only some leaves are read.
#![allow(clippy::unwrap_used, reason = "a failing test must panic")]

use metatf::Result;
use metatf::columns::Columns;
use metatf::container::{Filter, WriteOptions};
use metatf::reader::Metadata;
use metatf_tests::Value::{Bytes, Number};
use metatf_tests::columns::{check_mixed, records};
use metatf_tests::random::Action;
use metatf_tests::runtime;

/// Writes records in columns, and reads each leaf without the others.
fn each_leaf_alone(dtd: &str, actions: &[Action], chunk_size: usize) {
    let schema = runtime::schema(dtd);
    let options = WriteOptions { filter: Filter::Columns, chunk_size, ..WriteOptions::default() };
    let (trace, done) = runtime::write(&schema, actions, &options);
    assert_eq!(done.len(), actions.len());
    let open = || runtime::open(&schema, &trace).unwrap();
    let (expected, end) = records(&mut open());
    assert_eq!(end, Ok(()));
    for only in 0..4 {
        let read: Result<()> = check_mixed(&mut open(), &expected, |_, _, leaf| leaf == only, || 0);
        assert_eq!(read, Ok(()), "leaf {only}");
    }
}

/// A record that ends with an array up to a byte is not divided into columns, so its optional leaf has none.
#[test]
fn optional_leaves_of_undivided_records() {
    let dtd = "section s 1 {
        n.width = 1; n.interpretation = none; t.width = 1; t.interpretation = none;
        r: (tag, n, (n.bit 0)*t, d) { tag.value = 4; d.width = until 0; d.interpretation = none; }
    }";
    let record = |n, t: &[u64], text: &[u8]| {
        let numbers = [&[n, n & 1], t].concat().into_iter().map(Number);
        Action::Record(1, 3, numbers.chain([Bytes(text.to_vec())]).collect())
    };
    each_leaf_alone(dtd, &[record(1, &[7], b"one"), record(2, &[], b"two"), record(3, &[9], b"")], 1000);
}

/// A comment whose length comes from a stream section moves the section's cursor, even if nobody reads the comment.
#[test]
fn comments_that_move_a_cursor() {
    let dtd = "section e 1 { item: (v) { v.width = 1; v.interpretation = none; } }
    section s 2 { r: (tag, n) { tag.value = 4; n.width = 1; n.interpretation = none; } }";
    let comment = |text: &[u8]| Action::Record(2, 0, vec![Number(text.len() as u64), Bytes(text.to_vec())]);
    let strides = Metadata { record: 1, field: 1, property: 23, values: [1, 1], count: 2 };
    let record = |n| Action::Record(2, 4, vec![Number(n)]);
    // The second chunk is read completely, because its encoding changes in the middle.
    let wide = Metadata { record: 4, field: 1, property: 16, values: [2, 0], count: 1 };
    let second = [record(2), Action::Metadata(2, wide), comment(b"another"), record(3)];
    each_leaf_alone(
        dtd,
        &[&[Action::Metadata(2, strides), comment(b"a comment"), record(1)], &second[..]].concat(),
        17,
    );
}

/// The rest of a chunk can be read with another selection of leaves.
#[test]
fn other_leaves_of_the_same_chunk() {
    let dtd = "section s 1 { r: (tag, n, m) {
        tag.value = 4; n.width = 2; n.interpretation = none; m.width = 2; m.interpretation = none;
    } }";
    let schema = runtime::schema(dtd);
    let all: Vec<Action> = (0..9000).map(|n| Action::Record(1, 3, vec![Number(n), Number(n)])).collect();
    for filter in [Filter::Columns, Filter::Auto] {
        let options = WriteOptions { filter, ..WriteOptions::default() };
        let (trace, _) = runtime::write(&schema, &all, &options);
        let mut reader = runtime::open(&schema, &trace).unwrap();
        for (leaf, first, count) in [(1, 0, 4096), (2, 4096, 4096), (1, 8192, 808)] {
            let mut columns = Columns::of_leaves(&schema.format, |_, _, of| of == leaf);
            assert!(reader.next_columns(&mut columns).unwrap());
            assert_eq!((columns.first(), columns.len()), (first, count));
            let records = columns.records().next().unwrap();
            assert!(records.numbers(leaf).iter().copied().eq(first..first + count as u64), "{filter:?}, leaf {leaf}");
            assert!(records.numbers(3 - leaf).is_empty());
        }
    }
}
