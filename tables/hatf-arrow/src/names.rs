//! Function names that a trace does not contain.

use hatf_trace::stacks::Stacks;
use hatf_view::calls::Folding;

/// A source of function names for the stacks of a trace. `hatf` implements this with the debug information of the
/// modules. The default methods do nothing.
pub trait Names: Send + Sync {
    /// Adds functions to locations without functions; see [`Stacks::name_locations`]. This method is called once per
    /// scan of a trace, after the last event.
    fn name(&self, stacks: &mut Stacks) {
        let _ = stacks;
    }

    /// Returns the frames to fold into their callers when looking for the program's own function in a stack.
    fn folding(&self) -> Folding {
        Folding::default()
    }
}

/// Adds no names.
impl Names for () {}
