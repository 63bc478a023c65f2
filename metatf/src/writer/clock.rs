//! Tells writers that time has passed: one thread for all that want to know. It ends with the last of them.
//!
//! A writer cannot look at a clock with each record: that takes several times as long as the record. So the thread sets a flag,
//! and closes the buffers, which sends the next record the long way, where the flag is seen.

use crate::buffer::Until;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Rings for a writer.
#[derive(Debug)]
pub(super) struct Alarm {
    due: AtomicBool,
    /// The buffers that are closed when the alarm rings.
    buffers: Vec<Until>,
}

impl Alarm {
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.due.load(Ordering::Relaxed)
    }

    /// Stops ringing.
    pub(super) fn stop(&self) {
        self.due.store(false, Ordering::Relaxed);
    }

    fn ring(&self) {
        self.due.store(true, Ordering::Relaxed);
        self.buffers.iter().for_each(Until::close);
    }
}

/// An alarm that rings again and again, until this is dropped.
#[derive(Debug)]
pub(super) struct Ringing(Arc<Alarm>);

impl Ringing {
    /// Rings, and closes the buffers, so often that a record is at most `period` old when the next one is written. Where the system has no threads to give
    /// it never rings; nor under Miri, which wants all threads to have ended before the program does.
    pub(super) fn new(buffers: Vec<Until>, period: Duration) -> Self {
        let alarm = Arc::new(Alarm { due: AtomicBool::new(false), buffers });
        // A buffer may be opened just when it is closed; the next time is in time for that, too.
        let period = (period / 2).max(Duration::from_millis(1));
        let mut clock = lock(&CLOCK);
        clock.entries.push(Entry { alarm: Arc::clone(&alarm), period, next: Instant::now() + period });
        if !clock.runs && !cfg!(miri) {
            clock.runs = std::thread::Builder::new().name("metatf-clock".to_owned()).spawn(run).is_ok();
        }
        WAKE.notify_one();
        Self(alarm)
    }

    #[inline]
    pub(super) fn alarm(&self) -> &Alarm {
        &self.0
    }
}

impl Drop for Ringing {
    fn drop(&mut self) {
        lock(&CLOCK).entries.retain(|entry| !Arc::ptr_eq(&entry.alarm, &self.0));
        WAKE.notify_one();
    }
}

struct Entry {
    alarm: Arc<Alarm>,
    period: Duration,
    next: Instant,
}

struct Clock {
    entries: Vec<Entry>,
    /// The thread is there.
    runs: bool,
}

static CLOCK: Mutex<Clock> = Mutex::new(Clock { entries: Vec::new(), runs: false });
static WAKE: Condvar = Condvar::new();

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Rings every alarm in time, until there is none.
fn run() {
    let mut clock = lock(&CLOCK);
    loop {
        let now = Instant::now();
        for entry in clock.entries.iter_mut().filter(|entry| entry.next <= now) {
            entry.alarm.ring();
            entry.next = now + entry.period;
        }
        let Some(next) = clock.entries.iter().map(|entry| entry.next).min() else {
            clock.runs = false;
            return;
        };
        let wait = next.saturating_duration_since(now);
        clock = WAKE.wait_timeout(clock, wait).unwrap_or_else(PoisonError::into_inner).0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "no alarm rings under Miri")]
    fn alarms_ring_again_and_again() {
        let begun = Instant::now();
        let ringing = [1, 30].map(|ms| Ringing::new(Vec::new(), Duration::from_millis(ms)));
        for _ in 0..3 {
            for one in &ringing {
                while !one.alarm().is_due() {
                    assert!(begun.elapsed() < Duration::from_secs(60), "no alarm rang");
                    std::thread::yield_now();
                }
                one.alarm().stop();
            }
        }
        drop(ringing);
        // The thread has ended, or will find that it is not needed; the next alarm rings all the same.
        let again = Ringing::new(Vec::new(), Duration::from_millis(1));
        while !again.alarm().is_due() {
            assert!(begun.elapsed() < Duration::from_secs(60), "no alarm rang");
            std::thread::yield_now();
        }
    }
}
