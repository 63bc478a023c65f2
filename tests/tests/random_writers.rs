//! Strict writers and writers that adapt (spec 4.1, design "Writing").

mod common;

use common::{config, seed};
use metatf::container::WriteOptions;
use metatf::dynamic::Writer;
use metatf::{Error, ErrorKind};
use metatf_tests::random::{Action, Choices, Limits, actions, dtd_with, options};
use metatf_tests::{Seen, What, runtime};
use proptest::prelude::*;

proptest! {
    #![proptest_config(config(150))]

    /// A strict writer takes a record or refuses it, and writes no metadata of its own; what it took is there.
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
                Err(Error { kind: ErrorKind::DoesNotFit { .. }, .. }) => {}
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
        // Where nothing has to be adapted, a writer that may adapt does not.
        let (adapting, all) = runtime::write(&schema, &done, &options);
        prop_assert_eq!(all, done);
        let (again, result) = runtime::read(&schema, &adapting);
        prop_assert_eq!(result, Ok(()));
        let records = |seen: Vec<Seen>| seen.into_iter().filter(|s| !matches!(s.what, What::Section(_) | What::Group(_)));
        let plain = |seen: Vec<Seen>| records(seen).map(|s| Seen { offset: 0, ..s }).collect::<Vec<_>>();
        prop_assert_eq!(plain(again), plain(seen));
    }
}
