//! Live view of a heap on the terminal.
//!
//! | module | question |
//! | --- | --- |
//! | `follow` | What does the trace contain so far? A thread reads it as it grows and keeps the totals |
//! | `snapshot` | What are the current figures? |
//! | `functions` | Which functions hold memory? A separate thread looks up their names |
//! | `view` | What does the user want to see? |
//! | `draw` | What does it look like? |
//! | `terminal` | How is the terminal set up and restored? |
//!
//! `follow` owns the heap. The other modules use copies of its data, so the reader never waits for them.

mod draw;
mod follow;
mod functions;
mod snapshot;
mod terminal;
mod view;

pub use draw::{Shown, draw};
pub use follow::{About, End, Followed, Reading, follow};
pub use functions::{Finder, Function, Functions, Sort};
pub use snapshot::{Snapshot, Snapshots, State};
pub use terminal::{Screen, give_back};
pub use view::{Action, Panel, View};
