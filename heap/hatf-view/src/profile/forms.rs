//! The heap profile formats, all of which contain totals per context. [`PROFILES`] lists them.

use super::form::ProfileForm;
use super::{HeapProfile, dhat, folded, jemalloc, massif, memprof, pprof, raw, speedscope, write};
use hatf_trace::forms::Input;
use hatf_trace::{Error, Result};

/// All formats, in the order in which they try to recognize a file.
pub static PROFILES: [&ProfileForm; 9] = [
    &write::FORM,
    &raw::FORM,
    &pprof::FORM,
    &jemalloc::FORM,
    &memprof::FORM,
    &folded::FORM,
    &speedscope::FORM,
    &dhat::FORM,
    &massif::FORM,
];

impl ProfileForm {
    /// Returns the format with this name, or `None` if there is none.
    #[must_use]
    pub fn of(name: &str) -> Option<&'static Self> {
        PROFILES.into_iter().find(|form| form.name == name)
    }
}

/// Returns the format of an input, or `None` if the input is not a heap profile.
fn recognized(input: &mut Input) -> Result<Option<&'static ProfileForm>> {
    input.recognized(|head| PROFILES.into_iter().find(|form| form.open.is_some() && (form.sniff)(head)))
}

/// Returns whether an input begins like a heap profile. The input can then be read from its start.
///
/// # Errors
/// The input cannot be read, or it is a Meta-TF trace with a corrupt head.
pub fn is_profile(input: &mut Input) -> Result<bool> {
    Ok(recognized(input)?.is_some())
}

/// Reads the profiles in a file of any readable format. Calls `step` for each record.
///
/// # Errors
/// The file is not a profile, or it is corrupt.
pub fn open_profiles(mut input: Input, step: &mut dyn FnMut()) -> Result<Vec<HeapProfile>> {
    let Some(open) = recognized(&mut input)?.and_then(|form| form.open) else {
        let forms = PROFILES
            .into_iter()
            .filter(|form| form.open.is_some())
            .map(|form| form.about)
            .collect::<Vec<_>>()
            .join("; ");
        return Err(Error::Trace(format!("{}: not a heap profile; expected one of: {forms}", input.name()).into()));
    };
    open(input, step)
}
