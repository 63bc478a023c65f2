//! Finds the DTD for reading a trace (spec 5.3).

use crate::failure::{Failure, Result, failed, print_message, usage};
use crate::{input, output};
use metatf::container::Reader;
use metatf::dynamic::Schema;
use metatf_cli::{Style, stderr};
use metatf_parser::schema::Dtd;
use metatf_parser::{Code, Diagnostic, MOST_EMBEDDED_BYTES, Severity};
use metatf_tools::built_in::{self, file_name};
use std::borrow::Cow;
use std::collections::HashSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Options that choose the DTD of a trace
#[derive(clap::Args, Debug, Clone, Default)]
pub(crate) struct DtdArgs {
    /// DTD to use if the trace does not embed one (a file or the name of a built-in DTD)
    #[arg(long, value_name = "FILE")]
    pub(crate) dtd: Option<PathBuf>,
    /// Read the trace with this DTD, even if the trace embeds another DTD
    #[arg(long, value_name = "FILE", conflicts_with = "dtd")]
    pub(crate) force_dtd: Option<PathBuf>,
    /// Allow an embedded DTD of more than 256 KiB
    #[arg(long)]
    pub(crate) large_dtd: bool,
    /// Whether traces of any version are read and converted to `dtd`.
    #[arg(skip)]
    pub(crate) by_name: bool,
    /// Whether traces of any version are read with their own DTD.
    #[arg(skip)]
    pub(crate) any_version: bool,
}

/// Reads and parses the DTD given on the command line, either a file or the name of a built-in DTD.
pub(crate) fn load(path: &Path) -> Result<Dtd> {
    match named_built_in(path) {
        Some((name, text)) => parse(name, text.as_bytes()),
        None if input::is_standard(path) => {
            // A command may need the DTD each time it opens a trace.
            static TEXT: OnceLock<Vec<u8>> = OnceLock::new();
            if TEXT.get().is_none() {
                let _ = TEXT.set(input::read(path)?);
            }
            parse(&input::name(path), TEXT.get().map_or(&[], Vec::as_slice))
        }
        None => parse(&input::name(path), &input::read(path)?),
    }
}

/// Returns the name and text of a DTD named on the command line, as found by [`load`].
pub(crate) fn text(path: &Path) -> Result<(String, Vec<u8>)> {
    match named_built_in(path) {
        Some((name, text)) => Ok((name.to_owned(), text.as_bytes().to_vec())),
        None => Ok((input::name(path).into_owned(), input::read(path)?)),
    }
}

/// Returns the file name of a DTD named on the command line; empty for standard input.
pub(crate) fn source_name(path: &Path) -> Cow<'_, str> {
    match named_built_in(path) {
        Some((name, _)) => name.into(),
        None if input::is_standard(path) => "".into(),
        None => path.file_name().unwrap_or(path.as_os_str()).to_string_lossy(),
    }
}

/// Finds a built-in DTD. A file with the same name takes precedence.
fn named_built_in(path: &Path) -> Option<(&'static str, &'static str)> {
    if input::is_standard(path) || path.exists() { None } else { built_in::find(path.to_str()?) }
}

/// Returns the names and schemas of the DTDs that describe how files without a header begin, in the order in which they
/// are tried (spec 5.4): the DTDs on `METATF_PATH`, followed by the built-in DTDs. Of several DTDs with the same name,
/// only the first one is returned. DTDs with errors are skipped.
pub(crate) fn of_raw_files() -> Vec<(String, Schema)> {
    let on_path = all_on_path().into_iter().filter_map(|path| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some((name, input::read(&path).ok()?))
    });
    let built_in = built_in::DTDS.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()));
    let mut names = HashSet::new();
    let parsed = on_path.chain(built_in).filter_map(|(name, text)| {
        let name = name.trim_end_matches(".dtd").to_owned();
        // Parse only the DTDs that contain this role.
        let is_first = names.insert(name.clone());
        let has_role = is_first && text.windows(7).any(|word| word == b"\"magic\"");
        let dtd = has_role.then(|| metatf_parser::parse(&name, &text).dtd)??;
        Some((name, Schema::new(dtd)))
    });
    parsed.filter(|(_, schema)| schema.format.raw.is_some()).collect()
}

