//! Reading groups separately, with any number of threads, has the same results as reading the complete trace: the same
//! events in the same order, then the same error, and the same information about the trace.
#![allow(clippy::unwrap_used, reason = "tests")]

use super::common::{config, seed};
use metatf::container::{Reader, WriteOptions};
use metatf::dynamic::{Schema, Trace, Writer};
use metatf_tests::example::Example;
use metatf_tests::{Seen, runtime};
use proptest::prelude::*;
use std::sync::Mutex;

/// Result of reading: events, the final result, number of records, user metadata, warnings.
type Told = (Vec<Seen>, Result<(), metatf::Error>, u64, Vec<Vec<u8>>, Vec<metatf::container::Warning>);

fn told(seen: Vec<Seen>, result: Result<(), metatf::Error>, trace: &Trace<'_>) -> Told {
    let container = trace.reader().container();
    let about = (container.user_metadata().to_vec(), container.warnings().to_vec());
    (seen, result, trace.reader().records_read(), about.0, about.1)
}

fn open<'b>(schema: &Schema, bytes: &'b [u8]) -> Option<Trace<'b>> {
    let mut trace = Trace::new(schema.clone(), Reader::from_slice(bytes).ok()?).ok()?;
    trace.reader_mut().set_all(true);
    Some(trace)
}

fn in_one(schema: &Schema, bytes: &[u8]) -> Option<Told> {
    let mut trace = open(schema, bytes)?;
    let (seen, result) = runtime::drain(&mut trace);
    Some(told(seen, result, &trace))
}

/// Reads each group into one value. The events before an error are a value too.
fn in_groups(schema: &Schema, bytes: &[u8], threads: usize) -> Option<(Told, usize)> {
    let mut trace = open(schema, bytes)?;
    let (mut all, mut groups) = (Vec::new(), 0);
    let result = trace.par_groups().threads(threads).streamed(
        |group, out| {
            let (seen, result) = runtime::drain(group);
            let _ = out.send(seen);
            result
        },
        |seen| {
            groups += 1;
            all.extend(seen);
            Ok(())
        },
    );
    Some((told(all, result, &trace), groups))
}

/// Streams events one by one, with a small limit on those that wait.
fn streamed(schema: &Schema, bytes: &[u8], threads: usize) -> Option<Told> {
    let mut trace = open(schema, bytes)?;
    let mut all = Vec::new();
    let result = trace.par_groups().threads(threads).ahead(2).streamed(
        |group, out| {
            while let Some(seen) = runtime::next(group)? {
                if !out.send(seen) {
                    break;
                }
            }
            Ok(())
        },
        |seen| {
            all.push(seen);
            Ok(())
        },
    );
    Some(told(all, result, &trace))
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn groups_are_the_trace(seed in seed(300, 900), threads in 1_usize..4, at in any::<prop::sample::Index>(), harm in 0..3) {
        let mut seed = seed;
        if let Some(version) = seed.options.first_mut() {
            *version = 0;
        }
        let example = Example::new(&seed, true);
        let mut bytes = example.trace.clone();
        match harm {
            1 => { let at = at.index(bytes.len()); bytes[at] ^= 0x11; }
            2 => bytes.truncate(at.index(bytes.len())),
            _ => {}
        }
        let schema = &example.schema;
        let whole = in_one(schema, &bytes);
        let (groups, _) = in_groups(schema, &bytes, threads).unzip();
        prop_assert_eq!(&whole, &groups, "{}", example.about());
        prop_assert_eq!(&whole, &streamed(schema, &bytes, threads), "{}", example.about());
    }
}

