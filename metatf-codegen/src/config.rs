//! The interface for build scripts, which reads and writes files.

use std::path::{Path, PathBuf};

use crate::bare::generate_no_std;
use crate::generate::{Error, generate_source};
use crate::options::{OptionError, Options};

/// Generates code for DTDs in a build script.
///
/// Options refer to names in the DTD. `alloc` or, with its section, `heap.alloc` is a record; `alloc.size` is a field;
/// `point.x` is a field of a nested record; and `draw.n_items`, the record with the group's key, denotes the items of a
/// repeated group. The path `.` denotes everything. A path that matches nothing is an error.
///
/// # Examples
///
/// A build script omits `out_dir`, because cargo sets `OUT_DIR`:
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let dtd = folder.path().join("jobs.dtd");
/// let record = "begin: (tag, job) { tag.value = 4; job.width = 4; job.interpretation = none; }";
/// std::fs::write(&dtd, format!("section jobs 1 {{ {record} }}"))?;
/// metatf_codegen::Config::new()
///     .dtd(&dtd)
///     .out_dir(folder.path())
///     .record_attribute("begin", "#[derive(Eq, Hash)]")
///     .rename("begin", "Start")
///     .compile()?;
/// let code = std::fs::read_to_string(folder.path().join("jobs.rs"))?;
/// assert!(code.contains("#[derive(Eq, Hash)]") && code.contains("pub struct Start"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Config {
    dtds: Vec<PathBuf>,
    out_dir: Option<PathBuf>,
    file_name: Option<String>,
    module: Option<String>,
    runtime: Option<String>,
    record_attributes: Vec<(String, String)>,
    field_attributes: Vec<(String, String)>,
    renames: Vec<(String, String)>,
    expected_widths: Vec<(String, u8)>,
    emitters: Option<String>,
    without_kinds: Vec<String>,
    no_std: bool,
    allow_missing: bool,
    unformatted: bool,
}

impl Config {
    /// Creates an empty configuration.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a DTD. The path is relative to the build script's working directory, which is the directory of the crate.
    /// The output file is named after the DTD in lower case: `hatf10.rs` for `HATF10.dtd`.
    pub fn dtd(mut self, path: impl Into<PathBuf>) -> Self {
        self.dtds.push(path.into());
        self
    }

