//! Draws objects from a model, one at a time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::file::Model;
use super::histogram::Ends;
use super::kind::Choice;
use super::law::{Law, Shape, rounded, wide};
use super::moments::{Moments, float};
use super::random::Random;
use super::transitions::{Cell, Chain};

/// An object to be allocated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Birth {
    /// The time of the allocation. Times start at 0 and never decrease.
    pub(super) time: f64,
    pub(super) size: u64,
    /// The lifetime, or `None` if the object is never freed.
    pub(super) ht: Option<f64>,
}

/// The source of sizes.
#[derive(Debug)]
enum Sizes {
    Law(Law),
    /// Classes drawn in proportion to their numbers of objects.
    Classes(Ends),
    Buckets,
    Chain,
}

/// The source of allocation times.
#[derive(Debug)]
enum Arrivals {
    /// Interarrival times.
    Law(Law),
    /// One process per class, with the next time of each process and the interarrival times of each class.
    Processes(BinaryHeap<Reverse<(u64, usize)>>, Vec<Law>),
    /// Equal steps through each bucket. The fields are the cycle, the bucket, and the number of objects allocated so
    /// far in the bucket.
    Steps(u64, usize, u64),
    /// Interarrival times of the current bucket.
    Buckets,
    Chain,
}

/// The source of holding times.
#[derive(Debug)]
enum Holding {
    Law(Option<Law>),
    Classes,
    Buckets,
    Chain,
}

/// A time bucket.
#[derive(Debug)]
struct Bucket {
    count: u64,
    size: Option<Law>,
    iat: Option<Law>,
    ht: Option<Law>,
}

/// A model prepared for sampling.
#[derive(Debug)]
pub(super) struct Source {
    sizes: Sizes,
    arrivals: Arrivals,
    holding: Holding,
    /// The size and the holding times of each class, ordered by size.
    classes: Vec<(u64, Option<Law>)>,
    buckets: Vec<Bucket>,
    chain: Option<Chain>,
    /// The means over all objects, which replace parts without data.
    fallback: [Option<Law>; 3],
    end: f64,
    exact_end: u64,
    now: f64,
    /// The previous size.
    before: u64,
}

impl Source {
    /// Prepares a model for sampling.
    pub(super) fn new(model: &Model, random: &mut Random) -> Self {
        let (kind, parts) = (model.kind(), model.parts());
        let end = wide(model.end());
        let moments = &parts.moments;
        // A trace with a single object has no interarrival time.
        let mean_iat = moments.iat.mean().unwrap_or(end / wide(moments.size.count()));
        let fallback = [
            Law::new(Shape::Constant, &moments.size),
            Some(Law::Constant(mean_iat)),
            Law::new(Shape::Constant, &moments.ht),
        ];
        let table = |choice, moments: &Moments, histogram: &Option<super::Histogram>, markers: &Option<Vec<f64>>| {
            let table = || histogram.as_ref().filter(|histogram| !histogram.pairs().is_empty());
            let markers = || markers.as_ref().filter(|markers| !markers.is_empty());
            match choice {
                Choice::Cdf => table().map(|histogram| Law::Table(Box::new(histogram.table()))),
                Choice::CdfP2 => markers().map(|markers| Law::Markers(markers.clone())),
                Choice::MeanNormal => Law::new(Shape::Normal, moments),
                Choice::MeanPareto => Law::new(Shape::Pareto, moments),
                _ => Law::new(Shape::Uniform, moments),
            }
        };
        let (histograms, markers) = (&parts.histograms, &parts.markers);
        let size_law = table(kind.size, &moments.size, &histograms.size, &markers.size).unwrap_or(Law::Constant(1.0));
        let iat_law = table(kind.iat, &moments.iat, &histograms.iat, &markers.iat).unwrap_or(Law::Constant(mean_iat));
        let ht_law = table(kind.ht, &moments.ht, &histograms.ht, &markers.ht);

        let stored = parts.classes.as_deref().unwrap_or_default();
        let (class_iat, class_ht) = (class_shapes(kind.iat).0, class_shapes(kind.ht).1);
        let classes = stored.iter().map(|class| (class.size, Law::new(class_ht, &class.ht))).collect();
        let sizes = match kind.size {
            Choice::Size | Choice::SizeUniform | Choice::SizeNormal => {
                Sizes::Classes(Ends::new(stored.iter().map(|class| class.count)))
            }
            Choice::Time | Choice::TimeNormal => Sizes::Buckets,
            Choice::Trans | Choice::TransMean => Sizes::Chain,
            _ => Sizes::Law(size_law),
        };
        let arrivals = match kind.iat {
            Choice::Size | Choice::SizeUniform | Choice::SizeNormal => {
                let mean = |count: u64| end / wide(count);
                let law = |count| match class_iat {
                    Shape::Uniform => Law::Uniform(2.0 * mean(count)),
                    _ => Law::Exponential(mean(count)),
                };
                let laws: Vec<Law> = stored.iter().map(|class| law(class.count)).collect();
                let first = laws.iter().enumerate().map(|(n, law)| Reverse((law.draw(random).to_bits(), n)));
                Arrivals::Processes(first.collect(), laws)
            }
            Choice::Time => Arrivals::Steps(0, 0, 0),
            Choice::TimeNormal => Arrivals::Buckets,
            Choice::Trans | Choice::TransMean => Arrivals::Chain,
            _ => Arrivals::Law(iat_law),
        };
        let holding = match kind.ht {
            Choice::Size | Choice::SizeUniform | Choice::SizeNormal => Holding::Classes,
            Choice::Time | Choice::TimeNormal => Holding::Buckets,
            Choice::Trans | Choice::TransMean => Holding::Chain,
            _ => Holding::Law(ht_law),
        };
        let shape = |choice, of: Choice| if choice == of { Shape::Normal } else { Shape::Constant };
        let stored = parts.buckets.as_deref().unwrap_or_default();
        let width = end / wide(stored.len().max(1) as u64);
        let bucket = |bucket: &super::file::Bucket| {
            // The mean interarrival time is the length of the bucket divided by its number of objects, not the mean of
            // the observed intervals. The deviation is that of the observed intervals.
            let mean = width / wide(bucket.count);
            let deviation = bucket.iat.deviation();
            let iat = if deviation > 0.0 { Law::Normal { mean, deviation } } else { Law::Constant(mean) };
            Bucket {
                count: bucket.count,
                size: Law::new(shape(kind.size, Choice::TimeNormal), &bucket.size),
                iat: (bucket.count > 0).then_some(iat),
                ht: Law::new(shape(kind.ht, Choice::TimeNormal), &bucket.ht),
            }
        };
        let buckets = stored.iter().map(bucket).collect();
        let chain = parts.transitions.as_ref().map(|stored| {
            let pairs = !matches!(sizes, Sizes::Chain);
            Chain::new(stored, shape(kind.iat, Choice::Trans), shape(kind.ht, Choice::Trans), pairs)
        });
        let before = chain.as_ref().map_or(0, |chain| chain.first);
        let exact_end = model.end();
        Self { sizes, arrivals, holding, classes, buckets, chain, fallback, end, exact_end, now: 0.0, before }
    }

