use super::ends::MOMENTS;
use super::*;
use crate::site_counts::Sites;
use hatf_trace::Event;

/// Live bytes by site after the event with this number.
type Note = (u64, HashMap<u64, u64>);

/// Allocates and frees blocks by a fixed rule, and counts the live memory independently. Four consecutive events have the
/// same time.
fn run(events: u64, step: u64) -> (SiteTimeline, Vec<Note>, u64) {
    let (mut objects, mut moments) = (Objects::new(), Moments::new());
    let (mut live, mut notes, mut peak) = (HashMap::<u64, (u64, u64)>::new(), Vec::new(), 0);
    let mut random = 7_u64;
    for number in 0..events {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let address = 1 + (random >> 33) % 300;
        let time = number / 4 * 4 * step;
        let mut give =
            |event: Event<'_>, site| objects.follow(&event, site, &mut |event| moments.event(event)).unwrap();
        match live.remove(&address) {
            Some(_) => give(Event { time, ..Event::free(address * 4096) }, 0),
            None => {
                let (site, size) = (address % 7, 16 + address % 100);
                live.insert(address, (site, size));
                give(Event { time, ..Event::malloc(address * 4096, size) }, site);
            }
        }
        let bytes = live.values().map(|(_, size)| size).sum();
        peak = peak.max(bytes);
        if number % 1000 == 17 {
            moments.cut();
        }
        let mut by_site = HashMap::new();
        live.values().for_each(|(site, size)| *by_site.entry(*site).or_default() += size);
        notes.push((objects.tick(), by_site));
    }
    (moments.timeline(&objects), notes, peak)
}

#[test]
fn live_bytes_are_sums() {
    for (events, step) in [(50, 10), (5_000, 1_000), (60_000, 0), (60_000, 70_000)] {
        let (timeline, notes, peak) = run(events, step);
        assert!(timeline.moments.len() <= 2 * MOMENTS, "{}", timeline.moments.len());
        assert_eq!(timeline.moments.last().unwrap().tick, events);
        assert_eq!(timeline.moments.iter().map(|moment| moment.highest).max(), Some(peak));
        for (number, moment) in (0..).zip(&timeline.moments) {
            let mut by_site: HashMap<u64, u64> = HashMap::new();
            let is_live = |lived: &&Lived| lived.from <= number && lived.to.is_none_or(|to| to > number);
            timeline
                .lived
                .iter()
                .filter(is_live)
                .for_each(|lived| *by_site.entry(lived.site.into()).or_default() += lived.amount.bytes);
            let (_, expected) = notes.iter().rfind(|(tick, _)| *tick == moment.tick).unwrap();
            assert_eq!(&by_site, expected, "{events} {step} {number}");
            let next = moment.tick / 4 * 4 * step;
            let is_last = moment.tick == events;
            assert_eq!(moment.exact && !is_last, next > moment.time && !moment.kept && !is_last, "{moment:?}");
            assert!(moment.exact || moment.kept || step == 0, "{moment:?}");
        }
        // Joining moments preserves the amounts.
        let halved = timeline.halved();
        assert!(halved.moments.len() < timeline.moments.len() * 3 / 4 || timeline.moments.len() < 100);
        let live = |timeline: &SiteTimeline, tick: u64| -> u64 {
            let number = number_of(timeline.moments.iter().position(|moment| moment.tick == tick).unwrap());
            let is_live = |lived: &&Lived| lived.from <= number && lived.to.is_none_or(|to| to > number);
            timeline.lived.iter().filter(is_live).map(|lived| lived.amount.bytes).sum()
        };
        for moment in &halved.moments {
            assert_eq!(live(&halved, moment.tick), live(&timeline, moment.tick));
        }
        assert!(
            timeline
                .moments
                .iter()
                .filter(|moment| moment.kept)
                .all(|moment| halved.moments.iter().any(|half| half.tick == moment.tick && half.kept))
        );
        // Each mark is the end of a moment.
        let kept: Vec<_> = timeline.moments.iter().filter(|moment| moment.kept).map(|moment| moment.tick).collect();
        assert_eq!(kept, (0..events).filter(|number| number % 1000 == 17).map(|number| number + 1).collect::<Vec<_>>());
    }
}

#[test]
fn allocations_are_all_counted() {
    let (timeline, ..) = run(60_000, 100);
    let blocks: u64 = timeline.allocated.iter().map(|allocated| allocated.amount.blocks).sum();
    let ended: u64 = timeline.lived.iter().filter(|lived| lived.to.is_some()).map(|lived| lived.amount.blocks).sum();
    assert!(blocks > 30_000 && blocks < 30_300 && ended < blocks, "{blocks} {ended}");
    assert!(timeline.lived.iter().all(|lived| lived.to.is_none_or(|to| to > lived.from)));
}

/// The number of preserved ends is bounded, even with unlimited marks.
#[test]
fn cuts_are_bounded() {
    let (mut objects, mut moments) = (Objects::new(), Moments::new());
    for number in 1..20_000 {
        objects.follow(&Event::malloc(number * 4096, 8), 0, &mut |event| moments.event(event)).unwrap();
        moments.cut();
    }
    assert!(moments.timeline(&objects).moments.len() <= 2 * MOMENTS);
}

/// A sampled block counts with its weight, as in the counts by site.
#[test]
fn samples_are_weighed() {
    let (mut objects, mut moments, mut sites) = (Objects::new(), Moments::new(), Sites::new());
    moments.sampled(1000);
    sites.sampled(1000);
    for number in 1..2_000 {
        let mut give = |event: Event<'_>| {
            let both = &mut |event: &ObjectEvent| sites.event(event).and_then(|()| moments.event(event));
            objects.follow(&event, number % 5, both).unwrap();
        };
        give(Event::malloc(number * 4096, number % 300));
        if number % 3 == 0 {
            give(Event::free(number * 4096 - 4096));
        }
    }
    let (timeline, counts) = (moments.timeline(&objects), sites.report());
    let left: u64 =
        timeline.lived.iter().filter(|lived| lived.to.is_none()).map(|lived| lived.amount.bytes).sum::<u64>();
    assert_eq!(left, counts.iter().map(|site| site.leaked.bytes).sum::<u64>());
    let allocated: u64 = timeline.allocated.iter().map(|allocated| allocated.amount.bytes).sum::<u64>();
    assert_eq!(allocated, counts.iter().map(|site| site.allocated.bytes).sum::<u64>());
    let highest = timeline.moments.iter().map(|moment| moment.highest).max();
    assert_eq!(highest, Some(counts.iter().map(|site| site.peak.bytes).sum::<u64>()));
}
