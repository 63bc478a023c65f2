//! Counts by site, compared with brute force that examines all blocks after each event.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test must panic")]

use std::collections::BTreeMap;

use hatf_lab::history::{Kept, Point};
use hatf_lab::sites::{Amount, Counts, Sites};
use hatf_lab::{Cause, Change, ObjectEvent, Objects, Observer as _};
use hatf_trace::Event;
use proptest::prelude::*;

fn add(amount: &mut Amount, bytes: u64) {
    amount.blocks += 1;
    amount.bytes += bytes;
}

fn brute(events: &[ObjectEvent]) -> Vec<Counts> {
    let sites = events.iter().map(|event| event.object.site + 1).max().unwrap_or(0);
    let mut counts = vec![Counts::default(); usize::try_from(sites).unwrap()];
    let (mut live, mut most) = (BTreeMap::new(), 0);
    for event in events {
        let object = event.object;
        let site = usize::try_from(object.site).unwrap();
        match event.change {
            Change::Allocated => {
                // A realloc adds only the bytes by which the block grows.
                let is_resized = |other: &&ObjectEvent| other.cause == Cause::Realloc && other.tick < event.tick;
                let before = events.iter().rfind(is_resized).filter(|_| event.cause == Cause::Realloc);
                let before = before.map_or(0, |before| before.object.size);
                add(&mut counts[site].allocated, object.size.saturating_sub(before));
                live.insert(object.number, object);
            }
            Change::Freed => {
                live.remove(&object.number);
                if event.tick == object.tick + 1 {
                    add(&mut counts[site].temporary, object.size);
                }
                let is_between = |other: &&ObjectEvent| {
                    other.change == Change::Allocated && (object.tick + 1..event.tick).contains(&other.tick)
                };
                let meanwhile: u64 = events.iter().filter(is_between).map(|other| other.object.size).sum();
                if event.cause != Cause::Realloc && event.time - object.time <= 1_000_000 && meanwhile <= 64 << 10 {
                    add(&mut counts[site].short, object.size);
                }
            }
        }
        let bytes: u64 = live.values().map(|object| object.size).sum();
        if bytes > most {
            most = bytes;
            counts.iter_mut().for_each(|site| site.peak = Amount::default());
            for object in live.values() {
                add(&mut counts[usize::try_from(object.site).unwrap()].peak, object.size);
            }
        }
    }
    for object in live.values() {
        add(&mut counts[usize::try_from(object.site).unwrap()].leaked, object.size);
    }
    counts
}

proptest! {
    /// Addresses recur: blocks are freed, allocated twice, moved, and freed without having been allocated.
    #[test]
    fn as_brute_force(calls in prop::collection::vec((0..4_u8, 0..12_u64, 0..50_u64, 0..5_u64), 0..300)) {
        let (mut objects, mut events) = (Objects::new(), Vec::new());
        for (number, (call, block, size, site)) in (0..).zip(calls) {
            let (address, size) = (16 + block * 64, size * 1000);
            let event = match call {
                0 | 1 => Event::malloc(address, size),
                2 => Event::free(address),
                _ => Event::realloc(16 + size / 1000 % 12 * 64, address, size),
            };
            let mut note = |event: &ObjectEvent| {
                events.push(*event);
                Ok(())
            };
            objects.follow(&Event { time: number * 100_000, ..event }, site, &mut note).unwrap();
        }
        let mut sites = Sites::new();
        events.iter().for_each(|event| sites.event(event).unwrap());
        prop_assert_eq!(sites.report(), brute(&events));
    }

    /// The memory live at one event that was allocated after another.
    #[test]
    fn kept_as_brute_force(
        calls in prop::collection::vec((any::<bool>(), 0..12_u64, 0..50_u64, 0..5_u64), 0..200), from in 0..100_u64, more in 0..100_u64, timed: bool
    ) {
        let to = from + more;
        let (mut objects, mut events) = (Objects::new(), Vec::new());
        for (number, (allocates, block, size, site)) in (1..).zip(calls) {
            let event = if allocates { Event::malloc(16 + block * 64, size) } else { Event::free(16 + block * 64) };
            // Timestamps shared by several events.
            let mut note = |event: &ObjectEvent| { events.push(*event); Ok(()) };
            objects.follow(&Event { time: number / 3, ..event }, site, &mut note).unwrap();
        }
        let point = |at| if timed { Point::Time(at) } else { Point::Tick(at) };
        let mut kept = Kept::new(point(from), point(to));
        let mut expected = vec![Amount::default(); 5];
        let mut live = BTreeMap::new();
        let is_behind = |tick, time, at| if timed { time > at } else { tick > at };
        for event in &events {
            kept.event(event).unwrap();
            let object = event.object;
            if is_behind(event.tick, event.time, to) {
                continue;
            }
            match event.change {
                Change::Allocated if is_behind(event.tick, event.time, from) => { live.insert(object.number, object); }
                Change::Allocated => {}
                Change::Freed => { live.remove(&object.number); }
            }
        }
        live.values().for_each(|object| add(&mut expected[usize::try_from(object.site).unwrap()], object.size));
        let last = events.last().map_or((0, 0), |event| (event.tick, event.time));
        match kept.report() {
            Ok(mut found) => {
                prop_assert!(timed || from.max(to) <= last.0);
                found.sites.resize(5, Amount::default());
                prop_assert_eq!(found.sites, expected);
            }
            // No record determined the length of the trace.
            Err(_) if timed => prop_assert!(to >= last.1),
            Err(_) => prop_assert!(from.max(to) > last.0),
        }
    }
}
