//! `diff`: compares the values of two traces, regardless of their encoding, or two versions of a DTD.

mod report;

use crate::compat::{self, VersionArgs};
use crate::dtd::{self, DtdArgs};
use crate::failure::{Failure, Result, usage};
use crate::input::{self, Reopenable};
use crate::output;
use metatf::dynamic::Schema;
use metatf_cli::{Format, OutputArgs, Progress, number};
use metatf_tools::compare::{self, CompareOptions, Comparison, Input};
use report::Report;
use std::path::{Path, PathBuf};

const MORE: &str = "\
The report counts the records of each type in both traces, and shows how many
records differ and in which fields. --details lists individual differences. Data
records are numbered from 0, so `metatfc dump --skip NUMBER --head 1` prints the
record with this number.

The command compares the values of records, comments and stream elements, and
ignores their encoding: metadata records, widths, interpretations, chunks, groups,
codecs, class, byte order and file version. Two offsets into tables are equal if
the elements at these offsets are equal.

Within each section, records are compared by position. If the two records at a
position have different types, the section is out of step, and later records of
the section are only counted. The order of records in different sections is
compared only with --order. If records stride through or point into a stream
section, its elements are compared as values of these records; --section compares
them one by one. If the DTDs differ, sections, records and fields are matched by
name. Names defined by only one DTD are listed, but do not count as differences.

To compare two recordings of one program:
  --ignore time          ignores fields named `time`, and fields whose `format`
                         is a time or a date, such as time_ns or date_s
  --ignore address-base  treats two addresses as equal if each always corresponds
                         to the other. Addresses are numbers whose `format` is
                         hex or whose name is `address`. Memory use grows with
                         the number of different addresses

Two DTDs are compared as versions of one format; so are the DTDs of two traces
with --dtds, and a DTD and the DTD of a trace. A version consists of three numbers:
major.median.minor. A DTD declares its version with an annotation at the top level,
such as tag.version = \"1.2.0\". Each change is printed on one line, with its level:
  major   the file format as a whole changes
  median  the format or the meaning of an existing record changes
  minor   a section, a record or a named value is added
Records and fields are matched by name, including earlier names (`was`). After
the changes, the command prints the lowest version allowed for the newer DTD,
which is the second. It then reports whether programs can read the traces of the
other version by name. A change is a break if a reader rejects the trace or
misinterprets its values, or if it returns 0 or nothing for a field missing from
the trace. A record that never appears is not a break. If the version number
increases by more than the changes require, the meaning of an existing record has
changed, which is also a break.

Exit status:
  0  the traces are equal; or no change of the DTD is a break, and its version is
     high enough
  1  the traces differ; or there is a break, or the version is too low; or one of
     the files cannot be read
  2  usage error

Examples:
  metatfc diff a.mtf b.mtf && echo equal
  metatfc diff --ignore time,address-base run1.mtf run2.mtf
  metatfc diff --ignore free.heap --details a.mtf b.mtf
  metatfc diff v1.dtd v2.dtd
  metatfc diff old.mtf v2.dtd                  compare with the DTD of a trace
  metatfc diff --allow-breaks v1.dtd v2.dtd    check only the version
  metatfc diff --format json v1.dtd v2.dtd | jq -r .level
  metatfc dump --format jsonl --all a.mtf | metatfc convert --dtd a.dtd - - | metatfc diff a.mtf -";

/// Compare the values of two traces, or report whether two versions of a DTD are compatible
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// The first trace, or the older DTD (a file or the name of a built-in DTD); `-` reads standard input
    left: PathBuf,
    /// The second trace, or the newer DTD; `-` reads standard input
    right: PathBuf,
    /// List individual differences, too
    #[arg(long)]
    details: bool,
    /// List at most this many differences; 0 lists all. Implies --details [default: 10]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = number(0..=usize::MAX))]
    max: Option<usize>,
    #[command(flatten)]
    output: OutputArgs,
    /// Ignore fields (`size`, `alloc.size`), records (`free`, `comment`), `time` or `address-base` (see below)
    #[arg(long, value_name = "FIELD,..", value_delimiter = ',')]
    ignore: Vec<String>,
    /// Compare only these sections; 0 is the global section
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    section: Vec<String>,
    /// Compare the order of records in different sections, too
    #[arg(long)]
    order: bool,
    /// Compare user metadata and the text of the DTDs, too
    #[arg(long)]
    metadata: bool,
    /// Print nothing and stop at the first difference; the exit status shows the result
    #[arg(long, short)]
    quiet: bool,
    /// Compare the DTDs of the traces instead of their values
    #[arg(long)]
    dtds: bool,
    #[command(flatten)]
    versions: VersionArgs,
    #[command(flatten)]
    dtd: DtdArgs,
}

