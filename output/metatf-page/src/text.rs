//! Pages as text.

use std::io::{self, Write};

use crate::escape::shown;
use crate::layout::{Kind, Layout, wrapped};
use crate::shorten::letters;
use crate::{Block, Chart, Facts, Flame, Note, Page, Value};

/// The style of text output.
///
/// # Examples
///
/// ```
/// use metatf_page::{Form, Page, TextStyle, render};
///
/// let mut page = Page::new("grep.mtf");
/// page.heading("SITES");
///
/// let mut out = Vec::new();
/// render(&page, Form::Text(TextStyle { width: Some(80), colour: true }), &mut out)?;
/// assert_eq!(out, b"\x1b[1mgrep.mtf\x1b[0m\n\n\x1b[1mSITES\x1b[0m\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextStyle {
    /// The line width in characters, or `None` if lines may have any length.
    pub width: Option<usize>,
    /// Whether headings are emphasized with a terminal sequence (`ESC [ 1 m`).
    pub colour: bool,
}

/// The indentation of each line in a block.
const INDENT: &str = "  ";
/// The width of a chart in columns.
const COLUMNS: usize = 72;
/// Maximum number of lines in a call tree.
const CALLS: usize = 30;
/// Calls with less than the total divided by this number are omitted.
const LEAST_PART: u64 = 100;

pub(crate) fn page(page: &Page, style: TextStyle, out: &mut dyn Write) -> io::Result<()> {
    let mut text = Text { style, out };
    if !page.title.is_empty() {
        text.line("", &shown(&page.title), true)?;
    }
    page.blocks.iter().try_for_each(|block| text.block(block))
}

struct Text<'o> {
    style: TextStyle,
    out: &'o mut dyn Write,
}

impl Text<'_> {
    fn block(&mut self, block: &Block) -> io::Result<()> {
        match block {
            Block::Heading(heading) => {
                writeln!(self.out)?;
                self.line("", &said(heading), true)
            }
            Block::Subheading(heading) => {
                writeln!(self.out)?;
                let text = said(heading);
                if text.is_empty() { Ok(()) } else { self.line(INDENT, &text, false) }
            }
            Block::Note(note) => self.line(INDENT, &said(note), false),
            Block::Facts(facts) => self.facts(facts),
            Block::Table(table) => {
                let width = self.style.width.map(|width| width.saturating_sub(INDENT.len()));
                for line in Layout::new(table).lines(width) {
                    let bold = line.kind == Kind::Sum;
                    self.printed(if line.text.is_empty() { "" } else { INDENT }, &line.text, bold)?;
                }
                table.rest.as_ref().map_or(Ok(()), |rest| self.line(INDENT, &said(rest), false))
            }
            Block::Chart(chart) => self.chart(chart),
            Block::Flame(flame) => self.flame(flame),
            Block::Intervals(intervals) => self.line(INDENT, &intervals.title, false),
            Block::AddressMap(map) => {
                let held = |region: &crate::Region| region.cells.iter().flatten().count() as u64;
                let cells = map.regions.iter().map(held).sum();
                let note = Note::new("{} cells of {} in {} regions");
                let regions = (map.regions.len() as u64).saturating_add(map.left_out);
                self.line(
                    INDENT,
                    &said(&note.with([Value::Count(cells), Value::Bytes(map.cell), Value::Count(regions)])),
                    false,
                )
            }
        }
    }

    /// Prints a sentence, wrapped if necessary.
    fn line(&mut self, indent: &str, text: &str, bold: bool) -> io::Result<()> {
        let Some(width) = self.style.width else { return self.printed(indent, text, bold) };
        let pieces = wrapped(text, width.saturating_sub(indent.len()).max(16));
        pieces.iter().try_for_each(|piece| self.printed(indent, piece, bold))
    }

    fn printed(&mut self, indent: &str, text: &str, bold: bool) -> io::Result<()> {
        if bold && self.style.colour && !text.is_empty() {
            writeln!(self.out, "{indent}\x1b[1m{text}\x1b[0m")
        } else {
            writeln!(self.out, "{indent}{text}")
        }
    }

    fn facts(&mut self, facts: &Facts) -> io::Result<()> {
        let rows: Vec<_> = facts
            .rows
            .iter()
            .map(|(name, value, remark)| {
                (shown(name).into_owned(), shown(&value.to_string()).into_owned(), value.is_number(), said(remark))
            })
            .collect();
        let names = rows.iter().map(|row| letters(&row.0)).max().unwrap_or(0);
        let values = rows.iter().filter(|row| row.2).map(|row| letters(&row.1)).max().unwrap_or(0);
        for (name, value, is_number, remark) in rows {
            let value = if is_number { format!("{value:>values$}") } else { value };
            let text = format!("{name:<names$}  {value}  {remark}");
            self.line(INDENT, text.trim_end(), false)?;
        }
        Ok(())
    }

    /// Prints a line of block characters for each quantity, and the end of the axis.
    fn chart(&mut self, chart: &Chart) -> io::Result<()> {
        let columns = self.style.width.map_or(COLUMNS, |width| COLUMNS.min(width.saturating_sub(INDENT.len()).max(8)));
        let (end, most) = chart.ends();
        for series in &chart.series {
            let level = |value: u64| {
                let eighth = usize::try_from(u128::from(value) * 8 / u128::from(most)).unwrap_or(0);
                [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'].get(eighth).copied().unwrap_or('█')
            };
            let line: String = chart.columns(series, columns).into_iter().map(level).collect();
            let highest = series.points.iter().map(|point| point.1).max().unwrap_or(0);
            if chart.series.len() > 1 {
                self.line(INDENT, &format!("{}: at most {}", shown(&series.name), Value::of(highest, chart.y)), false)?;
            }
            self.printed(INDENT, line.trim_end(), false)?;
        }
        let end = Value::of(end, chart.x).to_string();
        let name = if chart.x_name.is_empty() { String::new() } else { format!(" {}", chart.x_name) };
        let width = columns.saturating_sub(1);
        self.printed(INDENT, &format!("0{:>width$}", format!("{end}{name}")), false)
    }

    /// Prints the calls with the highest totals, starting at the outermost.
    fn flame(&mut self, flame: &Flame) -> io::Result<()> {
        let mut left = CALLS;
        self.calls(&flame.root, flame, 0, &mut left)?;
        if left == 0 { self.line(INDENT, "..", false) } else { Ok(()) }
    }

    fn calls(&mut self, node: &crate::Node, flame: &Flame, depth: usize, left: &mut usize) -> io::Result<()> {
        let mut calls: Vec<_> = node.calls.iter().collect();
        calls.sort_by_key(|(_, call)| std::cmp::Reverse(call.total));
        for (name, call) in calls {
            if *left == 0 || call.total < flame.root.total.div_ceil(LEAST_PART) {
                return Ok(());
            }
            *left -= 1;
            let (total, part) = (Value::of(call.total, flame.unit), Value::Part(call.total, flame.root.total));
            let text =
                format!("{:>10} {:>7}  {}{}", total.to_string(), part.to_string(), " ".repeat(depth), shown(name));
            self.line(INDENT, &text, false)?;
            self.calls(call, flame, depth + 1, left)?;
        }
        Ok(())
    }
}

/// Returns the text of a sentence, including its values.
fn said(note: &Note) -> String {
    let mut text = String::new();
    for (piece, value) in note.pieces() {
        text.push_str(&shown(piece));
        text.extend(value.map(|value| shown(&value.to_string()).into_owned()));
    }
    text
}
