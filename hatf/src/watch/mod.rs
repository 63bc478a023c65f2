//! A heap on the screen while it changes.
//!
//! | module | question |
//! | --- | --- |
//! | `follow` | What has the trace by now? A thread reads it as it grows, and has the sums |
//! | `snapshot` | What are the numbers at this moment? |
//! | `functions` | Which functions have memory? Names are looked up here, in a thread of its own |
//! | `view` | What does the user want to see? |
//! | `draw` | What does it look like? |
//! | `terminal` | How is the terminal taken, and given back? |
//!
//! `follow` owns the heap. The others see what was copied of it, so that reading waits for nobody.

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
