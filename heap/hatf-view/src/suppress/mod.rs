//! Suppressions for known leaks, in the formats of valgrind's Memcheck and of LeakSanitizer.
//!
//! Files come from other tools and from users. Errors therefore contain the file and line, and the sizes of files,
//! lines and suppressions are limited.
//!
//! # Examples
//!
//! ```
//! use hatf_view::suppress::{Entry, Frame, SuppressionForm, Suppressions, write};
//!
//! let frame = |function| Frame { function, object: "/bin/program", file: "", line: 0 };
//! let stack = vec![frame("parse"), frame("main")];
//! let entry = Entry { name: "table of the parser".to_owned(), function: "parse", frames: stack.clone() };
//! let (text, omitted) = write("remaining leaks", &[entry], SuppressionForm::Valgrind);
//! assert_eq!(omitted, 0);
//!
//! let mut suppressions = Suppressions::default();
//! suppressions.add("own.supp", &text)?;
//! let suppression = &suppressions.list()[0];
//! assert_eq!(suppression.name, "table of the parser");
//! assert!(suppression.takes(&stack) && !suppression.takes(&[frame("main")]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod frame;
mod glob;
mod lsan;
mod valgrind;
mod write;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use hatf_trace::stacks::Stacks;
use hatf_trace::{Error, Result};

pub use frame::Frame;
pub use glob::{Wildcards, matches};
pub use write::{Entry, SuppressionForm, write};

/// Maximum size of a file in bytes.
const FILE: u64 = 16 << 20;

/// Maximum length of a line in bytes.
const LINE: usize = 64 << 10;

/// Suppressions for memory that Python, glibc and the C++ library are known to keep until the end.
const KNOWN: &str = include_str!("known.supp");

/// A suppression, which matches certain stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suppression {
    /// The name; for LeakSanitizer suppressions, the pattern.
    pub name: String,
    /// The name of the file.
    pub file: String,
    /// The line at which the suppression begins, from 1.
    pub line: u64,
    rule: Rule,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    Valgrind(valgrind::Frames),
    Lsan(lsan::Pattern),
}

impl Suppression {
    /// Returns whether the suppression matches a stack of these frames, innermost first.
    #[must_use]
    pub fn takes(&self, frames: &[Frame<'_>]) -> bool {
        match &self.rule {
            Rule::Valgrind(rule) => rule.takes(frames),
            Rule::Lsan(rule) => frames.iter().any(|frame| rule.takes(frame)),
        }
    }

    /// Returns the reason that the suppression cannot match any stack, if its text alone determines this.
    #[must_use]
    pub fn cannot_match(&self) -> Option<&'static str> {
        match &self.rule {
            Rule::Valgrind(rule) => rule.cannot_match(),
            Rule::Lsan(_) => None,
        }
    }
}

/// Suppressions from one or more files, in order. The [module documentation](self) contains an example.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suppressions {
    list: Vec<Suppression>,
    /// The number of suppressions that were skipped because they belong to other tools or concern errors other than
    /// leaks.
    pub others: u64,
}

impl Suppressions {
    /// Returns the built-in suppressions. Each name explains which code keeps which memory.
    ///
    /// # Panics
    /// Never, because a test parses the suppressions.
    #[must_use]
    pub fn known() -> Self {
        let mut known = Self::default();
        let read = known.add("known", KNOWN);
        debug_assert!(read.is_ok(), "{read:?}");
        known
    }

    /// Reads a file and adds its suppressions.
    ///
    /// # Errors
    /// The file cannot be read or is not a suppression file.
    pub fn read(&mut self, path: &Path) -> Result<()> {
        let name = path.display().to_string();
        let mut bytes = Vec::new();
        let read = File::open(path).and_then(|file| file.take(FILE + 1).read_to_end(&mut bytes));
        read.map_err(Error::system(name.clone()))?;
        if bytes.len() as u64 > FILE {
            return Err(Error::Trace(
                format!("{name}: the file exceeds {} bytes", metatf_page::units::count(FILE)).into(),
            ));
        }
        self.add(&name, &String::from_utf8_lossy(&bytes))
    }

    /// Adds the suppressions in a string. The first line that is not a comment determines the format.
    ///
    /// # Errors
    /// The string is malformed. The error contains `file` and the line.
    pub fn add(&mut self, file: &str, text: &str) -> Result<()> {
        let lines =
            || (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let wrong = |(line, why): (u64, String)| Error::Trace(format!("{file}:{line}: {why}").into());
        if let Some((line, _)) = lines().find(|(_, text)| text.len() > LINE) {
            return Err(wrong((line, format!("the line exceeds {} bytes", metatf_page::units::count(LINE as u64)))));
        }
        let of = |(name, line, rule)| Suppression { name, file: file.to_owned(), line, rule };
        match lines().next() {
            None => Ok(()),
            Some((_, "{")) => {
                let (list, others) = valgrind::parse(lines()).map_err(wrong)?;
                self.others += others;
                self.list.extend(list.into_iter().map(|(name, line, rule)| of((name, line, Rule::Valgrind(rule)))));
                Ok(())
            }
            Some((_, first)) if lsan::is_line(first) => {
                let (list, others) = lsan::parse(lines()).map_err(wrong)?;
                self.others += others;
                self.list.extend(list.into_iter().map(|(name, line, rule)| of((name, line, Rule::Lsan(rule)))));
                Ok(())
            }
            Some((line, _)) => {
                let why = "not a suppression: expected `{` as in valgrind, or leak:PATTERN as in LeakSanitizer";
                Err(wrong((line, why.to_owned())))
            }
        }
    }

    /// Returns the suppressions.
    #[must_use]
    pub fn list(&self) -> &[Suppression] {
        &self.list
    }

    /// Returns the index of the first suppression that matches a stack.
    #[must_use]
    pub fn find(&self, stacks: &Stacks, site: u64) -> Option<usize> {
        if self.list.is_empty() {
            return None;
        }
        let frames = Frame::of_stack(stacks, site);
        self.list.iter().position(|suppression| suppression.takes(&frames))
    }
}

/// Returns the beginning of a line for an error message.
fn quoted(line: &str) -> String {
    let start: String = line.chars().take(60).collect();
    metatf_page::shown(&start).into_owned()
}

#[cfg(test)]
mod tests;
