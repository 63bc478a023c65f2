//! Filters for spans and events (`--level`, `--from`, `--to`, `--field`).

use crate::failure::{Result, usage};
use metatf::dynamic::Schema;
use metatf_tools::roles::{self, Role};
use metatf_tools::spans::{Around, Found, Instant, Origin, Span, Values};

/// The filter options.
#[derive(clap::Args, Default)]
pub(crate) struct FilterArgs {
    /// Show only spans and events of this level and more severe levels. LEVEL is a number, or a name that the DTD
    /// defines for the field of role `level`
    #[arg(long, value_name = "LEVEL")]
    level: Option<String>,
    /// Show only spans and events that begin at this time or later, given in seconds or with the unit ns, us, ms or s
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: Option<u64>,
    /// Show only spans and events that begin before this time
    #[arg(long, value_name = "TIME", value_parser = time)]
    to: Option<u64>,
    /// Show only spans and events that contain this field or are within a span that contains it. With `=`, the field
    /// must also have this value. May be repeated
    #[arg(long, value_name = "NAME[=VALUE]")]
    field: Vec<String>,
}

impl FilterArgs {
    /// Returns whether any of the options is set.
    pub(crate) fn is_given(&self) -> bool {
        self.level.is_some() || self.from.is_some() || self.to.is_some() || !self.field.is_empty()
    }
}

pub(super) struct Filter<'a> {
    level: Option<u64>,
    from: u64,
    to: u64,
    fields: Vec<(&'a str, Option<&'a str>)>,
}

/// Parses a time in nanoseconds.
fn time(text: &str) -> std::result::Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text.get(digits.len()..).unwrap_or_default() {
        "ns" => 0,
        "us" => 3,
        "ms" => 6,
        "s" | "" => 9,
        unit => return Err(format!("unknown unit `{unit}`; expected ns, us, ms or s")),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(part) || part.len() > unit {
        return Err("expected a number followed by ns, us, ms or s, such as 1.5s".to_owned());
    }
    // Pad the fraction to nanoseconds.
    let digits = format!("{whole}{part:0<unit$}");
    digits.parse().map_err(|_| "the time is too large".to_owned())
}

impl<'a> Filter<'a> {
    pub(super) fn new(args: &'a FilterArgs, schema: &Schema) -> Result<Self> {
        let level = args.level.as_deref().map(|text| level(schema, text)).transpose()?;
        let fields = args.field.iter().map(|text| match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text.as_str(), None),
        });
        Ok(Self { level, from: args.from.unwrap_or(0), to: args.to.unwrap_or(u64::MAX), fields: fields.collect() })
    }

    /// Returns whether the filter needs values.
    pub(super) fn needs_values(&self) -> bool {
        !self.fields.is_empty()
    }

    pub(super) fn shows(&self, found: &Found) -> bool {
        match found {
            Found::Span(Span { origin, begin, values, around, .. })
            | Found::Part(Span { origin, begin, values, around, .. }) => {
                self.holds(origin.as_deref(), *begin, values, around)
            }
            Found::Event(Instant { origin, time, values, around, .. }) => {
                self.holds(origin.as_deref(), *time, values, around)
            }
            // Open spans are counted elsewhere.
            Found::Open(_) => false,
            Found::Flow { time, .. } => {
                (self.from..=self.to).contains(time) && self.fields.is_empty() && self.level.is_none()
            }
            Found::Thread { .. } => true,
        }
    }

    fn holds(&self, origin: Option<&Origin>, time: u64, values: &Values, around: &[Around]) -> bool {
        let is_now = time >= self.from && (time < self.to || self.to == u64::MAX);
        let level = || origin.and_then(|origin| Some(origin.level.as_ref()?.number));
        is_now
            && self.level.is_none_or(|most| level().is_some_and(|level| level <= most))
            && self
                .fields
                .iter()
                .all(|(name, text)| values.have(name, *text) || around.iter().any(|span| span.values.have(name, *text)))
    }
}

/// Returns the number of a level.
fn level(schema: &Schema, text: &str) -> Result<u64> {
    let records = schema.dtd.records.iter();
    let leaves: Vec<_> = records.filter_map(|record| record.leaf(roles::first(record, Role::Level)?)).collect();
    if leaves.is_empty() {
        return usage(format!("--level {text}: no field of the DTD has the role `level`"));
    }
    let named = leaves.iter().find_map(|leaf| leaf.names.value(text));
    match named.or_else(|| text.parse().ok()) {
        Some(number) => Ok(number),
        None => {
            let names = leaves.iter().flat_map(|leaf| leaf.names.list()).map(|(_, name)| name.as_str());
            usage(format!("--level {text}: unknown level; available levels: {}", names.collect::<Vec<_>>().join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::time;

    #[test]
    fn times() {
        for (text, nanoseconds) in
            [("0", 0), ("1", 1_000_000_000), ("1.5s", 1_500_000_000), ("2.25ms", 2_250_000), ("7us", 7_000), ("9ns", 9)]
        {
            assert_eq!(time(text), Ok(nanoseconds), "{text}");
        }
        for text in ["", "s", "-1", "1.5ns", "1h", "1.2.3", "99999999999999s", "1e3"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
