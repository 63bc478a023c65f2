//! Attribution of memory to application functions, by folding stacks.
//!
//! Most stacks begin with functions that only pass a request on: the allocator, `operator new`, containers, or an
//! interpreter loop. [`Folding`] defines these wrappers. The innermost remaining function is the stack's *own
//! function*. [`Groups`] contains the allocations of each function, by itself and including its callees.

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