/// Returns the DTDs listed in `METATF_PATH` or found in its directories, which are sorted by file name.
fn all_on_path() -> Vec<PathBuf> {
    let is_dtd = |path: &PathBuf| has_extension(path) && path.is_file();
    let list = std::env::var_os("METATF_PATH").unwrap_or_default();
    let entries = std::env::split_paths(&list).filter(|entry| !entry.as_os_str().is_empty());
    let within = entries.flat_map(|entry| match std::fs::read_dir(&entry) {
        Ok(folder) => {
            let mut files: Vec<PathBuf> = folder.flatten().map(|file| file.path()).collect();
            files.sort();
            files
        }
        Err(_) => vec![entry],
    });
    within.filter(is_dtd).collect()
}

/// Returns whether a DTD is one of the built-in DTDs for heap traces.
pub(crate) fn is_built_in_heap(dtd: &Dtd) -> bool {
    let heaps = built_in::DTDS.iter().filter(|(name, _)| name.starts_with("heap") || name.starts_with("HATF"));
    let fingerprint = dtd.fingerprint();
    let parsed = |text: &str| metatf_parser::parse("", text.as_bytes()).dtd;
    heaps.filter_map(|(_, text)| parsed(text)).any(|heap| heap.fingerprint() == fingerprint)
}

/// Parses a DTD and prints its errors. Only `check` prints warnings.
pub(crate) fn parse(name: &str, text: &[u8]) -> Result<Dtd> {
    let parsed = metatf_parser::parse(name, text);
    match parsed.dtd {
        Some(dtd) => Ok(dtd),
        None => {
            let errors = parsed.diagnostics.iter().filter(|d| d.severity == Severity::Error);
            print(errors, name, text);
            Err(Failure::Printed)
        }
    }
}

/// Prints diagnostics to standard error.
pub(crate) fn print<'d>(diagnostics: impl IntoIterator<Item = &'d Diagnostic>, name: &str, text: &[u8]) {
    let style = output::style_err();
    let mut err = stderr(style);
    for diagnostic in diagnostics {
        let shown = metatf_parser::render(diagnostic, name, text, style == Style::Coloured);
        let _ = writeln!(err, "{}", shown.trim_end());
    }
}

/// Returns the DTD of a file, which is a DTD or a trace.
pub(crate) fn of(path: &Path, args: &DtdArgs) -> Result<Arc<Dtd>> {
    if !is_trace(path) {
        return load(path).map(Arc::new);
    }
    let reader = input::trace(path, false)?;
    Ok(find(&reader, &input::name(path), args, false)?.dtd)
}

/// Returns whether a path names a DTD: by its extension, or as a built-in DTD.
pub(crate) fn is_named(path: &Path) -> bool {
    has_extension(path) || named_built_in(path).is_some()
}

/// Returns whether the extension of a file is that of a DTD.
pub(crate) fn has_extension(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "dtd" || extension == "metatf")
}

/// Returns the index of the section with this name or number.
pub(crate) fn section(schema: &Schema, name: &str) -> Result<usize> {
    let number = name.parse::<u8>().ok().and_then(|n| schema.format.section_index(n));
    if let Some(index) = schema.format.section_named(name).or(number) {
        return Ok(index);
    }
    let names: Vec<&str> = schema.dtd.sections.iter().filter_map(|s| s.name.as_deref()).collect();
    usage(format!(
        "--section {name}: no such section in the DTD; available sections: {} (0: the global section)",
        names.join(", ")
    ))
}

/// Returns whether a file begins like a trace.
pub(crate) fn is_trace(path: &Path) -> bool {
    use std::io::Read as _;
    let mut magic = [0; 4];
    !input::is_standard(path)
        && std::fs::metadata(path).is_ok_and(|m| m.is_file())
        && std::fs::File::open(path).is_ok_and(|mut f| f.read_exact(&mut magic).is_ok())
        && magic == *b"\x7fMTF"
}

/// Finds the DTD for reading an opened trace, in the order of spec 5.3.
pub(crate) fn find(reader: &Reader<'_>, trace: &str, args: &DtdArgs, salvage: bool) -> Result<Schema> {
    search(reader, trace, args, salvage).map(Schema::new)
}

