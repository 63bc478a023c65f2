//! Notifies writers when their flush interval has passed. A single thread serves all writers, and ends after the last
//! writer is dropped.
//!
//! Reading a clock for each record would take several times as long as writing the record. Instead, the thread sets a
//! flag and closes the buffers, which sends the next record through the slow path, where the flag is checked.

use crate::buffer::Until;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// An alarm for one writer.
#[derive(Debug)]
pub(super) struct Alarm {
    due: AtomicBool,
    /// The buffers to close when the alarm rings.
    buffers: Vec<Until>,
}

impl Alarm {
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.due.load(Ordering::Relaxed)
    }

    /// Resets the alarm after it has rung.
    pub(super) fn stop(&self) {
        self.due.store(false, Ordering::Relaxed);
    }

    fn ring(&self) {
        self.due.store(true, Ordering::Relaxed);
        self.buffers.iter().for_each(Until::close);
    }
}

/// An alarm that rings periodically until this value is dropped.
#[derive(Debug)]
pub(super) struct Ringing(Arc<Alarm>);

impl Ringing {
    /// Rings and closes the buffers three times per `period`, so that a record is at most `period` old when the next
    /// one is written: one ring marks the record, and another flushes it. The alarm never rings if the system cannot
    /// start a thread, or under Miri, which requires all threads to end before the program does.
    pub(super) fn new(buffers: Vec<Until>, period: Duration) -> Self {
        let alarm = Arc::new(Alarm { due: AtomicBool::new(false), buffers });
        // A buffer may be opened just as the alarm closes it. The third ring still meets the deadline.
        let period = (period / 3).max(Duration::from_millis(1));
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
    /// Whether the thread is running.
    runs: bool,
}

static CLOCK: Mutex<Clock> = Mutex::new(Clock { entries: Vec::new(), runs: false });
static WAKE: Condvar = Condvar::new();

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Rings each alarm when it is due, until no alarms are left.
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
        // The thread has ended or is about to end. In either case, the next alarm must still ring.
        let again = Ringing::new(Vec::new(), Duration::from_millis(1));
        while !again.alarm().is_due() {
            assert!(begun.elapsed() < Duration::from_secs(60), "no alarm rang");
            std::thread::yield_now();
        }
    }
}
