//! `gen`: generates a typed Rust reader and writer for a DTD, emitters or a reader for C, or a Kaitai Struct description.

use crate::failure::{Result, usage};
use crate::{dtd, input, output, target};
use metatf_codegen::Options;
use std::path::{Path, PathBuf};

const MORE: &str = "\
A build script (crate `metatf-codegen`) and the attribute `#[metatf(dtd = ..)]`
(crate `metatf-derive`) generate the same code. At run time, the code requires the
crate `metatf`.

With --lang c, the code is a self-contained header for C99 and C++ that emits events.
Its names start with the value of --emitters, or with the name of the DTD by default.
If a record cannot be emitted from C, the command fails and reports the record and
the reason. To omit such records, use --allow-missing.

With --lang c and --reader, the header reads traces instead. A DTD with predicted
fields is an error.

With --lang ksy, the output is a Kaitai Struct description of files without a
Meta-TF header, from which Kaitai's compiler generates parsers in other languages.
A field whose value depends on earlier records cannot be described: the command
fails and reports all such fields.

--attribute, --field-attribute and --rename accept a record (alloc or heap.alloc)
or a field (alloc.size); `.` means all. A path that matches nothing is an error.

Examples:
  metatfc gen spans.dtd -o src/spans.rs
  metatfc gen pools.dtd --emitters crate::pools -o src/pools.rs
  metatfc gen pools.dtd --lang c -o pools.h
  metatfc gen jobs.dtd --lang c --reader jobs -o jobs.h
  metatfc gen pcap --lang ksy -o pcap.ksy
  metatfc gen --attribute '.=#[derive(Hash)]' --rename createHeap=NewHeap HATF10.dtd";

/// Generate a typed Rust reader and writer, emitters or a reader for C, or a Kaitai Struct description
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// The DTD (a file or the name of a built-in DTD); `-` reads standard input
    file: PathBuf,
    /// Output file; `-` writes to standard output
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    output: PathBuf,
    /// Language of the generated code
    #[arg(long, value_name = "LANGUAGE", default_value = "rust")]
    lang: Language,
    /// Put the code in a public module
    #[arg(long, value_name = "NAME", help_heading = "Only for Rust")]
    module: Option<String>,
    /// Path of the runtime crate [default: ::metatf]
    #[arg(long, value_name = "PATH", help_heading = "Only for Rust")]
    runtime: Option<String>,
    /// Attribute to add to the struct of a record; may be repeated
    #[arg(long, value_name = "RECORD=ATTRIBUTE", help_heading = "Only for Rust", value_parser = pair)]
    attribute: Vec<(String, String)>,
    /// Attribute to add to a field; may be repeated
    #[arg(long, value_name = "FIELD=ATTRIBUTE", help_heading = "Only for Rust", value_parser = pair)]
    field_attribute: Vec<(String, String)>,
    /// Rename a section, record or field in the code; may be repeated
    #[arg(long, value_name = "PATH=NAME", value_parser = pair)]
    rename: Vec<(String, String)>,
    /// Usual width of a field in bytes, if it differs from the width in the DTD; may be repeated. Traces with these
    /// widths are read and written faster; traces with other widths still work
    #[arg(long, value_name = "FIELD=BYTES", help_heading = "Only for Rust", value_parser = width)]
    expect_width: Vec<(String, u8)>,
    /// Add emitters for a running program (crate `metatf-telemetry`), given the path of the module that will contain
    /// the code. In C, this is the prefix of all names
    #[arg(long, value_name = "MODULE")]
    emitters: Option<String>,
    /// Event kind whose emitters compile to nothing; may be repeated
    #[arg(long, value_name = "KIND")]
    without_kind: Vec<String>,
    /// Omit records that cannot be emitted from C
    #[arg(long, help_heading = "Only for C")]
    allow_missing: bool,
    /// Generate a reader instead of emitters, with this prefix of all names
    #[arg(long, value_name = "PREFIX", help_heading = "Only for C")]
    reader: Option<String>,
}

/// A language of generated code.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Language {
    Rust,
    C,
    Ksy,
}

