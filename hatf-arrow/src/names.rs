//! Names for functions that a trace does not name.

use hatf_lab::calls::Folding;
use hatf_trace::stacks::Stacks;

/// Gives names to the stacks of a trace, which `hatf` does by the debug information of its modules. Each default does nothing.
pub trait Names: Send + Sync {
    /// Gives functions to locations that have none: see [`Stacks::name_locations`]. It is called once a scan of a trace, after the last event.
    fn name(&self, stacks: &mut Stacks) {
        let _ = stacks;
    }

    /// Returns which frames are folded into their callers to find the program's own function of a stack.
    fn folding(&self) -> Folding {
        Folding::default()
    }
}

/// Names nothing.
impl Names for () {}