fn search(reader: &Reader<'_>, trace: &str, args: &DtdArgs, salvage: bool) -> Result<Dtd> {
    if let Some(path) = &args.force_dtd {
        return load(path);
    }
    if let Some(text) = reader.dtd_text() {
        if text.len() > MOST_EMBEDDED_BYTES && !args.large_dtd {
            return failed(format!(
                "{trace}: the embedded DTD has {} KiB, more than the limit; allow it with --large-dtd, or use another \
                 DTD with --force-dtd FILE",
                text.len() >> 10
            ));
        }
        let parsed = parse(&format!("{trace} (embedded DTD)"), text);
        let embedded = parsed.inspect_err(|_| {
            let diagnostics = metatf_parser::parse("", text).diagnostics;
            let hint = if diagnostics.iter().any(|diagnostic| diagnostic.code == Code::ModelRevision) {
                "the embedded DTD has models that this version cannot read; record traces from before version 1.0 again"
            } else {
                "the embedded DTD has errors; to use another DTD, add --force-dtd FILE"
            };
            print_message(&format!("{trace}: {hint}"));
        })?;
        if let Some(path) = args.dtd.as_ref().filter(|_| !args.by_name && !args.any_version) {
            check_version(&embedded, trace, path)?;
        }
        return Ok(embedded);
    }
    // If the embedded DTD is missing, report the first error of the trace instead, unless the trace is being salvaged.
    if let Some(error) = reader.opening_error().filter(|_| !salvage) {
        return failed(format!("{trace}: {error}"));
    }
    if let Some(path) = &args.dtd {
        return load(path);
    }
    let url = reader.header().dtd_url.as_str();
    if let Some((name, text)) = built_in::find(url) {
        return parse(name, text.as_bytes());
    }
    if let Some(path) = on_path(url) {
        return load(&path);
    }
    failed(if url.is_empty() {
        format!("{trace}: no DTD found: the trace neither embeds nor names a DTD; specify the DTD with --dtd FILE")
    } else {
        format!(
            "{trace}: no DTD found: the trace embeds no DTD, and the DTD `{url}` is neither built in nor on \
             METATF_PATH; specify the DTD with --dtd FILE, or add its directory to METATF_PATH"
        )
    })
}

/// Fails if the major or median version of a trace's DTD differs from the version of the DTD on the command line.
fn check_version(embedded: &Dtd, trace: &str, path: &Path) -> Result<()> {
    // A missing or invalid version is not checked.
    let Some(theirs) = embedded.version().ok().flatten() else { return Ok(()) };
    match load(path)?.version().ok().flatten() {
        Some(ours) if !ours.understands(theirs) => failed(format!(
            "{trace}: its DTD has version {theirs}, but {name} has version {ours}; to see the changes, run \
             `metatfc diff {name} {trace}`; to use the embedded DTD, omit --dtd; to convert the trace to {name}, add \
             --by-name (only `dump`)",
            name = input::name(path)
        )),
        _ => Ok(()),
    }
}

/// Finds a file on `METATF_PATH`, a list of directories and DTDs. Only `file:` URLs and plain paths are looked up.
fn on_path(url: &str) -> Option<PathBuf> {
    let path = match url.split_once(':') {
        Some(("file", rest)) => rest.strip_prefix("//localhost").or(rest.strip_prefix("//")).unwrap_or(rest),
        Some((scheme, _)) if scheme.len() > 1 && scheme.bytes().all(|b| b.is_ascii_alphanumeric()) => return None,
        _ => url,
    };
    let name = file_name(path);
    if name.is_empty() || name == ".." {
        return None;
    }
    // A name in a trace must not lead outside the directories that the user listed.
    let inside = Path::new(path).components().all(|c| matches!(c, std::path::Component::Normal(_)));
    let list = std::env::var_os("METATF_PATH")?;
    std::env::split_paths(&list).filter(|p| !p.as_os_str().is_empty()).find_map(|entry| {
        let below = [inside.then(|| entry.join(path)), Some(entry.join(name))];
        let itself = entry.file_name().is_some_and(|n| n == name).then(|| entry.clone());
        below.into_iter().flatten().chain(itself).find(|p| p.is_file())
    })
}
