//! `gen`: a typed Rust reader and writer for a DTD.

use crate::failure::{Result, usage};
use crate::{dtd, output, target};
use metatf_codegen::Options;

const MORE: &str = "\
The code is the same as that of a build script (crate `metatf-codegen`) and of
the attribute `#[metatf(dtd = ..)]` (crate `metatf-derive`). It needs the
crate `metatf` to run.

--attribute, --field-attribute and --rename name a record (alloc, or heap.alloc)
or a field (alloc.size); `.` means all. Unused paths are errors.

Examples:
  metatfc gen spans.dtd -o src/spans.rs
  metatfc gen pools.dtd --emitters crate::pools -o src/pools.rs
  metatfc gen --attribute '.=#[derive(Hash)]' --rename createHeap=NewHeap HATF10.dtd";

/// Generate a typed Rust reader and writer
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// The DTD (a file, or the name of a built-in one); `-` is standard input
    file: String,
    /// Where to write the code; `-` is standard output
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    output: String,
    /// Put the code into a public module
    #[arg(long, value_name = "NAME")]
    module: Option<String>,
    /// Path of the runtime crate, if it is not ::metatf
    #[arg(long, value_name = "PATH")]
    runtime: Option<String>,
    /// An attribute for the struct of a record; may be repeated
    #[arg(long, value_name = "RECORD=ATTRIBUTE", value_parser = pair)]
    attribute: Vec<(String, String)>,
    /// An attribute for a field; may be repeated
    #[arg(long, value_name = "FIELD=ATTRIBUTE", value_parser = pair)]
    field_attribute: Vec<(String, String)>,
    /// Another name in Rust for a section, a record or a field; may be repeated
    #[arg(long, value_name = "PATH=NAME", value_parser = pair)]
    rename: Vec<(String, String)>,
    /// Width in bytes that traces usually give a field, if not the DTD's; may be repeated. Traces with these widths are
    /// read and written faster; other traces still work
    #[arg(long, value_name = "FIELD=BYTES", value_parser = width)]
    expect_width: Vec<(String, u8)>,
    /// Add emitters for a running program (crate `metatf-telemetry`): the path of the module that will hold the code
    #[arg(long, value_name = "MODULE")]
    emitters: Option<String>,
    /// A kind of events whose emitters compile to nothing; may be repeated
    #[arg(long, value_name = "KIND", requires = "emitters")]
    without_kind: Vec<String>,
}

fn width(text: &str) -> Result<(String, u8), String> {
    let (path, bytes) = pair(text)?;
    let bytes = bytes.parse().ok().filter(|bytes| *bytes <= 8).ok_or("a field has 0 to 8 bytes")?;
    Ok((path, bytes))
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (path, value) = text.split_once('=').ok_or("a path, `=`, and a value")?;
    Ok((path.trim().to_owned(), value.trim().to_owned()))
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let dtd = dtd::load(&args.file)?;
    let name = match dtd::source_name(&args.file) {
        "" => "standard input",
        name => name,
    };
    let mut options = Options::new(name);
    options.module.clone_from(&args.module);
    options.record_attributes.clone_from(&args.attribute);
    options.field_attributes.clone_from(&args.field_attribute);
    options.renames.clone_from(&args.rename);
    options.expected_widths.clone_from(&args.expect_width);
    options.emitters.clone_from(&args.emitters);
    options.without_kinds.clone_from(&args.without_kind);
    if let Some(runtime) = &args.runtime {
        options.runtime.clone_from(runtime);
    }
    let tokens = match metatf_codegen::generate(&dtd, &options) {
        Ok(tokens) => tokens,
        Err(error) => return usage(error.to_string()),
    };
    let source = metatf_codegen::render(&tokens, &options.source);
    match args.output.as_str() {
        "-" => output::print(&source),
        path => write(path, &source),
    }
}

/// Writes the file, unless it has this content: then it keeps its time.
fn write(path: &str, source: &str) -> Result<()> {
    // Of a pipe or a device nothing is read.
    let may_be_same = std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() == source.len() as u64);
    if may_be_same && std::fs::read(path).is_ok_and(|old| old == source.as_bytes()) {
        return Ok(());
    }
    target::replace(path, source.as_bytes())
}
