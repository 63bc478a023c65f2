//! Runs two parts of some work in parallel.

use std::io;

use metatf_tools::pipeline::beside;

/// Runs both parts and returns their results. The parts run in parallel if two threads are allowed.
///
/// # Errors
/// The system could not start a thread.
pub fn both<A: Send, B>(
    threads: usize,
    there: impl FnOnce() -> A + Send,
    here: impl FnOnce() -> B,
) -> io::Result<(A, B)> {
    if threads > 1 { beside("hatf-work", there, here) } else { Ok((there(), here())) }
}
