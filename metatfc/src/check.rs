//! `check`: reports errors and warnings in DTDs, and suggests improvements.

use crate::dtd::{self, DtdArgs};
use crate::failure::{Failure, Result, failed, print_message, usage};
#[cfg(feature = "lint")]
use crate::lint::{LintArgs, Suggested, Suggestions};
use crate::{input, output, target};
use clap::ValueEnum;
use metatf::format::Format;
use metatf::typed::unmatched;
use metatf_parser::{Diagnostic, Label, Severity};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

const MORE: &str = "\
Rules of --lint (those in parentheses are off by default); --explain RULE describes one:
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
edited DTD, as a program would write them. A suggestion reports the savings in
bytes and percent of the records, and of the file compressed with the default
preset of `metatfc convert`. Smaller records may compress worse, so edits that make
the compressed file larger are not suggested. Edits that save less than --least are
not suggested either. With --stored, only the size of the records counts, which
suits uncompressed traces. Offsets, strides through sections and fields with a
model are not checked.

Exit status:
  0  no errors
  1  errors; with --deny-warnings, also warnings and suggestions
  2  usage error

With --message-format json, each message is a JSON object on one line of standard
output, with the members file, severity, code, message, line, column, start, end,
text, help, suggestion, fixed and labels. Lines and columns start at 1, columns
count code points, and start and end are byte offsets. `suggestion` is the edit
described by `help`, with the members start, end, text and certain. `fixed` is
true if --fix made this edit. `labels` lists related locations. A suggestion of
--trace also has the member `saves`, and the last object contains the size of the
traces with the DTD and with all edits together.

--fix prints each correction and writes only files that change. Problems that it
cannot correct are reported as usual.

