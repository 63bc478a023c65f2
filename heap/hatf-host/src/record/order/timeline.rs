//! Conversion of stamps to nanoseconds.

use std::collections::VecDeque;

use hatf_record::{Clock, nanoseconds};

/// Maximum number of clock readings kept when nothing is converted for a long time.
const MOMENTS: usize = 1 << 16;

/// A clock reading: a stamp, and `CLOCK_MONOTONIC` in nanoseconds at the same time.
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

/// Known clock readings, between which stamps are interpolated linearly, so that time never goes back.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    /// The nanoseconds that correspond to time 0 in the trace.
    start: u64,
    from: Moment,
    /// The number of nanoseconds per stamp unit after `from`.
    slope: f64,
    /// Readings after `from`.
    known: VecDeque<Moment>,
    /// The last time returned.
    last: u64,
}

impl Timeline {
    /// Creates a timeline that begins at time 0.
    pub(crate) fn new(start: Moment) -> Self {
        Self { start: start.nanoseconds, from: start, slope: 1.0, known: VecDeque::new(), last: 0 }
    }

    /// Adds a reading if it is later than the known ones.
    pub(crate) fn learn(&mut self, moment: Moment) {
        let last = self.known.back().unwrap_or(&self.from);
        if moment.stamp > last.stamp && moment.nanoseconds > last.nanoseconds {
            self.known.push_back(moment);
            if self.known.len() == 1 {
                self.slope = slope(self.from, moment);
            }
        }
    }

    /// Removes every other reading if there are very many. No reading is dropped because of its age: a live thread or a
    /// loaded module may have begun at any time.
    pub(crate) fn thin(&mut self) {
        if self.known.len() > MOMENTS {
            let mut kept = [false, true].into_iter().cycle();
            self.known.retain(|_| kept.next().unwrap_or_default());
            if let Some(to) = self.known.front() {
                self.slope = slope(self.from, *to);
            }
        }
    }

    /// Converts a `CLOCK_MONOTONIC` time in nanoseconds to a time in the trace. Returns 0 for 0.
    pub(crate) fn since_start(&self, nanoseconds: u64) -> u64 {
        if nanoseconds == 0 { 0 } else { nanoseconds.saturating_sub(self.start).max(1) }
    }

    /// Converts a stamp. No result is earlier than a previous one.
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

    /// Makes all later results at least `time`, which another timeline may have returned.
    pub(crate) fn go_on_from(&mut self, time: u64) {
        self.last = self.last.max(time);
    }

    /// Returns the time that was returned last.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Advances to the next reading. After the last reading, the slope stays the same.
    fn advance(&mut self) {
        let Some(from) = self.known.pop_front() else { return };
        self.from = from;
        if let Some(to) = self.known.front() {
            self.slope = slope(from, *to);
        }
    }
}

/// Returns the nanoseconds per stamp unit between two readings.
#[expect(clippy::cast_precision_loss)]
fn slope(from: Moment, to: Moment) -> f64 {
    (to.nanoseconds - from.nanoseconds) as f64 / (to.stamp - from.stamp) as f64
}

/// Returns the clock that stamps events: the CPU's cycle counter if the kernel itself relies on this counter. In that
/// case, the kernel has verified that the counter runs at constant speed and is the same on all cores.
pub(crate) fn choose_clock() -> Clock {
    let by_cycles = if cfg!(target_arch = "x86_64") {
        std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .is_ok_and(|source| source.trim() == "tsc")
    } else {
        // The AArch64 architecture guarantees both properties.
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