impl Language {
    /// Returns the name on the command line.
    fn name(self) -> &'static str {
        match self {
            Language::Rust => "rust",
            Language::C => "c",
            Language::Ksy => "ksy",
        }
    }
}

fn width(text: &str) -> Result<(String, u8), String> {
    let (path, bytes) = pair(text)?;
    let bytes = bytes.parse().ok().filter(|bytes| *bytes <= 8).ok_or("expected a width of 0 to 8 bytes")?;
    Ok((path, bytes))
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (path, value) = text.split_once('=').ok_or("expected PATH=VALUE")?;
    Ok((path.trim().to_owned(), value.trim().to_owned()))
}

/// Rejects options that have no effect for the language.
fn check(args: &Args) -> Result<()> {
    let Args { lang, module, runtime, attribute, field_attribute, expect_width, emitters, without_kind, .. } = args;
    if args.allow_missing && *lang != Language::C {
        return usage("--allow-missing requires --lang c");
    }
    if args.reader.is_some() && *lang != Language::C {
        return usage("--reader requires --lang c");
    }
    if *lang == Language::Rust && emitters.is_none() && !without_kind.is_empty() {
        return usage("--without-kind requires --emitters");
    }
    let only_rust = [
        ("--module", module.is_some()),
        ("--runtime", runtime.is_some()),
        ("--attribute", !attribute.is_empty()),
        ("--field-attribute", !field_attribute.is_empty()),
        ("--expect-width", !expect_width.is_empty()),
    ];
    let of_emitters = [
        ("--emitters", emitters.is_some()),
        ("--without-kind", !without_kind.is_empty()),
        ("--allow-missing", args.allow_missing),
    ];
    if let Some((option, _)) = of_emitters.into_iter().find(|(_, given)| *given && args.reader.is_some()) {
        return usage(format!("{option} cannot be used with --reader"));
    }
    let not_ksy = [
        ("--rename", !args.rename.is_empty()),
        ("--emitters", emitters.is_some()),
        ("--without-kind", !without_kind.is_empty()),
    ];
    let refused = match lang {
        Language::Rust => Vec::new(),
        Language::C => only_rust.to_vec(),
        Language::Ksy => [only_rust.as_slice(), &not_ksy].concat(),
    };
    match refused.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => usage(format!("{option} cannot be used with --lang {}", lang.name())),
        None => Ok(()),
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    check(args)?;
    let dtd = dtd::load(&args.file)?;
    let name = dtd::source_name(&args.file);
    let mut options = Options::new(if name.is_empty() { "standard input" } else { &name });
    options.module.clone_from(&args.module);
    options.record_attributes.clone_from(&args.attribute);
    options.field_attributes.clone_from(&args.field_attribute);
    options.renames.clone_from(&args.rename);
    options.expected_widths.clone_from(&args.expect_width);
    options.emitters.clone_from(&args.emitters);
    options.without_kinds.clone_from(&args.without_kind);
    options.allow_missing = args.allow_missing;
    if let Some(runtime) = &args.runtime {
        options.runtime.clone_from(runtime);
    }
    let made = match (args.lang, &args.reader) {
        (Language::Rust, _) => {
            metatf_codegen::generate(&dtd, &options).map(|tokens| metatf_codegen::render(&tokens, &options.source))
        }
        (Language::C, None) => metatf_codegen::generate_c(&dtd, &options),
        (Language::C, Some(prefix)) => metatf_codegen::generate_c_reader(&dtd, &options, prefix),
        (Language::Ksy, _) => metatf_codegen::generate_ksy(&dtd, &options),
    };
    let source = match made {
        Ok(source) => source,
        Err(error) => return usage(error.to_string()),
    };
    match &*args.output {
        path if input::is_standard(path) => output::print_data(&source),
        path => write(path, &source),
    }
}

/// Writes the file unless it already contains this text, so that an unchanged file keeps its modification time.
fn write(path: &Path, source: &str) -> Result<()> {
    // Do not read pipes or devices.
    let may_be_same = std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() == source.len() as u64);
    if may_be_same && std::fs::read(path).is_ok_and(|old| old == source.as_bytes()) {
        return Ok(());
    }
    target::replace(path, source.as_bytes())
}
