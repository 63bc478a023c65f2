//! `import`: tables back to a trace. What is built on Arrow is here with the feature `tables` only.

use crate::failure::Result;
use crate::pack::{PROFILES, PackArgs};
use std::path::PathBuf;

const MORE: &str = "\
A file holds the table of its name: malloc.parquet has records `malloc`. Its
columns are fields, named as `metatfc export` names them; it may lack those of
constants, counts and lengths. Rows of several files are written in the order of
their column @number. What the DTD has no place for is an error.

The output file appears when it is complete.

Examples:
  metatfc export T.mtf -o tables --to parquet
  metatfc import --dtd D.dtd tables/*.parquet -o copy.mtf
  metatfc import --dtd D.dtd --record malloc all.csv -o some.mtf";

/// Write a trace from tables: Parquet, Arrow, CSV
#[derive(clap::Args)]
#[command(after_help = format!("{MORE}\n\n{PROFILES}"))]
pub(crate) struct Args {
    /// The DTD of the trace (a file, or the name of a built-in one)
    #[arg(long, value_name = "FILE")]
    dtd: PathBuf,
    /// The tables
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The trace; `-` is standard output
    #[arg(long, short, value_name = "TRACE")]
    output: PathBuf,
    /// The table that all files hold, whatever their names
    #[arg(long, value_name = "NAME")]
    record: Option<String>,
    #[command(flatten)]
    pack: PackArgs,
}

#[cfg(feature = "tables")]
pub(crate) fn run(args: &Args) -> Result<()> {
    use crate::dtd;
    use crate::failure::Failure;
    use crate::target::Target;
    use metatf::container::WriteOptions;
    use metatf::dynamic::{Schema, Writer};

    let schema = Schema::new(dtd::load(&args.dtd)?);
    let (target, sink) = Target::create(&args.output)?;
    let dtd_url = dtd::source_name(&args.dtd).into_owned();
    let mut options = WriteOptions { dtd_url, embed_dtd: true, ..WriteOptions::default() };
    args.pack.apply(&mut options);
    let options = options.flush_every(target.flush());
    let problem = |e| target.failure(&schema.format, &e);
    let mut writer = Writer::new(sink, &schema, &options).map_err(problem)?;
    let record = args.record.as_deref();
    if let Err(error) = metatf_arrow::files::import(&schema, &args.files, record, &mut writer) {
        // The trace is given up, and its temporary file removed with `target`.
        writer.abandon();
        return Err(target.cause(Failure::Failed(error.to_string())));
    }
    let sink = writer.finish().map_err(problem)?;
    target.keep(sink)
}

#[cfg(not(feature = "tables"))]
pub(crate) fn run(args: &Args) -> Result<()> {
    let Args { dtd, files, output, record, pack } = args;
    let _ = (dtd, files, output, record, pack);
    crate::failure::without_tables("import")
}