    /// Sets the output directory, instead of `OUT_DIR`.
    pub fn out_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(path.into());
        self
    }

    /// Sets the name of the output file. Requires a configuration with a single DTD.
    pub fn file_name(mut self, name: impl Into<String>) -> Self {
        self.file_name = Some(name.into());
        self
    }

    /// Puts the code into a public module with this name. Requires a configuration with a single DTD.
    pub fn module(mut self, name: impl Into<String>) -> Self {
        self.module = Some(name.into());
        self
    }

    /// Sets the path of the runtime crate, such as `::my_metatf`, if the crate is renamed.
    pub fn runtime(mut self, path: impl Into<String>) -> Self {
        self.runtime = Some(path.into());
        self
    }

    /// Adds an attribute, such as `#[derive(Hash)]`, to the struct of a record.
    pub fn record_attribute(mut self, path: impl Into<String>, attribute: impl Into<String>) -> Self {
        self.record_attributes.push((path.into(), attribute.into()));
        self
    }

    /// Adds an attribute to a field.
    pub fn field_attribute(mut self, path: impl Into<String>, attribute: impl Into<String>) -> Self {
        self.field_attributes.push((path.into(), attribute.into()));
        self
    }

    /// Renames a section, a record or a field in Rust. The names of types and methods are derived from the new name.
    pub fn rename(mut self, path: impl Into<String>, name: impl Into<String>) -> Self {
        self.renames.push((path.into(), name.into()));
        self
    }

    /// Declares the expected width of a field in traces if it differs from the width in the DTD. `path` is a name such
    /// as `address` or `alloc.address`. Specialized code reads and writes traces with exactly the expected widths. All
    /// other traces are supported as well, but more slowly.
    pub fn expect_width(mut self, path: impl Into<String>, bytes: u8) -> Self {
        self.expected_widths.push((path.into(), bytes));
        self
    }

    /// Adds emitters for a running program: a function and a macro for each record. `module` is the path of the module
    /// that includes the code, such as `crate::events`. Emitters require the crate `metatf-telemetry`.
    pub fn emitters(mut self, module: impl Into<String>) -> Self {
        self.emitters = Some(module.into());
        self
    }

    /// Generates only emitters, for a program without the standard library. They write events to a buffer of the
    /// program and require no crate.
    pub fn no_std_emitters(mut self) -> Self {
        self.no_std = true;
        self
    }

    /// Lets emitters without the standard library omit the records that they cannot write. By default, a record that
    /// cannot be written is an error.
    pub fn allow_missing(mut self) -> Self {
        self.allow_missing = true;
        self
    }

    /// Compiles the emitters of a kind to nothing, so that they cost nothing. A build script can call this function
    /// depending on a feature.
    pub fn without_kind(mut self, kind: impl Into<String>) -> Self {
        self.without_kinds.push(kind.into());
        self
    }

    /// Sets whether to format the generated code. The default is to format it; leaving it unformatted is faster.
    pub fn format(mut self, format: bool) -> Self {
        self.unformatted = !format;
        self
    }

    /// Generates the code of all DTDs, and tells cargo to rerun the build script when a DTD changes. Cargo shows the
    /// warnings about a DTD. If a DTD contains errors, the returned error lists them with their source lines; a `main`
    /// function that returns this error prints the list.
    ///
    /// # Errors
    /// Returns an error if a DTD cannot be read or has errors, an option is invalid, or a file cannot be written.
    pub fn compile(self) -> Result<(), Error> {
        if self.dtds.len() != 1 && (self.file_name.is_some() || self.module.is_some()) {
            let what = "`file_name` and `module` require a single DTD: create one configuration per DTD";
            return Err(Error::Options(OptionError(what.to_owned())));
        }
        let out_dir = match (&self.out_dir, std::env::var_os("OUT_DIR")) {
            (Some(dir), _) => dir.clone(),
            (None, Some(dir)) => PathBuf::from(dir),
            (None, None) => return Err(Error::NoOutDir),
        };
        // Without this line, cargo would watch every file of the package.
        for dtd in &self.dtds {
            println!("cargo:rerun-if-changed={}", dtd.display());
        }
        self.dtds.iter().try_for_each(|dtd| self.one(dtd, &out_dir))
    }

    fn one(&self, dtd: &Path, out_dir: &Path) -> Result<(), Error> {
        let text = std::fs::read(dtd).map_err(|e| Error::Io(dtd.to_owned(), e))?;
        let mut options = Options::new(source_name(dtd));
        options.module.clone_from(&self.module);
        options.record_attributes.clone_from(&self.record_attributes);
        options.field_attributes.clone_from(&self.field_attributes);
        options.renames.clone_from(&self.renames);
        options.expected_widths.clone_from(&self.expected_widths);
        options.emitters.clone_from(&self.emitters);
        options.without_kinds.clone_from(&self.without_kinds);
        options.allow_missing = self.allow_missing;
        if let Some(runtime) = &self.runtime {
            options.runtime.clone_from(runtime);
        }
        let (source, diagnostics) = if self.no_std {
            generate_no_std(&text, &options)?
        } else {
            let generated = generate_source(&text, &options)?;
            let source = if self.unformatted { generated.tokens.to_string() } else { generated.source };
            (source, generated.diagnostics)
        };
        for warning in &diagnostics.rendered {
            // Cargo shows only one line of a warning.
            let title = warning.lines().take(2).map(str::trim).collect::<Vec<_>>().join(" ");
            println!("cargo:warning={title}");
        }
        let name = self.file_name.clone().unwrap_or_else(|| file_name(dtd));
        write_if_changed(&out_dir.join(name), &source)
    }
}

/// Returns the name of the DTD in the generated code. This is only the file name, so that the code does not depend on
/// the directory.
fn source_name(dtd: &Path) -> String {
    dtd.file_name().unwrap_or(dtd.as_os_str()).to_string_lossy().into_owned()
}

fn file_name(dtd: &Path) -> String {
    let stem = dtd.file_stem().unwrap_or(dtd.as_os_str()).to_string_lossy().to_lowercase();
    format!("{stem}.rs")
}

/// Writes a file only if its content changes. An unchanged file keeps its modification time, so crates that include it
/// are not rebuilt.
fn write_if_changed(path: &Path, source: &str) -> Result<(), Error> {
    if std::fs::read_to_string(path).is_ok_and(|old| old == source) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, source))
        .map_err(|e| Error::Io(path.to_owned(), e))
}
