//! The forms of a heap profile, which has sums for each context: a row of [`PROFILES`] for each.

use metatf::container::Sink;

use super::{HeapProfile, folded, memprof, raw, write};
use crate::forms::{Head, Input};
use crate::symbolize::Files;
use crate::{Error, Result};

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

/// All forms. A file is recognized in this order.
pub static PROFILES: [&ProfileForm; 4] = [&write::FORM, &raw::FORM, &memprof::FORM, &folded::FORM];

impl ProfileForm {
    /// Returns the form of a name; `None`: there is none.
    #[must_use]
    pub fn of(name: &str) -> Option<&'static Self> {
        PROFILES.into_iter().find(|form| form.name == name)
    }
}

/// Reads the profiles of a file in any form that can be read; `step` is called for each record.
///
/// # Errors
/// It is not a profile, or damaged.
pub fn open_profiles(mut input: Input, step: &mut dyn FnMut()) -> Result<Vec<HeapProfile>> {
    let readable = || PROFILES.into_iter().filter(|form| form.open.is_some());
    let form = input.recognized(|head| readable().find(|form| (form.sniff)(head)))?;
    let Some(open) = form.and_then(|form| form.open) else {
        let forms = readable().map(|form| form.about).collect::<Vec<_>>().join("; ");
        return Err(Error::Trace(format!("{}: not a heap profile, which is one of: {forms}", input.name()).into()));
    };
    open(input, step)
}
