//! Field values of spans and events.

use metatf::dynamic::Item;
use metatf_parser::schema::{Format, Leaf};
use serde_json::Number;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

pub use serde_json::Value;

/// Maximum number of values per span or event. Further values are only counted, so that a corrupt trace does not
/// exhaust memory.
const MOST: usize = 256;

/// Named values in order of arrival.
#[derive(Clone, Debug, Default)]
pub struct Values {
    list: Vec<(Arc<str>, Value)>,
    /// Number of omitted values.
    left_out: u64,
}

impl Values {
    pub(super) fn new(list: Vec<(Arc<str>, Value)>) -> Self {
        Self { list, left_out: 0 }
    }

    pub(super) fn push(&mut self, name: Arc<str>, value: Value) {
        if self.list.len() < MOST {
            self.list.push((name, value));
        } else {
            self.left_out += 1;
        }
    }

    pub(super) fn extend(&mut self, others: Values) {
        others.list.into_iter().for_each(|(name, value)| self.push(name, value));
        self.left_out += others.left_out;
    }

    /// Removes and returns the message of an event.
    pub fn take_message(&mut self) -> Option<String> {
        let at = self.list.iter().position(|(name, value)| &**name == "message" && value.is_string())?;
        match self.list.remove(at).1 {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns whether there is a value with this name and, if `text` is `Some`, this text.
    #[must_use]
    pub fn have(&self, name: &str, text: Option<&str>) -> bool {
        self.list.iter().any(|(n, value)| &**n == name && text.is_none_or(|text| plain(value) == text))
    }

    /// Returns whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.left_out == 0
    }

    /// Returns the values with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.list.iter().map(|(name, value)| (&**name, value))
    }

    /// Returns the number of omitted values.
    #[must_use]
    pub fn left_out(&self) -> u64 {
        self.left_out
    }
}

/// Returns a value as text, without quotes.
#[must_use]
pub fn plain(value: &Value) -> Cow<'_, str> {
    value.as_str().map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed)
}

/// Returns the value of a leaf as JSON. The result is a number only if people would read the value as a number.
pub(super) fn value(leaf: &Leaf, item: Item<'_>) -> Value {
    match item {
        Item::Number(number) => match leaf.format {
            _ if let Some(name) = leaf.names.text(number) => name.into_owned().into(),
            Format::Unset | Format::Dec => number.into(),
            Format::Signed => number.cast_signed().into(),
            Format::Bool if number < 2 => (number == 1).into(),
            // JSON has no infinite numbers.
            format if let Some(real) = format.float(number).and_then(Number::from_f64) => real.into(),
            format => {
                let mut text = String::new();
                format.write_number(&mut text, number);
                text.into()
            }
        },
        Item::Bytes(bytes) => match leaf.format {
            Format::Utf8 => String::from_utf8_lossy(bytes).into(),
            format => match format.text_of_bytes(bytes).map(str::to_owned).or_else(|| format.word_of_bytes(bytes)) {
                Some(text) => text.into(),
                None => {
                    let mut text = String::with_capacity(2 * bytes.len());
                    for byte in bytes {
                        // Writing to a string cannot fail.
                        let _ = write!(text, "{byte:02x}");
                    }
                    text.into()
                }
            },
        },
    }
}
