//! What a user may change about the generated code.

/// Choices that shape the generated code, the same for build scripts, the command line and the attribute.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names the DTD in the generated code (`HATF10.dtd`).
    pub source: String,
    /// Path of the runtime crate, for crates that depend on `metatf` under another name. Default `::metatf`.
    pub runtime: String,
    /// Puts everything into a public module of this name, instead of where the code is included.
    pub module: Option<String>,
    /// Attributes for the structs of records, in the order they were given: path of the record, and attribute.
    pub record_attributes: Vec<(String, String)>,
    /// Attributes for fields: path of the field, and attribute.
    pub field_attributes: Vec<(String, String)>,
    /// Other names for sections, records (types and methods) and fields: path, and the name wanted.
    pub renames: Vec<(String, String)>,
    /// Widths that traces are expected to give fields, where those are not the DTD's: path of the field, and bytes. Traces
    /// with just these widths are read and written by code that knows them; all others are read and written all the same.
    pub expected_widths: Vec<(String, u8)>,
    /// Path of the module that has the code, `crate::events`, if it shall have emitters for a running program: functions, and
    /// macros, which name the module by this path. They need the crate `metatf-telemetry`.
    pub emitters: Option<String>,
    /// Kinds of events whose emitters compile to nothing.
    pub without_kinds: Vec<String>,
    /// True if emitters in C, and those without the standard library, may leave out records that they cannot write. Otherwise such a record
    /// is an error.
    pub allow_missing: bool,
    /// Path of the crate that emitters call. Default `::metatf_telemetry`.
    pub telemetry_runtime: String,
}

impl Options {
    /// Returns the defaults, for a DTD of this name.
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
    /// Checks that what must be Rust is.
    pub(crate) fn check(&self) -> Result<(), OptionError> {
        let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
        let name = |n: &str| n.starts_with(letter) && n.chars().all(|c| letter(c) || c.is_ascii_digit());
        let names = self.renames.iter().map(|(_, name)| name).chain(&self.module);
        if let Some(wrong) = names.into_iter().find(|n| !name(n)) {
            return Err(OptionError(format!("`{wrong}` is no name: letters, digits and `_` make one")));
        }
        let path = |what: &str, path: &str| match syn::parse_str::<syn::Path>(path) {
            Ok(_) => Ok(()),
            Err(_) => Err(OptionError(format!("{what} `{path}` is no path"))),
        };
        path("the runtime", &self.runtime)?;
        path("the runtime of telemetry", &self.telemetry_runtime)?;
        self.emitters.as_ref().map_or(Ok(()), |module| path("the module of emitters", module))
    }
}

/// A mistake in the options: they name what the DTD does not have, or hold text that is not Rust.
#[derive(Clone, PartialEq, Eq)]
pub struct OptionError(pub(crate) String);

/// Prints as `Display`, so that a `main` that returns the error prints a sentence.
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

/// Looks up what the options say about a path, and notes which were of use: one that never is was a mistake.
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

    /// Returns the name wanted for what goes by any of these paths.
    pub(crate) fn rename(&self, paths: &[String]) -> Option<String> {
        self.find(&self.options.renames, paths).last().map(str::to_owned)
    }

    /// Returns attributes of a record that goes by any of these paths.
    pub(crate) fn record_attributes(&self, paths: &[String]) -> Vec<String> {
        self.find(&self.options.record_attributes, paths).map(str::to_owned).collect()
    }

    /// Returns attributes of a field that goes by any of these paths.
    pub(crate) fn field_attributes(&self, paths: &[String]) -> Vec<String> {
        self.find(&self.options.field_attributes, paths).map(str::to_owned).collect()
    }

    /// Returns the first path that nothing in the DTD goes by.
    pub(crate) fn unused(&self) -> Option<OptionError> {
        let Options { record_attributes, field_attributes, renames, .. } = self.options;
        [record_attributes, field_attributes, renames].into_iter().find_map(|pairs| self.unused_of(pairs))
    }

    /// Does the same for one option.
    pub(crate) fn unused_of(&self, pairs: &[(String, String)]) -> Option<OptionError> {
        let used = self.used.borrow();
        let (unused, _) = pairs.iter().find(|(path, _)| path.as_str() != "." && !used.contains(path))?;
        Some(OptionError(format!("the DTD has nothing called `{unused}` that an option could apply to")))
    }
}