    /// Draws the next object.
    pub(super) fn next(&mut self, random: &mut Random) -> Birth {
        let Self { sizes, arrivals, holding, classes, buckets, chain, fallback, end, exact_end, now, before } = self;
        let [mean_size, mean_iat, mean_ht] = fallback;
        // Draw the time first, unless it depends on the size. If size and time come from the same process, the process
        // determines the class.
        let (mut class, mut place) = (None, None);
        match arrivals {
            Arrivals::Law(law) => *now += law.draw(random),
            Arrivals::Processes(next, laws) => {
                if let Some(mut first) = next.peek_mut() {
                    let Reverse((time, process)) = *first;
                    *now = f64::from_bits(time);
                    let iat = laws.get(process).map_or(0.0, |law| law.draw(random));
                    *first = Reverse(((*now + iat).to_bits(), process));
                    drop::<PeekMut<'_, _>>(first);
                    class = Some(process);
                }
            }
            Arrivals::Steps(cycle, bucket, done) => {
                while buckets.get(*bucket).is_none_or(|bucket| *done >= bucket.count) {
                    (*bucket, *done) = (*bucket + 1, 0);
                    if *bucket >= buckets.len() {
                        (*cycle, *bucket) = (*cycle + 1, 0);
                    }
                }
                *done += 1;
                let count = buckets.get(*bucket).map_or(1, |bucket| bucket.count);
                let within = stepped(*exact_end, buckets.len() as u64, *bucket as u64, *done, count);
                *now = now.max(wide(*cycle) * *end + within);
                place = Some(*bucket);
            }
            Arrivals::Buckets => {
                let width = *end / wide(buckets.len() as u64);
                let cycle = (*now / *end).floor();
                let at = bucket_after(*now - cycle * *end, *end, buckets.len());
                let filled =
                    |from: usize| (from..buckets.len()).find(|at| buckets.get(*at).is_some_and(|b| b.count > 0));
                let next = || (cycle + 1.0, filled(0).unwrap_or(0));
                let (cycle, bucket) = filled(at).map_or_else(next, |bucket| (cycle, bucket));
                // Skip empty buckets.
                *now = now.max(cycle * *end + wide(bucket as u64) * width);
                let iat = buckets.get(bucket).and_then(|bucket| bucket.iat.as_ref());
                *now += iat.map_or(0.0, |law| law.draw(random));
            }
            Arrivals::Chain => {}
        }
        let bucket =
            |now: f64, place: Option<usize>| buckets.get(place.unwrap_or_else(|| bucket_of(now, *end, buckets.len())));
        let mut cell: Option<&Cell> = None;
        let size = match sizes {
            Sizes::Law(law) => law.draw_size(random),
            Sizes::Classes(ends) => {
                let drawn = class.unwrap_or_else(|| ends.draw(random));
                class = Some(drawn);
                classes.get(drawn).map_or(1, |(size, _)| *size)
            }
            Sizes::Buckets => {
                let law = bucket(*now, place).and_then(|bucket| bucket.size.as_ref());
                law.or(mean_size.as_ref()).map_or(1, |law| rounded(law.draw(random)))
            }
            Sizes::Chain => {
                cell = chain.as_mut().and_then(|chain| chain.next(random));
                cell.map_or(*before, |cell| cell.size)
            }
        };
        if !matches!(sizes, Sizes::Chain) {
            cell = chain.as_ref().and_then(|chain| chain.of(*before, size));
        }
        *before = size;
        if matches!(arrivals, Arrivals::Chain) {
            let iat = cell.and_then(|cell| cell.iat.as_ref()).or(mean_iat.as_ref());
            *now += iat.map_or(0.0, |law| law.draw(random));
        }
        let ht = match holding {
            Holding::Law(law) => law.as_ref(),
            Holding::Classes => {
                let class = class.unwrap_or_else(|| nearest(classes, size));
                classes.get(class).and_then(|(_, ht)| ht.as_ref())
            }
            Holding::Buckets => match bucket(*now, place).filter(|bucket| bucket.count > 0) {
                Some(bucket) => bucket.ht.as_ref(),
                None => mean_ht.as_ref(),
            },
            Holding::Chain => match cell {
                Some(cell) => cell.ht.as_ref(),
                None => mean_ht.as_ref(),
            },
        };
        Birth { time: *now, size, ht: ht.map(|law| law.draw(random)) }
    }
}

