//! `diff`: compares the values of two traces, however they are encoded.

use crate::dtd::{self, DtdArgs};
use crate::failure::{Failure, Result, usage};
use crate::input::{self, Reopenable};
use crate::output;
use clap::ValueEnum;
use metatf::container::Reader;
use metatf::dynamic::Schema;
use metatf::dynamic::compare::{self, CompareOptions, Comparison, Difference, Input, Named, Told, What, Which};
use metatf_cli::{Progress, number};
use metatf_parser::schema::Format;
use serde_json::{Value, json};
use std::fmt::Write as _;

const MORE: &str = "\
Compared are the values of records, comments and stream elements. How they are
encoded makes no difference: metadata, widths, interpretations, chunks, groups,
codecs, class, byte order, version of the file. An offset into a table is what
stands there.

The records of each section are compared in order; that of records of
different sections counts only with --order. A stream section that records
stride through or point into is compared through them, element by element only
where --section names it. Where the traces have different DTDs, what has the
same name in both is compared: section, record, field. What only one of them
has is listed, and is no difference.

A record is named by the number of data records before it, so that
`metatfc dump --skip NUMBER --head 1` shows it.

Exit status: 0 the same, 1 different (or a trace cannot be read), 2 the
command line is wrong.

Examples:
  metatfc diff a.mtf b.mtf && echo the same
  metatfc diff --ignore time,free.heap --max 1 a.mtf b.mtf
  metatfc dump --format jsonl --all a.mtf | metatfc encode --dtd a.dtd - - | metatfc diff a.mtf -";

/// Compare the values of two traces, and print the differences
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// The first trace; `-` is standard input
    left: String,
    /// The second trace; `-` is standard input
    right: String,
    /// Stop after this many differences (0: print all)
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true, value_parser = number(0..=usize::MAX))]
    max: usize,
    /// How to print
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: OutputFormat,
    /// Leave out fields (`size`, `alloc.size`) and records (`free`, `comment`)
    #[arg(long, value_name = "FIELD,..", value_delimiter = ',')]
    ignore: Vec<String>,
    /// Only these sections (0: the global one)
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    section: Vec<String>,
    /// The order of records over sections counts, too
    #[arg(long)]
    order: bool,
    /// Compare user metadata and the DTDs' texts, too
    #[arg(long)]
    metadata: bool,
    /// Print nothing: the exit status is the result
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    dtd: DtdArgs,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    #[default]
    Text,
    Json,
}

/// One of the traces.
struct Side {
    name: String,
    file: Reopenable,
    schema: Schema,
}

impl Side {
    fn new(path: &str, args: &DtdArgs) -> Result<Self> {
        let name = input::name(path).to_owned();
        let file = Reopenable::new(path, true)?;
        let schema = dtd::find(&file.open(false)?, &name, args, false)?;
        Ok(Self { name, file, schema })
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.left == "-" && args.right == "-" {
        return usage("only one of the traces can come from standard input");
    }
    let sides = [Side::new(&args.left, &args.dtd)?, Side::new(&args.right, &args.dtd)?];
    let options = CompareOptions {
        max: args.max,
        order: args.order,
        ignore: args.ignore.clone(),
        sections: args.section.clone(),
        metadata: args.metadata,
    };
    let unknown = compare::unknown_names(&sides[0].schema, &sides[1].schema, &options);
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.iter().map(|name| format!("`{name}`")).collect();
        return usage(format!("neither DTD has a section, record or field {}", names.join(", ")));
    }
    let result = run_compare(&sides, &options)?;
    match args.format {
        _ if args.quiet => {}
        OutputFormat::Text => output::print(&text(&sides, &result))?,
        OutputFormat::Json => output::print(&format!("{:#}\n", to_json(&sides, &result)))?,
    }
    if result.is_same() { Ok(()) } else { Err(Failure::Printed) }
}

fn run_compare(sides: &[Side; 2], options: &CompareOptions) -> Result<Comparison> {
    let mut progress = Progress::new("records");
    let mut open_left = || Reader::open(sides[0].file.path());
    let mut open_right = || Reader::open(sides[1].file.path());
    let left = Input { schema: sides[0].schema.clone(), open: &mut open_left };
    let right = Input { schema: sides[1].schema.clone(), open: &mut open_right };
    compare::compare(left, right, options, &mut || progress.step()).map_err(|(which, error)| {
        let side = &sides[which as usize];
        Failure::Failed(format!("{}: {}", side.name, metatf::explain(&side.schema.format, &error)))
    })
}

