//! Damaged traces: no panic, no endless loop, and nothing delivered that was not written (spec 5.2, 7).

mod common;

use common::{config, seed};
use metatf::container::Reader;
use metatf::dynamic::Trace;
use metatf_tests::example::Example;
use metatf_tests::random::{Choices, Seed};
use metatf_tests::{Seen, What, runtime};
use proptest::collection::vec;
use proptest::prelude::*;

/// Damages a trace from byte `from` on: bits flipped, bytes cut out, doubled, overwritten, or the end cut off.
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

/// Damages an example, and holds what salvage delivers against what was written.
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

/// A part that strides is left out where an element is missing, and so is what follows it in its section: its metadata is
/// not known.
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

    /// Without salvage what is delivered is where the trace begins. (A header has no checksum, it is left whole.)
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

    /// Version 0 has no checksums: whatever comes, it comes to an end without a panic.
    #[test]
    fn any_damage_ends_well(seed in seed(400, 500), how in vec(any::<u8>(), 0..24)) {
        let example = Example::new(&seed, true);
        let bytes = damage(&mut Choices::new(&how), &example.trace, 0);
        let _ = runtime::read(&example.schema, &bytes);
        let (told, _) = metatf_tests::oracle::read(example.dtd(), &bytes);
        drop(told);
    }

    /// Salvage delivers nothing but what was written, at its place and in its order.
    #[test]
    fn salvage_delivers_what_was_written(seed in seed(400, 500), how in vec(any::<u8>(), 0..24)) {
        delivers_what_was_written(seed, &how)?;
    }
}
