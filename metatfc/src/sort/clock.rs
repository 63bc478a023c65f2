//! The clock of a trace, which maps its times to wall-clock times.

use metatf::dynamic::{OwnedRecord, Schema};
use metatf_parser::schema::{Format, Record};
use metatf_tools::roles::{self, Place, Role};

/// Maximum number of points to keep. Whenever there are more points, every other point is dropped.
const MOST: usize = 1 << 16;
/// Limit for the times and real times of points, so that products of two differences do not overflow. This is 146 years
/// in nanoseconds.
const RANGE: i128 = 1 << 62;

/// A time filled in by the emitter.
#[derive(Clone, Debug)]
struct Time {
    place: Place,
    is_signed: bool,
    nanoseconds: u64,
}

impl Time {
    fn get(&self, owned: &OwnedRecord) -> Option<i128> {
        let number = self.place.number(owned)?;
        let value = if self.is_signed { i128::from(number.cast_signed()) } else { i128::from(number) };
        Some(value * i128::from(self.nanoseconds))
    }

    fn set(&self, owned: &mut OwnedRecord, nanoseconds: i128) {
        let value = nanoseconds.div_euclid(i128::from(self.nanoseconds));
        let (least, most) = if self.is_signed { (i64::MIN.into(), i64::MAX.into()) } else { (0, u64::MAX.into()) };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in the range of 64 bits")]
        self.place.set_number(owned, value.clamp(least, most) as u64);
    }
}

/// The times of records, in nanoseconds since the start of their clock.
#[derive(Clone, Debug)]
pub(super) struct Times {
    /// The times of each record type. The first time determines the order of records.
    times: Vec<Vec<Time>>,
    /// The position of the wall-clock time in each record type.
    walls: Vec<Option<Place>>,
}

impl Times {
    /// Finds the time fields of a schema. Returns an error if a time field is repeated.
    pub(super) fn new(schema: &Schema) -> Result<Self, String> {
        let records = schema.dtd.records.iter();
        let times = records.clone().map(times).collect::<Result<_, _>>()?;
        Ok(Self { times, walls: records.map(wall).collect() })
    }

    fn of(&self, record: u16) -> &[Time] {
        self.times.get(usize::from(record)).map_or(&[], Vec::as_slice)
    }

    /// Returns the time of a record.
    pub(super) fn time(&self, record: u16, owned: &OwnedRecord) -> Option<i128> {
        self.of(record).first()?.get(owned)
    }

    /// Returns the clock time and the wall-clock time of a record that relates them.
    pub(super) fn point(&self, record: u16, owned: &OwnedRecord) -> Option<(i128, i128)> {
        let wall = self.walls.get(usize::from(record))?.as_ref()?.number(owned)?;
        Some((self.time(record, owned)?, i128::from(wall)))
    }

    /// Changes the times of a record.
    pub(super) fn change(&self, record: u16, owned: &mut OwnedRecord, change: impl Fn(i128) -> i128) {
        for time in self.of(record) {
            if let Some(before) = time.get(owned) {
                time.set(owned, change(before));
            }
        }
    }
}

fn times(record: &Record) -> Result<Vec<Time>, String> {
    let ids = (0..=u8::MAX).map(metatf_parser::schema::LeafId).zip(&record.leaves);
    let times = ids.filter(|(_, leaf)| roles::of(leaf) == Some(Role::Time));
    let place = |(id, leaf): (_, &metatf_parser::schema::Leaf)| {
        let is_integer = leaf.is_numeric() && !leaf.format.is_float();
        match Place::of(record, id).filter(|_| is_integer) {
            Some(place) => {
                let is_signed = leaf.format == Format::Signed;
                Ok(Time { place, is_signed, nanoseconds: leaf.nanoseconds().unwrap_or(1) })
            }
            None => Err(format!(
                "the time field {}.{} is not an integer that occurs once in each record",
                record.name,
                leaf.path.join(".")
            )),
        }
    };
    times.filter(|_| record.tag.is_some()).map(place).collect()
}

fn wall(record: &Record) -> Option<Place> {
    let is = |leaf: &metatf_parser::schema::Leaf, source| roles::annotation(leaf, "source") == Some(source);
    record.leaves.first().filter(|tag| tag.is_tag() && is(tag, "clock_sync"))?;
    let ids = (0..=u8::MAX).map(metatf_parser::schema::LeafId).zip(&record.leaves);
    let (id, _) = ids.into_iter().find(|(_, leaf)| is(leaf, "wall"))?;
    Place::of(record, id)
}

/// Pairs of clock and wall-clock times, in order of arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct Points {
    points: Vec<(i128, i128)>,
    /// Base-2 logarithm of the sampling interval: every 2^`step`-th point is kept.
    step: u32,
    /// The total number of points seen.
    count: u64,
}

