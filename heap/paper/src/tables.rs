//! The tables, formatted as text.

use std::collections::BTreeSet;

use metatf_tools::recode::Plan;

use super::column::{Column, Packing, STAR};
use super::measure::{Measured, Times, ratio};
use metatf_page::{self as page, Note, Page, Value};
use serde::Serialize;

/// The measurements and their tables.
#[derive(Serialize)]
pub struct Sizes {
    /// The measurements of each trace.
    pub traces: Vec<Measured>,
}

/// A table with a row for each trace, followed by summary rows.
struct Table {
    title: String,
    head: Vec<String>,
    rows: Vec<Vec<Value>>,
    /// Notes on missing values with the reasons, and the meaning of a star.
    notes: Vec<String>,
}

/// A column of a size table, which consists of an encoding and the packings shown in a cell.
type Cell = (Column, &'static [Packing]);

const RAW_AND_GZIP: &[Packing] = &[Packing::Raw, Packing::Gzip];
const ZSTD: &[Packing] = &[Packing::Zstd3, Packing::Zstd19];

const TABLE_4: &[Cell] = &[
    (Column::Simple32, RAW_AND_GZIP),
    (Column::Simple, RAW_AND_GZIP),
    (Column::Ascii, RAW_AND_GZIP),
    (Column::Hatf(Plan::Naive), RAW_AND_GZIP),
    (Column::Hatf(Plan::Best), RAW_AND_GZIP),
    (Column::SplitStream, RAW_AND_GZIP),
    (Column::SplitAddr, RAW_AND_GZIP),
    (Column::AddressSection, RAW_AND_GZIP),
    (Column::Hatf(Plan::Optimal), RAW_AND_GZIP),
];
const TABLE_7: &[Cell] = &[
    (Column::Hatf(Plan::Naive), RAW_AND_GZIP),
    (Column::Hatf(Plan::SmallSize), RAW_AND_GZIP),
    (Column::Hatf(Plan::SameSize), RAW_AND_GZIP),
    (Column::Hatf(Plan::CombinedSize), RAW_AND_GZIP),
];
const TABLE_8: &[Cell] = &[
    (Column::Hatf(Plan::BaseOffset1), RAW_AND_GZIP),
    (Column::Hatf(Plan::BaseOffset2), RAW_AND_GZIP),
    (Column::Hatf(Plan::BestBaseOffset), RAW_AND_GZIP),
    (Column::Hatf(Plan::Stride), RAW_AND_GZIP),
    (Column::Hatf(Plan::Best), RAW_AND_GZIP),
];
const LONG: [Column; 2] = [Column::HatfLong(Plan::SameSize), Column::HatfLong(Plan::Best)];
const METADATA: &[Cell] = &[
    (LONG[0], RAW_AND_GZIP),
    (Column::Hatf(Plan::SameSize), RAW_AND_GZIP),
    (LONG[1], RAW_AND_GZIP),
    (Column::Hatf(Plan::Best), RAW_AND_GZIP),
];
const OURS: &[Cell] =
    &[(Column::Hatf(Plan::Optimal), ZSTD), (Column::Split, ZSTD), (Column::Values, ZSTD), (Column::Heap, ZSTD)];
const PEERS: &[Cell] = &[
    (Column::Simple, &[Packing::Raw]),
    (Column::Simple, &[Packing::Gzip]),
    (Column::Simple, &[Packing::Xz]),
    (Column::Simple, &[Packing::Zstd3]),
    (Column::Simple, &[Packing::Zstd19]),
    (Column::Parquet, ZSTD),
];

impl page::Report for Sizes {
    /// Builds all tables that were measured.
    fn page(&self) -> Page {
        let measured = &*self.traces;
        let tables = [
            Some(summaries(measured)),
            sizes("Table 4: bytes per record, raw / gzip", TABLE_4, measured),
            sizes("Beyond the paper: bytes per record, zstd 3 / zstd 19", OURS, measured),
            sizes("The 64-bit simple binary, compressed and as Parquet: bytes per record", PEERS, measured),
            peers(measured),
            times(measured),
            packed_times(measured),
            sizes("Table 7: size encodings, bytes per record, raw / gzip", TABLE_7, measured),
            sizes("Table 8: address encodings, bytes per record, raw / gzip", TABLE_8, measured),
            // Some of these columns also occur in the tables above, so omit this table if only those columns were
            // measured.
            sizes(
                "12-byte metadata records and shorter metadata records: bytes per record, raw / gzip",
                METADATA,
                measured,
            )
            .filter(|_| measured.iter().any(|m| LONG.iter().any(|column| m.bytes.contains_key(column.name())))),
        ];
        let mut page = Page::default();
        for Table { title, head, rows, notes } in tables.into_iter().flatten() {
            page.heading(title);
            let names = head.into_iter().enumerate();
            let mut table = page::Table::new(
                names.map(|(i, name)| if i == 0 { page::Column::key(name) } else { page::Column::new(name) }),
            );
            rows.into_iter().for_each(|row| table.row(row));
            page.push(table);
            notes.into_iter().for_each(|note| page.push(Note::new("{}").with([Value::text(note)])));
        }
        page
    }
}

fn summaries(measured: &[Measured]) -> Table {
    let head =
        ["program", "records", "allocs", "reallocs", "frees", "bytes", "most objects", "most bytes", "avg. size"];
    let row = |m: &Measured| {
        let s = m.summary;
        let mut row = vec![Value::text(m.name.clone())];
        row.extend([s.records, s.allocs, s.reallocs, s.frees, s.bytes, s.most_objects, s.most_bytes].map(Value::Count));
        row.push(Value::Number(ratio(s.bytes, s.allocs + s.reallocs), 1));
        row
    };
    let title = "Table 3: contents of the traces".to_owned();
    let head = head.map(str::to_owned).to_vec();
    let part = |m: &Measured| {
        format!("All tables cover only the first records of {}; use --records N to measure more.", m.name)
    };
    let notes = measured.iter().filter(|m| !m.is_all).map(part).collect();
    Table { title, head, rows: measured.iter().map(row).collect(), notes }
}

/// Returns a table of sizes, or `None` if no size was measured.
fn sizes(title: &str, cells: &[Cell], measured: &[Measured]) -> Option<Table> {
    let there = |cell: &&Cell| measured.iter().any(|m| cell.1.iter().any(|&p| m.size(cell.0, p).is_some()));
    let columns = cells.iter().map(|cell| (cell.0.name(), cell.0.title()));
    let absent = absences(measured, columns);
    let cells: Vec<&Cell> = cells.iter().filter(there).collect();
    let heading = |&&(column, packings): &&Cell| match packings {
        &[one] => format!("{}, {}", column.title(), one.name()),
        _ => column.title().to_owned(),
    };
    let head = cells.iter().map(heading);
    let figures: Vec<Vec<Vec<Option<f64>>>> = measured
        .iter()
        .map(|m| cells.iter().map(|cell| cell.1.iter().map(|&packing| m.size(cell.0, packing)).collect()).collect())
        .collect();
    let mut table = table(title, head, measured, &figures, 3)?;
    table.notes.splice(..0, absent);
    Some(table)
}

/// Returns notes on the missing columns, with the affected traces and the reasons. Columns are given by name and title.
fn absences(measured: &[Measured], columns: impl Iterator<Item = (&'static str, &'static str)>) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for (name, title) in columns {
        let of = |m: &Measured| m.absent.get(name).map(|&why| (m.name.clone(), why));
        let (traces, why): (Vec<_>, Vec<_>) = measured.iter().filter_map(of).unzip();
        let Some(why) = why.first() else { continue };
        let traces = if traces.len() == measured.len() { String::new() } else { format!(" for {}", traces.join(", ")) };
        notes.push(format!("No {}{traces}: {why}.", title.trim_end_matches('*')));
    }
    notes.dedup();
    notes
}

