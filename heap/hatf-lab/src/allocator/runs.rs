//! A manager for runs of pages, which size-class allocators take and return.

use std::collections::{BTreeSet, VecDeque};

use super::blocks::NONE;
use super::decay::Decay;
use super::pages::Pages;
use super::{Act, Acts, PAGE};

/// The policy for choosing a free run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// The smallest run that is large enough. Among equally small runs, a dirty run is preferred, then the lowest.
    Best,
    /// The lowest dirty run that is large enough but at most 64 times as large as needed. If there is none, the lowest
    /// suitable clean run.
    First,
}

/// Settings of the run manager.
#[derive(Clone, Copy, Debug)]
pub(super) struct RunSettings {
    pub(super) fit: Fit,
    /// The minimum number of pages requested from the system.
    pub(super) unit: u64,
    /// Pages at the start of each unit reserved for the allocator itself.
    pub(super) header: u64,
    /// Whether each request to the system is larger than the previous one (four steps per doubling), and units are
    /// never merged.
    pub(super) regions: bool,
    /// The minimum number of pages of a dirty run that is merged immediately. Smaller runs are merged when they are
    /// returned to the system.
    pub(super) merged: u64,
    /// The number of calls after which a dirty run is returned to the system.
    pub(super) delay: u64,
    /// The time in nanoseconds over which dirty runs are returned to the system bit by bit, or 0 if `delay` applies.
    pub(super) decay: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Used,
    /// Free and held.
    Dirty,
    /// Free, and returned to the system or never touched.
    Clean,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    start: u64,
    pages: u64,
    below: u32,
    above: u32,
    state: State,
    /// Whether the run begins a region.
    head: bool,
    /// A stamp that changes whenever the run changes, so that old queue entries become invalid.
    stamp: u64,
}

const EMPTY: Run = Run { start: 0, pages: 0, below: NONE, above: NONE, state: State::Used, head: false, stamp: 0 };

/// Runs that cover an address space from 0 without gaps. Sizes are in pages.
#[derive(Debug)]
pub(super) struct Runs {
    settings: RunSettings,
    runs: Vec<Run>,
    spare: Vec<u32>,
    top: u32,
    end: u64,
    /// The maximum number of pages.
    limit: u64,
    free: BTreeSet<(u64, u64, u64, u32)>,
    queue: VecDeque<(u64, u32, u64)>,
    stamp: u64,
    /// The pages in dirty runs.
    dirty: u64,
    decay: Decay,
    pub(super) pages: Pages,
}

/// Returns the number of the size class, rounding down. There are four classes per doubling, and each is a page larger
/// than a size class of blocks, because a large block takes a page more (`sz_psz_quantize_floor`).
fn class(pages: u64) -> u64 {
    let pages = pages.saturating_sub(1);
    if pages < 4 {
        return pages;
    }
    let power = u64::from(pages.ilog2());
    power * 4 - 4 + (pages >> (power - 2) & 3)
}

impl Runs {
    pub(super) fn new(settings: RunSettings, limit: u64) -> Self {
        Self {
            settings,
            runs: Vec::new(),
            spare: Vec::new(),
            top: NONE,
            end: 0,
            limit: limit / PAGE,
            free: BTreeSet::new(),
            queue: VecDeque::new(),
            stamp: 0,
            dirty: 0,
            decay: Decay::default(),
            pages: Pages::default(),
        }
    }

    /// Returns the bytes obtained from the system.
    pub(super) fn heap(&self) -> u64 {
        self.end * PAGE
    }

    /// Returns the number of records of runs. Records are reused, but never freed.
    pub(super) fn records(&self) -> u64 {
        self.runs.len() as u64
    }

    fn get(&self, id: u32) -> Run {
        self.runs.get(id as usize).copied().unwrap_or(EMPTY)
    }

    fn edit(&mut self, id: u32, edit: impl FnOnce(&mut Run)) {
        if let Some(run) = self.runs.get_mut(id as usize) {
            edit(run);
        }
    }

    /// Returns the address of a run.
    pub(super) fn address(&self, id: u32) -> u64 {
        self.get(id).start * PAGE
    }

    /// Returns the bytes of a run.
    pub(super) fn bytes(&self, id: u32) -> u64 {
        self.get(id).pages * PAGE
    }

    fn key(&self, id: u32) -> (u64, u64, u64, u32) {
        let Run { start, pages, state, .. } = self.get(id);
        let clean = u64::from(state == State::Clean);
        match self.settings.fit {
            Fit::Best => (pages, clean, start, id),
            Fit::First => (clean, class(pages), start, id),
        }
    }

