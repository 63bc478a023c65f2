//! What the crate `metatf-tools` takes of the runtime beside what users see. It changes without notice.

#[cfg(feature = "dynamic")]
pub use crate::dynamic::{print_bytes, print_number};
pub use crate::formula::{bytes_for, evaluate};
pub use crate::record::FREE_ITEMS;
#[cfg(feature = "dynamic")]
pub use crate::writer::{TrialEncoder, TrialState};
