//! Heap model, after section 4.2.2 of the specification. Lists are plain lists, and lookups are linear searches.
//!
//! Any of its [rules](Rule) can be broken, which `holds` checks.

use super::{Rule, Rules, Wrong};
use std::collections::{HashMap, HashSet};

/// State of an address that the heap model remembers.
#[derive(Clone, Copy)]
struct Known {
    live: bool,
    context: usize,
    /// Rounded size of its class.
    class: u64,
    /// Number of frees before its own last free.
    stamp: usize,
}

/// Freed addresses of a rounded size, from oldest to newest.
#[derive(Clone)]
struct Class {
    list: Vec<u64>,
    older: Option<u64>,
    newer: Option<u64>,
    fresh: u64,
}

#[derive(Clone)]
struct Context {
    order: Vec<Option<u64>>,
    /// Number of slots in use.
    used: usize,
    mark: usize,
    recent: Vec<u64>,
    bumps: Vec<u64>,
    last_miss: u64,
    classes: HashMap<u64, Class>,
}

#[derive(Clone)]
pub(crate) struct Heap {
    rules: Rules,
    rule: u64,
    known: HashMap<u64, Known>,
    /// Forgotten addresses that are still candidates if that rule is broken.
    forgotten: HashSet<u64>,
    live: usize,
    most_live: usize,
    /// Number of frees so far.
    frees: usize,
    contexts: Vec<Context>,
    /// Contexts by the value of the `by` leaf.
    by: HashMap<u64, usize>,
}

type Element<'e> = &'e mut dyn FnMut() -> Result<u64, Wrong>;

const NO_CANDIDATE: &str = "a code without a candidate";

impl Heap {
    fn new(rule: u64, rules: Rules) -> Self {
        let (known, forgotten, contexts, by) = (HashMap::new(), HashSet::new(), Vec::new(), HashMap::new());
        Self { rules, rule, known, forgotten, live: 0, most_live: 0, frees: 0, contexts, by }
    }

    fn holds(&self, rule: Rule) -> bool {
        self.rules.holds(rule)
    }

    /// Reads the opening elements of a heap.
    pub(crate) fn open(rules: Rules, element: Element<'_>) -> Result<Self, Wrong> {
        let rule = element()?;
        if rule > 1 {
            return Err("an unknown size rule".into());
        }
        let mut heap = Self::new(rule, rules);
        for _ in 0..element()? {
            let by = element()?;
            let mut end = 0_u64;
            for _ in 0..element()? {
                let (address, size) = (end.wrapping_add(unfold(element()?)), element()?);
                heap.allocate(by, size, address, 37);
                end = address.wrapping_add(heap.round(size));
            }
        }
        Ok(heap)
    }

    fn round(&self, size: u64) -> u64 {
        let add = |more: u64, rule| {
            if self.holds(rule) { size.saturating_add(more) } else { size.wrapping_add(more) }
        };
        if self.rule == 0 {
            return (add(23, Rule::SizeCutOfRule0) / 16 * 16).max(32);
        }
        if size <= 128 {
            return size.max(1).div_ceil(16) * 16;
        }
        let mut power = 1_u64;
        while power <= size / 2 {
            power *= 2;
        }
        let unit = power / 4;
        add(unit - 1, Rule::SizeCutOfRule1) / unit * unit
    }

    /// Returns the context of a value, creating it if necessary.
    fn context(&mut self, by: u64) -> usize {
        let next = self.contexts.len();
        let k = *self.by.entry(by).or_insert(next);
        if k == next {
            self.contexts.push(Context::new());
        }
        k
    }

    /// Returns the number of live objects.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// Returns the address of a new object from a code without elements, without updating the model.
    pub(crate) fn peek(&self, by: u64, size: u64, code: u64) -> Option<u64> {
        self.allocated_at(by, size, code, &mut || Err("no element".into())).ok()
    }

    /// Returns the address of a new object from its code, and updates the model.
    pub(crate) fn allocated(&mut self, by: u64, size: u64, code: u64, element: Element<'_>) -> Result<u64, Wrong> {
        let address = self.allocated_at(by, size, code, element)?;
        self.allocate(by, size, address, code);
        Ok(address)
    }

