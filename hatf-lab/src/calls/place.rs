//! A line of a function, and the groups that it may belong to.

use hatf_trace::stacks::Location;

/// What stacks are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// The function.
    Function,
    /// The line from which the function calls.
    Line,
    /// The source file; the module where it is not known.
    File,
    /// The program or shared object.
    Module,
}

/// A line of a function, or what is known of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// The function, or the module and the offset in it.
    pub name: String,
    /// Its source file; empty: not known.
    pub file: String,
    /// Its line; 0: not known.
    pub line: u64,
    /// The path of its module; empty: it is in none.
    pub module: String,
}

impl Place {
    /// Returns the name of its module's file.
    #[must_use]
    pub fn module_name(&self) -> &str {
        self.module.rsplit('/').next().unwrap_or_default()
    }

    /// Returns whether its function, its file or its module has a text in its name.
    #[must_use]
    pub fn is(&self, pattern: &str) -> bool {
        self.name.contains(pattern) || self.file.contains(pattern) || self.module.contains(pattern)
    }

    /// Returns what its group is named by.
    pub(super) fn key(&self, by: GroupBy) -> Self {
        let nothing = Self::default;
        match by {
            GroupBy::Line => self.clone(),
            GroupBy::Function => Self { line: 0, ..self.clone() },
            GroupBy::File if !self.file.is_empty() => Self { file: self.file.clone(), ..nothing() },
            GroupBy::File | GroupBy::Module => Self { module: self.module.clone(), ..nothing() },
        }
    }

    /// Returns the places of a location, innermost first: its functions, or one that stands for them.
    pub(super) fn of(location: &Location) -> impl Iterator<Item = Self> {
        location.names().enumerate().map(|(number, name)| {
            let function = location.functions.get(number);
            let (file, line) = function.map_or((String::new(), 0), |function| (function.file.clone(), function.line));
            Self { name, file, line, module: location.module.clone() }
        })
    }
}