/// The default maximum number of differences listed by --details.
const MOST: usize = 10;

/// One of the traces.
struct Side {
    name: String,
    file: Reopenable,
    schema: Schema,
}

impl Side {
    fn new(path: &Path, args: &DtdArgs) -> Result<Self> {
        let name = input::name(path).into_owned();
        let file = Reopenable::new(path, &|_| Some(false), |head| input::check_head(head, &name))?;
        let schema = dtd::find(&file.open(false)?, &name, args, false)?;
        Ok(Self { name, file, schema })
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if input::is_standard(&args.left) && input::is_standard(&args.right) {
        return usage("only one of the files can be read from standard input");
    }
    let of_dtds = args.dtds || dtd::is_named(&args.left) || dtd::is_named(&args.right);
    args.check(of_dtds)?;
    if of_dtds {
        return compat::run(&args.left, &args.right, &args.versions, (!args.quiet).then_some(&args.output));
    }
    let sides = [Side::new(&args.left, &args.dtd)?, Side::new(&args.right, &args.dtd)?];
    let details = args.details || args.max.is_some() || args.output.format == Format::Json;
    let options = CompareOptions {
        // The first difference is always shown.
        max: if details { args.max.unwrap_or(MOST) } else { 1 },
        stop: args.quiet,
        order: args.order,
        ignore: args.ignore.clone(),
        sections: args.section.clone(),
        metadata: args.metadata,
    };
    let unknown = compare::unknown_names(&sides[0].schema, &sides[1].schema, &options);
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.iter().map(|name| format!("`{name}`")).collect();
        return usage(format!("neither DTD defines a section, record or field {}", names.join(", ")));
    }
    let result = run_compare(&sides, &options)?;
    if !args.quiet {
        let says_same = args.output.format != Format::Text;
        output::report(&Report { sides: &sides, result: &result, details, says_same }, &args.output)?;
    }
    if result.is_same() { Ok(()) } else { Err(Failure::Printed) }
}

impl Args {
    /// Fails if an option has no effect on the comparison.
    fn check(&self, of_dtds: bool) -> Result<()> {
        let DtdArgs { dtd, force_dtd, large_dtd, .. } = &self.dtd;
        let options = [
            ("--details and --max", self.details || self.max.is_some(), false),
            ("--ignore", !self.ignore.is_empty(), false),
            ("--section", !self.section.is_empty(), false),
            ("--order", self.order, false),
            ("--metadata", self.metadata, false),
            ("--dtd and --force-dtd", dtd.is_some() || force_dtd.is_some(), false),
            ("--large-dtd", *large_dtd, false),
            ("--old-version, --new-version and --allow-breaks", self.versions.is_given(), true),
        ];
        match options.iter().find(|(_, is_given, needs_dtds)| *is_given && *needs_dtds != of_dtds) {
            Some((option, ..)) if of_dtds => usage(format!("{option}: no effect on a comparison of DTDs")),
            Some((option, ..)) => usage(format!("{option}: to compare the DTDs of the traces, add --dtds")),
            None => Ok(()),
        }
    }
}

fn run_compare(sides: &[Side; 2], options: &CompareOptions) -> Result<Comparison> {
    let mut progress = Progress::new("records");
    let mut open_left = || sides[0].file.reader();
    let mut open_right = || sides[1].file.reader();
    let left = Input { schema: sides[0].schema.clone(), open: &mut open_left };
    let right = Input { schema: sides[1].schema.clone(), open: &mut open_right };
    compare::compare(left, right, options, &mut || progress.step()).map_err(|(which, error)| {
        let side = &sides[which as usize];
        Failure::Failed(format!("{}: {}", side.name, metatf::explain(&side.schema.format, &error)))
    })
}
