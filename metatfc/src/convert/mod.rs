//! `convert`: writes traces from JSON lines and tables, writes tables from traces, and rewrites traces.

mod encode;
#[cfg(feature = "export")]
mod export;
#[cfg(feature = "export")]
mod import;
mod recode;

use crate::dtd::DtdArgs;
use crate::failure::{Result, usage};
use crate::input;
use crate::options::ThreadArgs;
use crate::pack::{PROFILES, PackArgs, parse_size};
use crate::raw::RawArgs;
use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use metatf_cli::MemoryLimit;
use metatf_tools::recode::Plan;
use std::path::{Path, PathBuf};

#[cfg(feature = "export")]
pub(crate) use import::{ChildArgs, serve};

/// File extensions of tables, whether or not this build supports them.
const TABLES: [&str; 3] = ["parquet", "arrow", "csv"];

/// The form of a database, and the extension of its file.
const DATABASE: &str = "sqlite";

const MORE: &str = "\
The extensions of the files determine what is converted; --from and --to override
them. An output file is created only when it is complete.

From a trace to a trace:
The new trace contains the same records in the same order, with the same values,
comments, groups, stream elements, tables, user metadata and DTD. Only the
encoding changes: new metadata records set the widths and interpretations of
fields. Plans (the program metatf-paper also measures those of the paper):
  naive    as in the DTD; a field is widened when a value requires it
  optimal  for each field, the cheapest path through widths 0 to 8, none, delta,
           stride, default and baseOffset
Metadata between records makes compression worse, so the smallest content does
not always compress best. Without --plan, compressed content is encoded with both
the naive and the optimal plan, on the first block and on every 16th block after
it. The shorter result determines the plan. A run is encoded only if this saves
more bytes than its metadata records use. Section offsets and section strides are
kept. The encoding of constants, tags and byte arrays is fixed.

--to-dtd converts the records to another DTD. Records are matched by name, first
in the section of the same name; fields are matched by their path in the record.
Section strides may be stored in another section. An offset into a table becomes
the offset of the same element in the new table. Fields that only the new DTD
defines are set to their default or constant, or to 0. If the new DTD lacks a
field, the conversion fails and lists the field; to drop the field, use --drop.

From JSON lines to a trace:
The input has the format printed by `metatfc dump --format jsonl`: one object per
line, with `@section`, `@record` and the fields. Counts, constants, tags, and
fields with the interpretation `default` or `stride` may be omitted; a `stride`
continues from the lines before. Like the output of `dump --all`, the input may
also contain comments, metadata, groups and stream elements. --class and --order
set the class and the byte order of the trace. If a value does not fit its field
or differs from the value that the interpretation implies, a metadata record
changes the encoding of the field; with --strict, this is an error. A field that
refers to a section of strings may contain the string, which is added to the
section once. Other references must be offsets of elements.";

#[cfg(feature = "export")]
const TABLE_FORMS: &str = "

From traces to tables:
Each record type becomes a table, with a column for each field, named as in JSON
lines. The column @number contains the number of data records before the row.
Named values, flags, dates and text are written in readable form. The conversion
fails if an unsigned number requires more than 63 bits, text is not UTF-8, or a
`bool` is neither 0 nor 1. With --stored, values are written as stored, and every
value is accepted. If the DTD defines spans (see `metatfc stat --help`),
--record spans writes a row for each span, with its times, its parent and its
fields, and --record events a row for each other record that has a time.
Conditions (--where) have the syntax described in `metatfc dump --help`. They can
refer to columns, and to fields of structures in a column. Every table must
contain all fields of the condition; use --record to select such tables.

The output is a new directory, for which --to sets the form: DIR/RECORD.FORM
contains the table of a trace; of several traces,
DIR/RECORD/trace=NAME/RECORD.FORM, which query engines read as one table with a
column `trace`. Empty tables are not written. To write a single file, or standard
output with `-`, select one record with --record; the rows of several traces are
concatenated. An SQLite database is a single file with all tables; with several
traces, its tables contain a column `trace`.

From tables to a trace:
Each file is named after its record type: malloc.parquet contains records of type
`malloc`. Columns for constants, counts and lengths may be omitted. The rows of
all files are written in the order of their column @number. A column without a
matching field in the DTD is an error.";

#[cfg(not(feature = "export"))]
const TABLE_FORMS: &str = "";

const EXAMPLES: &str = "

