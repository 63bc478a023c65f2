//! The header of the report: how the program ended, and its peaks.

use hatf_lab::sites::{Amount, Counts};
use metatf_page::{Column, Page, Table, Value, html_blocks};

use super::Side;
use crate::analysis::{Level, Report};
use crate::verdict::ending;

/// The facts about a trace in the header.
#[derive(Clone, Debug)]
pub(super) struct Header {
    /// The program and its arguments, if known.
    pub(super) command: Option<String>,
    /// The sentence about the end of the program, if the end is known.
    pub(super) ending: Option<String>,
    duration: u64,
    /// The peak of live memory and its time, unless only sizes were recorded.
    live: Option<(Amount, u64)>,
    /// The peaks of private and of all resident memory, if the trace has samples of them.
    resident: Option<[Level; 2]>,
}

impl Header {
    /// Collects the facts. `counts` are the allocations of each stack, and `most` is the peak of live memory.
    pub(super) fn new(report: &Report, counts: &[Counts], most: Amount) -> Self {
        let has_ends = !report.sizes_only;
        let live = has_ends.then(|| counts.iter().fold(0_u64, |sum, site| sum.saturating_add(site.leaked.bytes)));
        let command = report.comments.iter().find_map(|comment| comment.strip_prefix("command: "));
        Self {
            command: command.map(str::to_owned),
            ending: ending(report.ending, report.duration, live),
            duration: report.duration,
            live: has_ends.then_some((most, report.peak.time)),
            resident: report.pages.as_ref().filter(|all| all.samples > 0).map(|all| [all.private, all.resident]),
        }
    }

    fn after(&self, time: u64) -> String {
        if self.duration == 0 { String::new() } else { format!(", {} after the start", Value::Time(time)) }
    }

    fn end(&self) -> Option<String> {
        let lasted = || (self.duration > 0).then(|| format!("The trace covers {}.", Value::Time(self.duration)));
        self.ending.clone().or_else(lasted)
    }

    fn peak(&self) -> Option<String> {
        let (Amount { blocks, bytes }, time) = self.live?;
        let blocks = if blocks == 1 { "1 block".to_owned() } else { format!("{} blocks", Value::Count(blocks)) };
        Some(format!("{} in {blocks}{}", Value::Bytes(bytes), self.after(time)))
    }

    fn resident(&self) -> Option<String> {
        let [private, all] = self.resident?;
        let [private_bytes, all_bytes] = [private, all].map(|level| Value::Bytes(level.peak));
        let after = self.after(private.time);
        Some(format!("{private_bytes} private{after}; {all_bytes} with shared pages"))
    }
}

/// Returns the header as HTML, with a column for each trace. The heading of a report on one trace states the command.
pub(super) fn html(sides: &[Side<'_>]) -> std::io::Result<String> {
    let mut table = match sides {
        [_] => Table::unnamed(2),
        _ => Table::new(["", "before", "after"].map(Column::new)),
    };
    let headers = || sides.iter().map(|side| &side.recorded.header);
    let mut row = |name, texts: Vec<Option<String>>| {
        if texts.iter().any(Option::is_some) {
            let texts = texts.into_iter().map(|text| text.map_or(Value::Unknown, Value::text));
            table.row([Value::text(name)].into_iter().chain(texts));
        }
    };
    if sides.len() > 1 {
        row("Command", headers().map(|header| header.command.clone()).collect());
    }
    row("End", headers().map(Header::end).collect());
    row("Peak of live memory", headers().map(Header::peak).collect());
    row("Peak of resident memory", headers().map(Header::resident).collect());
    let mut page = Page::default();
    if !table.is_empty() {
        page.push(table);
    }
    let mut html = Vec::new();
    html_blocks(&page.blocks, &mut html)?;
    Ok(String::from_utf8_lossy(&html).into_owned())
}
