//! Runs two tasks in parallel.
//!
//! # Examples
//!
//! ```
//! use hatf_view::threads::both;
//!
//! let sizes = [100, 20, 3];
//! let (sum, largest) = both(2, || sizes.iter().sum::<u64>(), || sizes.iter().max())?;
//! assert_eq!((sum, largest), (123, Some(&100)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io;

use metatf_tools::pipeline::beside;

/// Runs both tasks, in parallel if two threads are allowed, and returns their results.
///
/// # Errors
/// Returns an error if no thread can be created.
pub fn both<A: Send, B>(
    threads: usize,
    there: impl FnOnce() -> A + Send,
    here: impl FnOnce() -> B,
) -> io::Result<(A, B)> {
    if threads > 1 { beside("hatf-work", there, here) } else { Ok((there(), here())) }
}
