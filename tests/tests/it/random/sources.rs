//! A trace reads the same from memory, from a mapped file, and from a stream that returns a few bytes at a time.

use super::common::{config, seed};
use metatf::container::Reader;
use metatf::dynamic::Trace;
use metatf::{ErrorKind, Result};
use metatf_tests::example::Example;
use metatf_tests::{Seen, What, runtime};
use proptest::prelude::*;
use std::io::{Read, Write as _};

/// Returns `1..=most` bytes at a time, with occasional interrupts.
struct Trickle<'a> {
    bytes: &'a [u8],
    most: usize,
    turn: usize,
}

impl Read for Trickle<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        self.turn += 1;
        if self.turn % 7 == 3 {
            return Err(std::io::ErrorKind::Interrupted.into());
        }
        let n = (1 + self.turn % self.most).min(self.bytes.len()).min(out.len());
        let (now, rest) = self.bytes.split_at(n);
        out[..n].copy_from_slice(now);
        self.bytes = rest;
        Ok(n)
    }
}

fn all(example: &Example, reader: Result<Reader<'_>>) -> (Vec<Seen>, Result<()>) {
    match reader.and_then(|reader| Trace::new(example.schema.clone(), reader)) {
        Ok(mut trace) => {
            trace.reader_mut().set_all(true);
            runtime::drain(&mut trace)
        }
        Err(error) => (Vec::new(), Err(error)),
    }
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn all_sources_agree(seed in seed(400, 500), most in 1_usize..300, cut in any::<prop::sample::Index>(), flip in any::<bool>()) {
        let example = Example::new(&seed, true);
        let mut bytes = example.trace.clone();
        if flip {
            let at = cut.index(bytes.len());
            bytes[at] ^= 0x10;
            bytes.truncate(bytes.len() - cut.index(bytes.len()) / 2);
        }
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&bytes).unwrap();
        let memory = all(&example, Reader::from_slice(&bytes));
        prop_assert_eq!(&memory, &all(&example, Reader::open(file.path())));
        prop_assert_eq!(&memory, &all(&example, Reader::from_read(Trickle { bytes: &bytes, most, turn: 0 })));
        let salvaged = all(&example, Reader::salvage_slice(&bytes));
        prop_assert_eq!(&salvaged, &all(&example, Reader::salvage(file.path())));
        prop_assert_eq!(&salvaged, &all(&example, Reader::salvage_read(Trickle { bytes: &bytes, most, turn: 0 })));
    }

    /// Seeking to the n-th record returns the same as reading up to it.
    #[test]
    fn seeking_is_reading_on(seed in seed(400, 500), places in prop::collection::vec(any::<prop::sample::Index>(), 1..5)) {
        let example = Example::new(&seed, true);
        let records = |trace: &mut Trace<'_>| {
            let (seen, result) = runtime::drain(trace);
            assert_eq!(result, Ok(()), "{}", example.about());
            let data = |s: &Seen| s.what == What::Record && s.record != "comment";
            seen.into_iter().filter(data).collect::<Vec<_>>()
        };
        let all = records(&mut runtime::open(&example.schema, &example.trace).unwrap());
        let mut trace = runtime::open(&example.schema, &example.trace).unwrap();
        for place in places {
            let n = place.index(all.len() + 2);
            trace.reader_mut().seek(n as u64).unwrap();
            prop_assert_eq!(&records(&mut trace)[..], all.get(n..).unwrap_or_default(), "from {}\n{}", n, example.about());
        }
    }

    /// Looking up an element by its offset returns the element at that offset.
    #[test]
    fn elements_are_found_by_offset(seed in seed(400, 500)) {
        let mut seed = seed;
        if let Some(version) = seed.options.first_mut() {
            *version = 0;
        }
        let example = Example::new(&seed, true);
        // Elements belong to their group, whose records are read just before them.
        let mut trace = runtime::open(&example.schema, &example.trace).unwrap();
        trace.reader_mut().set_all(true);
        let mut before = std::collections::HashMap::new();
        while let Some(seen) = runtime::next(&mut trace).unwrap() {
            let section = example.schema.format.section_index(seen.section).unwrap();
            match seen.what {
                What::Element | What::Shared => {
                    let found = runtime::element_at(&mut trace, section, seen.offset);
                    prop_assert_eq!(found, Ok(seen.values), "offset {}\n{}", seen.offset, example.about());
                    // No element begins in the middle of another one, or after the last one.
                    let last = before.insert(section, seen.offset).filter(|last| *last < seen.offset);
                    let middle = last.map_or(seen.offset..seen.offset, |last| last + 1..seen.offset);
                    for offset in middle.take(20).chain([seen.offset + (1 << 40)]) {
                        let found = runtime::element_at(&mut trace, section, offset).map_err(|e| e.kind);
                        let missing = matches!(found, Err(ErrorKind::NoOffset { .. }));
                        prop_assert!(missing, "offset {}: {:?}\n{}", offset, found, example.about());
                    }
                }
                _ => {}
            }
        }
    }
}
