//! Which function of the program has memory: stacks, folded to the functions that are the user's own.
//!
//! Most stacks begin with functions that only pass a request on: the allocator, `operator new`, containers, the loop of an interpreter.
//! [`Folding`] says which. The innermost function that is left is a stack's *own function*; [`Groups`] has what each allocated itself,
//! and with those that it called.

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
