//! Where a frame of a stack is, and the names that stand for it.

use serde::{Deserialize, Serialize};

use crate::short_name::short_name;

/// A function in a location.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Its source file; empty: not known.
    pub file: String,
    /// The line, from 1; 0: not known.
    pub line: u64,
}

/// Where a frame is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The frame: a return address.
    pub address: u64,
    /// The path of its module; empty: it is in none.
    pub module: String,
    /// The build id of its module in hexadecimal digits; empty: it has none.
    pub build_id: String,
    /// Whether its module is the program itself, and no shared object.
    pub is_program: bool,
    /// The address in the module's file.
    pub offset: u64,
    /// The number of the process, of a frame that is in no module; 0: not known.
    pub process: u64,
    /// Its functions, inlined ones first; none: no symbol is known.
    pub functions: Vec<Function>,
}

impl Location {
    /// Returns the name of its module's file; empty: it is in none.
    #[must_use]
    pub fn module_name(&self) -> &str {
        self.module.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the names that stand for it, innermost first: those of its functions, or one made of its module or address.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        let unknown = self.functions.is_empty().then(|| {
            let module = self.module_name();
            if module.is_empty() { format!("0x{:x}", self.address) } else { format!("{module}+0x{:x}", self.offset) }
        });
        self.functions.iter().map(|function| function.name.clone()).chain(unknown)
    }

    /// Returns the same names for people: see [`short_name`].
    pub fn short_names(&self) -> impl Iterator<Item = String> + '_ {
        let is_known = !self.functions.is_empty();
        self.names().map(move |name| if is_known { short_name(&name).into_owned() } else { name })
    }

    /// Returns the same names with lines behind functions, where they are known: two calls in one function differ then.
    pub fn names_with_lines(&self) -> impl Iterator<Item = String> + '_ {
        self.names().enumerate().map(|(number, name)| self.with_line(number, name))
    }

    pub(crate) fn with_line(&self, number: usize, name: String) -> String {
        match self.functions.get(number) {
            Some(Function { line, .. }) if *line > 0 => format!("{name}:{line}"),
            _ => name,
        }
    }

    /// Returns a line for each function: its [short name](short_name), and where it is in the source, or else its module.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.short_names().enumerate().map(|(number, name)| match self.functions.get(number) {
            Some(Function { file, line, .. }) if !file.is_empty() && *line > 0 => format!("{name} at {file}:{line}"),
            Some(Function { file, .. }) if !file.is_empty() => format!("{name} at {file}"),
            Some(_) if !self.module_name().is_empty() => format!("{name} in {}", self.module_name()),
            _ => name,
        })
    }
}
