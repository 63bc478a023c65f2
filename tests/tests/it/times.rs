//! The times of groups, as the runtime and the oracle read them.
#![allow(clippy::unwrap_used, reason = "a test")]

use metatf::container::{Codec, GroupTimes, Reader, WriteOptions};
use metatf::dynamic::{Item, Line, OwnedRecord, Schema, Trace, Writer};
use metatf_tests::conformance::vectors;
use metatf_tests::oracle::{self, Times};

/// Returns the times in the oracle's form.
fn plain(times: &GroupTimes) -> Times {
    let leaves = times.leaves.iter().map(|leaf| [leaf.section.into(), leaf.tag.into(), leaf.leaf.into()]);
    let groups = times.groups.iter();
    let groups = groups.map(|times| (times.lowest <= times.highest).then_some([times.lowest, times.highest]));
    (leaves.collect(), groups.collect())
}

#[test]
fn the_oracle_and_the_runtime_read_the_same_times() {
    let (mut right, mut wrong) = (0, 0);
    for vector in vectors().iter().filter(|vector| vector.name.contains("v1-times")) {
        let bytes = &std::fs::read(vector.trace_file()).unwrap();
        let times = oracle::times(bytes);
        match Reader::from_slice(bytes).unwrap().group_times() {
            Ok(found) => {
                assert_eq!(found.as_ref().map(plain), times.unwrap(), "{}", vector.name);
                right += usize::from(found.is_some());
            }
            Err(error) => {
                times.unwrap_err();
                assert!(vector.name.contains("times-bad"), "{}: {error}", vector.name);
                wrong += 1;
            }
        }
    }
    assert_eq!((right, wrong), (6, 14));
}

const DTD: &str = "\
time.width = 1; time.interpretation = delta 0; time.source = \"clock\";
section a 1 {
    one: (tag, time) { tag.value = 4; }
    two: (tag, n, n*item, time, other) {
        tag.value = 5;
        n.width = 1; n.interpretation = none;
        item.width = 1; item.interpretation = none;
        other.width = 4; other.interpretation = none; other.role = \"time\";
    }
    empty: (tag) { tag.value = 6; }
}
section b 2 {
    three: (tag, time) { tag.value = 4; time.interpretation = sectionStride 3 1; }
    four: (tag, time) { tag.value = 5; time.format = \"signed\"; }
}
section ticks 3 { tick: (value) { value.width = 8; value.interpretation = none; } }
";

/// The times that a writer states are exactly those of the records, whatever the order and the codec.
#[test]
fn writers_state_the_times_of_the_records() {
    let schema = Schema::parse("times.dtd", DTD.as_bytes()).unwrap();
    for codec in [Codec::Stored, Codec::default()] {
        for groups in [1, 2, 1500] {
            let options = WriteOptions { codec, ..WriteOptions::default() };
            let mut writer = Writer::new(Vec::new(), &schema, &options).unwrap();
            let (mut expected, mut state) = (Vec::new(), 99_u64);
            let mut random = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                state >> 33
            };
            for group in 0..groups {
                writer.write(&Line::Group, &OwnedRecord::default()).unwrap();
                let mut times: Option<[u64; 2]> = None;
                for _ in 0..random() % 4 + 1 {
                    let time = [group * 100 + random() % 100, random() << 31][usize::from(random() % 50 == 0)];
                    let (section, record) = [(1, 3), (1, 4), (1, 5), (2, 6), (2, 7)][(random() % 5) as usize];
                    let items = [7, 8, 9];
                    let (numbers, has_time): (&[u64], _) = match record {
                        3 | 6 => (&[time], true),
                        4 => (&[3, items[0], items[1], items[2], time, 1], true),
                        5 => (&[], false),
                        _ => (&[time], false), // Signed times are not listed.
                    };
                    let mut owned = OwnedRecord::default();
                    numbers.iter().for_each(|number| owned.push_number(*number));
                    writer.record(section, record, &owned).unwrap();
                    if has_time {
                        let [lowest, highest] = times.unwrap_or([time, time]);
                        times = Some([lowest.min(time), highest.max(time)]);
                    }
                }
                expected.push(times);
            }
            let file = writer.finish().unwrap();
            let times = oracle::times(&file).unwrap();
            let leaves = vec![[1, 4, 1], [1, 5, 3], [2, 4, 1]];
            assert_eq!(times, (groups > 1).then_some((leaves, expected)));

            let mut trace = Trace::from_slice(&file).unwrap();
            let times = trace.reader_mut().group_times().unwrap();
            let Some(times) = times else { continue };
            let wanted = times.groups[times.groups.len() / 2];
            trace.reader_mut().only_times(wanted).unwrap();
            let mut seen = 0;
            while let Some(entry) = trace.next_entry().unwrap() {
                seen +=
                    usize::from(entry.record.iter().any(|item| matches!(item, Item::Number(n) if n == wanted.lowest)));
            }
            assert!(seen > 0 || wanted.lowest > wanted.highest);
        }
    }
}
