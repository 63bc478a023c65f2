//! Sizes of a trace and its models, as in Tables 4 and 8 of the paper.

use metatf_page::{Facts, Note, Page, Value};
use serde::Serialize;

use super::file::Model;
use super::kind::Part;

/// The number of words in a model, counted as in Table 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Words {
    /// The number of words in this model.
    pub words: u128,
    /// The maximum number of words for any trace with the same number of size classes, if this differs.
    pub at_worst: Option<u128>,
}

impl Words {
    /// Counts the words of a model, which are those of the choice for each quantity. Shared parts are counted once.
    ///
    /// As in the paper, T, the counts of a histogram, variances, and the indices of sparse cells are not counted.
    #[must_use]
    pub fn of(model: &Model) -> Self {
        let row = model.row();
        let classes = u128::from(row.size_classes);
        let (mut words, mut worst) = (0_u128, 0_u128);
        let distinct = [row.size_classes, row.interarrival_classes, row.holding_classes];
        for (choice, distinct) in model.kind().choices().into_iter().zip(distinct) {
            let (of_this, at_worst) = match choice.part() {
                Part::Moments => (1, 1),
                Part::Histogram => (distinct.into(), distinct.into()),
                Part::Markers => (super::p2::CELLS as u128 + 1, super::p2::CELLS as u128 + 1),
                Part::Classes => (classes, classes),
                Part::Buckets => (model.buckets() as u128, model.buckets() as u128),
                // The outline is counted once, below.
                Part::Outline => (0, 0),
                Part::Transitions => (model.cells() as u128, classes * classes),
            };
            words = words.saturating_add(of_this);
            worst = worst.saturating_add(at_worst);
        }
        // The sizes of rows and columns are counted once.
        if model.kind().needs(Part::Transitions) {
            words = words.saturating_add(classes);
            worst = worst.saturating_add(classes);
        }
        words = words.saturating_add(model.outline_words() as u128);
        worst = worst.max(words);
        Self { words, at_worst: (worst != words).then_some(worst) }
    }
}

/// Adds a row of Table 4, the model size as in Table 8, and the file size.
pub fn describe(model: &Model, file_bytes: u64, page: &mut Page) {
    let row = model.row();
    page.heading("TRACE (Table 4)");
    let facts = Facts::new()
        .and("objects", Value::Count(row.objects))
        .and("max objects", Value::Count(row.max_objects))
        .and("bytes", Value::Count(row.bytes))
        .and("max bytes", Value::Count(row.max_bytes))
        .and("size classes", Value::Count(row.size_classes))
        .and("interarrival time classes", Value::Count(row.interarrival_classes))
        .and("holding time classes", Value::Count(row.holding_classes))
        .and("end of the clock", Value::Count(row.end))
        .and("trace bytes", row.trace_bytes.map_or(Value::Unknown, Value::Count))
        .and("never freed", Value::Count(row.never_freed));
    page.push(facts);
    let Words { words, at_worst } = Words::of(model);
    page.heading(format!("MODEL {} (Table 8)", model.kind()));
    let worst = at_worst.map_or_else(Note::default, |worst| Note::new("at worst {}").with([large(worst)]));
    let file = Note::new("{}").with([Value::Bytes(file_bytes)]);
    let facts = Facts::new().and_said("words", large(words), worst);
    page.push(facts.and_said("bytes of the file", Value::Count(file_bytes), file));
}

/// Returns a value for a number that may exceed 64 bits.
fn large(value: u128) -> Value {
    u64::try_from(value).map_or_else(|_| Value::text(value.to_string()), Value::Count)
}
