//! The live objects of one size, ordered by age so that an object's rank can be computed.

use super::outline::{ENDS, Rank};

/// The maximum rank that is counted from either end.
const FURTHEST: u32 = (1 << ENDS) - 1;
/// The slot of an object that has ended.
const ENDED: u32 = u32::MAX;
/// All positions are renumbered when their number exceeds twice the number of live objects by this amount.
const SPARE: usize = 64;

/// Positions in order of age, oldest first. Some positions are free. Each operation takes logarithmic time.
#[derive(Debug, Default)]
pub(super) struct Ages {
    /// The slot of the object at each position.
    slots: Vec<u32>,
    /// A Fenwick tree of live counts. Node `n`, numbered from 1, counts the live objects in the last `n & -n` of the
    /// first `n` positions.
    counts: Vec<u32>,
    live: u32,
}

impl Ages {
    /// Adds the youngest object. `places` contains the position of each slot.
    pub(super) fn add(&mut self, slot: u32, places: &mut Vec<u32>) {
        if self.slots.len() >= 2 * self.live as usize + SPARE {
            self.renumber(places);
        }
        let place = u32::try_from(self.slots.len()).unwrap_or(ENDED);
        match places.get_mut(slot as usize) {
            Some(known) => *known = place,
            None => places.push(place),
        }
        self.push(slot);
    }

    /// Removes an object and returns its rank.
    pub(super) fn take(&mut self, slot: u32, places: &[u32]) -> Rank {
        let Some(&place) = places.get(slot as usize) else { return Rank::Between };
        let older = self.before(place as usize);
        let younger = self.live.saturating_sub(older + 1);
        if let Some(of) = self.slots.get_mut(place as usize) {
            *of = ENDED;
        }
        self.live -= 1;
        let mut node = place as usize + 1;
        while let Some(count) = self.counts.get_mut(node - 1) {
            *count -= 1;
            node += node & node.wrapping_neg();
        }
        match younger.min(older) {
            FURTHEST.. => Rank::Between,
            rank if rank == younger => Rank::Young(rank),
            rank => Rank::Old(rank),
        }
    }

    fn push(&mut self, slot: u32) {
        self.slots.push(slot);
        self.live += 1;
        let node = self.slots.len();
        let below = node - (node & node.wrapping_neg());
        self.counts.push(self.live - self.before(below));
    }

    /// Counts the live objects before a position.
    fn before(&self, place: usize) -> u32 {
        let (mut sum, mut node) = (0, place);
        while let Some(count) = node.checked_sub(1).and_then(|index| self.counts.get(index)) {
            sum += count;
            node -= node & node.wrapping_neg();
        }
        sum
    }

    /// Renumbers the live objects without gaps.
    #[cold]
    fn renumber(&mut self, places: &mut [u32]) {
        let slots = std::mem::take(&mut self.slots);
        self.counts.clear();
        self.live = 0;
        for slot in slots.into_iter().filter(|slot| *slot != ENDED) {
            if let Some(place) = places.get_mut(slot as usize) {
                *place = self.live;
            }
            self.push(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the ranks of objects that begin and end at random with their ranks in a list.
    #[test]
    fn ranks_are_those_of_a_list() {
        let (mut ages, mut places, mut list) = (Ages::default(), Vec::new(), Vec::<u32>::new());
        let (mut random, mut free) = (7_u64, Vec::new());
        let mut next = move |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(random >> 33).unwrap_or(0) % below
        };
        for step in 0..20_000 {
            let grows = if step < 9_000 { 3 } else { 1 };
            if list.is_empty() || next(4) < grows {
                let slot = free.pop().unwrap_or_else(|| u32::try_from(places.len()).unwrap());
                ages.add(slot, &mut places);
                list.push(slot);
            } else {
                let at = next(list.len());
                let (older, younger) = (u32::try_from(at).unwrap(), u32::try_from(list.len() - at - 1).unwrap());
                let expected = match (younger, older) {
                    (younger, older) if younger <= older && younger < FURTHEST => Rank::Young(younger),
                    (_, older) if older < FURTHEST => Rank::Old(older),
                    _ => Rank::Between,
                };
                let slot = list.remove(at);
                assert_eq!(ages.take(slot, &places), expected);
                free.push(slot);
            }
        }
    }
}
