//! The live objects of one size by age, and how many are younger and older than one of them.

use super::outline::{ENDS, Rank};

/// The furthest that a rank is counted from either end.
const FURTHEST: u32 = (1 << ENDS) - 1;
/// The slot of an object that has ended.
const ENDED: u32 = u32::MAX;
/// Places that are kept beside those of live objects, before all are numbered again.
const SPARE: usize = 64;

/// Places in the order of age, oldest first, some of which are free. Each step takes time of the logarithm of their number.
#[derive(Debug, Default)]
pub(super) struct Ages {
    /// The object at each place, by its slot.
    slots: Vec<u32>,
    /// Fenwick's tree of how many are live: node `n`, from 1, has those of the `n & -n` places up to it.
    counts: Vec<u32>,
    live: u32,
}

impl Ages {
    /// Adds the youngest object. `places` has the place of each slot.
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

    /// Takes an object out, and returns its rank.
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

    /// Counts the live objects at the places before one.
    fn before(&self, place: usize) -> u32 {
        let (mut sum, mut node) = (0, place);
        while let Some(count) = node.checked_sub(1).and_then(|index| self.counts.get(index)) {
            sum += count;
            node -= node & node.wrapping_neg();
        }
        sum
    }

    /// Leaves no place free.
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

    /// Objects that begin and end as they come are ranked as those of a list are.
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
