//! Random trace, with everything known about it.

use crate::random::{Action, Choices, Limits, Seed, actions, dtd_with, options};
use crate::{Seen, oracle, runtime};
use metatf::container::WriteOptions;
use metatf::dynamic::Schema;
use metatf_parser::Dtd;

/// Random trace.
pub struct Example {
    /// DTD.
    pub text: String,
    /// Schema of the DTD.
    pub schema: Schema,
    /// Options that the trace was written with.
    pub options: WriteOptions,
    /// Bytes of the trace.
    pub trace: Vec<u8>,
    /// Actions that wrote the trace.
    pub done: Vec<Action>,
}

impl Example {
    /// Builds the example for a seed; `changes` adds metadata, groups and resets.
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

    /// Returns whether elements of the section were written explicitly.
    #[must_use]
    pub fn given(&self, number: u8) -> bool {
        self.done.iter().any(|a| match a {
            Action::Element(section, ..) => self.schema.format.sections[*section].number == number,
            _ => false,
        })
    }

    /// Returns the resolved DTD.
    #[must_use]
    pub fn dtd(&self) -> &Dtd {
        &self.schema.dtd
    }

    /// Reads the trace and compares it with the actions and with the reference decoder.
    ///
    /// # Panics
    /// Panics if they differ.
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

    /// Returns a description of the example for a panic message.
    #[must_use]
    pub fn about(&self) -> String {
        let done: String = self.done.iter().map(|a| format!("{a:?}\n")).collect();
        format!("{}\n{done}{:?}", self.text, self.options)
    }
}

/// Compares two lists and shows only the first difference.
///
/// # Panics
/// Panics if the lists differ.
pub fn same(left: &[Seen], right: &[Seen], about: &str) {
    for i in 0..left.len().max(right.len()) {
        if left.get(i) != right.get(i) {
            panic!("at {i}:\n  {:?}\n  {:?}\n{about}", left.get(i), right.get(i));
        }
    }
}
