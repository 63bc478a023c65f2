//! What a form of a heap profile is.

use metatf::container::Sink;

use super::HeapProfile;
use crate::Result;
use crate::forms::{Head, Input};
use crate::symbolize::Files;

/// A form of a heap profile.
pub struct ProfileForm {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is, in a line of help.
    pub about: &'static str,
    /// The ending of the names of its files.
    pub ending: &'static str,
    /// Recognizes a file by its beginning.
    pub sniff: fn(&Head<'_>) -> bool,
    /// Reads all profiles of a file, and calls the function for each record; `None`: the form is only written.
    pub open: Option<OpenProfile>,
    /// Writes a merged profile, and passes notes on; returns how many contexts it wrote. `None`: the form is only read.
    pub create: Option<CreateProfile>,
}

/// Reads the profiles of a file.
pub type OpenProfile = fn(Input, &mut dyn FnMut()) -> Result<Vec<HeapProfile>>;
/// Writes a merged profile.
pub type CreateProfile = fn(&HeapProfile, &ProfileOptions, &mut dyn FnMut(&str), &mut dyn Sink) -> Result<usize>;

/// How a profile is written. A form ignores what it does not have.
#[derive(Debug, Default)]
pub struct ProfileOptions {
    /// Where files of programs are looked for.
    pub files: Files,
    /// Contexts whose accesses are not known are written as if they had none.
    pub unknown_is_unused: bool,
    /// Frames of shared objects are written, too.
    pub shared_objects: bool,
}
