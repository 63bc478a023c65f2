//! Points in a trace, such as `30s`, `mark:ready` or `peak`, and ranges of points.

use hatf_lab::HeapTracker;
use hatf_lab::fragmentation::{Held, PAGES};
use hatf_lab::history::{Highest, Point};
use hatf_trace::Result;

use super::lab::Source;

/// Parses a range of a trace, such as `10s..60s`, or `1.026 s to 3.174 s` as printed in reports. A missing first point is
/// the start, and a missing second point is the end.
pub(super) fn range(text: &str) -> std::result::Result<(Point, Point), String> {
    let (from, to) = text
        .split_once("..")
        .or_else(|| text.split_once(" to "))
        .ok_or("expected two times or marks, such as 10s..60s or mark:ready..end")?;
    let or = |text: &str, other| if text.is_empty() { Ok(other) } else { text.trim().parse() };
    Ok((or(from, Point::Start)?, or(to, Point::End)?))
}

/// Replaces points at which something is highest with the number of the event. Reads the trace once if there are such
/// points. `worst` and `sparsest` refer to pages of 4 KiB.
pub(super) fn settled<const N: usize>(source: &Source, points: [Point; N]) -> Result<[Point; N]> {
    let highest = points.contains(&Point::Peak).then(Highest::new);
    let held = points.iter().any(|point| matches!(point, Point::Worst | Point::Sparsest)).then(Held::new);
    if highest.is_none() && held.is_none() {
        return Ok(points);
    }
    source.reread()?;
    let mut tracker = HeapTracker::new((highest, held));
    source.read(&mut tracker)?;
    let (highest, held) = tracker.observer();
    let held = held.as_ref().map(Held::report);
    let [page, ..] = PAGES;
    let tick = |point: &Point| match point {
        Point::Peak => highest.as_ref().map(Highest::tick),
        Point::Worst | Point::Sparsest => held.as_ref()?.tick_of(point, page),
        _ => None,
    };
    Ok(points.map(|point| tick(&point).map_or(point, Point::Tick)))
}
