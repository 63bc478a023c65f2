//! `new`: creates a DTD as a starting point.

use crate::failure::{Failure, Result, failed, usage};
use crate::output;
use metatf_cli::OutputFile;
use std::io;
use std::path::Path;

const MORE: &str = "\
Examples:
  metatfc new spans            creates spans.dtd
  metatfc new - > spans.dtd    the same, on standard output";

/// Create a commented DTD to start from
#[derive(clap::Args)]
#[command(after_help = MORE)]
pub(crate) struct Args {
    /// Name of the format. The file is NAME.dtd, or NAME if it ends in .dtd or .metatf; `-` writes to standard output
    name: String,
}

const STARTER: &str = include_str!("starter.dtd");

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.name == "-" {
        return output::print_data(&STARTER.replace("NAME", "example"));
    }
    let path = match Path::new(&args.name).extension() {
        Some(extension) if extension == "dtd" || extension == "metatf" => args.name.clone(),
        _ => format!("{}.dtd", args.name),
    };
    let stem = Path::new(&path).file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    if stem.is_empty() || stem.starts_with('.') {
        return usage(format!("{}: not a valid format name", args.name));
    }
    match write(Path::new(&path), &STARTER.replace("NAME", &stem)) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
            return failed(format!("{path}: the file already exists and was not changed"));
        }
        Err(e) => return Err(Failure::io(&path, &e)),
    }
    output::print(&format!(
        "{path}: created with comments on every part. Next steps:\n  \
         metatfc check {path}     check the DTD after each change\n  \
         metatfc show {path}      show every field, and where its properties are set\n"
    ))
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let (file, mut sink) = OutputFile::create_new(path)?;
    sink.write_all(text.as_bytes())?;
    file.keep(sink)
}
