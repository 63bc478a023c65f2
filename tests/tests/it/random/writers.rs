//! Strict and adapting writers (spec 4.1, design "Writing").

use super::common::{config, seed};
use metatf::container::{Codec, WriteOptions};
use metatf::dynamic::Writer;
use metatf::{Error, ErrorKind};
use metatf_tests::random::{Action, Choices, Limits, actions, dtd_with, options};
use metatf_tests::{Seen, What, runtime};
use proptest::prelude::*;
use std::io::Cursor;

proptest! {
    #![proptest_config(config(150))]

    /// A strict writer accepts or refuses a record and writes no metadata on its own; accepted records can be read
    /// back.
    #[test]
    fn strict_writers_refuse_what_does_not_fit(seed in seed(400, 500)) {
        let text = dtd_with(&mut Choices::new(&seed.dtd), seed.features());
        let schema = runtime::schema(&text);
        let limits = Limits { actions: 200, changes: false };
        let wanted = actions(&mut Choices::new(&seed.data), &schema.dtd, limits);
        let options = WriteOptions { group_size: usize::MAX, ..options(&mut Choices::new(&seed.options)) };
        let mut writer = Writer::new(Vec::new(), &schema, &options).unwrap();
        writer.inner().set_strict(true);
        let mut done = Vec::new();
        for action in &wanted {
            match runtime::perform(&mut writer, action) {
                Ok(()) => done.push(action.clone()),
                Err(Error { kind: ErrorKind::DoesNotFit { .. } | ErrorKind::NotImplied { .. }, .. }) => {}
                Err(error) => panic!("{error}: {action:?}\n{text}"),
            }
        }
        let trace = writer.finish().unwrap();
        let (seen, result) = runtime::read(&schema, &trace);
        prop_assert_eq!(result, Ok(()), "{}\n{:?}", text, done);
        prop_assert!(seen.iter().all(|s| s.what != What::Metadata));
        let given = |n: u8| done.iter().any(|a| matches!(a, Action::Element(s, ..) if schema.format.sections[*s].number == n));
        let read = runtime::records_of(seen.clone(), options.version, &given);
        prop_assert_eq!(runtime::expected(&schema, &done, options.version), read, "{}", text);
        // A writer that may adapt does so only if necessary.
        let (adapting, all) = runtime::write(&schema, &done, &options);
        prop_assert_eq!(all, done);
        let (again, result) = runtime::read(&schema, &adapting);
        prop_assert_eq!(result, Ok(()));
        let records = |seen: Vec<Seen>| seen.into_iter().filter(|s| !matches!(s.what, What::Section(_) | What::Group(_)));
        let plain = |seen: Vec<Seen>| records(seen).map(|s| Seen { offset: 0, ..s }).collect::<Vec<_>>();
        prop_assert_eq!(plain(again), plain(seen));
    }

    /// Stored content is built directly in the destination memory and has the same bytes as in any other sink.
    #[test]
    fn a_sink_that_is_memory_gets_the_same(seed in seed(400, 500), json in 0_usize..200) {
        let text = dtd_with(&mut Choices::new(&seed.dtd), seed.features());
        let schema = runtime::schema(&text);
        let wanted = actions(&mut Choices::new(&seed.data), &schema.dtd, Limits { actions: 200, changes: true });
        let options = WriteOptions { codec: Codec::Stored, ..options(&mut Choices::new(&seed.options)) };
        let mut memory = Writer::new(Vec::new(), &schema, &options).unwrap();
        let mut other = Writer::new(Cursor::new(Vec::new()), &schema, &options).unwrap();
        for (n, action) in wanted.iter().enumerate() {
            prop_assert_eq!(runtime::perform(&mut memory, action), runtime::perform(&mut other, action));
            if n == json {
                let json = r#"{"between":"chunks"}"#;
                prop_assert_eq!(memory.inner().user_metadata(json), other.inner().user_metadata(json));
            }
        }
        prop_assert!(memory.finish().unwrap() == other.finish().unwrap().into_inner(), "{}", text);
    }

    /// An abandoned writer leaves only complete chunks in memory.
    #[test]
    fn what_is_given_up_is_cut_at_a_chunk(seed in seed(400, 500)) {
        let schema = runtime::schema(&dtd_with(&mut Choices::new(&seed.dtd), seed.features()));
        let wanted = actions(&mut Choices::new(&seed.data), &schema.dtd, Limits { actions: 100, changes: true });
        let options = WriteOptions { codec: Codec::Stored, ..options(&mut Choices::new(&seed.options)) };
        let (mut memory, mut other) = (b"before".to_vec(), Cursor::new(Vec::new()));
        let mut in_memory = Writer::new(&mut memory, &schema, &options).unwrap();
        let mut elsewhere = Writer::new(&mut other, &schema, &options).unwrap();
        for action in &wanted {
            prop_assert_eq!(runtime::perform(&mut in_memory, action), runtime::perform(&mut elsewhere, action));
        }
        in_memory.abandon();
        elsewhere.abandon();
        prop_assert_eq!(memory, [b"before", &other.into_inner()[..]].concat());
    }
}
