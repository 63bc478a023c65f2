//! `hatf anonymize`: removes names from a trace.

use std::path::{Path, PathBuf};

use hatf::share::{Anonymizer, Checked, KeptNames, Tokens, check};
use hatf_trace::forms::TraceReader;
use hatf_trace::{Error, Result};
use metatf_cli::OutputArgs;

use super::lab::Source;
use super::written::Written;
use super::{about, print_message};
use crate::command::output::show;

/// Minimum length of a secret key in bytes.
const LEAST: usize = 16;

/// Remove names from a trace so that it can be shared: the heap's behavior stays exact, but the program cannot be
/// identified.
///
/// Functions, source files, paths of programs and modules, build IDs, arguments, comments, and names of threads, marks
/// and phases are replaced with tokens; equal strings get equal tokens. The host, the date and process IDs are removed.
/// All blocks and pages are shifted by the same multiple of 1 GiB. Frames are renumbered, because offsets in a known
/// library reveal its functions. Times, sizes, threads, line numbers and the kernel's memory statistics are kept.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf anonymize server.mtf -o shared.mtf --check
  hatf anonymize server.mtf -o shared.mtf --keep 'std::*' --keep 'libc.so*' --keep-marks
  head -c 32 /dev/urandom > key; hatf anonymize server.mtf -o shared.mtf --key key

Without --key, tokens are derived from a random key that is discarded, so nobody can test guesses of
names, and tokens of different traces cannot be compared. Commands that fold standard libraries by
name no longer recognize them: use --keep for names that need not be secret. Write function names
into the trace first (hatf symbolize), because addresses cannot be looked up afterwards.")]
pub(crate) struct Anonymize {
    #[command(flatten)]
    source: Source,

    /// Keep functions and file names that match this pattern, where `*` matches any string. For a path, only the file
    /// name is kept, without the directories. Can be repeated.
    #[arg(long, value_name = "PATTERN")]
    keep: Vec<String>,

    /// Keep the names of marks and phases.
    #[arg(long)]
    keep_marks: bool,

    /// Derive the tokens from the secret in this file, so that several traces get the same tokens. The file must
    /// contain at least 16 bytes. Anyone who has the secret can test whether a guessed name
    /// occurs in the trace.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,

    /// Read the output back and check that it contains no words from the input. Also check that report, sites,
    /// fragmentation, simulate and replay print the same figures for both traces. The exit status is 1 if a check
    /// fails.
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    written: Written,

    #[command(flatten)]
    format: metatf_cli::FormatArgs,
}

fn tokens(options: &Anonymize) -> Result<Tokens> {
    let Some(path) = &options.key else {
        let mut key = [0; 16];
        let failed = |error: rustix::io::Errno| Error::System("random bytes".to_owned(), error.into());
        let got = rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty()).map_err(failed)?;
        // For so few bytes, `getrandom` returns either all of them in a single call or an error.
        return if got == key.len() {
            Ok(Tokens::new(key))
        } else {
            Err(Error::System("random bytes".to_owned(), std::io::ErrorKind::UnexpectedEof.into()))
        };
    };
    let name = path.display();
    let secret = std::fs::read(path).map_err(Error::system(name.to_string()))?;
    if secret.len() < LEAST {
        return Err(Error::Usage(format!(
            "{name}: a key must have at least {LEAST} bytes; to create one, run head -c 32 /dev/urandom"
        )));
    }
    Ok(Tokens::of_secret(&secret))
}

pub(crate) fn run(options: &Anonymize) -> Result<u8> {
    let Anonymize { source, written, .. } = options;
    written.check([&*source.trace].into_iter().chain(options.key.as_deref()))?;
    let Some(path) = written.file().or_else(|| (!options.check).then_some(Path::new("-"))) else {
        return Err(Error::Usage("--check reads the output back, so it needs a file: add -o FILE".to_owned()));
    };
    let tokens = tokens(options)?;
    source.reread()?;
    let kept = KeptNames { patterns: options.keep.clone(), marks: options.keep_marks };
    written.write(source.resolution()?, |sink| {
        let mut anonymizer = Anonymizer::new(tokens, kept.clone(), sink);
        source.read(&mut anonymizer).map_err(|error| about(&source.trace, error))
    })?;
    if !options.check {
        return Ok(0);
    }
    let checked = check(&|| source.open_quietly(), &|| TraceReader::open(path), path, &kept, source.threads())?;
    let is_good = checked.is_good();
    show(&CheckReport { trace: path.display().to_string(), checked }, &OutputArgs::from(&options.format))?;
    if !is_good {
        print_message(&format!("{}: the check failed; do not share this trace", path.display()));
    }
    Ok(u8::from(!is_good))
}

/// Result of the check, with the name of the trace.
#[derive(serde::Serialize)]
struct CheckReport {
    trace: String,
    #[serde(flatten)]
    checked: Checked,
}

impl metatf_page::Report for CheckReport {
    fn page(&self) -> metatf_page::Page {
        self.checked.page(self.trace.clone())
    }
}
