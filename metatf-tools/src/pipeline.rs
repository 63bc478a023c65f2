//! A pair of threads, one of which fills items while the other processes them in order.
//!
//! A bounded channel passes items on, and another channel returns them to be refilled, so only a few items exist at a
//! time and their memory is reused. If either side ends, even with an error or a panic, it drops its end of the pipe.
//! The other side notices this the next time it sends, receives or waits, so neither side waits forever.
//!
//! ```
//! use metatf_tools::pipeline::{beside, pipe};
//! use std::io::Write as _;
//!
//! let (feed, drain) = pipe::<Vec<u8>>(2);
//! let fill = move || ["malloc 16\n", "malloc 32\n", "free\n"].iter().all(|line| {
//!     let mut buffer = feed.spent().unwrap_or_default();
//!     buffer.clear();
//!     buffer.extend_from_slice(line.as_bytes());
//!     feed.give(buffer)
//! });
//! let mut output: Vec<u8> = Vec::new();
//! let (filled, written) = beside("fill", fill, || drain.each(|buffer| output.write_all(buffer)))?;
//! assert!(filled && written.is_ok());
//! assert_eq!(output, b"malloc 16\nmalloc 32\nfree\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;

/// The sending end of a pipe.
pub struct Feed<T> {
    full: SyncSender<T>,
    spent: Receiver<T>,
}

/// The receiving end of a pipe.
pub struct Drain<T> {
    full: Receiver<T>,
    spent: Sender<T>,
}

/// Creates both ends of a pipe that buffers up to `waiting` items.
#[must_use]
pub fn pipe<T>(waiting: usize) -> (Feed<T>, Drain<T>) {
    let (to, full) = sync_channel(waiting);
    let (spent, from) = channel();
    (Feed { full: to, spent: from }, Drain { full, spent })
}

impl<T> Feed<T> {
    /// Sends an item, and blocks while the buffer is full. Returns false if the other side has ended.
    #[must_use]
    pub fn give(&self, item: T) -> bool {
        self.full.send(item).is_ok()
    }

    /// Returns an empty item if one is available.
    #[must_use]
    pub fn spent(&self) -> Option<T> {
        self.spent.try_recv().ok()
    }

    /// Waits for an empty item. Returns `None` if the other side has ended.
    #[must_use]
    pub fn wait_for_spent(&self) -> Option<T> {
        self.spent.recv().ok()
    }
}

impl<T> Drain<T> {
    /// Processes all items until an error occurs or the other side ends.
    ///
    /// # Errors
    /// Returns the error of `take`.
    pub fn each<E>(self, mut take: impl FnMut(&mut T) -> Result<(), E>) -> Result<(), E> {
        for mut item in self.full {
            take(&mut item)?;
            // The other side may have ended.
            let _ = self.spent.send(item);
        }
        Ok(())
    }
}

/// Runs `there` in a new thread and `here` in the current thread, and returns both results. Each closure owns its end
/// of the pipe, and therefore drops it when it returns. A panic in either closure resumes here after both closures have
/// ended.
///
/// # Errors
/// Returns an error if the system cannot create a thread.
pub fn beside<A: Send, B>(
    name: &str,
    there: impl FnOnce() -> A + Send,
    here: impl FnOnce() -> B,
) -> io::Result<(A, B)> {
    thread::scope(|scope| {
        let other = thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, there)?;
        let here = here();
        let there = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((there, here))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Sends the numbers below `give` to a receiver that fails at `take`. Returns the results of both sides and the
    /// number of created items.
    fn run(give: usize, take: usize, waiting: usize) -> (usize, Result<(), usize>, usize) {
        let (feed, drain) = pipe::<Vec<usize>>(waiting);
        let mut made = 0;
        let giving = || {
            let feed = feed;
            for n in 0..give {
                let mut item = feed.spent().unwrap_or_else(|| {
                    made += 1;
                    Vec::new()
                });
                item.clear();
                item.push(n);
                if !feed.give(item) {
                    return n;
                }
            }
            give
        };
        let mut next = 0;
        let taking = || {
            drain.each(|item| {
                assert_eq!(item[..], [next]);
                next += 1;
                if next > take { Err(next) } else { Ok(()) }
            })
        };
        let (given, taken) = beside("test", giving, taking).unwrap();
        (given, taken, made)
    }

    #[test]
    fn all_in_order() {
        for waiting in [0, 1, 4] {
            let (given, taken, made) = run(1000, usize::MAX, waiting);
            assert_eq!((given, taken), (1000, Ok(())));
            assert!(made <= waiting + 3, "{made} items for {waiting} that wait");
        }
    }

    #[test]
    fn an_error_ends_both() {
        for n in 0..300 {
            let (given, taken, _) = run(1000, n, n % 3);
            assert_eq!(taken, Err(n + 1));
            assert!(given <= n + 5, "{given} were given, {n} taken");
        }
    }

    #[test]
    fn a_panic_of_either_ends_both() {
        for here in [true, false] {
            let (feed, drain) = pipe::<usize>(1);
            let giving = move || {
                assert!(here, "there");
                while feed.give(1) {}
            };
            let taking = move || {
                assert!(!here, "here");
                drain.each(|_| Ok::<(), ()>(()))
            };
            assert!(catch_unwind(AssertUnwindSafe(|| beside("test", giving, taking))).is_err());
        }
    }

    #[test]
    fn waiting_for_what_is_spent_ends_with_the_other_side() {
        let (feed, drain) = pipe::<usize>(1);
        let giving = move || (feed.give(1), feed.wait_for_spent());
        let (given, ()) = beside("test", giving, move || drop(drain)).unwrap();
        assert_eq!(given.1, None);
    }
}
