//! Modules that are instrumented, and the blocks that their code allocates: of those it is known which accesses there are.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::block::Block;
use super::scans::{self, wait_for_scans};
use crate::preload::elf::found::Found;
use crate::preload::stacks::{tree, unwind};

/// A module that is instrumented. A place that is free has zeros; one whose module was unloaded has ends that are zeros before it is free again.
struct Module {
    /// The start of its code.
    code: AtomicUsize,
    code_end: AtomicUsize,
    /// The start of its variables.
    variables: AtomicUsize,
    variables_end: AtomicUsize,
    /// The start and the end of the loaded module.
    loaded: [AtomicUsize; 2],
}

static MODULES: [Module; 64] = [const { Module::none() }; 64];
/// Threads that are unloading modules.
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

    /// Returns how many bytes there are from an address on to an end, if it lies between the two.
    fn rest(start: &AtomicUsize, end: &AtomicUsize, address: usize) -> Option<usize> {
        let (from, to) = (start.load(Ordering::Relaxed), end.load(Ordering::Acquire));
        // The place may be another module's by now.
        ((from..to).contains(&address) && start.load(Ordering::Relaxed) == from).then(|| to - address)
    }

    /// Returns whether it is still where it was.
    fn is_loaded(&self) -> bool {
        let [start, end] = [&self.loaded[0], &self.loaded[1]].map(|place| place.load(Ordering::Relaxed));
        let found = unwind::find(self.code.load(Ordering::Relaxed));
        found.is_some_and(|found: Found| (found.start, found.end) == (start, end))
    }
}

/// Notes where the code and the variables of an instrumented module lie. Code of a module that is not kept counts as not instrumented.
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

/// Notes that modules are about to be unloaded, and waits until nobody reads their variables.
pub(crate) fn before_unload() {
    UNLOADING.fetch_add(1, Ordering::SeqCst);
    // A handler that interrupted its own thread's scan does not wait for the scan; it must not call `dlclose`.
    let _ = wait_for_scans();
}

/// Forgets modules that were unloaded.
pub(crate) fn after_unload() {
    let gone = |module: &&Module| module.code_end.load(Ordering::Acquire) != 0 && !module.is_loaded();
    for module in MODULES.iter().filter(gone) {
        module.code_end.store(0, Ordering::SeqCst);
        module.variables_end.store(0, Ordering::SeqCst);
        // A scanner that has read the ends may read the starts until its scan is over.
        if wait_for_scans() {
            module.code.store(0, Ordering::Release);
        }
    }
    // A child that another thread forked meanwhile has begun to count again.
    let _ = UNLOADING.fetch_update(Ordering::SeqCst, Ordering::Relaxed, |threads| threads.checked_sub(1));
}

/// Forgets what other threads were in the middle of, in a forked child, which has one thread: it would wait for them.
pub(crate) fn leave() {
    scans::leave();
    UNLOADING.store(0, Ordering::Relaxed);
}

/// Variables of an instrumented module.
pub(super) struct Variables {
    /// The number of bytes from an address to the end of the variables.
    pub(super) bytes: usize,
    /// They are there until the scan is over.
    pub(super) stay: bool,
}

/// Returns the variables that an address is in. Called in a scan.
pub(super) fn variables(address: usize) -> Option<Variables> {
    let rest = |module: &Module| Module::rest(&module.variables, &module.variables_end, address);
    let bytes = MODULES.iter().find_map(rest)?;
    Some(Variables { bytes, stay: UNLOADING.load(Ordering::SeqCst) == 0 })
}

/// Notes a block that the program's own code allocated, whose stack has this number. Blocks of code that is not instrumented, whose accesses
/// cannot be seen, are left as they are.
#[inline(never)]
pub(crate) fn note_block(address: usize, stack: u32) {
    let Some(frame) = tree::innermost(stack) else { return };
    if MODULES.iter().any(|module| Module::rest(&module.code, &module.code_end, frame).is_some())
        && let Some(block) = Block::at(address)
    {
        block.make_known();
    }
}
