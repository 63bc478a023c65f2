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

/// Reads the profiles in a file of any readable format. Calls `step` for each record.
///
/// # Errors
/// The file is not a profile, or it is corrupt.
pub fn open_profiles(mut input: Input, step: &mut dyn FnMut()) -> Result<Vec<HeapProfile>> {
    let readable = || PROFILES.into_iter().filter(|form| form.open.is_some());
    let form = input.recognized(|head| readable().find(|form| (form.sniff)(head)))?;
    let Some(open) = form.and_then(|form| form.open) else {
        let forms = readable().map(|form| form.about).collect::<Vec<_>>().join("; ");
        return Err(Error::Trace(format!("{}: not a heap profile; expected one of: {forms}", input.name()).into()));
    };
    open(input, step)
}