    fn allocated_at(&self, by: u64, size: u64, code: u64, element: Element<'_>) -> Result<u64, Wrong> {
        let context = self.by.get(&by).map(|k| &self.contexts[*k]);
        if code == 37 {
            return Ok(0);
        }
        if code == 36 {
            return Ok(context.map_or(0, |c| c.last_miss).wrapping_add(unfold(element()?)));
        }
        let context = context.ok_or(NO_CANDIDATE)?;
        let class = context.classes.get(&self.round(size)).ok_or(NO_CANDIDATE);
        let address = match code {
            0 => class?.list.last().copied(),
            1 => class?.older,
            2 => class?.newer,
            3 => return class.map(|class| class.fresh).map_err(Wrong::from),
            4..=11 => return Ok(context.bumps[code as usize - 4]),
            12..=35 => class?.list.iter().rev().nth(code as usize - 12).copied(),
            38..=165 => context.recent.get(code as usize - 38).copied(),
            _ => None,
        };
        let freed = |address: &u64| match self.known.get(address) {
            Some(known) => !known.live,
            None => self.forgotten.contains(address),
        };
        Ok(address.filter(freed).ok_or(NO_CANDIDATE)?)
    }

    fn allocate(&mut self, by: u64, size: u64, address: u64, code: u64) {
        if address == 0 {
            return;
        }
        let round = self.round(size);
        let k = self.context(by);
        self.take(address);
        self.contexts[k].class(round);
        self.learn_of_fresh_memory(k, round, address, code);
        if !self.holds(Rule::RecentKeeps) {
            self.contexts.iter_mut().for_each(|context| context.recent.retain(|a| *a != address));
        }
        self.known.insert(address, Known { live: true, context: k, class: round, stamp: 0 });
        self.live += 1;
        self.most_live = if self.holds(Rule::ForgetsByMostLive) { self.most_live.max(self.live) } else { self.live };
        let rules = self.rules;
        self.contexts[k].order.push(Some(address));
        self.contexts[k].used += 1;
        self.contexts[k].close_up(rules);
        self.stay_in_bounds();
    }

    /// Resets a heap model that exceeds its bounds.
    fn stay_in_bounds(&mut self) {
        let addresses = if self.holds(Rule::EmptiedByAddresses) { self.known.len() } else { 0 };
        let contexts = if self.holds(Rule::EmptiedByContexts) { 512 * self.contexts.len() } else { 0 };
        if addresses + contexts >= 1 << 21 {
            let rule = if self.holds(Rule::EmptiedKeepsRule) { self.rule } else { 0 };
            let most = if self.holds(Rule::EmptiedForgetsMost) { 0 } else { self.most_live };
            *self = Self { most_live: most, ..Self::new(rule, self.rules) };
        }
    }

    /// Removes a known address from the structures that contain it.
    fn take(&mut self, address: u64) {
        let Some(&Known { live, context, class, .. }) = self.known.get(&address) else { return };
        let (older, newer) = (self.holds(Rule::Older), self.holds(Rule::Newer));
        let (leaves, no_mark) = (self.holds(Rule::LiveAgainLeaves), self.holds(Rule::LiveAgainNoMark));
        let rules = self.rules;
        let context = &mut self.contexts[context];
        if !live {
            let class = context.class(class);
            let at = class.list.iter().position(|a| *a == address).expect("what is freed is in its class");
            class.list.remove(at);
            if older {
                class.older = at.checked_sub(1).map(|at| class.list[at]);
            }
            if newer {
                class.newer = class.list.get(at).copied();
            }
            return;
        }
        self.live -= 1;
        if leaves {
            let slot = context.take_from_order(address, rules);
            if !no_mark {
                context.mark = slot;
            }
        }
    }

