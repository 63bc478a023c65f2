//! `lint`: reports possible improvements to a DTD, based on its text and on traces.
//!
//! The parser implements the rules for the text ([`metatf_parser::lint`]), and `encodings` implements the rules that
//! need traces. `declared` finds the statements of a DTD that determine the encoding of fields, `measure` writes traces
//! to measure their size, and `report` prints the findings.

mod declared;
mod encodings;
mod measure;
mod report;

use crate::dtd;
use crate::failure::{Failure, Result, usage};
use crate::options::ThreadArgs;
use crate::{input, output};
use metatf_cli::OutputArgs;
use metatf_parser::{Finding, Rule, Severity};
use report::{Found, Report};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const MORE: &str = "\
Rules (those in parentheses are off by default); --explain RULE describes one:
  (undocumented-field), undocumented-record, undocumented-section
  empty-section, unreferenced-stream, overridden-property, similar-names
and with --trace:
  (unused-record), wasteful-width, wasteful-interpretation

--allow disables rules, and --deny enables rules that are off. In a DTD, a comment
disables rules for its line, or for the entire file if it is at the top:
  section Log 1 { // lint: allow similar-names

With --trace, the command plans the encoding of the fields like `metatfc convert`.
If the plan uses a different width or interpretation from the DTD, the command
tries this edit of the DTD. It writes the traces with the current DTD and with the
edited DTD, as a program would write them. A finding reports the savings in bytes
and percent of the records, and in bytes of the file compressed by `metatfc
recode`. Smaller records may compress worse, so edits that make the compressed
file larger are not reported. Edits that save less than --least are not reported
either. With --stored, only the size of the records counts, which suits
uncompressed traces. Offsets, strides through sections and fields with a model are
not checked.

A DTD with errors is not checked; to list the errors, use `metatfc check`.

Exit status:
  0  no findings
  1  findings, or an invalid file
  2  usage error

Examples:
  metatfc lint spans.dtd
  metatfc lint --trace a.mtf --trace b.mtf spans.dtd
  metatfc lint --allow undocumented-record,undocumented-section *.dtd
  metatfc lint --format json spans.dtd | jq -r '.findings[].rule'";

/// Suggest improvements to DTDs, such as missing documentation, unused parts and wasteful encodings
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// The DTDs (files or names of built-in DTDs); `-` reads standard input
    #[arg(required_unless_present = "explain", value_name = "DTD")]
    files: Vec<PathBuf>,
    /// A trace with this DTD, or a log file that the DTD describes; may be repeated
    #[arg(long = "trace", value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Disable these rules
    #[arg(long, value_name = "RULE,..", value_delimiter = ',', value_parser = rule)]
    allow: Vec<Rule>,
    /// Enable these rules, which are off by default
    #[arg(long, value_name = "RULE,..", value_delimiter = ',', value_parser = rule)]
    deny: Vec<Rule>,
    /// Minimum savings of an edit, in percent of the bytes of all records
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    least: f64,
    /// Compare the size of the records instead of the size of compressed files
    #[arg(long, requires = "traces")]
    stored: bool,
    /// Describe a rule and report whether the rule is on
    #[arg(long, value_name = "RULE", conflicts_with_all = ["files", "traces"], value_parser = rule)]
    explain: Option<Rule>,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

fn rule(name: &str) -> Result<Rule, String> {
    let names = || Rule::ALL.iter().map(|rule| rule.name()).collect::<Vec<_>>().join(", ");
    Rule::named(name).ok_or_else(|| format!("expected one of {}", names()))
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| "expected a number from 0 to 100".to_owned())
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if let Some(rule) = args.explain {
        return explain(rule);
    }
    if let Some(rule) = args.allow.iter().find(|rule| args.deny.contains(rule)) {
        return usage(format!("{}: the rule is in both --allow and --deny", rule.name()));
    }
    if args.files.len() > 1 && !args.traces.is_empty() {
        return usage("--trace requires exactly one DTD, which must be the DTD of the traces");
    }
    let looked_for = |rule: &Rule| (rule.is_on() || args.deny.contains(rule)) && !args.allow.contains(rule);
    let rules: BTreeSet<Rule> = Rule::ALL.iter().copied().filter(looked_for).collect();
    if let Some(rule) = args.deny.iter().find(|rule| rule.needs_traces() && args.traces.is_empty()) {
        return usage(format!("the rule {} requires a trace: specify a trace with --trace", rule.name()));
    }
    let (mut report, mut wrong) = (Report::default(), false);
    for file in &args.files {
        match lint(file, args, &rules, &mut report) {
            Ok(()) => {}
            // Continue with the other files.
            Err(Failure::Failed(message)) => {
                crate::failure::print_message(&message);
                wrong = true;
            }
            Err(Failure::Printed) => wrong = true,
            Err(other) => return Err(other),
        }
    }
    if !report.files.is_empty() {
        output::report(&report, &args.output)?;
    }
    if wrong || !report.findings.is_empty() { Err(Failure::Printed) } else { Ok(()) }
}

fn lint(file: &Path, args: &Args, rules: &BTreeSet<Rule>, report: &mut Report) -> Result<()> {
    let (name, text) = dtd::text(file)?;
    let index = metatf_parser::index(&text);
    let errors: Vec<_> = index.diagnostics.iter().filter(|d| d.severity == Severity::Error).collect();
    if !errors.is_empty() {
        dtd::print(errors, &name, &text);
        return Err(Failure::Printed);
    }
    report.files.push(name.clone());
    let found = |finding: Finding| Found::new(&name, finding);
    let findings = metatf_parser::lint(&text, &index, |rule| rules.contains(&rule));
    report.findings.extend(findings.into_iter().map(found));
    if args.traces.is_empty() {
        return Ok(());
    }
    report.traces.extend(args.traces.iter().map(|trace| input::name(trace).into_owned()));
    encodings::check((file, &name, &text, &index), args, rules, report)
}

fn explain(rule: Rule) -> Result<()> {
    let mut text = String::new();
    let state = if rule.is_on() { "on" } else { "off; enable it with --deny" };
    let _ = writeln!(text, "{}: {}\n\nThis rule is {state}.", rule.name(), rule.doc());
    if rule.needs_traces() {
        text.push_str("This rule requires traces: specify them with --trace.\n");
    }
    output::print(&text)
}