/// Returns the table of other tools' files.
fn peers(measured: &[Measured]) -> Option<Table> {
    let names: BTreeSet<&String> = measured.iter().flat_map(|m| m.peers.keys()).collect();
    let size = |m: &Measured, name: &String| m.peers.get(name).map(|&bytes| ratio(bytes, m.summary.records));
    let figures: Vec<Vec<Vec<Option<f64>>>> =
        measured.iter().map(|m| names.iter().map(|name| vec![size(m, name)]).collect()).collect();
    table("Files of other tools: bytes per record", names.iter().map(|&name| name.clone()), measured, &figures, 3)
}

/// Read and write times in nanoseconds for each trace and column, and the titles of the columns.
type Timed = (Vec<&'static str>, Vec<Vec<Vec<Option<f64>>>>);

/// Returns the times, or `None` if no times were measured.
fn timed(measured: &[Measured], of: impl Fn(&Times) -> (f64, f64)) -> Option<Timed> {
    let timed = |column: &Column| measured.iter().any(|m| m.times.contains_key(column.name()));
    let columns: Vec<Column> = Column::ALL.into_iter().filter(timed).collect();
    let cell = |m: &Measured, column: &Column| {
        let both = m.times.get(column.name()).map(&of);
        vec![both.map(|both| both.0), both.map(|both| both.1)]
    };
    let figures = measured.iter().map(|m| columns.iter().map(|column| cell(m, column)).collect()).collect();
    (!columns.is_empty()).then(|| (columns.iter().map(|column| column.title()).collect(), figures))
}

/// Returns table 5, including the columns that exist only uncompressed (ASCII by perl, and copying in memory).
fn times(measured: &[Measured]) -> Option<Table> {
    let (mut head, mut figures) = timed(measured, |t| (t.read, t.write))?;
    let perl = measured.iter().any(|m| m.ascii_perl.is_some());
    head.extend(perl.then_some("ASCII/Perl"));
    head.push("memcpy*");
    for (m, row) in measured.iter().zip(&mut figures) {
        row.extend(perl.then(|| vec![m.ascii_perl.map(|perl| perl.read), m.ascii_perl.map(|perl| perl.write)]));
        row.push(vec![m.copying]);
    }
    let head = head.into_iter().map(str::to_owned);
    let mut table = table("Table 5: nanoseconds per record, read / write", head, measured, &figures, 1)?;
    let columns = [(Column::Simple32.name(), Column::Simple32.title()), ("ascii-perl", "ASCII/Perl")];
    table.notes.splice(..0, absences(measured, columns.into_iter()));
    Some(table)
}

/// Returns table 6, with the difference between the averages of compressed and uncompressed data.
fn packed_times(measured: &[Measured]) -> Option<Table> {
    let (head, figures) = timed(measured, |t| (t.read_packed, t.write_packed))?;
    let (_, plain) = timed(measured, |t| (t.read, t.write))?;
    let head = head.into_iter().map(str::to_owned);
    let mut table = table("Table 6: nanoseconds per record, compressed, read / write", head, measured, &figures, 1)?;
    let difference = |(packed, plain): (&Option<f64>, &Option<f64>)| Some((*packed)? - (*plain)?);
    let (packed, plain) = (over(&figures, mean), over(&plain, mean));
    let differences: Vec<Vec<_>> =
        packed.iter().zip(&plain).map(|(packed, plain)| packed.iter().zip(plain).map(difference).collect()).collect();
    table.rows.push(row("average difference", &differences, 1));
    Some(table)
}

/// Returns a table of figures, with a row for each trace, the mean, and the worst figure.
fn table(
    title: &str,
    head: impl Iterator<Item = String>,
    measured: &[Measured],
    figures: &[Vec<Vec<Option<f64>>>],
    digits: usize,
) -> Option<Table> {
    let head: Vec<String> = std::iter::once("program".to_owned()).chain(head).collect();
    let mut rows: Vec<_> = measured.iter().zip(figures).map(|(m, cells)| row(&m.name, cells, digits)).collect();
    if measured.len() > 1 {
        rows.push(row("mean", &over(figures, mean), digits));
        rows.push(row("worst", &over(figures, |figures| figures.iter().copied().reduce(f64::max)), digits));
    }
    let notes = head.iter().any(|title| title.contains('*')).then(|| format!("{STAR}."));
    (head.len() > 1).then(|| Table { title: title.to_owned(), head, rows, notes: notes.into_iter().collect() })
}

fn row(name: &str, cells: &[Vec<Option<f64>>], digits: usize) -> Vec<Value> {
    let places = u8::try_from(digits).unwrap_or(0);
    let cell = |cell: &Vec<Option<f64>>| match cell[..] {
        [one] => one.map_or(Value::Unknown, |figure| Value::Number(figure, places)),
        _ => {
            let figures = cell.iter().map(|f| f.map_or("-".to_owned(), |figure| format!("{figure:.digits$}")));
            Value::text(figures.collect::<Vec<_>>().join(" / "))
        }
    };
    std::iter::once(Value::text(name.to_owned())).chain(cells.iter().map(cell)).collect()
}

/// Combines the figures of all traces by position.
fn over(figures: &[Vec<Vec<Option<f64>>>], of: impl Fn(&[f64]) -> Option<f64>) -> Vec<Vec<Option<f64>>> {
    let Some(first) = figures.first() else { return Vec::new() };
    let place = |column: usize, place: usize| -> Option<f64> {
        let all: Option<Vec<f64>> = figures.iter().map(|row| *row.get(column)?.get(place)?).collect();
        of(&all?)
    };
    let columns = first.iter().enumerate();
    columns.map(|(column, cell)| (0..cell.len()).map(|i| place(column, i)).collect()).collect()
}

#[allow(clippy::cast_precision_loss, reason = "the number of traces is small")]
fn mean(figures: &[f64]) -> Option<f64> {
    Some(figures.iter().sum::<f64>() / figures.len() as f64).filter(|mean| mean.is_finite())
}

#[cfg(test)]
mod tests {
    use metatf_page::{Form, Report as _, render};

    use super::*;
    use crate::{Options, measure};

    fn printed(measured: &[Measured], form: Form) -> String {
        let mut out = Vec::new();
        render(&Sizes { traces: measured.to_vec() }.page(), form, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn markdown(measured: &[Measured]) -> String {
        printed(measured, Form::Markdown)
    }

    #[test]
    fn tables_of_a_small_trace() {
        let mut raw = Vec::new();
        for i in 0..2000_u64 {
            super::super::simple::push(
                [1 + i % 2, if i % 2 == 0 { i % 64 } else { 0 }, 0x1000 + i / 2 * 48, 0],
                &mut raw,
            );
        }
        let only = vec![Column::Simple, Column::Hatf(Plan::Naive), Column::Split, Column::Heap];
        let measured = measure("a|b", &raw, &Options { only, ..Options::default() }, &|_| {}).unwrap();
        assert_eq!(measured.bytes["simple"][&Packing::Raw], 64_000);
        assert!(measured.size(Column::Heap, Packing::Raw) < measured.size(Column::Simple, Packing::Raw));
        let text = printed(&[measured.clone(), measured.clone()], Form::text(None));
        let mut measured = measured;
        measured.peers.insert("some tool".to_owned(), 3000);
        let markdown = markdown(&[measured]);
        assert!(text.contains("Table 4") && text.contains("32.000 / ") && text.contains("worst "));
        assert!(markdown.contains("| a\\|b | 2,000 | 1,000 | 0 | 1,000 |") && !markdown.contains("mean"));
        assert!(markdown.contains("| program | some tool |") && markdown.contains("| a\\|b | 1.500 |"));
        assert!(!text.contains("other tools") && !text.contains("ASCII") && !text.contains("Table 5"));
    }

    /// Missing values are explained below the table, and encodings that are not in the paper are marked.
    #[test]
    fn notes() {
        let mut raw = Vec::new();
        super::super::simple::push([1, 24, 0x1000, 0], &mut raw);
        let options = Options { only: vec![Column::Simple32, Column::Simple, Column::Ascii], ..Options::default() };
        let low = measure("low", &raw, &options, &|_| {}).unwrap();
        super::super::simple::push([1, 24, 1 << 40, 0], &mut raw);
        let high = measure("high", &raw, &options, &|_| {}).unwrap();
        assert_eq!(low.bytes["simple32"][&Packing::Raw], 16);
        let both = markdown(&[low.clone(), high.clone()]);
        assert!(both.contains("| program | Simple Binary | 64-bit Simple Binary\\* | ASCII |\n"), "{both}");
        assert!(
            both.contains(
                "\nNo Simple Binary for high: an address or a size requires more than 32 bits.\n\n\\*: not in"
            ),
            "{both}"
        );
        assert!(both.contains("| high | - / - | 32.000 / ") && both.contains("| mean | - / - | 32.000 / "), "{both}");
        let high = markdown(&[high]);
        assert!(
            high.contains("| program | 64-bit Simple Binary\\* | ASCII |\n") && high.contains("\nNo Simple Binary: an"),
            "{high}"
        );
        assert!(!markdown(&[low]).contains("No Simple"));
    }

    /// The last row of table 6, which is the average cost of compression.
    #[test]
    fn average_difference() {
        let mut raw = Vec::new();
        super::super::simple::push([1, 24, 0x1000, 0], &mut raw);
        let only = vec![Column::Ascii];
        let mut a = measure("a", &raw, &Options { only, ..Options::default() }, &|_| {}).unwrap();
        let mut b = a.clone();
        a.times.insert("ascii", Times { read: 1.0, write: 2.0, read_packed: 5.0, write_packed: 1.0 });
        b.name = "b".to_owned();
        b.times.insert("ascii", Times { read: 3.0, write: 4.0, read_packed: 6.0, write_packed: 2.5 });
        a.ascii_perl = Some(super::super::Perl { read: 200.0, write: 100.0 });
        (a.copying, b.copying) = (Some(1.0), Some(1.0));
        b.absent.insert("ascii-perl", "perl is not available");
        let text = markdown(&[a, b]);
        assert!(text.contains("| average difference | 3.5 / -1.2 |\n"), "{text}");
        assert!(text.contains("| a | 1.0 / 2.0 | 200.0 / 100.0 | 1.0 |\n| b | 3.0 / 4.0 | - / - | 1.0 |"), "{text}");
        assert!(text.contains("\nNo ASCII/Perl for b: perl is not available.\n"), "{text}");
    }
}