    fn find(&self, need: u64, acts: &mut Acts) -> Option<u32> {
        if self.settings.fit == Fit::Best {
            acts.note(Act::Examined);
            return self.free.range((need, 0, 0, 0)..).next().map(|(.., id)| *id);
        }
        // Round up, so that every run in the class is large enough.
        let least = class(need) + u64::from(class(need.saturating_sub(1)) == class(need) && need > 1);
        let mut found = None;
        for clean in 0..2 {
            let most = if clean == 0 { least + 4 * 6 } else { u64::MAX - 1 };
            let mut at = least;
            while let Some(&(is_clean, class, start, id)) = self.free.range((clean, at, 0, 0)..).next() {
                acts.note(Act::Examined);
                if is_clean != clean || class > most {
                    break;
                }
                if found.is_none_or(|(lowest, _)| start < lowest) {
                    found = Some((start, id));
                }
                at = class + 1;
            }
            if found.is_some() {
                break;
            }
        }
        found.map(|(_, id)| id)
    }

    fn add(&mut self, run: Run) -> Option<u32> {
        if let Some(id) = self.spare.pop() {
            self.edit(id, |place| *place = run);
            return Some(id);
        }
        let id = u32::try_from(self.runs.len()).ok().filter(|id| *id != NONE)?;
        self.runs.push(run);
        Some(id)
    }

    /// Appends a run at the end.
    fn push(&mut self, pages: u64, state: State) -> Option<u32> {
        let id = self.add(Run { start: self.end, pages, below: self.top, state, ..EMPTY })?;
        let top = self.top;
        self.edit(top, |run| run.above = id);
        (self.top, self.end) = (id, self.end + pages);
        Some(id)
    }

    fn grow(&mut self, need: u64, acts: &mut Acts) -> Option<u32> {
        let RunSettings { mut unit, header, regions, .. } = self.settings;
        if regions {
            while unit < need {
                unit = unit.checked_add(1 << (unit.ilog2() - 2))?;
            }
        }
        let pages = need.checked_add(header)?.checked_next_multiple_of(unit)?;
        self.end.checked_add(pages).filter(|end| *end <= self.limit)?;
        acts.note(Act::Sbrk);
        if header > 0 {
            self.push(header, State::Used)?;
        }
        if regions {
            self.settings.unit = unit + (1 << (unit.ilog2() - 2));
        }
        let id = self.push(pages - header, State::Clean)?;
        self.edit(id, |run| run.head = regions);
        self.settle(id);
        let id = self.top;
        debug_assert!(self.get(id).pages >= need, "the new run is large enough");
        Some(id)
    }

    /// Merges a free run with neighbours in the same state and adds it to the free list. Returns the resulting run.
    fn settle(&mut self, id: u32) -> u32 {
        let Run { state, pages, .. } = self.get(id);
        let (mut id, merges) = (id, state == State::Clean || pages >= self.settings.merged);
        // A run whose merge was deferred can have several neighbours in the same state.
        loop {
            let Run { above, below, head, .. } = self.get(id);
            let next = self.get(above);
            if merges && above != NONE && next.state == state && !next.head {
                self.free.remove(&self.key(above));
                self.absorb(id, above);
            } else if merges && below != NONE && !head && self.get(below).state == state {
                self.free.remove(&self.key(below));
                self.absorb(below, id);
                id = below;
            } else {
                break;
            }
        }
        self.stamp += 1;
        let stamp = self.stamp;
        self.edit(id, |run| run.stamp = stamp);
        self.free.insert(self.key(id));
        id
    }

    /// Merges the run above into the run below.
    fn absorb(&mut self, below: u32, above: u32) {
        let Run { pages, above: next, .. } = self.get(above);
        self.edit(below, |run| {
            run.pages += pages;
            run.above = next;
        });
        self.edit(next, |run| run.below = below);
        if self.top == above {
            self.top = below;
        }
        // Invalidate old queue entries of the run.
        self.edit(above, |run| *run = EMPTY);
        self.spare.push(above);
    }

    /// Takes a run of this size. Returns `None` if the address space is full.
    pub(super) fn take(&mut self, need: u64, acts: &mut Acts) -> Option<u32> {
        let need = need.max(1);
        let id = match self.find(need, acts) {
            Some(id) => id,
            None => self.grow(need, acts)?,
        };
        self.free.remove(&self.key(id));
        let Run { start, pages, below, state, head, .. } = self.get(id);
        acts.note(Act::Unlinked);
        if state == State::Dirty {
            self.dirty -= need;
        }
        if pages == need {
            self.edit(id, |run| run.state = State::Used);
            return Some(id);
        }
        acts.note(Act::Split);
        let used = self.add(Run { start, pages: need, below, above: id, head, ..EMPTY })?;
        self.edit(below, |run| run.above = used);
        self.edit(id, |run| {
            run.start += need;
            run.pages -= need;
            run.below = used;
            (run.state, run.head) = (state, false);
        });
        self.free.insert(self.key(id));
        Some(used)
    }

