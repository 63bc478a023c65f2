//! Moves events from the ring to the sink while the program runs.

use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::ptr::null;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hatf_record::{Consumer, Event, Kind, Poll, Ring};

use super::Outcome;
use super::head::Head;
use super::mapper::Mapper;
use super::signals::Forwarding;
use crate::event::{Event as HeapEvent, EventKind, EventSink};
use crate::{Error, Result};

/// How long a producer may hold up a full ring before its event is given up.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long we sleep when there is nothing to do.
const PAUSE_MS: libc::c_int = 1;

pub(super) struct Drain<'a> {
    consumer: Consumer<'a>,
    mapper: Mapper,
    child: Child,
    head: &'a Head,
    sink: &'a mut dyn EventSink,
    sink_error: Option<Error>,
    events: u64,
    lost: u64,
    /// When a late producer was first seen to hold up a full ring.
    stuck: Option<Instant>,
}

impl<'a> Drain<'a> {
    pub(super) fn new(ring: Ring<'a>, child: Child, head: &'a Head, sink: &'a mut dyn EventSink) -> Self {
        Self {
            consumer: Consumer::new(ring),
            mapper: Mapper::default(),
            child,
            head,
            sink,
            sink_error: None,
            events: 0,
            lost: 0,
            stuck: None,
        }
    }

    /// Runs until the program has ended and the ring is empty.
    pub(super) fn run(mut self, forwarding: &Forwarding, flush: Option<Duration>) -> Result<Outcome> {
        let begun = Instant::now();
        let written = self.head.write(self.sink);
        self.note(written);
        let process = ProcessEnd::of(&self.child);
        let (mut flushed, mut safe) = (begun, 0);
        let status = loop {
            let emptied = self.take_available();
            if flush.is_some_and(|every| flushed.elapsed() >= every) && self.sink_error.is_none() {
                if self.events > safe {
                    let result = self.sink.flush();
                    self.note(result);
                }
                (flushed, safe) = (Instant::now(), self.events);
            }
            if let Some(status) = self.child.try_wait().map_err(Error::system("wait"))? {
                break status;
            }
            self.check_stuck();
            if emptied {
                process.wait();
            }
        };
        forwarding.child_is_gone();
        let duration = begun.elapsed();
        self.take_rest();
        self.finish(status, duration)
    }

    /// Takes what is there, but not for ever, whatever the program writes over the ring; whether nothing is left.
    fn take_available(&mut self) -> bool {
        for _ in 0..self.consumer.ring().capacity() {
            if !self.take() {
                self.wake();
                return true;
            }
            self.stuck = None;
            self.wake();
        }
        false
    }

    /// Takes the next event; `false` if there is none now.
    fn take(&mut self) -> bool {
        match self.consumer.poll() {
            Poll::Event(words) => match Event::from_words(&words) {
                Some(event) => self.give(&event),
                None => self.lost += 1,
            },
            Poll::Lost => self.lost += 1,
            Poll::Nothing => return false,
        }
        true
    }

    /// Takes what a program that has ended left. What it did not publish it never will: neither the tickets of this lap nor
    /// those further ahead, which have no slot yet.
    fn take_rest(&mut self) {
        let end = self.consumer.consumed().saturating_add(self.consumer.ring().capacity());
        while self.consumer.consumed() < end && self.consumer.behind() > 0 {
            // An event that cannot be skipped was published just now.
            if !self.take() && self.consumer.skip() {
                self.lost += 1;
            }
        }
        self.lost = self.lost.saturating_add(self.consumer.behind());
    }

    fn give(&mut self, event: &Event) {
        // Text belongs to the event before it.
        self.events += u64::from(event.kind != Kind::Text);
        if self.sink_error.is_none() {
            let given = self.mapper.slot(event, self.sink);
            self.note(given);
        }
    }

    /// Remembers the sink's first error, and lets the program go on without us.
    fn note(&mut self, result: Result<()>) {
        if let Err(error) = result {
            self.consumer.ring().header().closed.store(1, Ordering::SeqCst);
            self.sink_error.get_or_insert(error);
        }
    }

    /// One producer that is late holds up the others only when the ring is full. It may be a thread
    /// stopped for good: then the others must go on.
    fn check_stuck(&mut self) {
        if !self.consumer.is_full() {
            self.stuck = None;
            return;
        }
        let since = *self.stuck.get_or_insert_with(Instant::now);
        if since.elapsed() >= PATIENCE && self.consumer.skip() {
            self.lost += 1;
            self.stuck = None;
            self.wake();
        }
    }

    /// Wakes producers that wait because the ring was full.
    fn wake(&mut self) {
        if self.consumer.take_wake() {
            let futex = self.consumer.ring().header().wakeups.as_ptr();
            // SAFETY: a futex word in the mapped ring; waking reads and writes no memory.
            unsafe {
                libc::syscall(libc::SYS_futex, futex, libc::FUTEX_WAKE, i32::MAX, null::<u8>(), 0, 0);
            }
        }
    }

    fn finish(mut self, status: ExitStatus, duration: Duration) -> Result<Outcome> {
        let header = self.consumer.ring().header();
        let children = header.forks.load(Ordering::Relaxed).max(header.other_processes.load(Ordering::Relaxed));
        let waits = header.waits.load(Ordering::Relaxed);
        if self.sink_error.is_none() {
            let end = match (status.code(), status.signal()) {
                (None, Some(signal)) => EventKind::Killed { signal: signal.unsigned_abs().into() },
                (code, _) => EventKind::Exit { status: code.unwrap_or(0).unsigned_abs().into() },
            };
            let mut end = || -> Result<()> {
                if self.lost > 0 {
                    let lost = EventKind::Lost { events: self.lost };
                    let (time, heap) = (self.mapper.time(), self.mapper.images());
                    self.sink.event(&HeapEvent { time, heap, ..HeapEvent::new(lost) })?;
                }
                self.mapper.finish(end, self.sink)?;
                let user_metadata = serde_json::json!({"events": self.events, "lost": self.lost, "children": children});
                user_metadata.as_object().map_or(Ok(()), |user_metadata| self.sink.user_metadata(user_metadata))
            };
            let ended = end();
            self.note(ended);
        }
        Ok(Outcome {
            status,
            events: self.events,
            lost: self.lost,
            images: self.mapper.images(),
            children,
            waits,
            duration,
            sink_error: self.sink_error,
        })
    }
}

/// Waits for a process to end, or for a moment.
struct ProcessEnd(Option<OwnedFd>);

impl ProcessEnd {
    fn of(child: &Child) -> Self {
        // SAFETY: numbers only. Kernels before 5.3 answer with an error.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), 0) };
        let fd = libc::c_int::try_from(fd).ok().filter(|fd| *fd >= 0);
        // SAFETY: a descriptor that was just made, and that nobody else has.
        Self(fd.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    fn wait(&self) {
        let fd = self.0.as_ref().map_or(-1, |fd| fd.as_raw_fd());
        let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: one structure; a negative descriptor is passed over, and the time runs.
        unsafe { libc::poll(&raw mut poll, 1, PAUSE_MS) };
    }
}
