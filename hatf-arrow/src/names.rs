//! Who knows functions that a trace does not name.

use hatf_trace::stacks::Stacks;

/// Gives names to the stacks of a trace, which `hatf` does by the debug information of its modules. Each default does nothing.
pub trait Names: Send + Sync {
    /// Gives functions to locations that have none: see [`Stacks::name_locations`]. It is called once a scan of a trace, after the last event.
    fn name(&self, stacks: &mut Stacks) {
        let _ = stacks;
    }

    /// Returns the function of the program itself that stands for a stack: not the allocator or a library that it called.
    fn own_function(&self, stacks: &Stacks, number: u64) -> Option<String> {
        let _ = (stacks, number);
        None
    }
}

/// Names nothing.
impl Names for () {}
