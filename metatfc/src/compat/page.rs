//! The comparison of two DTDs, as a report page.

use super::reads::Reads;
use super::version::Level;
use super::{Report, Side};
use metatf_page::{Column, Facts, Page, Table, Value};

impl metatf_page::Report for Report {
    fn page(&self) -> Page {
        let mut page = Page::new(format!("{} to {}", self.old.name, self.new.name));
        let mut table = Table::new([Column::new("level"), Column::key("place"), Column::new("change")]);
        for change in &self.changes {
            table.row([
                Value::text(change.level.name()),
                Value::text(change.place.text()),
                Value::text(change.text.clone()),
            ]);
        }
        if table.is_empty() {
            page.note("no changes");
        } else {
            page.push(table);
            page.subheading("");
            let is_used = |level: &Level| self.changes.iter().any(|change| change.level == *level);
            let used = [Level::Major, Level::Median, Level::Minor].into_iter().filter(is_used);
            page.push(used.fold(Facts::new(), |facts, level| facts.and(level.name(), Value::text(level.meaning()))));
        }
        page.subheading("");
        page.push(
            Facts::new()
                .and("version", self.version())
                .and("old readers, new traces", problems(&self.forward))
                .and("new readers, old traces", problems(&self.backward)),
        );
        page
    }
}

impl Report {
    fn version(&self) -> Value {
        let shown = |side: &Side| side.version.map_or_else(|| "none".to_owned(), |version| version.to_string());
        let (old, new) = (shown(&self.old), shown(&self.new));
        let change = self.level.map_or_else(|| "no change".to_owned(), |level| format!("a {} change", level.name()));
        Value::text(match self.least {
            Some(least) => {
                let verdict = if self.is_enough { "" } else { " (too low)" };
                format!("{old} in the old DTD, {new} in the new one{verdict}; required after {change}: {least}")
            }
            None => format!("{old} in the old DTD, {new} in the new one; {change}"),
        })
    }
}

fn problems(reads: &Reads) -> Value {
    let list = |what: &str, fields: &[String]| (!fields.is_empty()).then(|| format!("{what} {}", fields.join(", ")));
    let problems = [
        reads.refused.as_ref().map(|reason| format!("the reader rejects the trace: {reason}")),
        list("the reader returns 0 or nothing for", &reads.lacking),
        list("the reader misinterprets", &reads.misread),
    ];
    let problems: Vec<String> = problems.into_iter().flatten().collect();
    Value::text(if problems.is_empty() { "no break".to_owned() } else { format!("break: {}", problems.join("; ")) })
}