/// Returns a trace of several groups with a growing table, and its schema.
fn several() -> (Schema, Vec<u8>) {
    let schema = runtime::schema(
        "section names 2 { name: vfield; }
         section steps 3 { step: (item) { item.width = 4; item.interpretation = delta 0; } }
         section events 1 { event: (tag, time, name, step) {
             tag.value = 4; time.width = 2; time.interpretation = delta 0;
             name.width = 4; name.interpretation = sectionOffset 2; step.interpretation = sectionStride 3 1; } }",
    );
    let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default()).unwrap();
    let mut owned = metatf::dynamic::OwnedRecord::default();
    let mut line = |json: String| {
        let line = schema.read_json(json.as_bytes(), &mut owned).unwrap();
        writer.write(&line, &owned).unwrap();
    };
    let mut offset = 0;
    for group in 0..7 {
        if group > 0 {
            line(format!("{{\"@group\":{group}}}"));
        }
        let name = format!("name-{group}");
        line(format!("{{\"@section\":\"names\",\"@record\":\"name\",\"vfield\":\"{}\",\"@shared\":true}}", hex(&name)));
        for n in 0..50 {
            let at = if n % 2 == 0 { offset } else { 0 };
            let time = 1000 * group + n;
            line(format!(
                "{{\"@section\":\"events\",\"@record\":\"event\",\"time\":{time},\"name\":{at},\"step\":{}}}",
                n * n
            ));
        }
        offset += 1 + name.len();
    }
    (schema, writer.finish().unwrap())
}

/// A model that reuses the memory of another group's model must not show its content. Groups with large and with small
/// tables alternate, and some free what others allocated.
#[test]
fn a_model_begins_a_group_with_nothing() {
    let schema = runtime::schema(
        "section misses 2 { miss: (item) { item.width = 8; item.interpretation = none; } }
         section heap 1 {
             by.width = 1; by.interpretation = none; size.width = 2; size.interpretation = none;
             address.width = 1; address.interpretation = predicted 1 heap allocated size by by 2;
             block.width = 1; block.interpretation = predicted 1 heap freed by by 2;
             m: (tag, by, size, address) { tag.value = 4; }
             f: (tag, by, block) { tag.value = 5; } }",
    );
    let mut state = 11_u64;
    let mut random = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % n
    };
    let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default()).unwrap();
    let (mut owned, mut written, mut live) = (metatf::dynamic::OwnedRecord::default(), Vec::new(), Vec::<u64>::new());
    for (group, (records, places)) in
        [(20_000, 1 << 20), (50, 9), (3000, 500), (9000, 1 << 30), (1, 1), (4000, 3)].iter().enumerate()
    {
        let mut line = |json: String| {
            let line = schema.read_json(json.as_bytes(), &mut owned).unwrap();
            writer.write(&line, &owned).unwrap();
        };
        if group > 0 {
            line(format!("{{\"@group\":{group}}}"));
        }
        for _ in 0..*records {
            let by = random(5);
            let address = match random(2) {
                0 if !live.is_empty() => {
                    let at = usize::try_from(random(live.len() as u64)).unwrap();
                    let address = live.swap_remove(at);
                    line(format!("{{\"@section\":\"heap\",\"@record\":\"f\",\"by\":{by},\"block\":{address}}}"));
                    address
                }
                _ => {
                    let (address, size) = (random(*places) * 16 + 16, random(400));
                    line(format!(
                        "{{\"@section\":\"heap\",\"@record\":\"m\",\"by\":{by},\"size\":{size},\"address\":{address}}}"
                    ));
                    live.push(address);
                    address
                }
            };
            written.push(address);
        }
    }
    let bytes = writer.finish().unwrap();
    let addresses = |told: &Told| -> Vec<u64> {
        let last = |seen: &Seen| match seen.values.last() {
            Some(&metatf_tests::Value::Number(address)) if seen.record == "m" || seen.record == "f" => Some(address),
            _ => None,
        };
        told.0.iter().filter_map(last).collect()
    };
    let whole = in_one(&schema, &bytes).unwrap();
    assert!(whole.1.is_ok() && addresses(&whole) == written);
    // With one thread, each group reuses the memory of the previous one; with six, hardly any does.
    for threads in [1, 2, 6] {
        let (groups, n) = in_groups(&schema, &bytes, threads).unwrap();
        assert!(n == 6 && groups == whole, "{threads} threads");
    }
}

