//! Times in nanoseconds since 1970 are stored as 4-byte differences. The first one in each group is a difference from
//! 0, which does not fit and widened the field to 8 bytes until the end of the group. Similarly, job numbers that
//! increase by one were stored from the second group on, because a stride restarts at the DTD's initial value.

use metatf::container::{Codec, Filter, WriteOptions};
use metatf_tests::random::Action;
use metatf_tests::{Value, runtime};

const RECORDS: u16 = 20_000;
/// The same number, for counting bytes.
const COUNT: usize = RECORDS as usize;
/// Bytes of the tag and the difference.
const RECORD: usize = 1 + 4;

/// Returns the content bytes of a trace of jobs at these times, plus 200 bytes per chunk and per group.
fn content(times: impl Fn(u64) -> u64, group_size: usize) -> usize {
    let schema = runtime::schema(
        "time.width = 4; time.interpretation = delta 0;
         section s 1 { done: (tag, time, job) { tag.value = 4; job.interpretation = stride 0 1; } }",
    );
    let done =
        (0..).zip(schema.format.records.iter()).find(|(_, record)| record.name == "done").map_or(0, |(index, _)| index);
    let record = |i: u64| Action::Record(1, done, vec![Value::Number(times(i)), Value::Number(i + 1)]);
    let actions: Vec<_> = (0..RECORDS.into()).map(record).collect();
    let options = WriteOptions { codec: Codec::Stored, filter: Filter::None, group_size, ..WriteOptions::default() };
    runtime::comes_back(&schema, &actions, &options);
    runtime::write(&schema, &actions, &options).0.len()
}

#[test]
fn only_the_first_value_of_a_group_is_long() {
    let start = 1_760_000_000_000_000_000;
    let one_group = content(|i| start + 1000 * i, usize::MAX);
    assert!(one_group < COUNT * RECORD + 450, "{one_group}");
    let groups = content(|i| start + 1000 * i, 10_000);
    assert!(groups < COUNT * RECORD + 11 * 200, "{groups}");
}

#[test]
fn a_pause_is_one_jump() {
    // A pause of five seconds every thousand records.
    let pauses = content(|i| 1000 * i + i / 1000 * 5_000_000_000, usize::MAX);
    assert!(pauses < COUNT * RECORD + 20 * 13 + 450, "{pauses}");
}

#[test]
fn jumps_that_follow_each_other_widen_the_field() {
    // A metadata record per value would need 12 bytes.
    let jumps = content(|i| i * 5_000_000_000, usize::MAX);
    assert!(jumps < COUNT * (1 + 8) + 450, "{jumps}");
}
