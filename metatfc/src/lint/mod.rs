//! `lint`: reports possible improvements of a DTD, based on its text and on traces.
//!
//! The parser implements the rules for the text ([`metatf_parser::lint`]). `encodings` implements those that need
//! traces, `declared` finds the statements of a DTD that set how fields are stored, `measure` writes traces to measure
//! their size, and `report` prints the findings.

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
Rules, those that are off in parentheses; `--explain RULE` says more of one:
  (undocumented-field), undocumented-record, undocumented-section
  empty-section, unreferenced-stream, overridden-property, similar-names
and with --trace:
  (unused-record), wasteful-width, wasteful-interpretation

--allow leaves rules out, --deny looks for those that are off. A comment on the
line of a place leaves them out in the DTD, and one at its head for all of it:
  section Log 1 { // lint: allow similar-names

With --trace, fields are planned as by `metatfc recode`: where the plan has other
widths or interpretations than the DTD, each of them is tried. The traces are
written with the DTD as it is and with the edit, as a program writes them; a
finding says what the edit saves, in bytes of the records and in per cent of
them, and in bytes of the file as `metatfc recode` compresses it. What saves less
than --least is no finding, nor what makes the file larger: fewer bytes of records
may compress worse. --stored judges by the records alone, for traces that are not
compressed. Fields of models, of offsets and of strides through sections are not
looked at.

Mistakes are the matter of `metatfc check`: a DTD with errors is not looked at.

Exit status: 0 nothing found, 1 something found, or a file is wrong, 2 the
command line is wrong.

Examples:
  metatfc lint spans.dtd
  metatfc lint --trace a.mtf --trace b.mtf spans.dtd
  metatfc lint --allow undocumented-record,undocumented-section *.dtd
  metatfc lint --format json spans.dtd | jq -r '.findings[].rule'";

/// Look for what could be better in DTDs: documentation, what nothing uses, and what traces show to be wasteful
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// The DTDs, or built-in ones by name; `-` is standard input
    #[arg(required_unless_present = "explain", value_name = "DTD")]
    files: Vec<PathBuf>,
    /// A trace of the DTD, or a log that it describes; may be repeated
    #[arg(long = "trace", value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Leave these rules out
    #[arg(long, value_name = "RULE,..", value_delimiter = ',', value_parser = rule)]
    allow: Vec<Rule>,
    /// Look for these, too: rules that are off
    #[arg(long, value_name = "RULE,..", value_delimiter = ',', value_parser = rule)]
    deny: Vec<Rule>,
    /// What an edit has to save of the bytes of all records, in per cent
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = percent)]
    least: f64,
    /// Judge by the bytes of records, and not by those of compressed files
    #[arg(long, requires = "traces")]
    stored: bool,
    /// Say what a rule finds, and whether it is on
    #[arg(long, value_name = "RULE", conflicts_with_all = ["files", "traces"], value_parser = rule)]
    explain: Option<Rule>,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    output: OutputArgs,
}

fn rule(name: &str) -> Result<Rule, String> {
    let names = || Rule::ALL.iter().map(|rule| rule.name()).collect::<Vec<_>>().join(", ");
    Rule::named(name).ok_or_else(|| format!("the rules are {}", names()))
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
        return usage(format!("{}: --allow and --deny both name it", rule.name()));
    }
    if args.files.len() > 1 && !args.traces.is_empty() {
        return usage("--trace: name one DTD, that of the traces");
    }
    let looked_for = |rule: &Rule| (rule.is_on() || args.deny.contains(rule)) && !args.allow.contains(rule);
    let rules: BTreeSet<Rule> = Rule::ALL.iter().copied().filter(looked_for).collect();
    if let Some(rule) = args.deny.iter().find(|rule| rule.needs_traces() && args.traces.is_empty()) {
        return usage(format!("{} goes by traces: name one with --trace", rule.name()));
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
    let state = if rule.is_on() { "on" } else { "off: --deny looks for it" };
    let _ = writeln!(text, "{}: {}\n\nIt is {state}.", rule.name(), rule.doc());
    if rule.needs_traces() {
        text.push_str("It goes by the traces that --trace names.\n");
    }
    output::print(&text)
}
