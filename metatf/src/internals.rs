//! Parts of the runtime for the crate `metatf-tools` that are not public API. They may change without notice.

#[cfg(feature = "dynamic")]
pub use crate::dynamic::{Dangling, References, Referring, Starts, Target, print_bytes, print_number};
pub use crate::formula::{bytes_for, evaluate};
pub use crate::record::FREE_ITEMS;
#[cfg(feature = "dynamic")]
pub use crate::writer::{TrialEncoder, TrialState};
