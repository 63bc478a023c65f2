//! Comparison of two tables against brute force, and of the tables against counting by one key.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test must panic")]

use std::collections::{BTreeMap, BTreeSet};

use hatf_lab::sites::{Amount, AmountChange, Counts, Measure, Pair, Sites, Tables, pairs, ranked_pairs};
use hatf_lab::statistics::class_of;
use hatf_lab::{ObjectEvent, Objects, Observer as _};
use hatf_trace::Event;
use proptest::prelude::*;

/// Tables with few keys and small numbers, so that keys repeat and changes are equal, along with some large numbers.
fn table() -> impl Strategy<Value = Vec<(u8, Counts)>> {
    let number = || prop_oneof![8 => 0..4_u64, 1 => Just(u64::MAX), 1 => any::<u64>()];
    let amount = (number(), number()).prop_map(|(blocks, bytes)| Amount { blocks, bytes });
    let counts = prop::array::uniform5(amount).prop_map(|[peak, leaked, allocated, temporary, short]| Counts {
        peak,
        leaked,
        allocated,
        temporary,
        short,
        ..Counts::default()
    });
    prop::collection::vec((0..8_u8, counts), 0..20)
}

/// Returns the sum for a key, by definition.
fn sum(table: &[(u8, Counts)], key: u8, measure: Measure) -> (u64, u64) {
    let of = |get: fn(Amount) -> u64| {
        let all = table.iter().filter(|row| row.0 == key).map(|row| u128::from(get(row.1.get(measure))));
        u64::try_from(all.sum::<u128>()).unwrap_or(u64::MAX)
    };
    (of(|amount| amount.blocks), of(|amount| amount.bytes))
}

proptest! {
    #[test]
    fn as_brute_force(before in table(), after in table(), by_blocks: bool) {
        let found = pairs(before.clone(), after.clone());
        let mut met = Vec::new();
        for (key, _) in before.iter().chain(&after) {
            if !met.contains(key) {
                met.push(*key);
            }
        }
        prop_assert_eq!(found.iter().map(|pair| pair.key).collect::<Vec<_>>(), met.clone());
        for measure in Measure::ALL {
            let mut rows = ranked_pairs(&found, measure, by_blocks);
            let size = |change: AmountChange| {
                let (blocks, bytes) = (change.blocks.abs(), change.bytes.abs());
                if by_blocks { (blocks, bytes) } else { (bytes, blocks) }
            };
            // Largest first; equal changes in order of first appearance.
            let place = |row: &(&Pair<u8>, AmountChange)| met.iter().position(|key| *key == row.0.key);
            prop_assert!(rows.windows(2).all(|two| size(two[0].1) > size(two[1].1)
                || (size(two[0].1) == size(two[1].1) && place(&two[0]) < place(&two[1]))));
            // Exactly the keys that differ.
            for key in &met {
                let (old, new) = (sum(&before, *key, measure), sum(&after, *key, measure));
                let less = |after: u64, before: u64| i128::from(after) - i128::from(before);
                let expected = AmountChange { blocks: less(new.0, old.0), bytes: less(new.1, old.1) };
                let at = rows.iter().position(|row| row.0.key == *key);
                prop_assert_eq!(at.map(|at| rows.remove(at).1), (old != new).then_some(expected));
            }
            prop_assert!(rows.is_empty());
        }
        // A table does not differ from itself.
        let same = pairs(before.clone(), before);
        prop_assert!(Measure::ALL.iter().all(|measure| ranked_pairs(&same, *measure, by_blocks).is_empty()));
    }

    /// Counts by each key match counting by that key alone.
    #[test]
    fn tables_count_by_each_key(calls in prop::collection::vec((0..3_u8, 0..12_u64, 0..50_u64, 0..5_u64, 7..10_u64), 0..200)) {
        let (mut objects, mut events) = (Objects::new(), Vec::new());
        let mut note = |event: &ObjectEvent| {
            events.push(*event);
            Ok(())
        };
        for (call, block, size, site, thread) in calls {
            let address = 16 + block * 64;
            let event = if call == 0 { Event::free(address) } else { Event::malloc(address, size) };
            objects.follow(&Event { thread, ..event }, site, &mut note).unwrap();
        }
        let mut tables = Tables::new();
        events.iter().for_each(|event| tables.event(event).unwrap());
        let found = tables.report();
        let by = |key: fn(&ObjectEvent) -> u64| {
            let mut sites = Sites::new();
            events.iter().for_each(|event| sites.count(key(event), event).unwrap());
            sites.report()
        };
        prop_assert_eq!(found.sites, by(|event| event.object.site));
        prop_assert_eq!(found.classes, by(|event| class_of(event.object.size) as u64));
        let threads = by(|event| event.object.thread);
        let seen: BTreeSet<u64> = events.iter().map(|event| event.object.thread).collect();
        let expected: BTreeMap<u64, Counts> =
            seen.iter().map(|thread| (*thread, threads[usize::try_from(*thread).unwrap()])).collect();
        prop_assert_eq!(found.threads.into_iter().collect::<BTreeMap<_, _>>(), expected);
    }
}
