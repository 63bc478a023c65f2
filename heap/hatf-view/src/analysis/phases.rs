//! Marks of a program, and the effects of its phases on the heap.
//!
//! The numbers of names and of phases in progress are limited. A trace that exceeds a limit can still be read, and
//! omitted marks and phases are counted.

use std::collections::HashMap;

use serde::Serialize;

/// Maximum number of distinct mark names, and of distinct phase names.
const NAMES: usize = 1000;
/// Maximum number of phases in progress at the same time.
const OPEN: usize = 1000;

/// All marks with one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MarkReport {
    /// The name.
    pub name: String,
    /// The number of marks.
    pub times: u64,
    /// The time of the first mark.
    pub first: u64,
    /// The time of the last mark.
    pub last: u64,
    /// Live bytes at the last mark.
    pub live: u64,
}

/// All phases with one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PhaseReport {
    /// The name.
    pub name: String,
    /// The number of phases that began.
    pub times: u64,
    /// The number of phases that were still in progress when the program ended.
    pub not_ended: u64,
    /// The time at which the first phase began.
    pub first: u64,
    /// The total duration of the phases.
    pub duration: u64,
    /// Blocks allocated during the phases by any thread.
    pub allocs: u64,
    /// Bytes allocated during the phases by any thread.
    pub bytes: u64,
    /// The peak of live bytes during any of the phases.
    pub peak: u64,
    /// The sum of changes in live bytes from the beginning of each phase to its end.
    pub change: i64,
}

/// The state of the heap as far as phases depend on it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Now {
    pub(super) time: u64,
    pub(super) allocs: u64,
    pub(super) bytes: u64,
    pub(super) live: u64,
}

/// A phase in progress.
#[derive(Clone, Debug)]
struct Open {
    /// The index of the phase's report.
    phase: usize,
    began: Now,
    /// The peak of live bytes since the phase began. Excludes periods in which a later phase was in progress.
    peak: u64,
}

/// The marks and phases of a trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Phases {
    marks: Named<MarkReport>,
    phases: Named<PhaseReport>,
    open: Vec<Open>,
    /// The number of marks and phases omitted because there were too many.
    left_out: u64,
}

/// Reports in the order in which their names first occurred.
#[derive(Clone, Debug)]
struct Named<T> {
    reports: Vec<T>,
    by_name: HashMap<Vec<u8>, usize>,
}

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self { reports: Vec::new(), by_name: HashMap::new() }
    }
}

impl<T> Named<T> {
    /// Returns the index of the report for a name, creating the report if necessary. Returns `None` if there are too
    /// many names.
    fn of(&mut self, name: &[u8], new: impl FnOnce(String) -> T) -> Option<usize> {
        if let Some(&index) = self.by_name.get(name) {
            return Some(index);
        }
        let index = self.reports.len();
        if index >= NAMES {
            return None;
        }
        self.reports.push(new(String::from_utf8_lossy(name).into_owned()));
        self.by_name.insert(name.to_vec(), index);
        Some(index)
    }
}

impl Phases {
    pub(super) fn mark(&mut self, name: &[u8], now: Now) {
        let new = |name| MarkReport { name, first: now.time, ..MarkReport::default() };
        let mark = self.marks.of(name, new).and_then(|index| self.marks.reports.get_mut(index));
        let Some(mark) = mark else {
            self.left_out += 1;
            return;
        };
        mark.times += 1;
        mark.last = now.time;
        mark.live = now.live;
    }

    pub(super) fn begin(&mut self, name: &[u8], now: Now) {
        let new = |name| PhaseReport { name, first: now.time, ..PhaseReport::default() };
        let phase = if self.open.len() < OPEN { self.phases.of(name, new) } else { None };
        let Some(phase) = phase else {
            self.left_out += 1;
            return;
        };
        if let Some(report) = self.phases.reports.get_mut(phase) {
            report.times += 1;
        }
        self.open.push(Open { phase, began: now, peak: now.live });
    }

