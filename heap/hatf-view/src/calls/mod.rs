//! Attribution of memory to application functions, by folding stacks.
//!
//! Most stacks begin with functions that only forward a request, such as the allocator, `operator new`, containers, or
//! an interpreter loop. [`Folding`] defines these wrappers. The innermost remaining function is the stack's *own
//! function*. [`Groups`] contains each function's own allocations, and its allocations including those of its callees.

mod compared;
mod groups;
mod passing;
mod place;
mod places;
mod qualified;

pub use compared::{FunctionKey, function_keys, function_pairs};
pub use groups::{Around, Group, Groups, Share, title};
pub use passing::Folding;
pub use place::{GroupBy, Place};
pub use places::Places;
