//! Sentences with values in them.

use std::borrow::Cow;
use std::fmt;

use crate::Value;

/// A sentence with values in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Note {
    template: Cow<'static, str>,
    values: Vec<Value>,
}

impl Note {
    /// A sentence with a place `{}` for each of its values.
    pub fn new(template: impl Into<Cow<'static, str>>) -> Self {
        Self { template: template.into(), values: Vec::new() }
    }

    /// Puts values into its places, in their order. A place without a value stays as it is, and a value without a place is left out.
    #[must_use]
    pub fn with(mut self, values: impl IntoIterator<Item = Value>) -> Self {
        self.values.extend(values);
        self
    }

    /// Returns its pieces: what stands before each value, the value, and what stands behind the last.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = (&str, Option<&Value>)> {
        let places = self.template.matches("{}").count().min(self.values.len());
        let mut values = self.values.iter().take(places);
        self.template.splitn(places + 1, "{}").map(move |text| (text, values.next()))
    }
}

/// The sentence in one line.
impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces().try_for_each(|(text, value)| {
            f.write_str(text)?;
            value.map_or(Ok(()), |value| write!(f, "{value}"))
        })
    }
}

impl From<&'static str> for Note {
    /// A sentence without values.
    fn from(text: &'static str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Note {
    /// A sentence without values.
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
    }
}
