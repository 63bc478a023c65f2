//! A random trace with all there is to know of it.

use crate::random::{Action, Choices, Limits, Seed, actions, dtd_with, options};
use crate::{Seen, oracle, runtime};
use metatf::container::WriteOptions;
use metatf::dynamic::Schema;
use metatf_parser::Dtd;

/// A random trace.
pub struct Example {
    /// The DTD.
    pub text: String,
    /// Its schema.
    pub schema: Schema,
    /// How it was written.
    pub options: WriteOptions,
    /// The trace.
    pub trace: Vec<u8>,
    /// What it holds.
    pub done: Vec<Action>,
}

impl Example {
    /// The example made of these bytes; `changes`: with metadata, groups and resets.
    #[must_use]
    pub fn new(seed: &Seed, changes: bool) -> Self {
        let text = dtd_with(&mut Choices::new(&seed.dtd), seed.features());
        let schema = runtime::schema(&text);
        let limits = Limits { actions: 200, changes };
        let actions = actions(&mut Choices::new(&seed.data), &schema.dtd, limits);
        let options = options(&mut Choices::new(&seed.options));
        let (trace, done) = runtime::write(&schema, &actions, &options);
        Self { text, schema, options, trace, done }
    }

    /// Whether elements of the section were given outright.
    #[must_use]
    pub fn given(&self, number: u8) -> bool {
        self.done.iter().any(|a| match a {
            Action::Element(section, ..) => self.schema.format.sections[*section].number == number,
            _ => false,
        })
    }

    /// The resolved DTD.
    #[must_use]
    pub fn dtd(&self) -> &Dtd {
        &self.schema.dtd
    }

    /// Reads the trace and holds it against what was written, and against the reference decoder.
    ///
    /// # Panics
    /// They differ.
    pub fn check(&self) {
        let (seen, result) = runtime::read(&self.schema, &self.trace);
        let about = self.about();
        assert_eq!(result, Ok(()), "{about}");
        let (told, right) = oracle::read(self.dtd(), &self.trace);
        same(&told, &seen, &about);
        assert_eq!(right, Ok(()), "{about}");
        let version = self.options.version;
        let read = runtime::records_of(seen, version, &|n| self.given(n));
        same(&runtime::expected(&self.schema, &self.done, version), &read, &about);
    }

    /// All of it, for a message.
    #[must_use]
    pub fn about(&self) -> String {
        let done: String = self.done.iter().map(|a| format!("{a:?}\n")).collect();
        format!("{}\n{done}{:?}", self.text, self.options)
    }
}

/// Shows the first difference, not all of both.
///
/// # Panics
/// There is one.
pub fn same(left: &[Seen], right: &[Seen], about: &str) {
    for i in 0..left.len().max(right.len()) {
        if left.get(i) != right.get(i) {
            panic!("at {i}:\n  {:?}\n  {:?}\n{about}", left.get(i), right.get(i));
        }
    }
}
