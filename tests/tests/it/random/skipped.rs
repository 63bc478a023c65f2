//! Skipping a record without decoding it does not affect the records after it.

use super::common::{config, seed};
use metatf::container::Reader;
use metatf::dynamic::{OwnedRecord, Trace};
use metatf::reader::Event;
use metatf_tests::example::Example;
use proptest::prelude::*;

/// Events of a reader, with the values that were decoded, and the final result.
type Told = (Vec<(Event, Option<OwnedRecord>)>, metatf::Result<()>);

/// Reads a trace and decodes the n-th event if `wanted` returns true for it.
fn read(example: &Example, bytes: &[u8], wanted: impl Fn(usize, Event) -> bool) -> Told {
    let mut told = Vec::new();
    let result = Reader::from_slice(bytes).and_then(|reader| {
        let mut trace = Trace::new(example.schema.clone(), reader)?;
        while let Some(event) = trace.reader_mut().next_event()? {
            if wanted(told.len(), event) {
                trace.decode(event)?;
                told.push((event, Some(trace.record().clone())));
            } else {
                told.push((event, None));
            }
        }
        Ok(())
    });
    (told, result)
}

/// Compares a partial reading with a complete one.
fn check(example: &Example, bytes: &[u8], wanted: impl Fn(usize, Event) -> bool) -> Result<(), TestCaseError> {
    let (all, end) = read(example, bytes, |_, _| true);
    let (mut some, same_end) = read(example, bytes, &wanted);
    // An error within a skipped record surfaces at the next record, after the skipped one was announced.
    if end.is_err() && some.len() > all.len() {
        let last = some.pop();
        prop_assert!(last.is_some_and(|(_, owned)| owned.is_none()), "{}", example.about());
    }
    prop_assert_eq!(end, same_end, "{}", example.about());
    let expected = all.into_iter().enumerate().map(|(n, (event, owned))| (event, owned.filter(|_| wanted(n, event))));
    prop_assert_eq!(expected.collect::<Vec<_>>(), some, "{}", example.about());
    Ok(())
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn what_is_left_out_leaves_no_trace(
        seed in seed(400, 500),
        mask in any::<u64>(),
        cut in any::<prop::sample::Index>(),
        damaged in any::<bool>(),
    ) {
        let example = Example::new(&seed, true);
        let mut bytes = example.trace.clone();
        if damaged {
            bytes[cut.index(example.trace.len())] ^= 0x10;
            bytes.truncate(bytes.len() - cut.index(bytes.len()) / 2);
        }
        check(&example, &bytes, |n, _| mask >> (n % 64) & 1 == 1)?;
        check(&example, &bytes, |_, event| match event {
            Event::Record(at) => mask >> (at.record % 64) & 1 == 1,
            _ => false,
        })?;
        check(&example, &bytes, |_, _| false)?;
    }
}
