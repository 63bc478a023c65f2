//! Source lines of functions, and the groups to which they can belong.

use hatf_trace::stacks::Location;

/// Criteria for grouping stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupBy {
    /// The function.
    Function,
    /// The line that contains the call.
    Line,
    /// The source file, or the module if the file is unknown.
    File,
    /// The program or shared object.
    Module,
}

/// A line in a function. Unknown parts are empty or 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// The function name, or else the module and the offset in the module.
    pub name: String,
    /// The source file; empty if unknown.
    pub file: String,
    /// The line number; 0 if unknown.
    pub line: u64,
    /// The path of the module; empty if the code is in no module.
    pub module: String,
}

impl Place {
    /// Returns the file name of the module.
    #[must_use]
    pub fn module_name(&self) -> &str {
        self.module.rsplit('/').next().unwrap_or_default()
    }

    /// Returns whether the name of the function, file or module contains `pattern`.
    #[must_use]
    pub fn is(&self, pattern: &str) -> bool {
        self.name.contains(pattern) || self.file.contains(pattern) || self.module.contains(pattern)
    }

    /// Returns the fields that identify the line's group.
    pub(super) fn key(&self, by: GroupBy) -> Self {
        let nothing = Self::default;
        match by {
            GroupBy::Line => self.clone(),
            GroupBy::Function => Self { line: 0, ..self.clone() },
            GroupBy::File if !self.file.is_empty() => Self { file: self.file.clone(), ..nothing() },
            GroupBy::File | GroupBy::Module => Self { module: self.module.clone(), ..nothing() },
        }
    }

    /// Returns the frames of a location, innermost first. If the functions are unknown, returns a placeholder.
    pub(super) fn of(location: &Location) -> impl Iterator<Item = Self> {
        location.names().enumerate().map(|(number, name)| {
            let function = location.functions.get(number);
            let (file, line) = function.map_or((String::new(), 0), |function| (function.file.clone(), function.line));
            Self { name, file, line, module: location.module.clone() }
        })
    }
}
