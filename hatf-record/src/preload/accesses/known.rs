//! Modules that are instrumented, and the blocks that their code allocates: of those it is known which accesses there are.

use core::sync::atomic::{AtomicUsize, Ordering};

use super::block::Block;
use crate::preload::stacks::tree;

/// Modules that are instrumented: where code begins and ends, and variables.
pub(super) static MODULES: [[AtomicUsize; 4]; 64] = [const { [const { AtomicUsize::new(0) }; 4] }; 64];
static MODULES_KNOWN: AtomicUsize = AtomicUsize::new(0);

/// Notes where the code and the variables of an instrumented module lie. Code of a module that is not kept counts as not instrumented.
pub(super) extern "C" fn module(start: usize, end: usize, variables: usize, variables_end: usize) {
    let next = MODULES_KNOWN.fetch_add(1, Ordering::Relaxed);
    if let Some(place) = MODULES.get(next) {
        for (word, value) in place.iter().zip([start, end, variables, variables_end]) {
            word.store(value, Ordering::Release);
        }
    }
}

/// Notes a block that the program's own code allocated, whose stack has this number. Blocks of code that is not instrumented, whose accesses
/// cannot be seen, are left as they are.
#[inline(never)]
pub(crate) fn note_block(address: usize, stack: u32) {
    let Some(frame) = tree::innermost(stack) else { return };
    let is_ours = |[start, end, ..]: &[AtomicUsize; 4]| {
        (start.load(Ordering::Relaxed)..end.load(Ordering::Acquire)).contains(&frame)
    };
    if MODULES.iter().any(is_ours)
        && let Some(block) = Block::at(address)
    {
        block.make_known();
    }
}
