//! Who knows functions that a trace does not name.

use hatf_trace::stacks::Stacks;

/// Gives names to the stacks of a trace, which `hatf` does by the debug information of its modules. Each default does nothing.
pub trait Names: Send + Sync {
    /// Gives functions to locations that have none: see [`Stacks::name_locations`]. It is called once a scan of a trace, after the last event.
    fn name(&self, stacks: &mut Stacks) {
        let _ = stacks;
    }

    /// Returns the own function of each stack, by its number: the function of the program itself that stands for it, not the allocator
    /// or a library that it called. Empty, or missing: not known.
    fn own_functions(&self, stacks: &Stacks) -> Vec<String> {
        let _ = stacks;
        Vec::new()
    }
}

/// Names nothing.
impl Names for () {}
