//! The forms of a heap profile, which has sums for each context: a row of [`PROFILES`] for each.

use super::form::ProfileForm;
use super::{HeapProfile, dhat, folded, jemalloc, massif, memprof, pprof, raw, speedscope, write};
use crate::forms::Input;
use crate::{Error, Result};

/// All forms. A file is recognized in this order.
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
