//! Pages as Markdown, with tables as displayed by GitHub and GitLab.

use std::io::{self, Write};

use crate::escape::markdown as escaped;
use crate::text::{self, TextStyle};
use crate::{Block, Note, Page, Table, Value};

pub(crate) fn page(page: &Page, out: &mut dyn Write) -> io::Result<()> {
    if !page.title.is_empty() {
        writeln!(out, "## {}\n", escaped(&page.title))?;
    }
    for block in &page.blocks {
        match block {
            Block::Heading(heading) => writeln!(out, "### {}\n", said(heading))?,
            Block::Subheading(heading) if said(heading).is_empty() => {}
            Block::Subheading(heading) => writeln!(out, "#### {}\n", said(heading))?,
            Block::Note(note) => writeln!(out, "{}\n", said(note))?,
            Block::Facts(facts) => {
                for (name, value, remark) in &facts.rows {
                    let text = format!("- {}: {} {}", escaped(name), shown(value), said(remark));
                    writeln!(out, "{}", text.trim_end())?;
                }
                writeln!(out)?;
            }
            Block::Table(table) => self::table(table, out)?,
            // Markdown cannot contain the pictures, so print them as text, verbatim.
            picture => {
                let picture = Page { blocks: vec![picture.clone()], ..Page::default() };
                writeln!(out, "```text")?;
                text::page(&picture, TextStyle::default(), out)?;
                writeln!(out, "```\n")?;
            }
        }
    }
    Ok(())
}

fn table(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    let names: Vec<_> = table.columns.iter().map(|column| escaped(&column.name)).collect();
    writeln!(out, "| {} |", names.join(" | "))?;
    let rules: Vec<_> =
        (0..names.len()).map(|column| if table.stands_right(column) { "---:" } else { "---" }).collect();
    writeln!(out, "| {} |", rules.join(" | "))?;
    for row in &table.rows {
        let bold = |cell: String| if row.sum && !cell.is_empty() { format!("**{}**", cell.trim()) } else { cell };
        let cells: Vec<_> = row.cells.iter().map(shown).map(bold).collect();
        writeln!(out, "| {} |", cells.join(" | "))?;
    }
    table.rest.as_ref().map_or(Ok(()), |rest| writeln!(out, "\n{}", said(rest)))?;
    writeln!(out)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Lines(lines) => lines.iter().map(|line| escaped(line)).collect::<Vec<_>>().join("<br>"),
        value => escaped(&value.to_string()),
    }
}

fn said(note: &Note) -> String {
    let mut text = String::new();
    for (piece, value) in note.pieces() {
        text.push_str(&escaped(piece));
        text.extend(value.map(shown));
    }
    text
}