Examples:
  metatfc convert in.mtf out.mtf                    with the default preset
  metatfc convert in.mtf plain.mtf --plan naive --codec stored
  metatfc convert in.mtf out.mtf --plan optimal --fields size,alloc.address
  metatfc convert heap.mtf split.mtf --to-dtd HATF10-split --preset archive
  metatfc convert split.mtf small.mtf --to-dtd HATF10 --drop time,thread
  metatfc convert in.mtf - --codec zstd:19 | metatfc verify -
  metatfc convert capture.pcap capture.mtf
  metatfc convert capture.mtf capture.pcap --to raw
  metatfc convert --dtd spans.dtd in.jsonl out.mtf
  metatfc dump --format jsonl --all in.mtf |
    metatfc convert --dtd spans.dtd --codec zstd:19 - out.mtf
  echo '{\"@section\":\"events\",\"@record\":\"end\",\"time\":5,\"thread\":1,\"id\":0,\"bytes\":64}' |
    metatfc convert --dtd spans.dtd - - | metatfc dump -";

#[cfg(feature = "export")]
const TABLE_EXAMPLES: &str = "
  metatfc convert T.mtf tables --to parquet
  metatfc convert T.mtf malloc.csv --record malloc --columns size,address
  metatfc convert T.mtf - --to csv --record malloc --where 'size >= 4096' | head
  metatfc convert T.mtf T.sqlite
  metatfc convert T.mtf spans.parquet --record spans
  metatfc convert --dtd D.dtd tables/*.parquet copy.mtf
  metatfc convert --dtd D.dtd --record malloc all.csv some.mtf
  duckdb -c \"select count(*) from 'tables/malloc.parquet'\"";

#[cfg(not(feature = "export"))]
const TABLE_EXAMPLES: &str = "";

/// Convert traces to and from JSON lines and tables, or store them in fewer bytes
#[derive(clap::Args)]
#[command(override_usage = "metatfc convert [OPTIONS] <INPUT>... <OUTPUT>", after_help = format!("{MORE}{TABLE_FORMS}{EXAMPLES}{TABLE_EXAMPLES}\n\n{PROFILES}"))]
pub(crate) struct Args {
    /// The inputs (a trace, JSON lines, traces for tables, or tables), then the output (a trace, a table or a directory
    /// for tables); `-` is standard input or output
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Form of the input [default: by its extension; of standard input, by its first byte]
    #[arg(long, value_name = "FORM")]
    from: Option<InputForm>,
    /// Form of the output; `raw` writes the records of one section, with the widths of the DTD, to a file without a
    /// header that --raw can read [default: by its extension]
    #[arg(long, value_name = "FORM", value_parser = PossibleValuesParser::new(output_forms()))]
    to: Option<String>,
    #[command(flatten)]
    dtd: DtdArgs,
    #[command(flatten)]
    raw: RawArgs,
    /// Convert the records to this DTD by name (a file or the name of a built-in DTD)
    #[arg(long, value_name = "FILE")]
    to_dtd: Option<PathBuf>,
    /// Drop these fields (`time`, `alloc.time`); the matching fields of the new DTD are set to their default
    #[arg(long, value_name = "FIELD,..", value_delimiter = ',', requires = "to_dtd")]
    drop: Vec<String>,
    /// Drop these records
    #[arg(long, value_name = "RECORD,..", value_delimiter = ',', requires = "to_dtd")]
    drop_record: Vec<String>,
    #[command(flatten)]
    pack: PackArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    /// Plan for choosing the encoding [default: set by the preset]
    #[arg(long, value_name = "PLAN", value_parser = plan())]
    plan: Option<Plan>,
    /// Plan only these fields, given by name, path or RECORD.PATH; all other fields use the plan naive [default: all
    /// fields]
    #[arg(long, value_name = "FIELD,..", value_delimiter = ',')]
    fields: Vec<String>,
    /// Start a new group at the end of a block once the values of the current group exceed this many bytes, such as
    /// 64K; 0 writes a single group [default: the groups of the trace]
    #[arg(long, value_name = "SIZE", allow_negative_numbers = true, value_parser = parse_group)]
    group: Option<usize>,
    /// Plan this many records at a time, such as 64K [default: set by the preset]
    #[arg(long, value_name = "RECORDS", allow_negative_numbers = true, value_parser = parse_block)]
    block: Option<usize>,
    /// Version of the trace format: 1 supports an embedded DTD, checksums and compression, 0 is the format of the paper
    /// [default: 1]
    #[arg(long, value_name = "0|1", value_parser = clap::value_parser!(u8).range(0..=1))]
    version: Option<u8>,
    /// Do not embed the DTD in the trace
    #[arg(long)]
    no_embed_dtd: bool,
    /// Name of the DTD in the header of a trace from JSON lines (at most 255 bytes) [default: the DTD's file name]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Fail if a value of the JSON lines does not fit its field; to tables, fail at a reference to a missing element
    #[arg(long)]
    strict: bool,
    /// Write only the table with this name, which may be repeated; from tables, the record type of all files
    #[cfg(feature = "export")]
    #[arg(long, value_name = "NAME")]
    record: Vec<String>,
    /// Write only these columns, in this order
    #[cfg(feature = "export")]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    /// Write only rows that match this condition, such as 'size > 4096'
    #[cfg(feature = "export")]
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
    /// Write numbers and bytes of tables as stored, instead of names, flags, dates, booleans and text
    #[cfg(feature = "export")]
    #[arg(long)]
    stored: bool,
    /// Put ' before CSV text that a spreadsheet would evaluate as a formula because it starts with = + - @, a tab or a
    /// carriage return. Use this for traces from untrusted sources
    #[cfg(feature = "export")]
    #[arg(long)]
    no_formulas: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum InputForm {
    /// A trace, or a file without a header
    Trace,
    /// JSON lines
    Jsonl,
}

/// What is converted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conversion {
    JsonLines,
    FromTables,
    ToTables,
    Trace,
    ToRaw,
}

impl Conversion {
    fn description(self) -> &'static str {
        match self {
            Self::JsonLines => "JSON lines to a trace",
            Self::FromTables => "tables to a trace",
            Self::ToTables => "traces to tables",
            Self::Trace => "a trace to a trace",
            Self::ToRaw => "a trace to a file without a header",
        }
    }
}

/// Returns the names of the forms that this build can write.
fn output_forms() -> Vec<&'static str> {
    let forms = ["trace", "raw"];
    #[cfg(feature = "export")]
    let forms = forms.into_iter().chain(export::forms());
    forms.into_iter().collect()
}

/// Parses `--plan`. The other plans are those of the paper, which only its tables need.
fn plan() -> impl TypedValueParser<Value = Plan> {
    let plans = [Plan::Naive, Plan::Optimal];
    PossibleValuesParser::new(plans.map(Plan::name))
        .map(move |name| if name == Plan::Naive.name() { Plan::Naive } else { Plan::Optimal })
}

fn parse_block(text: &str) -> Result<usize, String> {
    parse_size(text).ok().filter(|n| *n <= 1 << 20).ok_or_else(|| "expected a number from 1 to 1M".to_owned())
}

fn parse_group(text: &str) -> Result<usize, String> {
    if text == "0" { Ok(usize::MAX) } else { parse_size(text) }
}

fn extension(path: &Path) -> String {
    path.extension().map(|extension| extension.to_string_lossy().into_owned()).unwrap_or_default()
}

pub(crate) fn run(args: &Args, memory: MemoryLimit) -> Result<()> {
    if args.paths.len() < 2 {
        return usage("expected an input and an output: metatfc convert [OPTIONS] <INPUT>... <OUTPUT>");
    }
    let conversion = args.conversion()?;
    args.check(conversion)?;
    match (conversion, args.inputs()) {
        #[cfg(feature = "export")]
        (Conversion::FromTables, _) => import::run(args, memory),
        #[cfg(feature = "export")]
        (Conversion::ToTables, _) => export::run(args),
        #[cfg(not(feature = "export"))]
        (Conversion::FromTables | Conversion::ToTables, _) => {
            let _ = memory;
            usage("this build of metatfc neither reads nor writes tables")
        }
        (Conversion::JsonLines, [file]) => encode::run(args, file),
        (Conversion::Trace, [file]) => recode::run(args, file, false),
        (Conversion::ToRaw, [file]) => recode::run(args, file, true),
        _ => usage(format!(
            "a conversion of {} reads one file; to combine traces, use `metatfc sort`",
            conversion.description()
        )),
    }
}

impl Args {
    fn inputs(&self) -> &[PathBuf] {
        self.paths.split_last().map_or(&[], |(_, inputs)| inputs)
    }

    fn output(&self) -> &Path {
        self.paths.last().map_or(Path::new("-"), PathBuf::as_path)
    }

    /// Determines what to convert from `--from`, `--to` and the extensions.
    fn conversion(&self) -> Result<Conversion> {
        let is_table = |path: &Path| TABLES.contains(&&*extension(path));
        let is_json = |path: &Path| matches!(&*extension(path), "jsonl" | "json");
        let inputs = || self.inputs().iter().map(PathBuf::as_path);
        let to_tables = match self.to.as_deref() {
            None => is_table(self.output()) || extension(self.output()) == DATABASE,
            Some(form) => !matches!(form, "trace" | "raw"),
        };
        if self.to.is_none() && is_json(self.output()) {
            return usage("to write JSON lines, use `metatfc dump --format jsonl --all`");
        }
        let dtds = [&self.dtd.dtd, &self.dtd.force_dtd, &self.to_dtd];
        let reads_standard = inputs().any(input::is_standard);
        if reads_standard && dtds.into_iter().flatten().any(|path| input::is_standard(path)) {
            return usage("the DTD and the records cannot both be read from standard input");
        }
        let from_json = match self.from {
            Some(form) => form == InputForm::Jsonl,
            None => inputs().any(is_json) || reads_standard && self.standard_is_json()?,
        };
        let conversion = match self.to.as_deref() {
            _ if from_json => Conversion::JsonLines,
            _ if self.from.is_none() && inputs().any(is_table) => Conversion::FromTables,
            _ if to_tables => Conversion::ToTables,
            Some("raw") => Conversion::ToRaw,
            _ => return Ok(Conversion::Trace),
        };
        let writes_a_trace = matches!(conversion, Conversion::JsonLines | Conversion::FromTables);
        if writes_a_trace && (to_tables || self.to.as_deref() == Some("raw")) {
            return usage("JSON lines and tables can be converted only to a trace: convert the trace afterwards");
        }
        Ok(conversion)
    }

    /// Returns whether standard input contains JSON lines. If a DTD is given, empty input counts as JSON lines, because a
    /// trace is never empty.
    fn standard_is_json(&self) -> Result<bool> {
        let first = input::first_standard_byte()?;
        Ok(first == Some(b'{') || first.is_none() && self.dtd.dtd.is_some())
    }

    /// Fails if an option has no effect on the conversion.
    fn check(&self, conversion: Conversion) -> Result<()> {
        use Conversion::{FromTables, JsonLines, ToRaw, ToTables, Trace};
        let Self { dtd, raw, pack, .. } = self;
        let of_traces: &[_] = &[
            ("--force-dtd", dtd.force_dtd.is_some(), &[Trace, ToRaw, ToTables][..]),
            ("--large-dtd", dtd.large_dtd, &[Trace, ToRaw, ToTables]),
            ("--raw", raw.is_given(), &[Trace, ToRaw]),
            ("--class and --order", raw.has_layout(), &[Trace, ToRaw, JsonLines]),
            ("--to-dtd", self.to_dtd.is_some(), &[Trace, ToRaw]),
            ("--preset, --codec, --filter and --chunk", pack.is_given(), &[Trace, JsonLines, FromTables]),
            ("--plan", self.plan.is_some(), &[Trace]),
            ("--fields", !self.fields.is_empty(), &[Trace]),
            ("--group", self.group.is_some(), &[Trace]),
            ("--block", self.block.is_some(), &[Trace, ToRaw]),
            ("--version", self.version.is_some(), &[Trace, JsonLines]),
            ("--no-embed-dtd", self.no_embed_dtd, &[Trace, JsonLines]),
            ("--url", self.url.is_some(), &[JsonLines]),
            ("--strict", self.strict, &[JsonLines, ToTables]),
        ];
        #[cfg(not(feature = "export"))]
        let of_tables: &[(&str, bool, &[Conversion])] = &[];
        #[cfg(feature = "export")]
        let of_tables: &[_] = &[
            ("--record", !self.record.is_empty(), &[ToTables, FromTables][..]),
            ("a second --record", self.record.len() > 1, &[ToTables]),
            ("--columns", !self.columns.is_empty(), &[ToTables]),
            ("--where", self.condition.is_some(), &[ToTables]),
            ("--stored", self.stored, &[ToTables]),
            ("--no-formulas", self.no_formulas, &[ToTables]),
        ];
        let mut options = of_traces.iter().chain(of_tables);
        match options.find(|(_, is_given, conversions)| *is_given && !conversions.contains(&conversion)) {
            Some((option, ..)) => usage(format!("{option}: no effect on a conversion of {}", conversion.description())),
            None => Ok(()),
        }
    }

    /// Returns the DTD of records that are written from another form.
    fn dtd_of_records(&self) -> Result<&Path> {
        match &self.dtd.dtd {
            Some(dtd) => Ok(dtd),
            None => usage("JSON lines and tables contain no DTD: add --dtd FILE, or the name of a built-in DTD"),
        }
    }

    /// Returns the version of the new trace.
    fn version(&self) -> u8 {
        self.version.unwrap_or(1)
    }
}
