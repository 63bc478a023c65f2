//! The result table in Markdown.

use crate::Result;
use crate::row::Row;
use std::fmt::Write as _;

/// The measurements of each row in order of first appearance.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<(String, Vec<Row>)>,
}

impl Table {
    /// Adds the measurements printed by a process.
    pub(crate) fn add(&mut self, lines: &str) -> Result<()> {
        for line in lines.lines() {
            let row = Row::parse(line).ok_or_else(|| format!("not a measurement: {line}"))?;
            match self.rows.iter_mut().find(|(name, _)| *name == row.name) {
                Some((_, rows)) => rows.push(row),
                None => self.rows.push((row.name.clone(), vec![row])),
            }
        }
        Ok(())
    }

    /// Returns whether nothing was measured.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the table, with the median of each measurement and the minimum CPU time of the emitting thread.
    pub(crate) fn text(&self) -> String {
        let mut out = String::from(
            "| | thread, ns | least | all, ns | bytes | lost |\n| --- | ---: | ---: | ---: | ---: | ---: |\n",
        );
        for (name, rows) in &self.rows {
            let median = |get: fn(&Row) -> Option<f64>| median(rows.iter().filter_map(get).collect());
            let least = rows.iter().map(|row| row.thread).fold(f64::INFINITY, f64::min);
            let _ = writeln!(
                out,
                "| {name} | {} | {} | {} | {} | {} |",
                cell(median(|row| Some(row.thread))),
                cell(Some(least)),
                cell(median(|row| row.all)),
                cell(median(|row| row.bytes)),
                median(|row| row.lost).map_or_else(|| "-".to_owned(), percent),
            );
        }
        out
    }
}

/// Formats a number with three significant digits.
fn cell(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value < 10.0 => format!("{value:.2}"),
        Some(value) if value < 100.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.0}"),
    }
}

/// Formats a percentage. Only an exact zero is printed as 0.
fn percent(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { format!("{value:.2} %") }
}

/// Returns the median of the numbers, or `None` if there are no numbers.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Returns the load average of the last minute.
pub(crate) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("unknown").to_owned()
}

/// Describes the measurement environment in a sentence.
pub(crate) fn machine(rounds: usize, load_before: &str) -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown processor");
    let cpu = cpu.trim_start_matches([' ', '\t', ':']);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = load();
    format!("Medians of {rounds} rounds on {cpu}, {cores} cores; load average {load_before} before, {load} after.")
}
