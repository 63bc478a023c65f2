//! Attribution of memory to application functions, by folding stacks.
//!
//! Most stacks begin with functions that only forward a request, such as the allocator, `operator new`, containers, or
//! an interpreter loop. [`Folding`] defines these wrappers. The innermost remaining function is the stack's *own
//! function*. [`Groups`] contains each function's own allocations, and its allocations including those of its callees.
//!
//! # Examples
//!
//! ```
//! use hatf_lab::sites::{Amount, Counts};
//! use hatf_trace::event::EventKind;
//! use hatf_trace::stacks::Stacks;
//! use hatf_view::calls::{Folding, GroupBy, Groups, Places};
//!
//! let mut stacks = Stacks::default();
//! for (frame, name) in [(0x10, "operator new"), (0x20, "parse"), (0x30, "main")] {
//!     stacks.note(&EventKind::Symbol { frame, line: 0, name: name.as_bytes() });
//! }
//! let stack = stacks.number(&[0x10, 0x20, 0x30]);
//! let places = Places::new(&stacks, &Folding::default(), GroupBy::Function);
//! let own = places.own(stack).next().and_then(|place| places.place(place));
//! assert_eq!(own.map(|place| place.name.as_str()), Some("parse"));
//!
//! let allocated = Counts { allocated: Amount { blocks: 2, bytes: 100 }, ..Counts::default() };
//! let groups = Groups::new(&places, &[Counts::default(), allocated]);
//! let mut named = places.keys().iter().zip(&groups.groups);
//! let (_, main) = named.find(|(key, _)| key.name == "main").ok_or("no main")?;
//! assert_eq!((main.own.allocated.bytes, main.inclusive.allocated.bytes), (0, 100));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compared;
mod groups;
mod passing;
mod place;
mod places;
mod qualified;
mod wrappers;

pub use compared::{FunctionKey, function_keys, function_pairs};
pub use groups::{Around, Group, Groups, Share, title};
pub use passing::Folding;
#[cfg(feature = "native")]
pub(crate) use passing::passing_locations;
pub use place::{GroupBy, Place};
pub use places::Places;
