//! Instrumented modules and the blocks allocated by their code, whose accesses are known.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::block::Block;
use super::scans::{self, wait_for_scans};
use crate::preload::elf::found::Found;
use crate::preload::stacks::{tree, unwind};

/// An instrumented module. A free entry contains zeros. After a module is unloaded, its ends are set to zero before the
/// entry becomes free.
struct Module {
    /// The start of the code.
    code: AtomicUsize,
    code_end: AtomicUsize,
    /// The start of the variables.
    variables: AtomicUsize,
    variables_end: AtomicUsize,
    /// The start and end of the loaded module.
    loaded: [AtomicUsize; 2],
}

static MODULES: [Module; 64] = [const { Module::none() }; 64];
/// The number of threads that are unloading modules.
static UNLOADING: AtomicU32 = AtomicU32::new(0);

impl Module {
    const fn none() -> Self {
        Self {
            code: AtomicUsize::new(0),
            code_end: AtomicUsize::new(0),
            variables: AtomicUsize::new(0),
            variables_end: AtomicUsize::new(0),
            loaded: [const { AtomicUsize::new(0) }; 2],
        }
    }

    /// Returns the number of bytes from an address to `end`, if the address is between `start` and `end`.
    fn rest(start: &AtomicUsize, end: &AtomicUsize, address: usize) -> Option<usize> {
        let (from, to) = (start.load(Ordering::Relaxed), end.load(Ordering::Acquire));
        // The entry may belong to another module by now.
        ((from..to).contains(&address) && start.load(Ordering::Relaxed) == from).then(|| to - address)
    }

    /// Returns whether the module is still loaded at the same addresses.
    fn is_loaded(&self) -> bool {
        let [start, end] = [&self.loaded[0], &self.loaded[1]].map(|place| place.load(Ordering::Relaxed));
        let found = unwind::find(self.code.load(Ordering::Relaxed));
        found.is_some_and(|found: Found| (found.start, found.end) == (start, end))
    }
}

/// Records the code and variables of an instrumented module. Code of a module without an entry counts as
/// uninstrumented.
pub(super) extern "C" fn module(start: usize, end: usize, variables: usize, variables_end: usize) {
    let Some(found) = unwind::find(start).filter(|_| start != 0) else { return };
    let taken = |module: &&Module| module.code.compare_exchange(0, start, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    if let Some(module) = MODULES.iter().find(taken) {
        module.loaded[0].store(found.start, Ordering::Relaxed);
        module.loaded[1].store(found.end, Ordering::Relaxed);
        module.variables.store(variables, Ordering::Relaxed);
        module.variables_end.store(variables_end, Ordering::Release);
        module.code_end.store(end, Ordering::Release);
    }
}

/// Announces that modules are about to be unloaded, and waits until nobody reads their variables.
pub(crate) fn before_unload() {
    UNLOADING.fetch_add(1, Ordering::SeqCst);
    // A handler that interrupted a scan in its own thread does not wait for that scan; it must not call `dlclose`.
    let _ = wait_for_scans();
}

/// Removes unloaded modules.
pub(crate) fn after_unload() {
    let gone = |module: &&Module| module.code_end.load(Ordering::Acquire) != 0 && !module.is_loaded();
    for module in MODULES.iter().filter(gone) {
        module.code_end.store(0, Ordering::SeqCst);
        module.variables_end.store(0, Ordering::SeqCst);
        // Free the entry only after all scans, because a scan that has read the ends may still read the starts.
        if wait_for_scans() {
            module.code.store(0, Ordering::Release);
        }
    }
    // A child forked by another thread in the meantime has reset the counter.
    let _ = UNLOADING.fetch_update(Ordering::SeqCst, Ordering::Relaxed, |threads| threads.checked_sub(1));
}

/// Discards operations of other threads in a forked child, which has only one thread and would wait for them forever.
pub(crate) fn leave() {
    scans::leave();
    UNLOADING.store(0, Ordering::Relaxed);
}

/// The variables of an instrumented module.
pub(super) struct Variables {
    /// The number of bytes from an address to the end of the variables.
    pub(super) bytes: usize,
    /// Whether the variables stay mapped until the scan is over.
    pub(super) stay: bool,
}

/// Returns the variables that contain an address. Must be called in a scan.
pub(super) fn variables(address: usize) -> Option<Variables> {
    let rest = |module: &Module| Module::rest(&module.variables, &module.variables_end, address);
    let bytes = MODULES.iter().find_map(rest)?;
    Some(Variables { bytes, stay: UNLOADING.load(Ordering::SeqCst) == 0 })
}

/// Registers a block allocated by application code, given the number of its stack. Blocks of uninstrumented code are
/// ignored, because their accesses cannot be observed.
#[inline(never)]
pub(crate) fn note_block(address: usize, stack: u32) {
    let Some(frame) = tree::innermost(stack) else { return };
    if MODULES.iter().any(|module| Module::rest(&module.code, &module.code_end, frame).is_some())
        && let Some(block) = Block::at(address)
    {
        block.make_known();
    }
}
