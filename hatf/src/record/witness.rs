//! Whether a signal was sent to the whole group, so that the program has got it, too. The kernel does not say. So a process of our own is
//! in the group and does nothing but wait for signals: what it gets at the same moment was for all.

use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use hatf_record::nanoseconds;

/// Signals that are waited for, at most.
const MOST: usize = 8;

/// How long an answer of the witness is waited for, in nanoseconds, and how old the signal may be that it has got.
const PATIENCE: u64 = 1_000_000_000;

/// What the witness has seen.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Seen {
    /// The witness.
    process: AtomicI32,
    /// How often it was asked whether it has got all that came, and answered.
    answers: AtomicU32,
    /// When each of the signals last came, in nanoseconds of `CLOCK_MONOTONIC`; 0: never, or that is known.
    came: [AtomicU64; MOST],
}

impl Seen {
    /// Returns whether one of the signals, by its place among them, came to the witness as well. Called where it has just come to this process,
    /// be it in a handler of it: sleeps until the witness has answered. Keeps `errno`.
    pub(super) fn takes(&self, place: usize) -> bool {
        let Some(came) = self.came.get(place) else { return false };
        let (begun, before) = (nanoseconds(), self.answers.load(Ordering::SeqCst));
        let pause = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        let long = libc::timespec { tv_sec: 0, tv_nsec: 30_000_000 };
        // SAFETY: `errno` of this thread, a time on the stack, and a child that was not waited for.
        unsafe {
            let errno = libc::__errno_location();
            let kept = *errno;
            // The system call that sends the signal to the group may not have come to the witness yet: on a busy machine that takes
            // milliseconds.
            libc::nanosleep(&raw const long, null_mut());
            // Of several signals one of a higher number is taken last.
            libc::kill(self.process.load(Ordering::SeqCst), ask());
            while self.answers.load(Ordering::SeqCst) == before && nanoseconds().saturating_sub(begun) < PATIENCE {
                libc::nanosleep(&raw const pause, null_mut());
            }
            *errno = kept;
        }
        let at = came.swap(0, Ordering::SeqCst);
        at != 0 && at.saturating_add(PATIENCE) > begun
    }
}

/// The signal by which the witness is asked.
fn ask() -> libc::c_int {
    libc::SIGRTMAX()
}

/// A process that gets what the group gets.
pub(super) struct Witness {
    process: libc::pid_t,
    seen: &'static Seen,
}

impl Witness {
    /// Makes one for these signals; `None` where that cannot be.
    pub(super) fn begin(signals: &'static [libc::c_int]) -> Option<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: fresh zeros, larger than the words and aligned for them, which both processes share and nobody unmaps: a page for each
        // recording. The child of the raw call has this thread alone, and makes system calls only.
        unsafe {
            let page = libc::mmap(null_mut(), size_of::<Seen>(), access, flags, -1, 0);
            if page == libc::MAP_FAILED {
                return None;
            }
            let seen = &*page.cast::<Seen>();
            let parent = libc::getpid();
            // What comes before it waits for signals has to wait, too: a handler of ours would pass it on.
            let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut before);
            // No handler of `fork` runs: a recorder that we run under does not take it for a process of the program's.
            let process = libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0);
            if process != 0 {
                libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, null_mut());
            }
            match libc::pid_t::try_from(process) {
                Ok(0) => watch(signals, seen, parent),
                Ok(process @ 1..) => {
                    seen.process.store(process, Ordering::SeqCst);
                    Some(Self { process, seen })
                }
                _ => None,
            }
        }
    }

    pub(super) fn seen(&self) -> &'static Seen {
        self.seen
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        // SAFETY: a child that was not waited for.
        unsafe {
            libc::kill(self.process, libc::SIGKILL);
            libc::waitpid(self.process, null_mut(), 0);
        }
    }
}

/// Notes signals until the parent is gone.
fn watch(signals: &[libc::c_int], seen: &Seen, parent: libc::pid_t) -> ! {
    // SAFETY: system calls with valid arguments. Zero is a value of these structures.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::prctl(libc::PR_SET_NAME, c"hatf-witness".as_ptr());
        // What we have open is nobody else's to wait for.
        libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0);
        while libc::getppid() == parent {
            let mut which: libc::siginfo_t = std::mem::zeroed();
            let signal = libc::sigwaitinfo(&raw const all, &raw mut which);
            if signal == ask() {
                seen.answers.fetch_add(1, Ordering::SeqCst);
            }
            if let Some(came) = signals.iter().position(|known| *known == signal).and_then(|at| seen.came.get(at)) {
                came.store(nanoseconds(), Ordering::SeqCst);
            }
        }
        libc::_exit(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_to_the_witness() {
        const SIGNALS: &[libc::c_int] = &[libc::SIGUSR1, libc::SIGUSR2];
        let witness = Witness::begin(SIGNALS).unwrap();
        // It blocks signals before it takes its name.
        let name = format!("/proc/{}/comm", witness.process);
        while std::fs::read_to_string(&name).unwrap() != "hatf-witness\n" {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let send = |signal| {
            // SAFETY: our child.
            unsafe { libc::kill(witness.process, signal) };
        };
        send(libc::SIGUSR2);
        assert!(witness.seen().takes(1));
        // Once is once, and the other did not come.
        assert!(!witness.seen().takes(1) && !witness.seen().takes(0) && !witness.seen().takes(MOST));
        send(libc::SIGUSR1);
        send(libc::SIGUSR2);
        assert!(witness.seen().takes(1) && witness.seen().takes(0));
    }
}
