//! The definition of a heap profile format.

use metatf::container::Sink;

use super::HeapProfile;
use crate::symbolize::Files;
use hatf_trace::Result;
use hatf_trace::forms::{Head, Input};

/// A heap profile format.
pub struct ProfileForm {
    /// The name on the command line.
    pub name: &'static str,
    /// A one-line description, for help.
    pub about: &'static str,
    /// The file extension.
    pub ending: &'static str,
    /// Recognizes a file by its beginning.
    pub sniff: fn(&Head<'_>) -> bool,
    /// Reads all profiles in a file and calls the function for each record. `None` if the format is write-only.
    pub open: Option<OpenProfile>,
    /// Writes a merged profile and reports notes about it. Returns the number of contexts written. `None` if the format
    /// is read-only.
    pub create: Option<CreateProfile>,
}

/// Reads the profiles of a file.
pub type OpenProfile = fn(Input, &mut dyn FnMut()) -> Result<Vec<HeapProfile>>;
/// Writes a merged profile.
pub type CreateProfile = fn(&HeapProfile, &ProfileOptions, &mut dyn FnMut(&str), &mut dyn Sink) -> Result<usize>;

/// Options for writing a profile. A format ignores options that do not apply to it.
#[derive(Debug, Default)]
pub struct ProfileOptions {
    /// The locations in which to search for program files.
    pub files: Files,
    /// Whether to write contexts with unknown accesses as if their blocks were never accessed.
    pub unknown_is_unused: bool,
    /// Whether to also write frames in shared objects.
    pub shared_objects: bool,
}
