//! The events of a ring, as their bytes tell. They may be of another process, and hostile.

use crate::layout::{DROPPED, NOTE, PAD, of_head};
use crate::table::{EventRow, Source, Table};

/// Where an event is, and when it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Stamp, or that of the event before it in its ring.
    pub(crate) stamp: u64,
    /// Index of the ring.
    pub(crate) ring: u32,
    /// Index of its head in the words of the ring.
    pub(crate) at: u32,
}

/// Part of a ring that was copied.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// Number of the thread.
    pub(crate) thread: u32,
    /// Position of the first word.
    pub(crate) from: u64,
    /// Position behind the last event that counts.
    pub(crate) to: u64,
    pub(crate) words: Vec<u64>,
    /// Events that were dropped and that no event in the ring tells of.
    pub(crate) dropped: u64,
}

/// What is wrong with a ring: the position at which there is no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damage(pub(crate) u64);

/// Finds the events of a part with stamps of at most `until`, up to the first later one; sets where the part ends.
pub(crate) fn find(
    table: &Table,
    ring: u32,
    part: &mut Part,
    until: u64,
    places: &mut Vec<Place>,
) -> Result<(), Damage> {
    let (mut at, mut stamp) = (0, 0);
    part.to = part.from;
    while let Some(head) = part.words.get(at) {
        let position = part.from.wrapping_add(8 * at as u64);
        let Some((event, count)) = of_head(*head, position) else { return Err(Damage(position)) };
        let end = at + 1 + usize::from(count);
        let Some(words) = part.words.get(at + 1..end) else { return Err(Damage(position)) };
        let known = match event {
            PAD => true,
            DROPPED => count == 2,
            NOTE => count >= 2,
            _ => table.events.get(usize::from(event)).is_some_and(|row| row.words <= count),
        };
        if !known {
            return Err(Damage(position));
        }
        if let Some(own) = stamp_of(table, event, words) {
            if own > until {
                return Ok(());
            }
            stamp = own.max(stamp);
        }
        if event != PAD {
            let Ok(at) = u32::try_from(at) else { return Err(Damage(position)) };
            places.push(Place { stamp, ring, at });
        }
        at = end;
        part.to = part.from.wrapping_add(8 * at as u64);
    }
    Ok(())
}

/// Returns the stamp of an event, if it has one.
fn stamp_of(table: &Table, event: u16, words: &[u64]) -> Option<u64> {
    let word = match event {
        PAD => return None,
        DROPPED | NOTE => 1,
        _ => table.events.get(usize::from(event))?.stamp()?,
    };
    words.get(usize::from(word)).copied()
}

impl EventRow {
    /// Returns the word with the stamp.
    fn stamp(&self) -> Option<u16> {
        self.sources.iter().find_map(|source| match source {
            Source::Stamp { word } => Some(*word),
            _ => None,
        })
    }
}

/// Puts events of several rings in the order of their stamps. Those of one ring keep theirs.
pub(crate) fn order(places: &mut [Place]) {
    places.sort_by_key(|place| place.stamp);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::head_of;

    fn table() -> Table {
        Table::parse("kinds A\nevent a 1 4 0 1 stamp@0\nevent b 1 5 0 1 u64@0.0\n").unwrap()
    }

    fn part(events: &[(u16, u64)]) -> Part {
        let mut words = Vec::new();
        for (event, word) in events {
            words.push(head_of(*event, 1, 8 * words.len() as u64));
            words.push(*word);
        }
        Part { words, ..Part::default() }
    }

    #[test]
    fn events_come_in_the_order_of_their_stamps() {
        let mut parts = [part(&[(0, 10), (1, 99), (0, 30)]), part(&[(0, 20), (0, 40)])];
        let mut places = Vec::new();
        for (ring, part) in (0..).zip(&mut parts) {
            find(&table(), ring, part, 35, &mut places).unwrap();
        }
        order(&mut places);
        let order: Vec<_> = places.iter().map(|place| (place.stamp, place.ring)).collect();
        assert_eq!(order, [(10, 0), (10, 0), (20, 1), (30, 0)]);
        assert_eq!((parts[0].to, parts[1].to), (48, 16), "the last is later");
    }

    #[test]
    fn what_is_no_event_ends_the_ring() {
        let mut damaged = part(&[(0, 10), (0, 20), (0, 30)]);
        damaged.words[4] ^= 1 << 40;
        let mut places = Vec::new();
        assert_eq!(find(&table(), 0, &mut damaged, u64::MAX, &mut places), Err(Damage(32)));
        assert_eq!((places.len(), damaged.to), (2, 32));
        for word in [head_of(7, 1, 0), head_of(0, 0, 0), head_of(0, 9, 0), head_of(DROPPED, 1, 0)] {
            let mut one = Part { words: vec![word, 5], ..Part::default() };
            assert_eq!(find(&table(), 0, &mut one, u64::MAX, &mut places), Err(Damage(0)), "{word:x}");
        }
    }
}
