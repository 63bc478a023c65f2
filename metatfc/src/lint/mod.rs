//! Suggests improvements to DTDs, based on their text and on traces (`check --lint`).
//!
//! The parser implements the rules for the text ([`metatf_parser::lint`]), and `encodings` implements the rules that
//! need traces. `declared` finds the statements of a DTD that determine the encoding of fields, and `measure` writes
//! traces to measure their size.

mod declared;
mod encodings;
mod measure;

use crate::failure::{Result, usage};
use crate::options::ThreadArgs;
use measure::Size;
use metatf_page::{Note, Value};
use metatf_parser::{Diagnostic, Rule};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The options of `check` for suggestions.
#[derive(clap::Args)]
pub(crate) struct LintArgs {
    /// Suggest improvements, too, such as missing documentation and unused parts (see below)
    #[arg(long)]
    lint: bool,
    /// Suggest encodings that make this trace smaller; it must have the DTD, or be a log file that the DTD describes.
    /// May be repeated. Implies --lint
    #[arg(long = "trace", value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Disable these rules of --lint
    #[arg(long, value_name = "RULE,..", value_delimiter = ',', value_parser = rule)]
    allow: Vec<Rule>,
    /// Enable these --lint rules, in addition to the rules that are on by default
    #[arg(long, value_name = "RULE,..", value_delimiter = ',', value_parser = rule)]
    deny: Vec<Rule>,
    /// With --trace: minimum savings of an edit, in percent of the bytes of all records
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    least: f64,
    /// With --trace: compare the size of the records instead of the size of compressed files
    #[arg(long, requires = "traces")]
    stored: bool,
    #[command(flatten)]
    threads: ThreadArgs,
}

fn rule(name: &str) -> Result<Rule, String> {
    let names = || Rule::ALL.iter().map(|rule| rule.name()).collect::<Vec<_>>().join(", ");
    Rule::named(name).ok_or_else(|| format!("expected one of {}", names()))
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| "expected a number from 0 to 100".to_owned())
}

/// The suggestions for a DTD, and the size of its traces.
pub(crate) struct Suggestions {
    pub(crate) list: Vec<Suggested>,
    pub(crate) sizes: Option<Sizes>,
}

/// A suggestion.
pub(crate) struct Suggested {
    pub(crate) diagnostic: Diagnostic,
    pub(crate) saves: Option<Saves>,
}

/// The savings of an edit.
#[derive(Serialize)]
pub(crate) struct Saves {
    /// Bytes of the records, before compression.
    records: u64,
    /// Bytes of the compressed files; negative if the edit makes them larger.
    files: i64,
    /// The number of values in the fields.
    values: u64,
    /// All affected fields, as `RECORD.FIELD`.
    fields: Vec<String>,
    old: String,
    better: String,
}

/// The size of the traces, written with the DTD and with all edits together.
#[derive(Serialize)]
pub(crate) struct Sizes {
    traces: Vec<String>,
    size: Size,
    together: Option<Together>,
}

/// Several edits, and the size of the traces with all of these edits.
#[derive(Serialize)]
struct Together {
    edits: usize,
    size: Size,
}

impl std::fmt::Display for Sizes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |size: Size| {
            Note::new("{} of records, {} compressed").with([Value::Bytes(size.records), Value::Bytes(size.files)])
        };
        write!(f, "{}: {}", self.traces.join(", "), shown(self.size))?;
        match &self.together {
            Some(Together { edits, size }) => write!(f, "; with {edits} edits, {}", shown(*size)),
            None => Ok(()),
        }
    }
}

impl LintArgs {
    /// Returns the rules to check for this number of DTDs, or `None` if no suggestions are wanted.
    pub(crate) fn rules(&self, dtds: usize) -> Result<Option<BTreeSet<Rule>>> {
        if let Some(rule) = self.allow.iter().find(|rule| self.deny.contains(rule)) {
            return usage(format!("{}: the rule is in both --allow and --deny", rule.name()));
        }
        if dtds > 1 && !self.traces.is_empty() {
            return usage("--trace requires exactly one DTD, which must be the DTD of the traces");
        }
        if let Some(rule) = self.deny.iter().find(|rule| rule.needs_traces() && self.traces.is_empty()) {
            return usage(format!("the rule {} requires a trace: specify a trace with --trace", rule.name()));
        }
        let wanted = self.lint || [self.traces.len(), self.allow.len(), self.deny.len()].iter().any(|n| *n > 0);
        let looked_for = |rule: &Rule| (rule.is_on() || self.deny.contains(rule)) && !self.allow.contains(rule);
        Ok(wanted.then(|| Rule::ALL.iter().copied().filter(looked_for).collect()))
    }

    /// Checks these rules for a DTD without errors, given its path, its name in messages, and its text.
    pub(crate) fn suggestions(
        &self,
        (path, name, text): (&Path, &str, &[u8]),
        rules: &BTreeSet<Rule>,
    ) -> Result<Suggestions> {
        let index = metatf_parser::index(text);
        let found = metatf_parser::lint(text, &index, |rule| rules.contains(&rule));
        let list = found.into_iter().map(|diagnostic| Suggested { diagnostic, saves: None }).collect();
        let mut suggestions = Suggestions { list, sizes: None };
        if !self.traces.is_empty() {
            encodings::check((path, name, text, &index), self, rules, &mut suggestions)?;
        }
        Ok(suggestions)
    }
}