    fn learn_of_fresh_memory(&mut self, k: usize, round: u64, address: u64, code: u64) {
        let holds = |rule| self.rules.holds(rule);
        let context = &mut self.contexts[k];
        let out = match code {
            4..=11 => Some(code as usize - 4),
            3 if !holds(Rule::BumpsNotByFresh) => Some(7),
            36 if holds(Rule::BumpsByMiss) => Some(7),
            37 if !holds(Rule::BumpsNotByCarried) => Some(7),
            38..=165 if holds(Rule::BumpsByRecent) => Some(7),
            _ => None,
        };
        if let Some(out) = out {
            context.bumps.remove(out);
            let to = if holds(Rule::BumpsToFront) || out == 7 { 0 } else { out };
            context.bumps.insert(to, address.wrapping_add(round));
        }
        let fresh = match code {
            3 => true,
            4..=11 => !holds(Rule::FreshNotByBump),
            36 => holds(Rule::FreshByMiss),
            37 => !holds(Rule::FreshNotByCarried),
            38..=165 => holds(Rule::FreshByRecent),
            _ => false,
        };
        if fresh {
            context.class(round).fresh = address.wrapping_add(round);
        }
        if code == 36 {
            context.last_miss = address;
        }
    }

    /// Returns the address of an object that is freed or used. A free updates the model.
    pub(crate) fn ended(&mut self, by: u64, code: u64, frees: bool, element: Element<'_>) -> Result<u64, Wrong> {
        let k = self.by.get(&by).copied();
        if code == 51 {
            return Ok(0);
        }
        if code == 50 {
            let address = k.map_or(0, |k| self.contexts[k].last_miss).wrapping_add(unfold(element()?));
            if let Some(k) = k.filter(|_| !self.holds(Rule::LastMissOfAllocations)) {
                self.contexts[k].last_miss = address;
            }
            return Ok(address);
        }
        let address = if code == 49 {
            let (context, behind) = (element()?, element()?);
            let context = usize::try_from(context).ok().and_then(|c| self.contexts.get(c)).ok_or(NO_CANDIDATE)?;
            let behind = usize::try_from(behind).map_err(|_| NO_CANDIDATE)?;
            *context.order.iter().rev().nth(behind).ok_or(NO_CANDIDATE)?
        } else {
            self.contexts[k.ok_or(NO_CANDIDATE)?].named(code, self.rules, element)?
        };
        // With all rules intact, every address in an order is live.
        let live = |address: &u64| self.known.get(address).is_some_and(|known| known.live);
        let address = address.filter(live).ok_or(NO_CANDIDATE)?;
        if frees {
            self.free(by, address);
            self.stay_in_bounds();
        }
        Ok(address)
    }

    fn free(&mut self, by: u64, address: u64) {
        let k = self.context(by);
        let Known { context: owner, class, .. } = self.known[&address];
        let rules = self.rules;
        let slot = self.contexts[owner].take_from_order(address, rules);
        self.live -= 1;
        if owner == k || !self.holds(Rule::ForeignFreeOfOwner) {
            self.contexts[owner].mark = slot;
        } else if !self.holds(Rule::ForeignFreeOfOther) {
            self.contexts[k].mark = slot;
        }
        let home = if self.holds(Rule::ForeignFreeMoves) { k } else { owner };
        self.contexts[home].class(class).list.push(address);
        let context = &mut self.contexts[k];
        if !rules.holds(Rule::RecentRepeats) {
            context.recent.retain(|a| *a != address);
        }
        context.recent.insert(0, address);
        context.recent.truncate(if !rules.holds(Rule::RecentLength) { 127 } else { 128 });
        self.known.insert(address, Known { live: false, context: home, class, stamp: self.frees });
        self.frees += 1;
        self.forget_surplus();
    }

    fn forget_surplus(&mut self) {
        let most = if self.holds(Rule::ForgetsByMostLive) { self.most_live } else { self.live };
        let kept = 4096 + if self.holds(Rule::ForgetsByLive) { 4 } else { 3 } * most;
        let freed = self.known.len() - self.live;
        if freed < kept + usize::from(self.holds(Rule::ForgetsOverBound)) || !self.holds(Rule::Forgets) {
            return;
        }
        let stay = kept / 2 - usize::from(!self.holds(Rule::ForgetsOlderHalf));
        let old = |known: &Known| !known.live && self.frees - known.stamp > stay;
        let old: Vec<u64> = self.known.iter().filter(|(_, known)| old(known)).map(|(address, _)| *address).collect();
        for address in old {
            self.forget(address);
        }
    }

