//! The options of the generated code.

/// The options of the generated code, shared by build scripts, the command line and the attribute.
///
/// # Examples
///
/// ```
/// use metatf_codegen::{Options, generate_source};
///
/// let text = b"section jobs 1 { begin: (tag, job) { tag.value = 4; job.width = 4; job.interpretation = none; } }";
/// let mut options = Options::new("jobs.dtd");
/// options.renames.push(("begin.job".to_owned(), "id".to_owned()));
/// let generated = generate_source(text, &options)?;
/// assert!(generated.source.contains("pub id: u64"));
///
/// // An option that refers to a nonexistent item is an error.
/// options.renames.push(("begni".to_owned(), "start".to_owned()));
/// let error = generate_source(text, &options).err().ok_or("accepted")?;
/// assert!(error.to_string().contains("`begni`"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of the DTD in the generated code (`HATF10.dtd`).
    pub source: String,
    /// The path of the runtime crate, for crates that depend on `metatf` under a different name. The default is
    /// `::metatf`.
    pub runtime: String,
    /// The name of a public module to wrap around the code. By default, the code is not in a module.
    pub module: Option<String>,
    /// Attributes for the structs of records, in this order, as pairs of a record path and an attribute.
    pub record_attributes: Vec<(String, String)>,
    /// Attributes for fields, as pairs of a field path and an attribute.
    pub field_attributes: Vec<(String, String)>,
    /// New names for sections, records (types and methods) and fields, as pairs of a path and a name.
    pub renames: Vec<(String, String)>,
    /// Expected widths of fields in traces that differ from the DTD, as pairs of a field path and a number of bytes.
    /// Specialized code reads and writes traces with exactly these widths. All other traces are supported as well.
    pub expected_widths: Vec<(String, u8)>,
    /// The path of the module that contains the code, such as `crate::events`, if the code should include emitters for
    /// a running program. Emitters are functions, and macros that refer to the module by this path. They require the
    /// crate `metatf-telemetry`.
    pub emitters: Option<String>,
    /// Kinds of events whose emitters compile to nothing.
    pub without_kinds: Vec<String>,
    /// Whether emitters in C, and emitters without the standard library, may omit records that they cannot write.
    /// Otherwise, a record that cannot be written is an error.
    pub allow_missing: bool,
    /// The path of the crate that emitters call. The default is `::metatf_telemetry`.
    pub telemetry_runtime: String,
}

impl Options {
    /// Returns the default options for a DTD with this name.
    #[must_use]
    pub fn new(source: impl Into<String>) -> Self {
        Self {
            source: source.into(),
            runtime: "::metatf".to_owned(),
            module: None,
            record_attributes: Vec::new(),
            field_attributes: Vec::new(),
            renames: Vec::new(),
            expected_widths: Vec::new(),
            emitters: None,
            without_kinds: Vec::new(),
            allow_missing: false,
            telemetry_runtime: "::metatf_telemetry".to_owned(),
        }
    }
}

impl Options {
    /// Checks that the options contain valid Rust where Rust is required.
    pub(crate) fn check(&self) -> Result<(), OptionError> {
        let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
        let name = |n: &str| n.starts_with(letter) && n.chars().all(|c| letter(c) || c.is_ascii_digit());
        let names = self.renames.iter().map(|(_, name)| name).chain(&self.module);
        if let Some(wrong) = names.into_iter().find(|n| !name(n)) {
            return Err(OptionError(format!("`{wrong}` is not a valid name: expected letters, digits and `_`")));
        }
        let path = |what: &str, path: &str| match syn::parse_str::<syn::Path>(path) {
            Ok(_) => Ok(()),
            Err(_) => Err(OptionError(format!("{what} `{path}` is not a Rust path"))),
        };
        path("the runtime", &self.runtime)?;
        path("the telemetry runtime", &self.telemetry_runtime)?;
        self.emitters.as_ref().map_or(Ok(()), |module| path("the emitter module", module))
    }
}

/// A mistake in the options. They refer to an item that is not in the DTD, or contain text that is not valid Rust.
#[derive(Clone, PartialEq, Eq)]
pub struct OptionError(pub(crate) String);

/// Formats like `Display`, so that a `main` function that returns the error prints a sentence.
impl std::fmt::Debug for OptionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::fmt::Display for OptionError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OptionError {}

/// A lookup of options by path that tracks which options are used. An unused option is a mistake.
pub(crate) struct Lookup<'o> {
    options: &'o Options,
    used: std::cell::RefCell<std::collections::BTreeSet<String>>,
}

impl<'o> Lookup<'o> {
    pub(crate) fn new(options: &'o Options) -> Self {
        Self { options, used: Default::default() }
    }

    fn find<'a>(&'a self, pairs: &'a [(String, String)], paths: &'a [String]) -> impl Iterator<Item = &'a str> + 'a {
        pairs.iter().filter(|(path, _)| path == "." || paths.contains(path)).map(|(path, value)| {
            self.used.borrow_mut().insert(path.clone());
            value.as_str()
        })
    }

    /// Returns the new name of an item with any of these paths.
    pub(crate) fn rename(&self, paths: &[String]) -> Option<String> {
        self.find(&self.options.renames, paths).last().map(str::to_owned)
    }

    /// Returns the attributes of a record with any of these paths.
    pub(crate) fn record_attributes(&self, paths: &[String]) -> Vec<String> {
        self.find(&self.options.record_attributes, paths).map(str::to_owned).collect()
    }

    /// Returns the attributes of a field with any of these paths.
    pub(crate) fn field_attributes(&self, paths: &[String]) -> Vec<String> {
        self.find(&self.options.field_attributes, paths).map(str::to_owned).collect()
    }

    /// Returns an error for the first path that does not match anything in the DTD.
    pub(crate) fn unused(&self) -> Option<OptionError> {
        let Options { record_attributes, field_attributes, renames, .. } = self.options;
        [record_attributes, field_attributes, renames].into_iter().find_map(|pairs| self.unused_of(pairs))
    }

    /// Returns the same error for the paths of a single option.
    pub(crate) fn unused_of(&self, pairs: &[(String, String)]) -> Option<OptionError> {
        let used = self.used.borrow();
        let (unused, _) = pairs.iter().find(|(path, _)| path.as_str() != "." && !used.contains(path))?;
        Some(OptionError(format!("an option refers to `{unused}`, but the DTD has no such item")))
    }
}
