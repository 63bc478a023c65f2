//! The error of a heap that does not add up.

use std::borrow::Cow;
use std::fmt;

/// A place at which the heap contradicts itself, or at which it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inconsistency {
    /// The address of the place.
    pub address: u64,
    /// A description of the contradiction.
    pub what: Cow<'static, str>,
}

/// The result of reading a heap.
pub type Result<T> = std::result::Result<T, Inconsistency>;

impl Inconsistency {
    pub(crate) fn new(address: u64, what: impl Into<Cow<'static, str>>) -> Self {
        Self { address, what: what.into() }
    }
}

impl fmt::Display for Inconsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {:#x}: {}", self.address, self.what)
    }
}

impl std::error::Error for Inconsistency {}
