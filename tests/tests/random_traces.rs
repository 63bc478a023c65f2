//! Random formats, random records: what was written is what is read, by the universal reader and by the reference
//! decoder, through every container.

use metatf::dynamic::JsonOptions;
use metatf_parser::Dtd;
use metatf_tests::random::{Action, Choices, Limits, Seed, actions, dtd, options};
use metatf_tests::{Seen, What, oracle, runtime};
use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;

fn seed(dtd: usize, data: usize) -> impl Strategy<Value = Seed> {
    (vec(any::<u8>(), 0..dtd), vec(any::<u8>(), 0..data), vec(any::<u8>(), 0..10))
        .prop_map(|(dtd, data, options)| Seed { dtd, data, options })
}

/// `METATF_TEST_FACTOR` asks for so many times the cases.
fn config(cases: u32) -> ProptestConfig {
    let factor = std::env::var("METATF_TEST_FACTOR").ok().and_then(|f| f.parse().ok()).unwrap_or(1);
    ProptestConfig { cases: cases * factor, failure_persistence: None, max_shrink_iters: 20_000, ..ProptestConfig::default() }
}

/// A random trace, with all there is to know of it.
struct Example {
    text: String,
    schema: metatf::dynamic::Schema,
    options: metatf::container::WriteOptions,
    trace: Vec<u8>,
    done: Vec<Action>,
}

impl Example {
    fn new(seed: &Seed, changes: bool) -> Self {
        let text = dtd(&mut Choices::new(&seed.dtd));
        let schema = runtime::schema(&text);
        let limits = Limits { actions: 200, changes };
        let actions = actions(&mut Choices::new(&seed.data), &schema.dtd, limits);
        let options = options(&mut Choices::new(&seed.options));
        let (trace, done) = runtime::write(&schema, &actions, &options);
        Self { text, schema, options, trace, done }
    }

    /// Whether elements of the section were given outright.
    fn given(&self, number: u8) -> bool {
        self.done.iter().any(|a| match a {
            Action::Element(section, ..) => self.schema.format.sections[*section].number == number,
            _ => false,
        })
    }

    fn dtd(&self) -> &Arc<Dtd> {
        &self.schema.dtd
    }

    fn about(&self) -> String {
        let done: String = self.done.iter().map(|a| format!("{a:?}\n")).collect();
        format!("{}\n{done}{:?}", self.text, self.options)
    }
}

/// The first difference, not all of both.
fn same(left: &[Seen], right: &[Seen], about: &str) {
    for i in 0..left.len().max(right.len()) {
        if left.get(i) != right.get(i) {
            panic!("at {i}:\n  {:?}\n  {:?}\n{about}", left.get(i), right.get(i));
        }
    }
}

proptest! {
    #![proptest_config(config(300))]

    /// What is valid by construction, the parser accepts; the formatter keeps its meaning and is idempotent.
    #[test]
    fn a_valid_dtd_is_accepted(bytes in vec(any::<u8>(), 0..400)) {
        let text = dtd(&mut Choices::new(&bytes));
        runtime::schema(&text);
    }
}

proptest! {
    #![proptest_config(config(200))]

    /// The records written are the records read, in order.
    #[test]
    fn what_is_written_is_read(seed in seed(250, 600)) {
        let example = Example::new(&seed, true);
        let (seen, result) = runtime::read(&example.schema, &example.trace);
        let about = example.about();
        prop_assert_eq!(result, Ok(()), "{}", about);
        let version = example.options.version;
        let read = runtime::records_of(seen, version, &|n| example.given(n));
        same(&runtime::expected(&example.schema, &example.done, version), &read, &about);
    }

    /// The reference decoder sees what the runtime sees: every value, event and offset.
    #[test]
    fn the_oracle_agrees(seed in seed(250, 600)) {
        let example = Example::new(&seed, true);
        let (seen, result) = runtime::read(&example.schema, &example.trace);
        let (told, right) = oracle::read(example.dtd(), &example.trace);
        let about = example.about();
        same(&told, &seen, &about);
        prop_assert_eq!(right, Ok(()), "{}", about);
        prop_assert_eq!(result, Ok(()), "{}", about);
    }
}
