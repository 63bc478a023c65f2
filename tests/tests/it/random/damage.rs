//! Damaged traces cause no panic and no endless loop, and readers return only records that were written (spec 5.2, 7).

use super::common::{config, seed};
use metatf::container::{Reader, WriteOptions};
use metatf::dynamic::{Trace, Writer};
use metatf_tests::example::Example;
use metatf_tests::random::{Choices, Seed};
use metatf_tests::{Seen, Value, What, runtime};
use proptest::collection::vec;
use proptest::prelude::*;

/// Damages a trace from byte `from` on: flips bits, removes, duplicates or overwrites bytes, or truncates the trace.
fn damage(c: &mut Choices<'_>, trace: &[u8], from: usize) -> Vec<u8> {
    let mut bytes = trace.to_vec();
    for _ in 0..1 + c.below(4) {
        if bytes.len() <= from {
            return bytes;
        }
        let at = from
            + (usize::from(c.byte()) << 16 | usize::from(c.byte()) << 8 | usize::from(c.byte())) % (bytes.len() - from);
        let end = (at + 1 + c.below(200)).min(bytes.len());
        match c.below(6) {
            0 | 1 => bytes[at] ^= 1 << c.below(8),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let run = bytes[at..end].to_vec();
                bytes.splice(at..at, run);
            }
            _ => bytes[at..end].fill(c.byte()),
        }
    }
    bytes
}

fn salvage(example: &Example, bytes: &[u8], all: bool) -> Vec<Seen> {
    let Ok(reader) = Reader::salvage_slice(bytes) else { return Vec::new() };
    let Ok(mut trace) = Trace::new(example.schema.clone(), reader) else { return Vec::new() };
    trace.reader_mut().set_salvage(true);
    trace.reader_mut().set_all(all);
    let (seen, result) = runtime::drain(&mut trace);
    assert_eq!(result, Ok(()), "salvage ends well\n{}", example.about());
    seen
}

/// Damages an example and compares the salvaged records with the written ones.
fn delivers_what_was_written(mut seed: Seed, how: &[u8]) -> Result<(), TestCaseError> {
    if let Some(version) = seed.options.first_mut() {
        *version = 0;
    }
    let example = Example::new(&seed, true);
    let bytes = damage(&mut Choices::new(how), &example.trace, 0);
    let (whole, _) = runtime::read(&example.schema, &example.trace);
    prop_assert_eq!(&salvage(&example, &example.trace, true), &whole);
    let got = salvage(&example, &bytes, true);
    for number in 0..=255 {
        let of = |all: &[Seen]| -> Vec<Seen> {
            let wanted = |s: &&Seen| {
                s.section == number && matches!(s.what, What::Record | What::Element | What::Shared | What::Metadata)
            };
            all.iter().filter(wanted).cloned().collect()
        };
        let mut rest = of(&whole).into_iter();
        for seen in of(&got) {
            prop_assert!(rest.any(|s| s == seen), "{:?} was not written, or not here\n{}", seen, example.about());
        }
    }
    Ok(())
}

/// Salvage skips a part whose stride misses an element, and the rest of its section, because the metadata in between is
/// unknown.
#[test]
fn what_follows_a_part_that_is_left_out_is_left_out() {
    let bytes = |hex: &str| -> Vec<u8> {
        let digits = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(digits).collect()
    };
    let dtd = "00abd6002bc0000040c09600002b8000c0800000566b00ab400080800000c000008000c080000000ab80c0000080ab002b002b4deb56ab\
        400056965600008000560000";
    let data = "8000c056b7e00056c0d60000ab009a800000003400c000000001000000000100000000000101000002000000cd01000000004000000056\
        00000000e70001020304050607c0c00000e000000000c000c00000000000000000004000400040000000ab000001";
    let seed = Seed { dtd: bytes(dtd), data: bytes(data), options: bytes("008080b467349a000e") };
    delivers_what_was_written(seed, &[0, 43, 198, 0, 173, 128, 0, 0]).unwrap();
}

