//! Fluctuations of the live heap, measured as the maxima of live bytes and objects in each of a hundred windows.

use serde::Serialize;

use crate::model::law::wide;
use hatf_lab::{Change, ObjectEvent, Observer, Result, Totals};

/// The number of windows, which have equal numbers of events.
pub const WINDOWS: usize = 100;
/// The maximum number of stretches, above which pairs of stretches are joined. The edge of a window is therefore off by
/// at most an 80th of the window.
const STRETCHES: usize = 1 << 14;

/// The maxima of live bytes and objects in each stretch of events.
#[derive(Clone, Debug)]
pub struct Tracking {
    step: u64,
    left: u64,
    live: [u64; 2],
    most: [u64; 2],
    stretches: Vec<[u64; 2]>,
}

/// The deviation of a model's windows from the actual windows, as fractions of the overall maximum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Off {
    /// The mean over all windows.
    pub mean: f64,
    /// The deviation of the worst window.
    pub worst: f64,
    /// The number of windows within 5%.
    pub within: usize,
}

impl Default for Tracking {
    fn default() -> Self {
        Self { step: 1, left: 1, live: [0; 2], most: [0; 2], stretches: Vec::new() }
    }
}

impl Tracking {
    #[cold]
    fn end_stretch(&mut self) {
        self.stretches.push(std::mem::replace(&mut self.most, self.live));
        if self.stretches.len() == STRETCHES {
            self.step *= 2;
            self.stretches = self.stretches.chunks(2).map(largest).collect();
        }
        self.left = self.step;
    }

    /// Returns the maxima of live bytes and objects in each window.
    #[must_use]
    pub fn windows(&self, totals: &Totals) -> Vec<[u64; 2]> {
        let mut windows = vec![[0; 2]; WINDOWS];
        let last = (self.left < self.step).then_some(&self.most);
        for (at, most) in (0_u64..).zip(self.stretches.iter().chain(last)) {
            // Find the window that contains the middle event of the stretch.
            let event = (at * self.step + self.step / 2).min(totals.events.saturating_sub(1));
            let window = u128::from(event) * WINDOWS as u128 / u128::from(totals.events.max(1));
            if let Some(window) = usize::try_from(window).ok().and_then(|window| windows.get_mut(window)) {
                *window = largest(&[*window, *most]);
            }
        }
        windows
    }
}

fn largest(of: &[[u64; 2]]) -> [u64; 2] {
    of.iter().fold([0; 2], |most, [bytes, objects]| [most[0].max(*bytes), most[1].max(*objects)])
}

impl Observer for Tracking {
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        let [bytes, objects] = &mut self.live;
        match event.change {
            Change::Allocated => (*bytes, *objects) = (bytes.saturating_add(event.object.size), *objects + 1),
            Change::Freed => (*bytes, *objects) = (bytes.saturating_sub(event.object.size), objects.saturating_sub(1)),
        }
        self.most = [self.most[0].max(self.live[0]), self.most[1].max(self.live[1])];
        self.left -= 1;
        if self.left == 0 {
            self.end_stretch();
        }
        Ok(())
    }
}

/// Compares the means of the windows over trials with the actual windows, for bytes and for objects.
pub(super) fn off(actual: &[[u64; 2]], trials: &[&[[u64; 2]]]) -> [Off; 2] {
    [0, 1].map(|which| {
        let of = |windows: &[[u64; 2]], at: usize| windows.get(at).map_or(0.0, |window| wide(window[which]));
        let most = (0..actual.len()).map(|at| of(actual, at)).fold(0.0, f64::max);
        let error = |at| {
            let mean = trials.iter().map(|windows| of(windows, at)).sum::<f64>() / wide(trials.len().max(1) as u64);
            if most > 0.0 { (mean - of(actual, at)).abs() / most } else { 0.0 }
        };
        let errors: Vec<f64> = (0..actual.len()).map(error).collect();
        Off {
            mean: hatf_lab::statistics::mean(&errors),
            worst: errors.iter().copied().fold(0.0, f64::max),
            within: errors.iter().filter(|error| **error <= 0.05).count(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hatf_lab::HeapTracker;
    use hatf_trace::{Event, EventSink as _};

    /// A heap that grows by one 10-byte object per event and then shrinks.
    fn hill(events: u64) -> (Tracking, Totals) {
        let mut tracker = HeapTracker::new(Tracking::default());
        (1..=events / 2).for_each(|n| tracker.event(&Event::malloc(n, 10)).unwrap());
        (1..=events / 2).for_each(|n| tracker.event(&Event::free(n)).unwrap());
        let (heap, tracking) = tracker.into_parts();
        (tracking, heap.totals())
    }

    #[test]
    fn windows_of_a_hill() {
        for events in [200, 1_000, 100_000] {
            let (tracking, totals) = hill(events);
            let windows = tracking.windows(&totals);
            assert_eq!((windows.len(), windows[49]), (100, [events * 5, events / 2]));
            let (first, expected) = (windows[9][1], events / 10);
            assert!(first.abs_diff(expected) <= events / 5000, "{first} of {expected}");
            assert!(windows[99][1] <= events / 90);
        }
        let (tracking, totals) = hill(0);
        assert_eq!(tracking.windows(&totals), vec![[0; 2]; 100]);
    }

    #[test]
    fn distances() {
        let (actual, up, down) = (vec![[100, 10]; 4], vec![[104, 10]; 4], vec![[100, 8]; 4]);
        let same = Off { mean: 0.0, worst: 0.0, within: 4 };
        assert_eq!(off(&actual, &[&actual]), [same, same]);
        let [bytes, objects] = off(&actual, &[&up, &down]);
        assert_eq!((bytes.within, objects.within), (4, 0));
        assert!((bytes.mean - 0.02).abs() < 1e-12 && (objects.worst - 0.1).abs() < 1e-12);
    }
}
