//! Finds replacements for values, which are elements at offsets, labels, and strings.

use crate::fields::{self, Cursor};
use crate::labels::Labels;
use crate::references::each_value;
use metatf::dynamic::{Item as Value, Schema, Trace};
use metatf::reader::{At, Event};
use metatf_parser::schema::Record;

/// A resolver of offsets, addresses and string numbers.
pub(super) struct Resolver {
    /// The labels and strings found in earlier records, if the DTD defines roles for them.
    labels: Option<Labels>,
}

/// The replacement of a number.
pub(super) enum Resolved {
    /// The label or string of a number, printed after the number.
    Label { number: String, text: String },
    /// The element and its offset, in JSON Lines format.
    Element(String),
}

impl Resolver {
    /// Creates a resolver if `--resolve` is set.
    pub(super) fn new(schema: &Schema, resolve: bool) -> Option<Self> {
        resolve.then(|| Self { labels: Labels::new(schema) })
    }

    /// Returns whether the results depend on earlier records.
    pub(super) fn carries(&self) -> bool {
        self.labels.is_some()
    }

    /// Returns whether the values of an event define labels or strings.
    pub(super) fn needs(&self, event: Event) -> bool {
        matches!(event, Event::Record(at) if self.labels.as_ref().is_some_and(|labels| labels.needs(at.record)))
    }

    /// Stores the labels and strings of an event that it [`needs`](Self::needs).
    pub(super) fn take(&mut self, trace: &Trace<'_>, event: Event) {
        if let (Some(labels), Event::Record(at)) = (&mut self.labels, event) {
            labels.learn(trace.schema(), at.record, trace.record());
        }
    }

    /// Resolves the `sectionOffset` leaves, labeled addresses and string numbers of a record. The results are in the
    /// order of the values, with `None` for other leaves.
    pub(super) fn record(
        &self,
        trace: &mut Trace<'_>,
        at: At,
        record: &Record,
    ) -> metatf::Result<Vec<Option<Resolved>>> {
        let owned = trace.record().clone();
        let labels = self.labels.as_ref().map(|labels| labels.of_record(at.record, &owned));
        let mut found = Vec::new();
        each_value::<metatf::Error>(&mut Cursor::new(record, &owned), &record.items, &mut |leaf, value, id| {
            let Value::Number(number) = value else {
                found.push(None);
                return Ok(());
            };
            if let Some((_, text)) = labels.and_then(|labels| labels.of(at.record, leaf, number)) {
                let mut shown = String::new();
                fields::number(&mut shown, leaf, number);
                found.push(Some(Resolved::Label { number: shown, text: text.to_owned() }));
                return Ok(());
            }
            let mut json = Vec::new();
            let is_offset = !leaf.is_tag() && trace.resolve(at, id, number, &mut json)?;
            found.push(is_offset.then(|| Resolved::Element(String::from_utf8_lossy(&json).into_owned())));
            Ok(())
        })?;
        Ok(found)
    }
}

impl Resolved {
    /// Returns the text for a line of text output.
    pub(super) fn line(self) -> String {
        match self {
            Self::Label { number, text } => format!("{number}[{text:?}]"),
            Self::Element(json) => json,
        }
    }
}
