//! The findings, as JSON and as a report page.

use super::measure::Size;
use metatf_page::{Column, Facts, Note, Page, Table, Value};
use metatf_parser::{Finding, Label, Suggestion};
use serde::Serialize;
use serde_json::json;

/// The report.
#[derive(Default, Serialize)]
pub(super) struct Report {
    pub(super) files: Vec<String>,
    pub(super) traces: Vec<String>,
    /// The size of the traces with the current DTD.
    pub(super) size: Option<Size>,
    pub(super) findings: Vec<Found>,
    /// The result of all edits together.
    pub(super) together: Option<Together>,
}

/// A finding and its location.
#[derive(Serialize)]
pub(super) struct Found {
    file: String,
    #[serde(flatten, serialize_with = "finding")]
    finding: Finding,
    pub(super) saves: Option<Saves>,
}

/// The savings of an edit.
#[derive(Serialize)]
pub(super) struct Saves {
    /// Bytes of the records, before compression.
    pub(super) records: u64,
    /// Bytes of the compressed files; negative if the edit makes them larger.
    pub(super) files: i64,
    /// The totals that the savings are compared with.
    #[serde(skip)]
    pub(super) of: Size,
    /// The number of values in the fields.
    pub(super) values: u64,
    /// All affected fields, as `RECORD.FIELD`.
    pub(super) fields: Vec<String>,
    pub(super) old: String,
    pub(super) better: String,
}

/// Several edits, and the size of the traces with all of these edits.
#[derive(Serialize)]
pub(super) struct Together {
    pub(super) edits: usize,
    pub(super) size: Size,
}

impl Found {
    pub(super) fn new(file: &str, finding: Finding) -> Self {
        Self { file: file.to_owned(), finding, saves: None }
    }

    /// Adds the savings of the finding's edit.
    pub(super) fn that(self, saves: Saves) -> Self {
        Self { saves: Some(saves), ..self }
    }

    pub(super) fn suggestion(&self) -> Option<&Suggestion> {
        self.finding.suggestion.as_ref()
    }

    fn place(&self) -> Value {
        let Label { line, column, .. } = self.finding.primary;
        Value::text(format!("{}:{line}:{column}", self.file))
    }
}

/// Serializes a finding with the same names as `metatfc check`.
fn finding<S: serde::Serializer>(found: &Finding, to: S) -> Result<S::Ok, S::Error> {
    let label = |label: &Label| {
        json!({
            "line": label.line, "column": label.column, "start": label.span.start, "end": label.span.end, "text": label.text,
        })
    };
    json!({
        "rule": found.rule.name(),
        "message": found.message,
        "line": found.primary.line,
        "column": found.primary.column,
        "start": found.primary.span.start,
        "end": found.primary.span.end,
        "help": found.help,
        "suggestion": found.suggestion.as_ref().map(|s| {
            json!({ "start": s.span.start, "end": s.span.end, "text": s.text, "certain": s.certain })
        }),
        "labels": found.secondary.iter().map(label).collect::<Vec<_>>(),
    })
    .serialize(to)
}

impl metatf_page::Report for Report {
    fn page(&self) -> Page {
        let mut page = Page::new(self.files.join(", "));
        let (sized, plain): (Vec<_>, Vec<_>) = self.findings.iter().partition(|found| found.saves.is_some());
        if self.findings.is_empty() {
            page.note("no findings");
        }
        if !plain.is_empty() {
            let columns = [Column::key("place"), Column::new("rule"), Column::new("finding"), Column::new("help")];
            let mut table = Table::new(columns);
            for found in plain {
                let Finding { rule, message, help, .. } = &found.finding;
                table.row([
                    found.place(),
                    Value::text(rule.name()),
                    Value::text(message.clone()),
                    Value::text(help.clone()),
                ]);
            }
            page.push(table);
        }
        if !sized.is_empty() {
            page.subheading("");
            page.push(savings(&sized));
        }
        if let Some(size) = self.size {
            page.subheading("");
            page.push(self.sizes(size));
        }
        page
    }
}

fn savings(found: &[&Found]) -> Table {
    let mut table = Table::new([
        Column::key("place"),
        Column::new("rule"),
        Column::new("finding"),
        Column::new("saves"),
        Column::new(""),
        Column::new("compressed"),
        Column::new(""),
    ]);
    for found in found {
        let Some(saves) = &found.saves else { continue };
        table.row([
            found.place(),
            Value::text(found.finding.rule.name()),
            Value::text(found.finding.message.clone()),
            Value::Bytes(saves.records),
            Value::Part(saves.records, saves.of.records),
            Value::BytesChange(-i128::from(saves.files)),
            Value::PartChange { before: saves.of.files, after: saves.of.files.saturating_add_signed(-saves.files) },
        ]);
    }
    table.rest(Note::new(
        "each row shows the savings of one edit, measured by writing the traces with this edit; to print the edits, \
         use `--format json`",
    ));
    table
}

impl Report {
    fn sizes(&self, size: Size) -> Facts {
        let note = |size: Size| {
            Note::new("{} of records, {} compressed").with([Value::Bytes(size.records), Value::Bytes(size.files)])
        };
        let mut facts = Facts::new().and("with the current DTD", Value::text(note(size).to_string()));
        if let Some(Together { edits, size }) = &self.together {
            facts = facts.and(format!("with {edits} edits"), Value::text(note(*size).to_string()));
        }
        facts
    }
}
