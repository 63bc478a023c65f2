//! Generates the events of an outline.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::histogram::Ends;
use super::law::wide;
use super::outline::{ENDS, Group, Large, Outline, RANKS, Unpacked};
use super::random::{Random, scaled};

/// The next event of a synthetic trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// An object of this size is allocated. The caller must pass its slot to [`Player::placed`].
    Allocate(u64),
    /// The object in this slot is freed.
    Free(u32),
}

const DEAD: u32 = u32::MAX;

/// The live objects of a group, oldest first, with gaps for freed objects.
#[derive(Debug, Default)]
struct Members {
    slots: Vec<u32>,
    /// The index of the first entry that may not be a gap.
    begin: usize,
    live: usize,
}

/// The kind of a planned event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Frees,
    Allocates,
    /// Allocations of an object that is freed immediately. They represent objects that were freed while they were the
    /// youngest.
    Pulses,
}

/// A planned series of events in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Planned {
    /// The position in the frame, as the bits of a number from 0 to 1.
    place: u64,
    group: usize,
    kind: Kind,
    /// The number of past events of this kind.
    done: u64,
    /// The total number of events of this kind.
    count: u64,
}

/// A player of an outline.
#[derive(Debug)]
pub(super) struct Player {
    /// The last tick of each frame.
    ends: Vec<u64>,
    groups: Vec<Group>,
    /// Samplers of ranks, by group.
    ranks: Vec<Ends>,
    members: Vec<Members>,
    /// For each group, the number of frees that found no live object. The group's next allocations are freed
    /// immediately.
    owed: Vec<u64>,
    large: Vec<Large>,
    /// Events of large objects, as (tick, whether the event is a free, index of the object).
    large_events: Vec<(u64, bool, usize)>,
    large_slots: Vec<u32>,
    next_large: usize,
    frame: usize,
    planned: BinaryHeap<Reverse<Planned>>,
    /// The target of the last allocation, which is a group (`Ok`) or a large object (`Err`).
    placing: std::result::Result<usize, usize>,
    /// A group whose youngest object must be freed next.
    urgent: Option<usize>,
    /// The number of events since the first frame.
    played: u64,
}

impl Player {
    /// Prepares an outline for playing. An inconsistent outline produces no events.
    pub(super) fn new(outline: &Outline, random: &mut Random) -> Self {
        let Unpacked { ends, groups, large } = outline.unpack().unwrap_or_default();
        let count = groups.len();
        let mut large_events: Vec<(u64, bool, usize)> = Vec::new();
        for (n, object) in large.iter().enumerate() {
            large_events.push((object.tick, false, n));
            large_events.extend((object.freed > 0).then_some((object.freed, true, n)));
        }
        large_events.sort_unstable();
        let mut player = Self {
            ends,
            // Exclude the ranks of the youngest objects, which are pulses.
            ranks: groups
                .iter()
                .map(|group| Ends::new([0].into_iter().chain(group.ranks.iter().skip(1).copied())))
                .collect(),
            groups,
            members: (0..count).map(|_| Members::default()).collect(),
            owed: vec![0; count],
            large_slots: vec![DEAD; large.len()],
            large,
            large_events,
            next_large: 0,
            frame: 0,
            planned: BinaryHeap::new(),
            placing: Ok(0),
            urgent: None,
            played: 0,
        };
        player.plan(random);
        player
    }

    /// Plans a frame. The events of each group are spread over equal intervals, with a random position in each. Frees
    /// occur in the first half of an interval and allocations in the second, so a group never has more live objects
    /// than at one of the ends of the frame.
    fn plan(&mut self, random: &mut Random) {
        for (group, of) in self.groups.iter().enumerate() {
            let [allocated, freed] = of.counts.get(self.frame).copied().unwrap_or_default();
            let sum: u64 = of.ranks.iter().sum();
            let youngest = of.ranks.first().copied().unwrap_or(0);
            let pulses = u128::from(allocated.min(freed)) * u128::from(youngest) / u128::from(sum.max(1));
            let pulses = u64::try_from(pulses).unwrap_or(0);
            let counts = [(Kind::Frees, freed - pulses), (Kind::Allocates, allocated - pulses), (Kind::Pulses, pulses)];
            for (kind, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
                self.planned.push(Reverse(Planned {
                    group,
                    kind,
                    count,
                    done: 0,
                    place: place(kind, 0, count, random),
                }));
            }
        }
    }

    /// Returns the next event, or `None` if no frame contains any events.
    pub(super) fn next(&mut self, random: &mut Random) -> Option<Act> {
        if let Some(slot) = self.urgent.take().and_then(|group| self.free(group, 0)) {
            return Some(self.act(Act::Free(slot)));
        }
        loop {
            let planned = self.planned.peek().map(|Reverse(planned)| *planned);
            if let Some((is_free, object)) = self.large_before(planned) {
                self.next_large += 1;
                if !is_free {
                    self.placing = Err(object);
                    return Some(self.act(Act::Allocate(self.large.get(object)?.size)));
                }
                let slot = self.large_slots.get_mut(object).map(|slot| std::mem::replace(slot, DEAD));
                if let Some(slot) = slot.filter(|slot| *slot != DEAD) {
                    return Some(self.act(Act::Free(slot)));
                }
                continue;
            }
            let Some(planned) = planned else {
                self.frame += 1;
                if self.frame >= self.ends.len() {
                    // Restart with the first frame, unless all frames are empty.
                    if std::mem::take(&mut self.played) == 0 {
                        return None;
                    }
                    (self.frame, self.next_large) = (0, 0);
                }
                self.plan(random);
                continue;
            };
            self.advance(planned, random);
            let Planned { group, kind, .. } = planned;
            if kind != Kind::Frees {
                self.placing = Ok(group);
                self.urgent = (kind == Kind::Pulses).then_some(group);
                let sizes = &self.groups.get(group)?.sizes;
                let which = usize::try_from(scaled(random.bits(), sizes.len() as u64)).ok()?;
                let size = *sizes.get(which)?;
                return Some(self.act(Act::Allocate(size)));
            }
            let younger = self.younger(group, random);
            match self.free(group, younger) {
                Some(slot) => return Some(self.act(Act::Free(slot))),
                None => *self.owed.get_mut(group)? += 1,
            }
        }
    }

