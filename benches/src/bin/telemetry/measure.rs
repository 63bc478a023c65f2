//! Processor time of loops.

use cpu_time::ThreadTime;

/// Nanoseconds of a call in this thread. A tenth of the calls before warms caches up.
pub(crate) fn each(calls: u64, mut call: impl FnMut(u64)) -> f64 {
    (0..calls / 10).for_each(&mut call);
    cold(calls, call)
}

/// The same without calls before: for what counts them.
pub(crate) fn cold(calls: u64, call: impl FnMut(u64)) -> f64 {
    let started = ThreadTime::now();
    (0..calls).for_each(call);
    started.elapsed().as_secs_f64() * 1e9 / calls as f64
}
