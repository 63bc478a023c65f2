//! Settings of a recording that determine which calls are recorded.

use core::sync::atomic::Ordering;

use super::name_list::{MODULES, THREADS, read};
use super::{by_thread, recorded_blocks, sample};
use crate::conditions::Conditions;
use crate::layout::Header;
use crate::names;
use crate::preload::platform::path::Path;

/// Applies the settings of a new recording. Returns `None` if that is impossible, in which case nothing is recorded.
pub(crate) fn heed(header: &Header, first_events: &Path) -> Option<()> {
    let mean = header.sample.load(Ordering::Relaxed);
    if mean > 0 {
        sample::begin(mean);
        header.set(Conditions::SAMPLE);
    }
    read_lists(first_events, header.conditions())?;
    // Discard the blocks of an earlier recording of this process, or of its parent.
    recorded_blocks::forget_all();
    #[cfg(all(feature = "preload", target_arch = "x86_64"))]
    super::large_blocks::forget_all();
    Some(())
}

fn read_lists(first_events: &Path, conditions: Conditions) -> Option<()> {
    let folder = first_events.folder()?;
    for (condition, name, list) in [
        (Conditions::ONLY_THREADS, names::ONLY_THREADS, &THREADS),
        (Conditions::ONLY_MODULES, names::ONLY_MODULES, &MODULES),
    ] {
        if conditions.has(condition) {
            read(&folder.with(name.as_bytes())?, list)?;
        }
    }
    by_thread::names_changed();
    if conditions.has(Conditions::ONLY_MODULES) { begin_modules() } else { Some(()) }
}

#[cfg(all(feature = "preload", target_arch = "x86_64"))]
use super::by_module::begin as begin_modules;

/// Fails: without stacks, the calling module is unknown.
#[cfg(not(all(feature = "preload", target_arch = "x86_64")))]
fn begin_modules() -> Option<()> {
    None
}
