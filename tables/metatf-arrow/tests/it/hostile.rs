//! Damaged traces yield rows and an error with the file and position, but no panic.
#![allow(clippy::unwrap_used, reason = "tests")]

use metatf_arrow::{OpenOptions, Scan, open_tables};
use metatf_tests::example::Example;
use metatf_tests::random::Seed;
use metatf_tests::targets::mend;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::common::{file, rows};

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damage_is_an_error_with_its_file(
        dtd in vec(any::<u8>(), 0..200),
        data in vec(any::<u8>(), 0..400),
        options in vec(any::<u8>(), 9),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<Option<prop::sample::Index>>(),
        // With correct checksums, readers get further; the embedded DTD may also be damaged.
        is_mended in any::<bool>(),
        is_embedded in any::<bool>(),
    ) {
        let Example { mut trace, schema, .. } = Example::new(&Seed { dtd, data, options }, true);
        for (at, byte) in damage {
            let at = at.index(trace.len());
            trace[at] ^= byte;
        }
        if let Some(cut) = cut {
            trace.truncate(cut.index(trace.len()));
        }
        if is_mended {
            trace = mend(&trace);
        }
        let file = file(&trace);
        let path = file.path().to_str().unwrap();
        for stored in [true, false] {
            let dtd = (!is_embedded).then(|| schema.clone());
            match open_tables(file.path(), &OpenOptions { dtd, force_dtd: !is_embedded, stored, ..OpenOptions::default() }) {
                Err(error) => prop_assert!(error.to_string().contains(path), "{error}"),
                Ok(tables) => {
                    let all = tables.all();
                    let parts: Vec<_> = (0..all.len()).map(|table| (table, None)).collect();
                    for batch in tables.scan_together(&parts, 1).into_iter().flatten() {
                        if let Err(error) = batch {
                            prop_assert!(error.to_string().contains(path), "{error}");
                        }
                    }
                    for table in all {
                        for threads in [1, 2] {
                            let (_, error) = rows(&*table, &Scan { threads, ..Scan::default() });
                            if let Some(error) = error {
                                prop_assert!(error.contains(path), "{error}");
                            }
                        }
                    }
                }
            }
        }
    }
}
