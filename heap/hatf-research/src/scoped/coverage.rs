//! The fractions of a trace that functions, phases and stacks cover, for choosing one of them.

use std::collections::HashMap;

use hatf_lab::{Heap, Observer};

use super::phases::{PhaseChange, Phases};
use super::scope_events::ScopeKind;
use hatf_trace::event::{Event, EventKind};

/// The number of objects in a trace that are allocated in each kind of scope.
///
/// # Examples
///
/// ```
/// use hatf_lab::HeapTracker;
/// use hatf_research::scoped::{ScopeCoverage, ScopeKind};
/// use hatf_trace::{Event, EventKind, EventSink};
///
/// let mut tracker = HeapTracker::new(ScopeCoverage::default());
/// tracker.event(&Event::new(EventKind::PhaseBegin { name: b"load" }))?;
/// tracker.event(&Event::malloc(0x1000, 24))?;
/// tracker.event(&Event::new(EventKind::PhaseEnd { name: b"load" }))?;
/// let coverage = tracker.observer();
/// assert_eq!((coverage.objects, coverage.in_phases), (1, 1));
/// assert_eq!(coverage.best(), Some(ScopeKind::Phases));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ScopeCoverage {
    /// All objects.
    pub objects: u64,
    /// Objects allocated with a stack.
    pub with_stacks: u64,
    /// Functions entered.
    pub functions: u64,
    /// Objects allocated in a function.
    pub in_functions: u64,
    /// Phases that began, and marks.
    pub phases: u64,
    /// Objects whose innermost phase or mark ended. A phase ends by its end event, and a mark by the next mark.
    pub in_phases: u64,
    /// Missing events.
    pub lost: u64,
    inside: Phases,
    /// The number of functions that each thread has entered and not left.
    depths: HashMap<u64, u64>,
    /// The number of objects in each current phase or mark of each thread.
    counts: HashMap<u64, Vec<u64>>,
}

impl Observer for ScopeCoverage {
    fn record(&mut self, event: &Event<'_>, _: &Heap) -> hatf_lab::Result<()> {
        let thread = event.thread;
        match event.kind {
            EventKind::Call(call) | EventKind::ReallocEnd(call) if call.address != 0 => {
                self.objects += 1;
                self.with_stacks += u64::from(!event.stack.is_empty());
                self.in_functions += u64::from(self.depths.get(&thread).is_some_and(|depth| *depth > 0));
                if let Some(count) = self.counts.get_mut(&thread).and_then(|counts| counts.last_mut()) {
                    *count += 1;
                }
            }
            EventKind::Enter { .. } => {
                self.functions += 1;
                *self.depths.entry(thread).or_default() += 1;
            }
            EventKind::Leave => {
                let depth = self.depths.entry(thread).or_default();
                *depth = depth.saturating_sub(1);
            }
            EventKind::PhaseBegin { .. } | EventKind::PhaseEnd { .. } | EventKind::Mark { .. } => {
                self.phases += u64::from(!matches!(event.kind, EventKind::PhaseEnd { .. }));
                let PhaseChange { ended, begun } = self.inside.note(thread, &event.kind);
                let counts = self.counts.entry(thread).or_default();
                let left = counts.len().saturating_sub(ended);
                self.in_phases += counts.drain(left..).sum::<u64>();
                counts.extend(begun.map(|_| 0));
            }
            EventKind::ThreadEnd => {
                self.inside.note(thread, &event.kind);
                self.depths.remove(&thread);
                self.counts.remove(&thread);
            }
            EventKind::Image { .. } | EventKind::Recording { on: true } => {
                self.inside.note(thread, &event.kind);
                self.depths.clear();
                self.counts.clear();
            }
            EventKind::Lost { events } => self.lost = self.lost.saturating_add(events),
            _ => {}
        }
        Ok(())
    }
}

impl ScopeCoverage {
    /// Returns the most precise kind of scope that encloses at least half of the objects, or `None` to use stacks.
    ///
    /// In a trace without stacks, returns the kind that encloses the most objects.
    #[must_use]
    pub fn best(&self) -> Option<ScopeKind> {
        let half = |objects: u64| objects > 0 && objects >= self.objects.div_ceil(2);
        if half(self.in_functions) {
            return Some(ScopeKind::Functions);
        }
        if half(self.in_phases) {
            return Some(ScopeKind::Phases);
        }
        match (self.functions, self.phases) {
            _ if self.with_stacks > 0 => None,
            (0, 0) => None,
            (_, 0) => Some(ScopeKind::Functions),
            (0, _) => Some(ScopeKind::Phases),
            _ if self.in_functions >= self.in_phases => Some(ScopeKind::Functions),
            _ => Some(ScopeKind::Phases),
        }
    }
}