Examples:
  metatfc check spans.dtd
  metatfc check --fix spans.dtd             correct misspelled names, missing `;`
  metatfc check --explain E0104
  metatfc check --reads old.mtf spans.dtd   can the DTD read an older trace?
  metatfc check --lint spans.dtd            suggest improvements
  metatfc check --trace a.mtf --trace b.mtf spans.dtd
  metatfc check --lint --allow undocumented-record,undocumented-section *.dtd
  metatfc check --message-format json dtds/*.dtd | jq -r .message";

/// Check DTDs: report every mistake with its location and a suggested fix, and suggest improvements
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// The DTDs (files or names of built-in DTDs); `-` reads standard input
    #[arg(required_unless_present = "explain")]
    files: Vec<PathBuf>,
    /// Output format of the diagnostics
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    message_format: MessageFormat,
    /// Exit with status 1 for warnings and suggestions, too
    #[arg(long)]
    deny_warnings: bool,
    /// Correct misspelled names and missing punctuation and quotes in the files if the fix is certain
    #[arg(long)]
    fix: bool,
    /// Check whether the DTDs can read FILE, which is a trace or the DTD of other traces; may be repeated. Warn about
    /// fields and records that only one of the two DTDs defines
    #[arg(long, value_name = "FILE")]
    reads: Vec<PathBuf>,
    /// Explain a code such as E0104 or a rule of --lint, with an example
    #[arg(long, value_name = "CODE", conflicts_with = "files")]
    explain: Option<String>,
    #[cfg(feature = "lint")]
    #[command(flatten)]
    lint: LintArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum MessageFormat {
    #[default]
    Human,
    Json,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if let Some(code) = &args.explain {
        return match metatf_parser::explain(code) {
            Some(text) => output::print(&format!("{}\n", text.trim_end())),
            None => usage(format!(
                "unknown code `{code}`: expected a code such as E0104 or W0101, or a rule such as similar-names"
            )),
        };
    }
    if args.fix && args.files.iter().any(|path| input::is_standard(path)) {
        return usage("--fix cannot change standard input: name a file");
    }
    let formats = args
        .reads
        .iter()
        .map(|path| Ok((path.display(), Format::from_dtd(&*dtd::of(path, &DtdArgs::default())?))))
        .collect::<Result<Vec<_>>>()?;
    #[cfg(feature = "lint")]
    let (rules, mut suggestions) = (args.lint.rules(args.files.len())?, 0);
    #[cfg(not(feature = "lint"))]
    let suggestions = 0;
    let (mut errors, mut warnings, mut unread) = (0, 0, false);
    for path in &args.files {
        let (name, mut text) = match dtd::text(path) {
            Ok(found) => found,
            // Continue with the other files.
            Err(Failure::Failed(message)) => {
                print_message(&message);
                unread = true;
                continue;
            }
            Err(other) => return Err(other),
        };
        let name = &*name;
        if args.fix {
            text = fix(path, text, args.message_format)?;
        }
        let parsed = metatf_parser::parse(name, &text);
        errors += parsed.errors();
        warnings += parsed.warnings();
        match args.message_format {
            MessageFormat::Human => dtd::print(&parsed.diagnostics, name, &text),
            MessageFormat::Json => print_json(&parsed.name, &parsed.diagnostics, false)?,
        }
        #[cfg(feature = "lint")]
        if let Some(rules) = rules.as_ref().filter(|_| parsed.errors() == 0) {
            let found = args.lint.suggestions((path, name, &text), rules)?;
            suggestions += found.list.len();
            print_suggestions(&found, name, &text, args.message_format)?;
        }
        for (old, format) in &formats {
            let Some(dtd) = &parsed.dtd else { continue };
            match unmatched(&Format::from_dtd(dtd), format) {
                Ok(unmatched) if unmatched.is_empty() => {}
                Ok(unmatched) => {
                    for line in unmatched.to_string().lines() {
                        warnings += 1;
                        print_message(&format!("{name} reads {old}: warning: {line}"));
                    }
                }
                Err(error) => {
                    errors += 1;
                    print_message(&format!("{name} cannot read {old}: {error}"));
                }
            }
        }
    }
    if args.message_format == MessageFormat::Human && errors + warnings + suggestions > 0 {
        let mut counts = vec![output::count(errors, "error"), output::count(warnings, "warning")];
        if suggestions > 0 {
            counts.push(output::count(suggestions, "suggestion"));
        }
        print_message(&counts.join(", "));
    }
    if unread || errors > 0 {
        return Err(Failure::Printed);
    }
    if args.deny_warnings && warnings + suggestions > 0 {
        let found = if warnings > 0 { "warnings" } else { "suggestions" };
        return failed(format!("there are {found}, which --deny-warnings treats as errors"));
    }
    Ok(())
}

/// Applies the corrections that certainly match the author's intent, prints them, and returns the new text.
fn fix(path: &Path, text: Vec<u8>, format: MessageFormat) -> Result<Vec<u8>> {
    let found = metatf_parser::fix(&text);
    if found.fixed.is_empty() {
        return Ok(text);
    }
    target::replace(path, &found.text)?;
    let name = input::name(path);
    let name = &*name;
    match format {
        MessageFormat::Human => {
            let line = |d: &Diagnostic| {
                let remedy = d.help.as_ref().map(|help| format!(": {help}")).unwrap_or_default();
                let (at, code) = (&d.primary, d.code.as_str());
                format!("{name}:{}:{}: fixed {code}: {}{remedy}\n", at.line, at.column, d.message)
            };
            output::print(&found.fixed.iter().map(line).collect::<String>())?;
        }
        MessageFormat::Json => print_json(name, &found.fixed, true)?,
    }
    Ok(found.text)
}

#[cfg(feature = "lint")]
fn print_suggestions(found: &Suggestions, name: &str, text: &[u8], format: MessageFormat) -> Result<()> {
    match format {
        MessageFormat::Human => {
            dtd::print(found.list.iter().map(|found| &found.diagnostic), name, text);
            if let Some(sizes) = &found.sizes {
                print_message(&sizes.to_string());
            }
        }
        MessageFormat::Json => {
            let mut objects: Vec<Value> = Vec::new();
            for Suggested { diagnostic, saves } in &found.list {
                let mut object = object(name, diagnostic, false);
                if let (Some(object), Some(saves)) = (object.as_object_mut(), saves) {
                    object.insert("saves".to_owned(), json!(saves));
                }
                objects.push(object);
            }
            objects.extend(found.sizes.as_ref().map(|sizes| json!(sizes)));
            output::print_lines(&objects.iter().map(|object| format!("{object}\n")).collect::<String>())?;
        }
    }
    Ok(())
}

fn print_json(file: &str, diagnostics: &[Diagnostic], fixed: bool) -> Result<()> {
    let lines: Vec<String> = diagnostics.iter().map(|d| format!("{}\n", object(file, d, fixed))).collect();
    output::print_lines(&lines.concat())
}

fn object(file: &str, diagnostic: &Diagnostic, fixed: bool) -> Value {
    let place = |label: &Label| {
        json!({
            "line": label.line,
            "column": label.column,
            "start": label.span.start,
            "end": label.span.end,
            "text": label.text,
        })
    };
    json!({
        "file": file,
        "severity": match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Suggestion => "suggestion",
        },
        "code": diagnostic.code.as_str(),
        "message": diagnostic.message,
        "line": diagnostic.primary.line,
        "column": diagnostic.primary.column,
        "start": diagnostic.primary.span.start,
        "end": diagnostic.primary.span.end,
        "text": diagnostic.primary.text,
        "help": diagnostic.help,
        "fixed": fixed,
        "suggestion": diagnostic.suggestion.as_ref().map(|s| {
            json!({ "start": s.span.start, "end": s.span.end, "text": s.text, "certain": s.certain })
        }),
        "labels": diagnostic.secondary.iter().map(place).collect::<Vec<_>>(),
    })
}
