//! Sentences that contain values.

use std::borrow::Cow;
use std::fmt;

use crate::Value;

/// A sentence that contains values.
///
/// # Examples
///
/// ```
/// use metatf_page::{Note, Value};
///
/// let note = Note::new("{} live in {} blocks").with([Value::Bytes(14_848), Value::Count(221)]);
/// assert_eq!(note.to_string(), "14.5 KiB live in 221 blocks");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Note {
    template: Cow<'static, str>,
    values: Vec<Value>,
}

impl Note {
    /// Creates a sentence with a placeholder `{}` for each value.
    pub fn new(template: impl Into<Cow<'static, str>>) -> Self {
        Self { template: template.into(), values: Vec::new() }
    }

    /// Inserts values for the placeholders, in order. Placeholders without a value are kept, and values without a
    /// placeholder are dropped.
    #[must_use]
    pub fn with(mut self, values: impl IntoIterator<Item = Value>) -> Self {
        self.values.extend(values);
        self
    }

    /// Returns the parts of the sentence, which are the text before each value, the value, and the text after the last
    /// value. The word `blocks` after a count of 1 becomes `block`.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (&str, Option<&Value>)> {
        let places = self.template.matches("{}").count().min(self.values.len());
        let mut values = self.values.iter().take(places);
        let mut is_one = false;
        self.template.splitn(places + 1, "{}").flat_map(move |text| {
            let value = values.next();
            let plural = text.strip_prefix(" blocks").filter(|_| is_one);
            is_one = value == Some(&Value::Count(1));
            plural.map(|_| (" block", None)).into_iter().chain([(plural.unwrap_or(text), value)])
        })
    }
}

/// Prints the sentence on one line.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces().try_for_each(|(text, value)| {
            f.write_str(text)?;
            value.map_or(Ok(()), |value| write!(f, "{value}"))
        })
    }
}

impl From<&'static str> for Note {
    /// Creates a sentence without values.
    fn from(text: &'static str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Note {
    /// Creates a sentence without values.
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_into_places() {
        let text = Note::to_string;
        assert_eq!(text(&Note::new("no place {}")), "no place {}");
        assert_eq!(text(&Note::new("{} of {}").with([Value::Count(1), Value::Count(2)])), "1 of 2");
        assert_eq!(text(&Note::new("{} and {}").with([Value::Count(1)])), "1 and {}");
        assert_eq!(text(&Note::new("{}").with([Value::text("{}"), Value::Count(2)])), "{}");
        assert_eq!(text(&Note::default()), "");
        let blocks = |count| text(&Note::new("{} in {} blocks, {}").with([Value::Count(count), Value::Count(count)]));
        assert_eq!((blocks(1), blocks(2)), ("1 in 1 block, {}".to_owned(), "2 in 2 blocks, {}".to_owned()));
    }
}
