//! The times of groups that generated writers state.
#![allow(clippy::unwrap_used, reason = "a failing test must panic")]

use metatf::container::{Reader, TimeRange};

#[metatf_derive::metatf(dtd = "tests/dtds/times.dtd")]
mod clock {}

use clock::{After, At, Bare, List, Plain, Writer};

#[test]
fn every_way_of_writing_states_the_times() {
    let mut writer = Writer::new(Vec::new()).unwrap();
    let at = |time| At { time, value: 1 };
    // A run of records, the first of which is written by itself.
    writer.write_all((0..100).map(|n| Plain::At(at((n * 37) % 100 + 500)))).unwrap();
    writer.start_group().unwrap();
    // One by one. The second time needs a wider leaf.
    [7, 1 << 40, 9].into_iter().for_each(|time| writer.at(&at(time)).unwrap());
    writer.start_group().unwrap();
    writer.write_all([Plain::Bare(Bare {}), Plain::Bare(Bare {})]).unwrap();
    writer.start_group().unwrap();
    // Values that depend on history, and repetitions. The last jump does not fit.
    [3000, 2000, u64::MAX].into_iter().for_each(|time| writer.after(&After { time }).unwrap());
    writer.start_group().unwrap();
    writer.list(&List { item: vec![1, 2, 3], time: 70_000 }).unwrap();
    writer.start_group().unwrap();
    writer.list(&List { item: Vec::new(), time: 4 }).unwrap();
    writer.after(&After { time: 5 }).unwrap();
    writer.at(&at(6)).unwrap();
    let file = writer.finish().unwrap();

    let times = Reader::from_slice(&file).unwrap().group_times().unwrap().unwrap();
    let range = |lowest, highest| TimeRange { lowest, highest };
    let expected = [range(500, 599), range(7, 1 << 40), TimeRange::EMPTY, range(2000, u64::MAX), range(70_000, 70_000)];
    assert_eq!(times.groups[..5], expected);
    assert_eq!(times.groups[5..], [range(4, 6)]);
    assert_eq!(times.leaves.len(), 3);
}