    /// Ends the most recent phase with this name. Ignores an end without a beginning.
    pub(super) fn end(&mut self, name: &[u8], now: Now) {
        let phase = self.phases.by_name.get(name);
        let Some(at) = phase.and_then(|&phase| self.open.iter().rposition(|open| open.phase == phase)) else { return };
        self.end_at(at, now);
    }

    fn end_at(&mut self, at: usize, now: Now) {
        let most = self.open.get(at..).unwrap_or_default().iter().map(|open| open.peak).max().unwrap_or(0);
        let Open { phase, began, peak } = self.open.remove(at);
        if let Some(before) = at.checked_sub(1).and_then(|at| self.open.get_mut(at)) {
            before.peak = before.peak.max(peak);
        }
        if let Some(report) = self.phases.reports.get_mut(phase) {
            report.duration = report.duration.saturating_add(now.time.saturating_sub(began.time));
            report.allocs += now.allocs.saturating_sub(began.allocs);
            report.bytes = report.bytes.saturating_add(now.bytes.saturating_sub(began.bytes));
            report.peak = report.peak.max(most);
            report.change = report.change.saturating_add(now.live.wrapping_sub(began.live).cast_signed());
        }
    }

    /// Updates the peak with the current live bytes.
    #[inline]
    pub(super) fn note(&mut self, live: u64) {
        if let Some(open) = self.open.last_mut() {
            open.peak = open.peak.max(live);
        }
    }

    /// Ends all phases, because the program ended or was replaced by another.
    pub(super) fn end_all(&mut self, now: Now) {
        while let Some(at) = self.open.len().checked_sub(1) {
            if let Some(report) = self.open.get(at).and_then(|open| self.phases.reports.get_mut(open.phase)) {
                report.not_ended += 1;
            }
            self.end_at(at, now);
        }
    }

    /// Returns the reports of marks and phases, and the number of omitted marks and phases.
    pub(super) fn report(&self, now: Now) -> (Vec<MarkReport>, Vec<PhaseReport>, u64) {
        let mut ended = self.clone();
        ended.end_all(now);
        (ended.marks.reports, ended.phases.reports, ended.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time: u64, allocs: u64, bytes: u64, live: u64) -> Now {
        Now { time, allocs, bytes, live }
    }

    #[test]
    fn phases_that_overlap() {
        let mut phases = Phases::default();
        phases.end(b"a", at(1, 0, 0, 0));
        phases.begin(b"a", at(10, 1, 100, 100));
        phases.note(500);
        phases.begin(b"b", at(20, 2, 500, 500));
        phases.note(900);
        phases.note(50);
        phases.end(b"a", at(30, 3, 900, 50));
        phases.note(70);
        phases.begin(b"a", at(40, 3, 900, 70));
        phases.note(60);
        phases.end(b"a", at(41, 3, 900, 60));
        phases.mark(b"m", at(50, 0, 0, 60));
        phases.mark(b"m", at(51, 0, 0, 61));
        let (marks, reports, left_out) = phases.report(at(60, 4, 1000, 10));
        let a = PhaseReport {
            name: "a".into(),
            times: 2,
            not_ended: 0,
            first: 10,
            duration: 21,
            allocs: 2,
            bytes: 800,
            peak: 900,
            change: -60,
        };
        let b = PhaseReport {
            name: "b".into(),
            times: 1,
            not_ended: 1,
            first: 20,
            duration: 40,
            allocs: 2,
            bytes: 500,
            peak: 900,
            change: -490,
        };
        assert_eq!((reports, left_out), (vec![a, b], 0));
        assert_eq!(marks, [MarkReport { name: "m".into(), times: 2, first: 50, last: 51, live: 61 }]);
    }

    #[test]
    fn too_many() {
        let mut phases = Phases::default();
        for n in 0..1500_u64 {
            phases.begin(b"same", at(n, 0, 0, 0));
            phases.mark(&n.to_le_bytes(), at(n, 0, 0, 0));
        }
        phases.end(b"same", at(1500, 0, 0, 0));
        let (marks, reports, left_out) = phases.report(at(2000, 0, 0, 0));
        assert_eq!((marks.len(), reports.len(), left_out), (1000, 1, 1000));
        assert_eq!((reports[0].times, reports[0].not_ended), (1000, 999));
    }
}
