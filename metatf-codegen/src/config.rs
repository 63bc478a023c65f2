//! The interface for build scripts: files in, files out.

use std::path::{Path, PathBuf};

use crate::bare::generate_no_std;
use crate::generate::{Error, generate_source};
use crate::options::{OptionError, Options};

/// Generates code for DTDs, in a build script.
///
/// ```no_run
/// # fn main() -> Result<(), metatf_codegen::Error> {
/// metatf_codegen::Config::new()
///     .dtd("dtds/HATF10.dtd")
///     .record_attribute("alloc", "#[derive(Eq, Hash)]")
///     .rename("createHeap", "NewHeap")
///     .compile()
/// # }
/// ```
///
/// Options name records as the DTD does, `alloc` or, with the section, `heap.alloc`; fields `alloc.size`; nested records
/// by their own name, `point.x`; the items of a repeated group by the record and the group's key, `draw.n_items`. A path
/// of `.` means all. Unused paths are errors.
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
    /// Makes a configuration with nothing to do yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a DTD, by its path from where the build script runs: the crate's folder. The code goes to a file of the
    /// DTD's name in lower case, `hatf10.rs` for `HATF10.dtd`.
    pub fn dtd(mut self, path: impl Into<PathBuf>) -> Self {
        self.dtds.push(path.into());
        self
    }

    /// Writes to this folder instead of `OUT_DIR`.
    pub fn out_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(path.into());
        self
    }

    /// Writes the code to a file of this name. For a configuration of one DTD.
    pub fn file_name(mut self, name: impl Into<String>) -> Self {
        self.file_name = Some(name.into());
        self
    }

    /// Puts the code into a public module of this name. For a configuration of one DTD.
    pub fn module(mut self, name: impl Into<String>) -> Self {
        self.module = Some(name.into());
        self
    }

    /// Sets the path of the runtime crate where it goes by another name, `::my_metatf`.
    pub fn runtime(mut self, path: impl Into<String>) -> Self {
        self.runtime = Some(path.into());
        self
    }

    /// Adds an attribute to the struct of a record, as it is written in Rust: `#[derive(Hash)]`.
    pub fn record_attribute(mut self, path: impl Into<String>, attribute: impl Into<String>) -> Self {
        self.record_attributes.push((path.into(), attribute.into()));
        self
    }

    /// Adds an attribute to a field.
    pub fn field_attribute(mut self, path: impl Into<String>, attribute: impl Into<String>) -> Self {
        self.field_attributes.push((path.into(), attribute.into()));
        self
    }

    /// Calls a section, a record or a field otherwise in Rust. Types and methods follow from the name.
    pub fn rename(mut self, path: impl Into<String>, name: impl Into<String>) -> Self {
        self.renames.push((path.into(), name.into()));
        self
    }

    /// Gives the number of bytes that traces are expected to give a field, where that is not what the DTD says: `address`, or
    /// `alloc.address`, and 8. Traces in which all widths are as expected are read and written by code that knows them; all others
    /// are read and written all the same.
    pub fn expect_width(mut self, path: impl Into<String>, bytes: u8) -> Self {
        self.expected_widths.push((path.into(), bytes));
        self
    }

    /// Adds emitters for a running program: a function and a macro for each record. `module` is the path of the module that includes
    /// the code, `crate::events`. They need the crate `metatf-telemetry`.
    pub fn emitters(mut self, module: impl Into<String>) -> Self {
        self.emitters = Some(module.into());
        self
    }

    /// Makes emitters alone, for a program without the standard library: they put events into a buffer of the program, and need no crate.
    pub fn no_std_emitters(mut self) -> Self {
        self.no_std = true;
        self
    }

    /// Lets emitters without the standard library leave out records that they cannot write; otherwise such a record is an error.
    pub fn allow_missing(mut self) -> Self {
        self.allow_missing = true;
        self
    }

    /// Leaves the emitters of a kind empty, so that they cost nothing at all: what a build script does where a feature says so.
    pub fn without_kind(mut self, kind: impl Into<String>) -> Self {
        self.without_kinds.push(kind.into());
        self
    }

    /// Chooses whether the code is laid out for people (the default), or left as it comes, which is faster.
    pub fn format(mut self, format: bool) -> Self {
        self.unformatted = !format;
        self
    }

    /// Generates the code of all DTDs. Tells cargo to run the build script again when one of them changes. Cargo shows warnings
    /// about a DTD. Its errors are in the returned error, each with its line of the DTD; a `main` that returns that prints them.
    ///
    /// # Errors
    /// A DTD that cannot be read or has errors, options that do not fit, a file that cannot be written.
    pub fn compile(self) -> Result<(), Error> {
        if self.dtds.len() != 1 && (self.file_name.is_some() || self.module.is_some()) {
            let what = "`file_name` and `module` are for one DTD; make a configuration for each";
            return Err(Error::Options(OptionError(what.to_owned())));
        }
        let out_dir = match (&self.out_dir, std::env::var_os("OUT_DIR")) {
            (Some(dir), _) => dir.clone(),
            (None, Some(dir)) => PathBuf::from(dir),
            (None, None) => return Err(Error::NoOutDir),
        };
        // Without this line cargo would look at every file of the package.
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
            // One line is all that cargo shows of a warning.
            let title = warning.lines().take(2).map(str::trim).collect::<Vec<_>>().join(" ");
            println!("cargo:warning={title}");
        }
        let name = self.file_name.clone().unwrap_or_else(|| file_name(dtd));
        write_if_changed(&out_dir.join(name), &source)
    }
}

/// Returns the name of the DTD in the generated code: the file's name, the same wherever the file lies.
fn source_name(dtd: &Path) -> String {
    dtd.file_name().unwrap_or(dtd.as_os_str()).to_string_lossy().into_owned()
}

fn file_name(dtd: &Path) -> String {
    let stem = dtd.file_stem().unwrap_or(dtd.as_os_str()).to_string_lossy().to_lowercase();
    format!("{stem}.rs")
}

/// Writes a file if its content changes: one that stays keeps its time, and its users need not be built again.
fn write_if_changed(path: &Path, source: &str) -> Result<(), Error> {
    if std::fs::read_to_string(path).is_ok_and(|old| old == source) {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, source))
        .map_err(|e| Error::Io(path.to_owned(), e))
}
