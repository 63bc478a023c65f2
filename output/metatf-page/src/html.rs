//! Pages as one HTML document with tables and pictures, without scripts.

use std::io::{self, Write};

use crate::axis::float;
use crate::escape::markup;
use crate::table::Row;
use crate::{Block, Facts, Note, Page, Table, Value, svg};

/// The style sheet. Pages are light or dark like the reader's system, adapt to the window's width, and are black on
/// white when printed.
const STYLE: &str = "\
:root{color-scheme:light dark}
body{font:15px/1.45 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}h3{font-size:1rem}
table+h3{margin-top:1.5rem}.scroll{margin:.8rem 0}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
.scroll{overflow-x:auto}
th,td{padding:.15rem .6rem;text-align:left;vertical-align:top;white-space:nowrap}
th{font-weight:600;border-bottom:1px solid}
td:last-child{white-space:normal;overflow-wrap:anywhere}
.n{text-align:right}.sum{font-weight:600}
.bar{display:inline-block;height:.7em;background:#0072b2}
.more{opacity:.7}
dt{float:left;clear:left;min-width:16rem}
svg{max-width:100%;height:auto}
@media print{body{max-width:none}}
";

pub(crate) fn page(page: &Page, out: &mut dyn Write) -> io::Result<()> {
    let title = markup(&page.title);
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n<h1>{title}</h1>"
    )?;
    blocks(page.blocks.iter().chain(&page.figures), out)
}

/// Prints blocks as a part of an HTML document.
///
/// # Errors
/// Returns the error of the output.
pub fn blocks<'b>(blocks: impl IntoIterator<Item = &'b Block>, out: &mut dyn Write) -> io::Result<()> {
    blocks.into_iter().try_for_each(|block| self::block(block, out))
}

fn block(block: &Block, out: &mut dyn Write) -> io::Result<()> {
    match block {
        Block::Heading(heading) => writeln!(out, "<h2>{}</h2>", said(heading)),
        Block::Subheading(heading) if said(heading).is_empty() => Ok(()),
        Block::Subheading(heading) => writeln!(out, "<h3>{}</h3>", said(heading)),
        Block::Note(note) => writeln!(out, "<p>{}</p>", said(note)),
        Block::Facts(facts) => self::facts(facts, out),
        Block::Table(table) => self::table(table, out),
        picture => {
            writeln!(out, "<figure>")?;
            svg::picture(picture, out)?;
            writeln!(out, "</figure>")
        }
    }
}

fn facts(facts: &Facts, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<dl>")?;
    for (name, value, remark) in &facts.rows {
        writeln!(out, "<dt>{}</dt><dd>{} {}</dd>", markup(name), shown(value), said(remark))?;
    }
    writeln!(out, "</dl>")
}

fn table(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<div class=\"scroll\"><table>")?;
    let class = |column: usize| if table.stands_right(column) { " class=\"n\"" } else { "" };
    // Columns without values are omitted.
    let has_value = |row: &Row, column| !matches!(row.cells.get(column), None | Some(Value::Blank | Value::Unknown));
    let has_values = |column: &usize| table.is_empty() || table.rows.iter().any(|row| has_value(row, *column));
    if table.has_names() {
        let names = table.columns.iter().enumerate().filter(|(number, _)| has_values(number));
        let names = names.map(|(number, column)| format!("<th{}>{}</th>", class(number), markup(&column.name)));
        writeln!(out, "<tr>{}</tr>", names.collect::<String>())?;
    }
    for row in &table.rows {
        let cells = row.cells.iter().enumerate().filter(|(number, _)| has_values(number));
        let cells = cells.map(|(number, cell)| format!("<td{}>{}</td>", class(number), shown(cell)));
        writeln!(out, "<tr{}>{}</tr>", if row.sum { " class=\"sum\"" } else { "" }, cells.collect::<String>())?;
    }
    writeln!(out, "</table></div>")?;
    table.rest.as_ref().map_or(Ok(()), |rest| writeln!(out, "<p>{}</p>", said(rest)))
}

/// Returns a value as HTML; hovering over it shows the exact value.
fn shown(value: &Value) -> String {
    match (value, value.exact()) {
        (Value::Lines(lines), _) => {
            let mut lines = lines.iter().map(|line| markup(line));
            let first = lines.next().unwrap_or_default();
            lines.fold(first, |text, line| format!("{text}<br><span class=\"more\">{line}</span>"))
        }
        (Value::Bar(part, most), _) => {
            let width = 12.0 * float(*part) / float((*most).max(1));
            format!("<span class=\"bar\" style=\"width:{width:.2}rem\"></span>")
        }
        (value, Some(exact)) => format!("<span title=\"{exact}\">{}</span>", markup(&value.to_string())),
        (value, None) => markup(&value.to_string()),
    }
}

fn said(note: &Note) -> String {
    let mut text = String::new();
    for (piece, value) in note.pieces() {
        text.push_str(&markup(piece));
        text.extend(value.map(shown));
    }
    text
}
