//! The events in the bytes of a ring, which may belong to another process and be hostile.

use crate::layout::{DROPPED, NOTE, PAD, THREAD, of_head};
use crate::table::{EventRow, Source, Table};

/// The position and time of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The stamp of the event or, if it has none, of the previous event in the ring.
    pub(crate) stamp: u64,
    /// Index of the ring.
    pub(crate) ring: u32,
    /// Index of the event's head in the words of the ring.
    pub(crate) at: u32,
}

/// A copied part of a ring.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// The ID of the thread whose events are at the start.
    pub(crate) thread: u32,
    /// Other threads, each with the index of the first word that belongs to its events.
    pub(crate) threads: Vec<(u32, u32)>,
    /// Position of the first word.
    pub(crate) from: u64,
    /// Position after the last valid event.
    pub(crate) to: u64,
    pub(crate) words: Vec<u64>,
    /// Number of dropped events that no event in the ring reports.
    pub(crate) dropped: u64,
}

impl Part {
    /// Returns the thread of the event whose head has this index.
    pub(crate) fn thread_at(&self, at: u32) -> u32 {
        let before = self.threads.partition_point(|(from, _)| *from <= at);
        before.checked_sub(1).and_then(|last| self.threads.get(last)).map_or(self.thread, |(_, thread)| *thread)
    }

    /// Returns the thread of the last event.
    pub(crate) fn last_thread(&self) -> u32 {
        self.thread_at(u32::MAX)
    }

    /// Removes everything before a position.
    pub(crate) fn begin_at(&mut self, position: u64) {
        if let Some(gone) = position.checked_sub(self.from) {
            let gone = usize::try_from(gone / 8).unwrap_or(usize::MAX).min(self.words.len());
            self.words.drain(..gone);
            self.from = self.from.wrapping_add(8 * gone as u64);
        }
    }
}

/// Damage in a ring: the position at which an event is missing or invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damage(pub(crate) u64);

/// Decodes the event head at this index. Returns the event and the index after it.
pub(crate) fn after(part: &Part, at: usize) -> Option<(u16, usize)> {
    let position = part.from.wrapping_add(8 * at as u64);
    let (event, words) = of_head(*part.words.get(at)?, position)?;
    let next = at + 1 + usize::from(words);
    (next <= part.words.len()).then_some((event, next))
}

/// Finds the events of a part with stamps up to `until`, stopping at the first later event. Sets the end of the part.
pub(crate) fn find(
    table: &Table,
    ring: u32,
    part: &mut Part,
    until: u64,
    places: &mut Vec<Place>,
) -> Result<(), Damage> {
    let (mut at, mut stamp) = (0, 0);
    part.to = part.from;
    part.threads.clear();
    while let Some(head) = part.words.get(at) {
        let position = part.from.wrapping_add(8 * at as u64);
        let Some((event, count)) = of_head(*head, position) else { return Err(Damage(position)) };
        let end = at + 1 + usize::from(count);
        let Some(words) = part.words.get(at + 1..end) else { return Err(Damage(position)) };
        let known = match event {
            PAD => true,
            DROPPED => count == 2,
            THREAD => count == 3,
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
        let Ok(index) = u32::try_from(at) else { return Err(Damage(position)) };
        match event {
            PAD => {}
            #[allow(clippy::cast_possible_truncation, reason = "a number of a thread is 32 bits of the word")]
            THREAD => part.threads.push((index, words.first().map_or(0, |thread| *thread as u32))),
            _ => places.push(Place { stamp, ring, at: index }),
        }
        at = end;
        part.to = part.from.wrapping_add(8 * at as u64);
    }
    Ok(())
}

/// Returns the stamp of an event, if it has one.
fn stamp_of(table: &Table, event: u16, words: &[u64]) -> Option<u64> {
    let word = match event {
        PAD | THREAD => return None,
        DROPPED | NOTE => 1,
        _ => table.events.get(usize::from(event))?.stamp()?,
    };
    words.get(usize::from(word)).copied()
}

impl EventRow {
    /// Returns the index of the word with the stamp.
    fn stamp(&self) -> Option<u16> {
        self.sources.iter().find_map(|source| match source {
            Source::Stamp { word } => Some(*word),
            _ => None,
        })
    }
}

/// Sorts events of several rings by their stamps. Events of the same ring keep their order.
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