/// Returns the shapes of a class's distributions of interarrival times and holding times.
fn class_shapes(choice: Choice) -> (Shape, Shape) {
    match choice {
        Choice::SizeUniform => (Shape::Uniform, Shape::Uniform),
        Choice::SizeNormal => (Shape::Exponential, Shape::Normal),
        _ => (Shape::Exponential, Shape::Exponential),
    }
}

/// Returns the class with the nearest size. Of two equally near classes, returns the smaller.
fn nearest(classes: &[(u64, Option<Law>)], size: u64) -> usize {
    let above = classes.partition_point(|(class, _)| *class < size);
    let distance = |at: usize| classes.get(at).map(|(class, _)| class.abs_diff(size));
    match (above.checked_sub(1).and_then(|below| Some((below, distance(below)?))), distance(above)) {
        (Some((below, near)), Some(far)) if near <= far => below,
        (Some((below, _)), None) => below,
        _ => above,
    }
}

/// Returns the time of step `done` of `count` in a bucket, `T (bucket + done/count) / M`. Integer results are exact.
fn stepped(end: u64, buckets: u64, bucket: u64, done: u64, count: u64) -> f64 {
    // There are at most 2^20 buckets with less than 2^48 objects each.
    let by = u128::from(buckets) * u128::from(count);
    let of = u128::from(bucket) * u128::from(count) + u128::from(done);
    match of.checked_mul(u128::from(end)) {
        Some(scaled) => float(scaled / by) + float(scaled % by) / float(by),
        None => float(of) / float(by) * wide(end),
    }
}

/// Returns the bucket of a time, after reducing the time to the first cycle (0 to T): `b T/M < time <= (b + 1) T/M`.
fn bucket_of(time: f64, end: f64, buckets: usize) -> usize {
    let within = time / end;
    let place = (within - (within.ceil() - 1.0).max(0.0)) * wide(buckets as u64);
    index(place.ceil() - 1.0, buckets)
}

/// Returns the bucket that begins at or before a time, which must be below `end`.
fn bucket_after(time: f64, end: f64, buckets: usize) -> usize {
    index((time / end * wide(buckets as u64)).floor(), buckets)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such casts saturate")]
fn index(place: f64, buckets: usize) -> usize {
    (place as usize).min(buckets.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_time() {
        // Equivalent to ticks 1 to 4, 5 to 8 and 9 to 12.
        assert_eq!(
            [0.0, 1.0, 4.0, 4.1, 8.0, 12.0, 12.1, 16.0, 24.0].map(|time| bucket_of(time, 12.0, 3)),
            [0, 0, 0, 1, 1, 2, 0, 0, 2]
        );
        assert_eq!([0.0, 3.9, 4.0, 11.9].map(|time| bucket_after(time, 12.0, 3)), [0, 0, 1, 2]);
        assert_eq!(stepped(12, 3, 0, 1, 3), 4.0 / 3.0);
        assert_eq!(stepped(u64::MAX, 10_000, 9_999, 7, 7), u64::MAX as f64);
    }

    #[test]
    fn nearest_classes() {
        let classes: Vec<_> = [10, 20, 40].map(|size| (size, None)).into();
        assert_eq!([0, 10, 15, 16, 31, 99].map(|size| nearest(&classes, size)), [0, 0, 0, 1, 2, 2]);
    }
}