fn hex(text: &str) -> String {
    text.bytes().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn a_trace_of_several_groups_is_cut() {
    let (schema, bytes) = several();
    let whole = in_one(&schema, &bytes).unwrap();
    assert_eq!(whole.1, Ok(()));
    for threads in 1..=4 {
        let (groups, n) = in_groups(&schema, &bytes, threads).unwrap();
        assert_eq!(n, 7);
        assert_eq!(whole, groups, "{threads} threads");
    }
    // A stream is read as a single group.
    let mut piped = Trace::new(schema, Reader::from_read(&bytes[..]).unwrap()).unwrap();
    piped.reader_mut().set_all(true);
    let mut groups = Vec::new();
    let take = |(seen, result)| {
        groups.push(seen);
        result
    };
    piped.par_groups().threads(3).ordered(|group| Ok(runtime::drain(group)), take).unwrap();
    assert_eq!(groups, [whole.0]);
}

#[test]
fn offsets_lead_to_elements_in_every_group() {
    let (schema, bytes) = several();
    let names = schema.format.section_index(2).unwrap();
    let mut trace = open(&schema, &bytes).unwrap();
    let mut found = Vec::new();
    let work = |group: &mut Trace<'_>| {
        let mut found = Vec::new();
        while let Some(seen) = runtime::next(group)? {
            if seen.record == "event"
                && let Some(metatf_tests::Value::Number(offset)) = seen.values.get(1)
            {
                found.push(runtime::element_at(group, names, *offset)?);
            }
        }
        Ok::<_, metatf::Error>(found)
    };
    let take = |of_group: Vec<_>| {
        found.extend(of_group);
        Ok(())
    };
    trace.par_groups().threads(2).ordered(work, take).unwrap();
    let text = |i: usize| format!("{:?}", found.get(i).and_then(|values: &Vec<_>| values.last().cloned()));
    assert_eq!(found.len(), 350);
    assert!(text(0).contains("name-0") && text(300).contains("name-6") && text(301).contains("name-0"));
}

#[test]
fn the_first_error_is_that_of_the_first_group() {
    let (schema, bytes) = several();
    // Damage the chunks of all groups except the first two.
    let mut reader = Reader::from_slice(&bytes).unwrap();
    let chunks = reader.chunks().unwrap().to_vec();
    let groups: Vec<_> = chunks.iter().filter(|c| c.is_group_start()).collect();
    let mut harmed = bytes.clone();
    for group in &groups[2..] {
        harmed[usize::try_from(group.offset).unwrap() + 50] ^= 1;
    }
    let whole = in_one(&schema, &harmed).unwrap();
    assert!(whole.1.is_err());
    for threads in 1..=3 {
        assert_eq!(in_groups(&schema, &harmed, threads).unwrap().0, whole);
        let mut trace = open(&schema, &harmed).unwrap();
        let counts = Mutex::new(0);
        let work = |group: &mut Trace<'_>| match runtime::drain(group) {
            (seen, Ok(())) => Ok(seen.len()),
            (_, Err(error)) => Err(error),
        };
        let take = |n| {
            *counts.lock().unwrap() += n;
            Ok(())
        };
        let unordered = trace.par_groups().threads(threads).unordered(work, take);
        assert_eq!(unordered, whole.1, "{threads} threads");
        assert!(*counts.lock().unwrap() > 100, "the first two groups were taken");
    }
}

#[test]
fn taking_can_end_it() {
    let (schema, bytes) = several();
    for threads in 1..=3 {
        let mut trace = open(&schema, &bytes).unwrap();
        let mut taken = 0;
        let enough = metatf::Error::from(std::io::Error::from(std::io::ErrorKind::BrokenPipe));
        let result = trace.par_groups().threads(threads).ahead(1).streamed(
            |group, out| {
                while let Some(seen) = runtime::next(group)? {
                    if !out.send(seen) {
                        return Ok(());
                    }
                }
                Ok(())
            },
            |_| {
                taken += 1;
                if taken == 60 { Err(enough) } else { Ok(()) }
            },
        );
        assert_eq!((result, taken), (Err(enough), 60));
    }
}
