//! A writer for the subset of YAML that descriptions need. Maps keep their order, and all text is escaped.

use crate::docs;

/// A node of a YAML document.
#[derive(Clone, Debug)]
pub(super) enum Yaml {
    /// A name, number or expression.
    Scalar(String),
    /// Text, which is always quoted.
    Text(String),
    /// Lines of text.
    Lines(Vec<String>),
    Map(Map),
    List(Vec<Map>),
}

/// The entries of a map.
#[derive(Clone, Debug, Default)]
pub(super) struct Map(Vec<(String, Yaml)>);

impl Map {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Adds a name, number or expression.
    pub(super) fn scalar(self, key: impl Into<String>, value: impl ToString) -> Self {
        self.entry(key, Yaml::Scalar(value.to_string()))
    }

    /// Adds any node. Empty nodes are omitted.
    pub(super) fn entry(mut self, key: impl Into<String>, value: Yaml) -> Self {
        let is_empty = match &value {
            Yaml::Scalar(_) | Yaml::Text(_) => false,
            Yaml::Lines(lines) => lines.is_empty(),
            Yaml::Map(map) => map.is_empty(),
            Yaml::List(list) => list.is_empty(),
        };
        if !is_empty {
            self.0.push((key.into(), value));
        }
        self
    }

    /// Adds the entries of another map.
    pub(super) fn and(mut self, other: Map) -> Self {
        self.0.extend(other.0);
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the map as a block whose lines start with this number of spaces.
    pub(super) fn render(&self, indent: usize) -> String {
        let mut out = String::new();
        for (key, value) in &self.0 {
            out.push_str(&format!("{:indent$}{}:", "", plain_or_quoted(key)));
            match value {
                Yaml::Scalar(text) => out.push_str(&format!(" {}\n", plain_or_quoted(text))),
                Yaml::Text(text) => out.push_str(&format!(" {}\n", quoted(text))),
                Yaml::Lines(lines) => {
                    out.push_str(" |\n");
                    for line in lines {
                        let line = docs::plain(line);
                        out.push_str(format!("{:1$}{line}", "", indent + 2).trim_end());
                        out.push('\n');
                    }
                }
                Yaml::Map(map) => {
                    out.push('\n');
                    out.push_str(&map.render(indent + 2));
                }
                Yaml::List(list) => {
                    out.push('\n');
                    for map in list {
                        let text = map.render(indent + 4);
                        out.push_str(&format!("{:1$}- {2}", "", indent + 2, text.trim_start()));
                    }
                }
            }
        }
        out
    }
}

/// Identifiers that YAML 1.1 reads as Booleans.
const BOOLEANS: &[&str] = &["yes", "no", "on", "off", "y", "n"];

/// Returns a name, number or expression, in quotes if YAML would otherwise misread it. Numbers of more than 32 bits are
/// quoted, because tools written in JavaScript would round them.
fn plain_or_quoted(text: &str) -> String {
    let number = text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |hex| u64::from_str_radix(hex, 16).ok());
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-' || (c == '_' && text.len() > 1))
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.+*/%()<>=! -".contains(c))
        && !text.starts_with("- ")
        && !BOOLEANS.contains(&text)
        && number.is_none_or(|number| u32::try_from(number).is_ok());
    if is_plain { text.to_owned() } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    format!("'{}'", docs::plain(text).replace('\'', "''"))
}
