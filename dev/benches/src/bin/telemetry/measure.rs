//! CPU time of loops.

use cpu_time::ThreadTime;

/// Returns the nanoseconds per call on this thread. Runs a tenth of the calls first to warm up caches.
pub(crate) fn each(calls: u64, mut call: impl FnMut(u64)) -> f64 {
    (0..calls / 10).for_each(&mut call);
    cold(calls, call)
}

/// Works like [`each`], but without a warm-up, for callers that count the calls.
pub(crate) fn cold(calls: u64, call: impl FnMut(u64)) -> f64 {
    let started = ThreadTime::now();
    (0..calls).for_each(call);
    started.elapsed().as_secs_f64() * 1e9 / calls as f64
}
