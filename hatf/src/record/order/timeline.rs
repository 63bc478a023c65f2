//! From stamps to nanoseconds.

use std::collections::VecDeque;

use hatf_record::{Clock, nanoseconds};

/// Moments that are kept at once where nothing is converted for long.
const MOMENTS: usize = 1 << 16;

/// A stamp, and the nanoseconds of `CLOCK_MONOTONIC` at that moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moment {
    pub(crate) stamp: u64,
    pub(crate) nanoseconds: u64,
}

impl Moment {
    pub(crate) fn now(clock: Clock) -> Self {
        let nanoseconds = nanoseconds();
        Self { stamp: clock.now(), nanoseconds }
    }
}

/// Moments that are known, by which stamps between them are converted. Between two of them time is a straight line, so that it
/// never goes back.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    /// The nanoseconds that are 0 in the trace.
    start: u64,
    from: Moment,
    /// Nanoseconds of a stamp's unit, from there on.
    slope: f64,
    /// Moments after `from`.
    known: VecDeque<Moment>,
    /// The last time that was given.
    last: u64,
}

impl Timeline {
    /// Begins at the moment that is time 0.
    pub(crate) fn new(start: Moment) -> Self {
        Self { start: start.nanoseconds, from: start, slope: 1.0, known: VecDeque::new(), last: 0 }
    }

    /// Adds a moment, if it is after those that are known.
    pub(crate) fn learn(&mut self, moment: Moment) {
        let last = self.known.back().unwrap_or(&self.from);
        if moment.stamp > last.stamp && moment.nanoseconds > last.nanoseconds {
            self.known.push_back(moment);
            if self.known.len() == 1 {
                self.slope = slope(self.from, moment);
            }
        }
    }

    /// Keeps every other one of very many moments. None is forgotten for being old: a thread or a module that is still there may have
    /// begun at any time.
    pub(crate) fn thin(&mut self) {
        if self.known.len() > MOMENTS {
            let mut kept = [false, true].into_iter().cycle();
            self.known.retain(|_| kept.next().unwrap_or_default());
            if let Some(to) = self.known.front() {
                self.slope = slope(self.from, *to);
            }
        }
    }

    /// Converts nanoseconds of `CLOCK_MONOTONIC` of any moment. 0 stays.
    pub(crate) fn since_start(&self, nanoseconds: u64) -> u64 {
        if nanoseconds == 0 { 0 } else { nanoseconds.saturating_sub(self.start).max(1) }
    }

    /// Converts a stamp; no result is before an earlier one.
    #[inline]
    pub(crate) fn time(&mut self, stamp: u64) -> u64 {
        while self.known.front().is_some_and(|moment| moment.stamp <= stamp) {
            self.advance();
        }
        let ahead = stamp.saturating_sub(self.from.stamp);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let ahead = (ahead as f64 * self.slope) as u64;
        self.last = self.last.max(self.from.nanoseconds.saturating_add(ahead).saturating_sub(self.start));
        self.last
    }

    /// Goes on behind this time, which another has given.
    pub(crate) fn go_on_from(&mut self, time: u64) {
        self.last = self.last.max(time);
    }

    /// Returns the last time that was given.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Goes on to the next moment. Behind the last the slope stays.
    fn advance(&mut self) {
        let Some(from) = self.known.pop_front() else { return };
        self.from = from;
        if let Some(to) = self.known.front() {
            self.slope = slope(from, *to);
        }
    }
}

/// Returns nanoseconds of a stamp's unit between two moments.
#[expect(clippy::cast_precision_loss)]
fn slope(from: Moment, to: Moment) -> f64 {
    (to.nanoseconds - from.nanoseconds) as f64 / (to.stamp - from.stamp) as f64
}

/// Returns the clock by which events are stamped: the processor's, where the kernel itself goes by it. It has checked then that
/// the counter runs at one speed, and is the same on all cores.
pub(crate) fn choose_clock() -> Clock {
    let by_cycles = if cfg!(target_arch = "x86_64") {
        std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .is_ok_and(|source| source.trim() == "tsc")
    } else {
        // The architecture promises both.
        cfg!(target_arch = "aarch64")
    };
    if by_cycles { Clock::Cycles } else { Clock::Monotonic }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn straight_lines_between_moments() {
        let moment = |stamp, nanoseconds| Moment { stamp, nanoseconds };
        let mut line = Timeline::new(moment(1000, 50));
        for (stamp, nanoseconds) in [(3000, 1050), (4000, 1100), (3500, 2000), (5000, 1090)] {
            line.learn(moment(stamp, nanoseconds));
        }
        let times: Vec<u64> = [0, 1000, 1002, 2000, 3000, 3500, 2000, 4000, 8000].map(|stamp| line.time(stamp)).into();
        assert_eq!(times, [0, 0, 1, 500, 1000, 1025, 1025, 1050, 1250]);
    }

    #[test]
    fn few_moments_of_many() {
        let moment = |stamp, nanoseconds| Moment { stamp, nanoseconds };
        let mut line = Timeline::new(moment(0, 0));
        for number in 1..=3 * MOMENTS as u64 {
            line.learn(moment(10 * number, 100 * number));
            line.thin();
        }
        assert!(line.known.len() <= MOMENTS + 1);
        let times: Vec<u64> = [0, 7, 1_000, 1_005, 500_000, 1_900_001].map(|stamp| line.time(stamp)).into();
        assert_eq!(times, [0, 70, 10_000, 10_050, 5_000_000, 19_000_010]);
    }

    #[test]
    fn clocks_go_on() {
        for clock in [choose_clock(), Clock::Monotonic] {
            let begun = Moment::now(clock);
            std::thread::sleep(std::time::Duration::from_millis(2));
            let ended = Moment::now(clock);
            let mut line = Timeline::new(begun);
            line.learn(ended);
            assert!(ended.nanoseconds - begun.nanoseconds >= 2_000_000);
            let time = line.time(ended.stamp);
            assert_eq!(time, ended.nanoseconds - begun.nanoseconds);
            assert_eq!(Clock::from_number(clock as u32), Some(clock));
        }
    }
}