    /// Frees a run at call number `clock`. Returns the run that contains it after merging.
    pub(super) fn put(&mut self, id: u32, clock: u64, acts: &mut Acts) -> u32 {
        let listed = self.free.len();
        self.dirty += self.get(id).pages;
        self.edit(id, |run| run.state = State::Dirty);
        let id = self.settle(id);
        acts.note(Act::Inserted);
        acts.add(Act::Merged, (listed + 1 - self.free.len()) as u64);
        self.queue.push_back((clock, id, self.get(id).stamp));
        if self.queue.len() > 4 * self.free.len() + 1024 {
            let runs = &self.runs;
            let current = |id: u32, stamp: u64| runs.get(id as usize).is_some_and(|run| run.stamp == stamp);
            self.queue.retain(|(_, id, stamp)| current(*id, *stamp));
        }
        self.expire(clock, acts);
        id
    }

    /// Resizes a used run in place, if it shrinks or the free run above is large enough.
    pub(super) fn resize(&mut self, id: u32, pages: u64, clock: u64, acts: &mut Acts) -> Option<()> {
        let Run { start, pages: now, above, .. } = self.get(id);
        if pages > now {
            let next = self.get(above);
            if above == NONE || next.head || next.state == State::Used || next.pages < pages - now {
                return None;
            }
            acts.note(Act::Merged);
            if next.state == State::Dirty {
                self.dirty -= pages - now;
            }
            self.free.remove(&self.key(above));
            if next.pages == pages - now {
                self.absorb(id, above);
                return Some(());
            }
            self.edit(above, |run| {
                run.start += pages - now;
                run.pages -= pages - now;
            });
            self.edit(id, |run| run.pages = pages);
            self.free.insert(self.key(above));
        } else if pages < now {
            acts.note(Act::Split);
            let rest = Run { start: start + pages, pages: now - pages, below: id, above, ..EMPTY };
            let rest = self.add(rest)?;
            self.edit(above, |run| run.below = rest);
            self.edit(id, |run| (run.pages, run.above) = (pages, rest));
            if self.top == id {
                self.top = rest;
            }
            self.put(rest, clock, acts);
        }
        Some(())
    }

    /// Returns dirty runs to the system that have been unused for the delay.
    #[inline]
    pub(super) fn expire(&mut self, clock: u64, acts: &mut Acts) {
        while self.queue.front().is_some_and(|(since, ..)| since.saturating_add(self.settings.delay) <= clock) {
            let Some((_, id, stamp)) = self.queue.pop_front() else { return };
            if self.get(id).stamp == stamp {
                self.give_back(id, acts);
            }
        }
    }

    /// Returns dirty runs to the system, the oldest first, as the decay requires at this time.
    pub(super) fn at(&mut self, time: u64, acts: &mut Acts) {
        let (decay, dirty) = (self.settings.decay, self.dirty);
        if decay == 0 {
            return;
        }
        let Some(most) = self.decay.advance(time, decay, dirty) else { return };
        while self.dirty > most
            && let Some(id) = self.oldest()
        {
            self.give_back(id, acts);
        }
    }

    /// Returns a dirty run to the system and returns its number of pages.
    pub(super) fn give_back(&mut self, id: u32, acts: &mut Acts) -> u64 {
        let Run { start, pages, state, .. } = self.get(id);
        if state != State::Dirty {
            return 0;
        }
        self.dirty -= pages;
        self.free.remove(&self.key(id));
        self.pages.release(start * PAGE, pages * PAGE);
        acts.note(Act::Returned);
        self.edit(id, |run| run.state = State::Clean);
        self.settle(id);
        pages
    }

    /// Returns the dirty run that has been free the longest.
    pub(super) fn oldest(&mut self) -> Option<u32> {
        while let Some((_, id, stamp)) = self.queue.pop_front() {
            let run = self.get(id);
            if run.stamp == stamp && run.state == State::Dirty {
                return Some(id);
            }
        }
        None
    }

    /// Checks that the runs cover the address space, that free runs are listed, and that all mergeable runs are merged.
    pub(super) fn check(&self) -> Result<(), String> {
        let (mut at, mut end, mut free, mut count, mut dirty) = (self.top, self.end, 0, 0, 0);
        while at != NONE {
            let run = self.get(at);
            let above = self.get(run.above);
            if run.start + run.pages != end || run.above != NONE && above.below != at {
                return Err(format!("a gap below page {end}"));
            }
            if run.state != State::Used {
                if !self.free.contains(&self.key(at)) {
                    return Err(format!("the free run at page {} is not listed", run.start));
                }
                if run.above != NONE && run.state == State::Clean && above.state == State::Clean && !above.head {
                    return Err(format!("adjacent free runs at page {end}"));
                }
                free += 1;
                dirty += if run.state == State::Dirty { run.pages } else { 0 };
            }
            (at, end, count) = (run.below, run.start, count + 1);
        }
        if end != 0 || free != self.free.len() || count + self.spare.len() != self.runs.len() {
            return Err(format!(
                "{count} runs reach down to page {end}; {free} are free, but the free list has {}",
                self.free.len()
            ));
        }
        if dirty != self.dirty {
            return Err(format!("{dirty} pages are dirty, but {} were counted", self.dirty));
        }
        self.pages.check()
    }
}
