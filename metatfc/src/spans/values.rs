//! Values of fields, of spans and of events.

use crate::fields;
use metatf::dynamic::Item;
use metatf_parser::schema::{Format, Leaf};
use serde_json::{Map, Number};

pub(super) use serde_json::Value;

/// Values that a span or an event keeps at most: those behind are counted, so that a damaged trace does not fill the memory.
const MOST: usize = 256;

/// Values with their names, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    list: Vec<(String, Value)>,
    /// How many there were besides.
    left_out: u64,
}

impl Values {
    pub(super) fn new(list: Vec<(String, Value)>) -> Self {
        Self { list, left_out: 0 }
    }

    pub(super) fn push(&mut self, name: String, value: Value) {
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

    /// Takes out the text that is the message of an event.
    pub(super) fn take_message(&mut self) -> Option<String> {
        let at = self.list.iter().position(|(name, value)| name == "message" && value.is_string())?;
        match self.list.remove(at).1 {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns whether a value has this name, and, where that is asked for, this text.
    pub(super) fn have(&self, name: &str, text: Option<&str>) -> bool {
        self.list.iter().any(|(n, value)| n == name && text.is_none_or(|text| plain(value) == text))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty() && self.left_out == 0
    }

    /// Appends `name=value`, with spaces between.
    pub(super) fn write(&self, out: &mut String) {
        for (i, (name, value)) in self.list.iter().enumerate() {
            out.push_str(if i > 0 { " " } else { "" });
            out.push_str(&metatf_cli::shown(name));
            out.push('=');
            match value {
                Value::String(text) if text.is_empty() || text.contains([' ', '"', '=', '{', '}']) => {
                    fields::quoted(out, text)
                }
                _ => out.push_str(&metatf_cli::shown(&plain(value))),
            }
        }
        if self.left_out > 0 {
            out.push_str(&format!(" and {} more", self.left_out));
        }
    }

    /// Puts the values into an object: of those of one name the last.
    pub(super) fn put_into(&self, object: &mut Map<String, Value>) {
        object.extend(self.list.iter().cloned());
        if self.left_out > 0 {
            object.insert("@left_out".to_owned(), self.left_out.into());
        }
    }
}

/// A value without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the value of a leaf as JSON has it: a number only where that is how people read it.
pub(super) fn value(leaf: &Leaf, item: Item<'_>) -> Value {
    match item {
        Item::Number(number) => match leaf.format {
            _ if let Some(name) = leaf.names.text(number) => name.into_owned().into(),
            Format::Unset | Format::Dec => number.into(),
            Format::Signed => number.cast_signed().into(),
            Format::Bool if number < 2 => (number == 1).into(),
            // JSON has no infinite numbers.
            Format::F64 if let Some(real) = Number::from_f64(f64::from_bits(number)) => real.into(),
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
                    let mut text = String::new();
                    fields::hex(&mut text, bytes);
                    text.into()
                }
            },
        },
    }
}