    fn act(&mut self, act: Act) -> Act {
        self.played += 1;
        act
    }

    /// Returns the next event of a large object if it is in this frame and precedes the planned event.
    fn large_before(&self, planned: Option<Planned>) -> Option<(bool, usize)> {
        let (tick, is_free, object) = *self.large_events.get(self.next_large)?;
        let end = *self.ends.get(self.frame)?;
        let begin = self.frame.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let place = wide(tick.saturating_sub(begin)) / wide(end.saturating_sub(begin).max(1));
        let before = planned.is_none_or(|planned| place < f64::from_bits(planned.place));
        (before && tick <= end).then_some((is_free, object))
    }

    /// Replaces a planned event with the next event of the same series.
    fn advance(&mut self, planned: Planned, random: &mut Random) {
        let Planned { kind, done, count, .. } = planned;
        if let Some(mut top) = self.planned.peek_mut() {
            let done = done + 1;
            if done < count {
                *top = Reverse(Planned { place: place(kind, done, count, random), done, ..planned });
            } else {
                PeekMut::pop(top);
            }
        }
    }

    /// Records the slot of the object from the last [`Act::Allocate`].
    pub(super) fn placed(&mut self, slot: u32) {
        let group = match self.placing {
            Ok(group) => group,
            Err(object) => {
                if let Some(place) = self.large_slots.get_mut(object) {
                    *place = slot;
                }
                return;
            }
        };
        let Some(members) = self.members.get_mut(group) else { return };
        members.slots.push(slot);
        members.live += 1;
        if let Some(owed) = self.owed.get_mut(group).filter(|owed| **owed > 0 && self.urgent.is_none()) {
            *owed -= 1;
            self.urgent = Some(group);
        }
    }

    /// Draws the number of members of a group that are younger than the member to free.
    fn younger(&self, group: usize, random: &mut Random) -> usize {
        let live = self.members.get(group).map_or(0, |members| members.live);
        let bin = self.ranks.get(group).map_or(0, |ranks| ranks.draw(random));
        let below =
            |count: usize, random: &mut Random| usize::try_from(scaled(random.bits(), count as u64)).unwrap_or(0);
        let rank = |power: usize, random: &mut Random| (1 << power) - 1 + below(1 << power, random);
        let last = live.saturating_sub(1);
        match bin {
            0..ENDS => rank(bin, random).min(last),
            // In the trace, only the youngest objects of the group were freed.
            RANKS => 0,
            _ if bin < 2 * ENDS => last.saturating_sub(rank(bin - ENDS, random)),
            _ => below(live, random),
        }
    }

    /// Removes the member with this many younger members. Returns `None` if the group has no live object.
    fn free(&mut self, group: usize, younger: usize) -> Option<u32> {
        let members = self.members.get_mut(group)?;
        if members.live == 0 {
            return None;
        }
        let older = (members.live - 1).saturating_sub(younger);
        let place = if younger <= 1 << ENDS {
            nth(members.slots.iter().enumerate().rev(), younger)
        } else if older <= 1 << ENDS {
            nth(members.slots.iter().enumerate().skip(members.begin), older)
        } else {
            // The rank is in the middle. At most half of the entries are gaps.
            let at = members.slots.len() * older / members.live;
            let at = at.min(members.slots.len() - 1);
            nth(members.slots.iter().enumerate().take(at + 1).rev(), 0)
                .or_else(|| nth(members.slots.iter().enumerate(), 0))
        }?;
        let slot = members.slots.get_mut(place).map(|slot| std::mem::replace(slot, DEAD))?;
        members.live -= 1;
        while members.slots.get(members.begin) == Some(&DEAD) {
            members.begin += 1;
        }
        while members.slots.last() == Some(&DEAD) {
            members.slots.pop();
        }
        members.begin = members.begin.min(members.slots.len());
        if members.slots.len() > 64 && members.live * 2 < members.slots.len() {
            members.slots.retain(|slot| *slot != DEAD);
            members.begin = 0;
        }
        Some(slot)
    }
}

/// Draws the position of an event in its frame, as the bit pattern of a number from 0 to 1.
fn place(kind: Kind, done: u64, count: u64, random: &mut Random) -> u64 {
    let within = match kind {
        Kind::Frees => random.unit() / 2.0,
        Kind::Allocates => 0.5 + random.unit() / 2.0,
        Kind::Pulses => random.unit(),
    };
    ((wide(done) + within) / wide(count)).to_bits()
}

/// Returns the index of the live slot that follows `before` other live slots.
fn nth<'s>(slots: impl Iterator<Item = (usize, &'s u32)>, before: usize) -> Option<usize> {
    slots.filter(|(_, slot)| **slot != DEAD).nth(before).map(|(place, _)| place)
}
