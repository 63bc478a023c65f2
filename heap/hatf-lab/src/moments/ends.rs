//! The ends of moments: few enough to store data for each, at times that users can name.

use super::{Moment, number_of};
use crate::objects::ObjectEvent;

/// The number of moments after neighbours are joined. There are never more than twice as many.
pub(super) const MOMENTS: usize = 500;
/// The minimum number of moments, used only for traces that would otherwise exceed the memory limit.
const FEWEST: usize = 64;
/// The factor by which a moment may have more events than others, so that it does not end between events with the same
/// time.
const WITHIN_A_TIME: u64 = 16;

/// Divides a trace into moments while it is read.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    ended: Vec<Moment>,
    /// The current moment.
    open: Moment,
    /// The length after which a moment ends, in events and in time.
    ticks: u64,
    time: u64,
    /// The event and the time from which the current moment may end.
    until: (u64, u64),
}

impl Default for Ends {
    fn default() -> Self {
        Self { ended: Vec::new(), open: Moment::default(), ticks: 64, time: 1 << 16, until: (64, 1 << 16) }
    }
}

impl Ends {
    /// Returns the completed moments.
    pub(crate) fn ended(&self) -> &[Moment] {
        &self.ended
    }

    /// Returns the completed moments of a trace that has been read to its end.
    pub(crate) fn finish(mut self) -> Vec<Moment> {
        self.ended.last_mut().into_iter().for_each(|last| last.exact = true);
        self.ended
    }

    /// Returns the number of the current moment.
    #[inline]
    pub(crate) fn number(&self) -> u16 {
        number_of(self.ended.len())
    }

    /// Returns the last completed moment.
    #[inline]
    fn before(&self) -> Moment {
        self.ended.last().copied().unwrap_or_default()
    }

    /// Returns whether the current moment contains events.
    pub(crate) fn has_events(&self) -> bool {
        self.open.tick > self.before().tick
    }

    /// Returns whether the current moment ends before an event.
    #[inline]
    pub(crate) fn are_before(&mut self, event: &ObjectEvent) -> bool {
        (self.open.tick >= self.until.0 || event.time >= self.until.1) && self.may_end_before(event)
    }

    #[cold]
    fn may_end_before(&mut self, event: &ObjectEvent) -> bool {
        let ticks = self.open.tick - self.before().tick;
        if ticks == 0 {
            return false;
        }
        self.open.exact = event.time > self.open.time;
        self.open.exact || event.time == 0 || ticks >= self.ticks.saturating_mul(WITHIN_A_TIME)
    }

    /// Adds an event to the current moment.
    #[inline]
    pub(crate) fn note(&mut self, event: &ObjectEvent) {
        self.open.tick = event.tick;
        self.open.time = self.open.time.max(event.time);
    }

    /// Records the number of live bytes.
    #[inline]
    pub(crate) fn note_live(&mut self, live: u64) {
        self.open.highest = self.open.highest.max(live);
    }

    /// Preserves the end of the current moment, which the caller must [`end`](Self::end) if the result is true.
    /// Otherwise, the current moment has no events, and the end of the previous one is preserved.
    pub(crate) fn keep(&mut self) -> bool {
        if self.has_events() {
            self.open.kept = self.ended.iter().filter(|moment| moment.kept).count() < MOMENTS / 2;
            return true;
        }
        self.ended.last_mut().into_iter().for_each(|last| last.kept = true);
        false
    }

    /// Ends the current moment. The next one begins with this number of live bytes.
    pub(crate) fn end(&mut self, live: u64) {
        self.ended.push(self.open);
        self.open = Moment { highest: live, kept: false, exact: false, ..self.open };
        self.set_until();
    }

    /// Joins neighbouring moments if there are too many, or if the data stored for them `is_too_large`. Returns the new
    /// number of each completed moment, or `None` if none were joined.
    pub(crate) fn join(&mut self, is_too_large: bool) -> Option<Vec<u16>> {
        let count = self.ended.len();
        let most = match count {
            _ if count >= 2 * MOMENTS => MOMENTS + MOMENTS / 2,
            _ if is_too_large && count > FEWEST => count / 2,
            _ => return None,
        };
        let mut numbers: Vec<u16> = (0..count).map(number_of).collect();
        let mut all_kept = false;
        while self.ended.len() > most && !all_kept {
            (self.ticks, self.time) = (self.ticks.saturating_mul(2), self.time.saturating_mul(2));
            let now = self.join_short();
            let of = |moment: u16| now.get(usize::from(moment)).copied().unwrap_or(moment);
            numbers.iter_mut().for_each(|number| *number = of(*number));
            all_kept = self.ended.iter().all(|moment| moment.kept);
        }
        self.set_until();
        (self.ended.len() < count).then_some(numbers)
    }

    fn set_until(&mut self) {
        let before = self.before();
        self.until = (before.tick.saturating_add(self.ticks), before.time.saturating_add(self.time));
    }

    /// Joins neighbouring moments that are together no longer than one may be. Returns the new number of each moment.
    fn join_short(&mut self) -> Vec<u16> {
        let mut start = Moment::default();
        let mut joined: Vec<Moment> = Vec::new();
        let mut now = Vec::with_capacity(self.ended.len());
        for moment in &self.ended {
            let fits = moment.tick - start.tick <= self.ticks && moment.time.saturating_sub(start.time) <= self.time;
            match joined.last_mut() {
                Some(last) if fits && !last.kept => {
                    *last = Moment { highest: last.highest.max(moment.highest), ..*moment };
                }
                last => {
                    start = last.map_or(start, |last| *last);
                    joined.push(*moment);
                }
            }
            now.push(number_of(joined.len() - 1));
        }
        self.ended = joined;
        now
    }
}
