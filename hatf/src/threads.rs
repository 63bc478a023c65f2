//! Two parts of one piece of work.

use std::io;

use metatf_tools::pipeline::beside;

/// Does both parts and returns what they return: at once, if there may be two threads.
///
/// # Errors
/// The system has no thread.
pub fn both<A: Send, B>(
    threads: usize,
    there: impl FnOnce() -> A + Send,
    here: impl FnOnce() -> B,
) -> io::Result<(A, B)> {
    if threads > 1 { beside("hatf-work", there, here) } else { Ok((there(), here())) }
}