impl Points {
    pub(super) fn add(&mut self, point: (i128, i128)) {
        let is_kept = self.count.is_multiple_of(1 << self.step);
        self.count += 1;
        if !is_kept {
            return;
        }
        self.points.push(point);
        if self.points.len() >= MOST {
            let mut keep = false;
            self.points.retain(|_| {
                keep = !keep;
                keep
            });
            self.step = (self.step + 1).min(62);
        }
    }
}

/// A mapping between trace times and wall-clock times, both in nanoseconds. Interpolates linearly between points.
/// Before the first point and after the last point, the trace's clock is assumed to run at the rate of the wall clock.
/// Without points, both times are equal.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    /// The points, in ascending order of both numbers.
    points: Vec<(i128, i128)>,
}

impl Clock {
    /// Creates the clock that passes through the points. Also returns the number of points that were omitted because
    /// they go back in time. Without points, creates a clock that was 0 at the wall-clock time `start`. Returns `None`
    /// if there are neither points nor a start.
    pub(super) fn new(points: Points, start: Option<u64>) -> Option<(Self, usize)> {
        let Points { mut points, .. } = points;
        let all = points.len();
        points.sort_unstable();
        points.retain(|(time, wall)| time.abs() < RANGE && wall.abs() < RANGE);
        let mut last: Option<(i128, i128)> = None;
        points.retain(|point| {
            let goes_on = last.is_none_or(|last| point.0 > last.0 && point.1 > last.1);
            last = if goes_on { Some(*point) } else { last };
            goes_on
        });
        if points.is_empty() {
            points.push((0, start?.into()));
            return Some((Self { points }, all));
        }
        let left_out = all - points.len();
        Some((Self { points }, left_out))
    }

    /// Converts a trace time to a wall-clock time.
    pub(super) fn real(&self, time: i128) -> i128 {
        self.line(time, |point| point)
    }

    /// Converts a wall-clock time to a trace time.
    pub(super) fn time(&self, real: i128) -> i128 {
        self.line(real, |(time, wall)| (wall, time))
    }

    fn line(&self, x: i128, of: impl Fn((i128, i128)) -> (i128, i128)) -> i128 {
        let next = self.points.partition_point(|&point| of(point).0 <= x);
        let before = next.checked_sub(1).and_then(|index| self.points.get(index));
        match (before, self.points.get(next)) {
            (Some(&before), Some(&after)) => {
                let ((x0, y0), (x1, y1)) = (of(before), of(after));
                y0 + ((x - x0) * (y1 - y0)).div_euclid(x1 - x0)
            }
            (Some(&only), None) | (None, Some(&only)) => of(only).1 + (x - of(only).0),
            (None, None) => x,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(points: &[(i128, i128)]) -> (Clock, usize) {
        let mut all = Points::default();
        points.iter().for_each(|point| all.add(*point));
        Clock::new(all, Some(7)).expect("it has a start")
    }

    #[test]
    fn drift_between_points_is_evened_out() {
        // The clock is slow at first, then fast. Before the first and after the last point, it runs at the speed of the
        // wall clock.
        let (clock, left_out) = clock(&[(100, 1000), (200, 1200), (400, 1300)]);
        assert_eq!(left_out, 0);
        assert_eq!(
            [50, 100, 150, 200, 300, 400, 500].map(|t| clock.real(t)),
            [950, 1000, 1100, 1200, 1250, 1300, 1400]
        );
        assert_eq!([950, 1000, 1100, 1201, 1250, 1400].map(|r| clock.time(r)), [50, 100, 150, 202, 300, 500]);
    }

    #[test]
    fn a_clock_that_goes_back_is_not_followed() {
        let (clock, left_out) = clock(&[(400, 1300), (100, 1000), (200, 900), (300, 1000), (300, RANGE)]);
        assert_eq!((left_out, clock.points.len()), (3, 2));
        let far = [i128::from(u64::MAX) * 1_000_000_000, i128::from(i64::MIN) * 1_000_000_000];
        for time in far {
            assert!(clock.real(time) - 900 == time && clock.time(clock.real(time)) == time);
        }
    }

    #[test]
    fn a_start_is_enough() {
        let (clock, _) = clock(&[]);
        assert_eq!((clock.real(5), clock.time(12)), (12, 5));
        assert!(Clock::new(Points::default(), None).is_none());
    }

    #[test]
    fn of_many_points_some_are_kept() {
        let mut all = Points::default();
        (0..1_000_000).for_each(|n| all.add((n * 10, n * 10 + 5)));
        assert!(all.points.len() <= MOST);
        let (clock, left_out) = Clock::new(all, None).expect("points");
        assert_eq!((left_out, clock.real(5_000_003)), (0, 5_000_008));
    }
}