proptest! {
    #![proptest_config(config(150))]

    /// Without salvage, a reader returns a prefix of the trace. (The header stays intact because it has no checksum.)
    #[test]
    fn a_damaged_trace_is_delivered_up_to_the_damage(seed in seed(400, 500), how in vec(any::<u8>(), 0..24)) {
        let mut seed = seed;
        if let Some(version) = seed.options.first_mut() {
            *version = 0;
        }
        let example = Example::new(&seed, true);
        let header = usize::try_from(Reader::from_slice(&example.trace).unwrap().header().len).unwrap();
        let bytes = damage(&mut Choices::new(&how), &example.trace, header);
        let read = |bytes| runtime::open(&example.schema, bytes).map(|mut t| runtime::drain(&mut t).0);
        let whole = read(&example.trace).unwrap();
        let part = read(&bytes).unwrap_or_default();
        prop_assert!(whole.starts_with(&part), "{:?}\n{:?}\n{}", whole, part, example.about());
    }

    /// Version 0 has no checksums, so reading must only end without a panic.
    #[test]
    fn any_damage_ends_well(seed in seed(400, 500), how in vec(any::<u8>(), 0..24)) {
        let example = Example::new(&seed, true);
        let bytes = damage(&mut Choices::new(&how), &example.trace, 0);
        let _ = runtime::read(&example.schema, &bytes);
        let (told, _) = metatf_tests::oracle::read(example.dtd(), &bytes);
        drop(told);
    }

    /// Salvage returns only records that were written, at their position and in their order.
    #[test]
    fn salvage_delivers_what_was_written(seed in seed(400, 500), how in vec(any::<u8>(), 0..24)) {
        delivers_what_was_written(seed, &how)?;
    }

    /// A raw stream has no checksums either. Only complete records are returned, including all records before the
    /// damage, and every byte is either returned or reported as lost.
    #[test]
    fn a_raw_stream_is_delivered_but_for_the_damage(
        records in vec((any::<u16>(), vec(any::<u8>(), 0..9), prop::bool::weighted(0.2)), 0..60),
        how in vec(any::<u8>(), 0..24),
        has_catch_all in any::<bool>(),
    ) {
        let other = "other: (tag, length, data) { tag.value = other; length.width = 1; length.interpretation = none;
            data.width = length.value; data.interpretation = none; }";
        let schema = runtime::schema(&format!(
            "tag.width = 2; section s 7 {{ t: (tag, mark, a, length, data) {{ tag.value = 0x1234; mark.width = 2; mark.interpretation = none;
                mark.value = 0xabcd; a.width = 2; a.interpretation = none; length.width = 1; length.interpretation = none;
                data.width = length.value; data.interpretation = none; }} {} }}",
            if has_catch_all { other } else { "" },
        ));
        let is_other = |(a, _, wanted): &(u16, Vec<u8>, bool)| has_catch_all && *wanted && *a > 3 && *a != 0x1234;
        let options = WriteOptions { version: 0, raw: true, ..WriteOptions::default() };
        let mut writer = Writer::new(Vec::new(), &schema, &options).unwrap();
        let values = |record: &(u16, Vec<u8>, bool)| {
            let (a, data) = (Value::Number(record.0.into()), &record.1);
            let head = if is_other(record) { vec![a] } else { vec![Value::Number(0xabcd), a] };
            [head, vec![Value::Number(data.len() as u64), Value::Bytes(data.clone())]].concat()
        };
        let mut ends = vec![0];
        for record in &records {
            let (number, bytes) = if is_other(record) { (4, 3) } else { (3, 7) };
            writer.record(1, number, &runtime::owned(&values(record))).unwrap();
            ends.push(ends[ends.len() - 1] + bytes + record.1.len());
        }
        let raw = writer.finish().unwrap();
        prop_assert_eq!(raw.len(), ends[records.len()]);
        for (bytes, is_whole) in [(damage(&mut Choices::new(&how), &raw, 0), false), (raw.clone(), true)] {
            let reader = Reader::raw_from_slice(&bytes, options.class, options.order, 7).unwrap();
            let mut trace = Trace::new(schema.clone(), reader).unwrap();
            trace.reader_mut().set_salvage(true);
            let (seen, result) = runtime::drain(&mut trace);
            prop_assert_eq!(result, Ok(()));
            let container = trace.reader().container();
            let lost: Vec<_> = container.loss_report().map_or_else(Vec::new, |report| report.losses.clone());
            let mut places: Vec<_> = container.raw_parts().chain(lost.iter().map(|loss| loss.start..loss.end)).collect();
            places.sort_by_key(|place| (place.start, place.end));
            let mut end = 0;
            for place in places {
                prop_assert_eq!(place.start, end);
                end = place.end;
            }
            prop_assert_eq!(end, bytes.len() as u64);
            prop_assert!(!is_whole || lost.is_empty());
            let same = raw.iter().zip(&bytes).take_while(|(a, b)| a == b).count();
            let mut before = ends.iter().filter(|end| **end <= same).count() - 1;
            // Catch-all records may be part of the damage.
            while !is_whole && before > 0 && is_other(&records[before - 1]) {
                before -= 1;
            }
            let got: Vec<_> = seen.into_iter().filter(|seen| seen.what == What::Record).map(|seen| seen.values).collect();
            let written: Vec<_> = records[..before].iter().map(values).collect();
            prop_assert!(got.starts_with(&written), "{:?} of {:?}", got, written);
        }
    }
}