    fn forget(&mut self, address: u64) {
        let (older, newer) = (self.holds(Rule::ForgottenOlder), self.holds(Rule::ForgottenNewer));
        let Some(Known { context, class, .. }) = self.known.remove(&address) else { return };
        if !self.holds(Rule::ForgottenIsNoCandidate) {
            self.forgotten.insert(address);
        }
        let class = self.contexts[context].class(class);
        let at = class.list.iter().position(|a| *a == address).expect("what is freed is in its class");
        class.list.remove(at);
        if class.older == Some(address) && older {
            class.older = at.checked_sub(1).map(|at| class.list[at]);
        }
        if class.newer == Some(address) && newer {
            class.newer = class.list.get(at).copied();
        }
        if !self.holds(Rule::ForgottenIsRecent) {
            self.contexts.iter_mut().for_each(|context| context.recent.retain(|a| *a != address));
        }
    }
}

impl Context {
    fn new() -> Self {
        let (order, recent, classes) = (Vec::new(), Vec::new(), HashMap::new());
        Self { order, used: 0, mark: 0, recent, bumps: vec![0; 8], last_miss: 0, classes }
    }

    fn class(&mut self, round: u64) -> &mut Class {
        let new = || Class { list: Vec::new(), older: None, newer: None, fresh: 0 };
        self.classes.entry(round).or_insert_with(new)
    }

    /// Removes an address from the order and returns its slot.
    fn take_from_order(&mut self, address: u64, rules: Rules) -> usize {
        let slot = self.order.iter().rposition(|a| *a == Some(address)).expect("what is live is in the order");
        self.order[slot] = None;
        self.used -= 1;
        while self.order.last() == Some(&None) && rules.holds(Rule::DropsEmptySlots) {
            self.order.pop();
        }
        slot
    }

    fn close_up(&mut self, rules: Rules) {
        let length = if !rules.holds(Rule::ClosesUpLength) { 1024 } else { 1025 };
        let share = 2 * self.used + usize::from(rules.holds(Rule::ClosesUpShare));
        if self.order.len() >= length && self.order.len() >= share && rules.holds(Rule::ClosesUp) {
            if rules.holds(Rule::ClosesUpMark) {
                self.mark = self.order.iter().take(self.mark).flatten().count();
            }
            self.order.retain(Option::is_some);
        }
    }

    /// Returns the live address that a code of 48 or less names.
    fn named(&self, code: u64, rules: Rules, element: Element<'_>) -> Result<Option<u64>, Wrong> {
        let broken = |rule| usize::from(!rules.holds(rule));
        let end = if broken(Rule::MarkPastEnd) == 1 { self.mark } else { self.mark.min(self.order.len()) };
        let end = end + broken(Rule::MarkNotBefore);
        let start = self.mark + 1 - broken(Rule::MarkNotAfter);
        let slots = |from: usize, to: usize| self.order.get(from..to.min(self.order.len())).unwrap_or_default();
        let newest = slots(self.order.len().saturating_sub(64 + broken(Rule::WindowOfNewest)), self.order.len());
        let after = slots(start, start + 64 + broken(Rule::WindowAfterMark));
        let before = slots(end.saturating_sub(64 + broken(Rule::WindowBeforeMark)), end);
        Ok(match code {
            0..=31 => newest.iter().rev().flatten().nth(code as usize),
            32..=39 => after.iter().flatten().nth(code as usize - 32),
            40..=47 => before.iter().rev().flatten().nth(code as usize - 40),
            48 => {
                let slot = (self.mark as u64).wrapping_add(unfold(element()?));
                usize::try_from(slot).ok().and_then(|slot| self.order.get(slot)).and_then(Option::as_ref)
            }
            _ => None,
        }
        .copied())
    }
}

pub(crate) fn unfold(element: u64) -> u64 {
    if element.is_multiple_of(2) { element / 2 } else { !(element / 2) }
}