fn text(sides: &[Side; 2], result: &Comparison) -> String {
    let mut out = String::new();
    for only in &result.only {
        let _ = writeln!(out, "only in {}: {}", sides[only.which as usize].name, only.what);
    }
    if result.nothing_in_common {
        let _ = writeln!(out, "the traces have no record in common: nothing was compared");
    }
    for difference in &result.differences {
        tell(&mut out, sides, difference);
    }
    if result.stopped {
        let _ = writeln!(out, "stopped after {} (--max)", output::count(result.differences.len(), "difference"));
    }
    out
}

fn tell(out: &mut String, sides: &[Side; 2], difference: &Difference) {
    let section = difference.section.as_deref().unwrap_or("(global)");
    let name = |which: usize| &sides[which].name;
    let named = |n: &Named| format!("{} {}", n.record, n.number);
    let _ = match (&difference.what, &difference.records) {
        (What::Field(field, values), [Some(l), Some(r)]) => {
            let place = if l == r { named(l) } else { format!("{} (in the second: {})", named(l), r.number) };
            let [a, b] = values.each_ref().map(|v| v.as_ref().map_or_else(|| "(none)".to_owned(), plain));
            writeln!(out, "{section} {place}: {field}: {a} != {b}")
        }
        (What::Record, [Some(l), Some(r)]) => writeln!(out, "{section} {} != {}", named(l), named(r)),
        (What::More(which, more), records) => {
            let first = records[*which as usize].as_ref().map(named).unwrap_or_default();
            let other = 1 - *which as usize;
            writeln!(
                out,
                "{section} {first}: {} has {more} more from here, {} has no more",
                name(*which as usize),
                name(other)
            )
        }
        (What::User(key, values), _) => {
            let [a, b] = values.each_ref().map(|v| v.as_deref().unwrap_or("(none)"));
            writeln!(out, "user metadata {key}: {a} != {b}")
        }
        (What::Dtd, _) => writeln!(out, "the texts of the DTDs differ"),
        (What::Field(..) | What::Record, _) => Ok(()),
    };
}

/// Longer values are cut.
const LONGEST: usize = 120;

fn plain(told: &Told) -> String {
    if told.format == Format::Hex
        && let Ok(n) = told.json.parse::<u64>()
    {
        return format!("{n:#x}");
    }
    match told.json.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}... ({} characters)", &told.json[..end], told.json.chars().count()),
        None => told.json.clone(),
    }
}

fn to_json(sides: &[Side; 2], result: &Comparison) -> Value {
    let side = |which: Which| if which == Which::Left { "left" } else { "right" };
    let only: Vec<Value> = result.only.iter().map(|o| json!({ "in": side(o.which), "what": o.what })).collect();
    json!({
        "left": sides[0].name,
        "right": sides[1].name,
        "same": result.is_same(),
        "compared": result.compared,
        "stopped": result.stopped,
        "only": only,
        "differences": result.differences.iter().map(difference_json).collect::<Vec<_>>(),
    })
}

fn difference_json(difference: &Difference) -> Value {
    let record = |n: &Option<Named>| match n {
        Some(n) => json!({ "record": n.record, "number": n.number }),
        None => Value::Null,
    };
    let [left, right] = difference.records.each_ref().map(record);
    match &difference.what {
        What::Field(field, values) => {
            // The values are JSON.
            let [a, b] = values
                .each_ref()
                .map(|v| v.as_ref().and_then(|v| serde_json::from_str(&v.json).ok()).unwrap_or(Value::Null));
            json!({
                "what": "field", "section": difference.section, "left": left, "right": right,
                "field": field, "values": [a, b],
            })
        }
        What::Record => json!({ "what": "record", "section": difference.section, "left": left, "right": right }),
        What::More(_, records) => json!({
            "what": "more", "section": difference.section, "left": left, "right": right, "records": records,
        }),
        What::User(key, values) => {
            let [a, b] = values
                .each_ref()
                .map(|v| v.as_deref().and_then(|v| serde_json::from_str(v).ok()).unwrap_or(Value::Null));
            json!({ "what": "user metadata", "key": key, "values": [a, b] })
        }
        What::Dtd => json!({ "what": "dtd" }),
    }
}
