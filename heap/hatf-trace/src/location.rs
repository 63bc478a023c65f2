//! Locations of stack frames and their names.

use serde::{Deserialize, Serialize};

use crate::short_name::short_name;

/// A function in a location.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Function {
    /// The name.
    pub name: String,
    /// The source file, or empty if unknown.
    pub file: String,
    /// The line, from 1, or 0 if unknown.
    pub line: u64,
}

/// The location of a frame.
///
/// # Examples
///
/// ```
/// use hatf_trace::stacks::{Function, Location};
///
/// let function = Function { name: "f::h0123456789abcdef".to_owned(), file: "f.rs".to_owned(), line: 7 };
/// let location = Location { functions: vec![function], ..Location::default() };
/// assert_eq!(location.lines().collect::<Vec<_>>(), ["f at f.rs:7"]);
/// // A location without functions is named after its module.
/// let location = Location { module: "/lib/libc.so.6".to_owned(), offset: 0x1010, ..Location::default() };
/// assert_eq!(location.names().collect::<Vec<_>>(), ["libc.so.6+0x1010"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// The frame: a return address.
    pub address: u64,
    /// The path of the module, or empty if the frame is in no module.
    pub module: String,
    /// The build ID of the module in hexadecimal digits, or empty if it has no build ID.
    pub build_id: String,
    /// Whether the module is the program itself rather than a shared object.
    pub is_program: bool,
    /// The address in the module's file.
    pub offset: u64,
    /// The process ID if the frame is in no module; 0 if unknown.
    pub process: u64,
    /// The functions, inlined ones first; empty if no symbol is known.
    pub functions: Vec<Function>,
}

impl Location {
    /// Returns the file name of the module, or an empty string if the frame is in no module.
    #[must_use]
    pub fn module_name(&self) -> &str {
        self.module.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the names of the location, innermost first: the names of its functions, or a name derived from its
    /// module or address.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        let unknown = self.functions.is_empty().then(|| {
            let module = self.module_name();
            if module.is_empty() { format!("0x{:x}", self.address) } else { format!("{module}+0x{:x}", self.offset) }
        });
        self.functions.iter().map(|function| function.name.clone()).chain(unknown)
    }

    /// Returns the names of the location, shortened for people by [`short_name`].
    pub fn short_names(&self) -> impl Iterator<Item = String> + '_ {
        let is_known = !self.functions.is_empty();
        self.names().map(move |name| if is_known { short_name(&name).into_owned() } else { name })
    }

    /// Returns the names of the location, with line numbers after function names if they are known. The line numbers
    /// distinguish two calls in the same function.
    pub fn names_with_lines(&self) -> impl Iterator<Item = String> + '_ {
        self.names().enumerate().map(|(number, name)| self.with_line(number, name))
    }

    pub(crate) fn with_line(&self, number: usize, name: String) -> String {
        match self.functions.get(number) {
            Some(Function { line, .. }) if *line > 0 => format!("{name}:{line}"),
            _ => name,
        }
    }

    /// Returns a line for each function, which contains its [short name](short_name) and its source position, or its
    /// module if the position is unknown.
    pub fn lines(&self) -> impl Iterator<Item = String> + '_ {
        self.short_names().enumerate().map(|(number, name)| match self.functions.get(number) {
            Some(Function { file, line, .. }) if !file.is_empty() && *line > 0 => format!("{name} at {file}:{line}"),
            Some(Function { file, .. }) if !file.is_empty() => format!("{name} at {file}"),
            Some(_) if !self.module_name().is_empty() => format!("{name} in {}", self.module_name()),
            _ => name,
        })
    }
}
