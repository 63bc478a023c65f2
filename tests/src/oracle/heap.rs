//! The model of a heap, after the specification's section 4.2.2: lists are lists, and what is looked for is searched.

use super::Wrong;

/// Where an entry is.
#[derive(Clone, Copy, PartialEq)]
enum Is {
    Live,
    Freed,
    Forgotten,
}

struct Entry {
    address: u64,
    is: Is,
    context: usize,
    /// The rounded size of its class.
    class: u64,
    /// Frees before its own.
    stamp: usize,
}

/// The freed entries of a rounded size, from the oldest to the newest.
struct Class {
    round: u64,
    list: Vec<usize>,
    older: Option<usize>,
    newer: Option<usize>,
    fresh: u64,
    step: u64,
}

struct Context {
    by: u64,
    order: Vec<Option<usize>>,
    mark: usize,
    last_freed: Option<usize>,
    recent: Vec<usize>,
    bumps: Vec<u64>,
    last_miss: u64,
    classes: Vec<Class>,
}

pub(super) struct Heap {
    rule: u64,
    entries: Vec<Entry>,
    /// Forgotten entries, the one forgotten last at the end.
    forgotten: Vec<usize>,
    /// Frees so far.
    frees: usize,
    most_live: usize,
    contexts: Vec<Context>,
}

type Element<'e> = &'e mut dyn FnMut() -> Result<u64, Wrong>;

const NO_CANDIDATE: &str = "a code without a candidate";

impl Heap {
    fn new(rule: u64) -> Self {
        let (entries, forgotten, contexts) = (Vec::new(), Vec::new(), Vec::new());
        Self { rule, entries, forgotten, frees: 0, most_live: 0, contexts }
    }

    /// Reads how a heap begins.
    pub(super) fn open(element: Element<'_>) -> Result<Self, Wrong> {
        let rule = element()?;
        if rule > 1 {
            return Err("an unknown size rule".into());
        }
        let mut heap = Self::new(rule);
        for _ in 0..element()? {
            let by = element()?;
            let mut end = 0_u64;
            for _ in 0..element()? {
                let (address, size) = (end.wrapping_add(unfold(element()?)), element()?);
                heap.allocate(by, size, address, 46);
                end = address.wrapping_add(heap.round(size));
            }
        }
        Ok(heap)
    }

    fn round(&self, size: u64) -> u64 {
        if self.rule == 0 {
            return (size.saturating_add(23) / 16 * 16).max(32);
        }
        if size <= 128 {
            return size.max(1).div_ceil(16) * 16;
        }
        let mut power = 1_u64;
        while power <= (size - 1) / 2 {
            power *= 2;
        }
        let unit = power / 4;
        size.saturating_add(unit - 1) / unit * unit
    }

    /// The context of a value.
    fn find(&self, by: u64) -> Option<usize> {
        self.contexts.iter().position(|c| c.by == by)
    }

    fn find_or_make(&mut self, by: u64) -> usize {
        self.find(by).unwrap_or_else(|| {
            self.contexts.push(Context::new(by));
            self.contexts.len() - 1
        })
    }

    fn address_of(&self, entry: usize) -> Result<u64, Wrong> {
        Ok(self.entries[entry].address)
    }

    /// The address of a new object by its code, learnt.
    pub(super) fn allocated(&mut self, by: u64, size: u64, code: u64, element: Element<'_>) -> Result<u64, Wrong> {
        let address = self.allocated_at(by, size, code, element)?;
        self.allocate(by, size, address, code);
        Ok(address)
    }

    fn allocated_at(&self, by: u64, size: u64, code: u64, element: Element<'_>) -> Result<u64, Wrong> {
        let context = self.find(by).map(|k| &self.contexts[k]);
        if code == 46 {
            return Ok(0);
        }
        if code == 45 {
            return Ok(context.map_or(0, |c| c.last_miss).wrapping_add(unfold(element()?)));
        }
        let context = context.ok_or(NO_CANDIDATE)?;
        let class = context.classes.iter().find(|c| c.round == self.round(size)).ok_or(NO_CANDIDATE);
        let entry = match code {
            0 => class?.list.last().copied(),
            1 => context.last_freed,
            2 => class?.older,
            3 => class?.newer,
            4 => return class.map(|c| c.fresh.wrapping_add(c.step)).map_err(Wrong::from),
            5..=12 => return Ok(context.bumps[code as usize - 5]),
            13..=36 => class?.list.iter().rev().nth(code as usize - 13).copied(),
            37..=44 => class?.list.get(code as usize - 37).copied(),
            47..=174 => context.recent.get(code as usize - 47).copied(),
            _ => None,
        };
        let entry = entry.filter(|&e| self.entries[e].is == Is::Freed).ok_or(NO_CANDIDATE)?;
        self.address_of(entry)
    }

    fn allocate(&mut self, by: u64, size: u64, address: u64, code: u64) {
        if address == 0 {
            return;
        }
        let round = self.round(size);
        let k = self.find_or_make(by);
        let entry = self.entry_at(address);
        self.contexts[k].class(round);
        self.learn_of_fresh_memory(k, round, address, code);
        if self.contexts[k].last_freed == Some(entry) {
            self.contexts[k].last_freed = None;
        }
        self.entries[entry] = Entry { address, is: Is::Live, context: k, class: round, stamp: 0 };
        self.contexts[k].order.push(Some(entry));
        let live = self.entries.iter().filter(|e| e.is == Is::Live).count();
        self.most_live = self.most_live.max(live);
        self.contexts[k].close_up();
        self.stay_in_bounds();
    }

    /// A heap that knows too much begins again.
    fn stay_in_bounds(&mut self) {
        let known = self.entries.len() - self.forgotten.len();
        if self.contexts.len() >= 4096 || known >= 1 << 21 {
            *self = Self::new(self.rule);
        }
    }

    /// The entry of an address, taken out of what it is in; or a new one.
    fn entry_at(&mut self, address: u64) -> usize {
        let known = self.entries.iter().position(|e| e.is != Is::Forgotten && e.address == address);
        let Some(entry) = known else {
            return self.forgotten.pop().unwrap_or_else(|| {
                self.entries.push(Entry { address, is: Is::Forgotten, context: 0, class: 0, stamp: 0 });
                self.entries.len() - 1
            });
        };
        let Entry { is, context, class, .. } = self.entries[entry];
        let context = &mut self.contexts[context];
        if is == Is::Freed {
            let class = context.class(class);
            let at = class.list.iter().position(|e| *e == entry).expect("a freed entry is in its class");
            class.list.remove(at);
            class.older = at.checked_sub(1).map(|at| class.list[at]);
            class.newer = class.list.get(at).copied();
        } else {
            context.take_from_order(entry);
        }
        entry
    }

    fn learn_of_fresh_memory(&mut self, k: usize, round: u64, address: u64, code: u64) {
        let context = &mut self.contexts[k];
        let out = match code {
            5..=12 => Some(code as usize - 5),
            45 | 47..=174 => Some(7),
            _ => None,
        };
        if let Some(out) = out {
            context.bumps.remove(out);
            context.bumps.insert(0, address.wrapping_add(round));
        }
        if matches!(code, 4 | 45 | 47..=174) {
            let class = context.class(round);
            let step = address.wrapping_sub(class.fresh);
            class.step = if class.fresh != 0 && step <= 1 << 20 { step } else { round };
            class.fresh = address;
        }
        if code == 45 {
            context.last_miss = address;
        }
    }

    /// The address of an object that is freed or used; what is freed is learnt.
    pub(super) fn ended(&mut self, by: u64, code: u64, frees: bool, element: Element<'_>) -> Result<u64, Wrong> {
        let k = self.find(by);
        if code == 51 {
            return Ok(0);
        }
        if code == 50 {
            return Ok(k.map_or(0, |k| self.contexts[k].last_miss).wrapping_add(unfold(element()?)));
        }
        let entry = if code == 49 {
            let (context, behind) = (element()?, element()?);
            let context = usize::try_from(context).ok().and_then(|c| self.contexts.get(c)).ok_or(NO_CANDIDATE)?;
            let behind = usize::try_from(behind).map_err(|_| NO_CANDIDATE)?;
            *context.order.iter().rev().nth(behind).ok_or(NO_CANDIDATE)?
        } else {
            self.contexts[k.ok_or(NO_CANDIDATE)?].named(code, element)?
        };
        let entry = entry.ok_or(NO_CANDIDATE)?;
        let address = self.address_of(entry);
        if frees {
            self.free(by, entry);
            self.stay_in_bounds();
        }
        address
    }

    fn free(&mut self, by: u64, entry: usize) {
        let k = self.find_or_make(by);
        let owner = self.entries[entry].context;
        let slot = self.contexts[owner].take_from_order(entry);
        let context = &mut self.contexts[k];
        if owner == k {
            context.mark = slot;
        }
        context.class(self.entries[entry].class).list.push(entry);
        context.last_freed = Some(entry);
        context.recent.insert(0, entry);
        context.recent.truncate(128);
        self.entries[entry].context = k;
        self.entries[entry].is = Is::Freed;
        self.entries[entry].stamp = self.frees;
        self.frees += 1;
        let kept = 4096 + 4 * self.most_live;
        if self.entries.iter().filter(|e| e.is == Is::Freed).count() > kept {
            for entry in 0..self.entries.len() {
                let e = &self.entries[entry];
                if e.is == Is::Freed && self.frees - e.stamp > kept / 2 {
                    self.forget(entry);
                }
            }
        }
    }

    fn forget(&mut self, entry: usize) {
        self.entries[entry].is = Is::Forgotten;
        self.forgotten.push(entry);
        let Entry { context, class, .. } = self.entries[entry];
        let class = self.contexts[context].class(class);
        let at = class.list.iter().position(|e| *e == entry).expect("a freed entry is in its class");
        class.list.remove(at);
        if class.older == Some(entry) {
            class.older = at.checked_sub(1).map(|at| class.list[at]);
        }
        if class.newer == Some(entry) {
            class.newer = class.list.get(at).copied();
        }
    }
}

impl Context {
    fn new(by: u64) -> Self {
        let (order, recent, classes) = (Vec::new(), Vec::new(), Vec::new());
        Self { by, order, mark: 0, last_freed: None, recent, bumps: vec![0; 8], last_miss: 0, classes }
    }

    fn class(&mut self, round: u64) -> &mut Class {
        let at = self.classes.iter().position(|c| c.round == round).unwrap_or_else(|| {
            self.classes.push(Class { round, list: Vec::new(), older: None, newer: None, fresh: 0, step: round });
            self.classes.len() - 1
        });
        &mut self.classes[at]
    }

    /// The slot it was in.
    fn take_from_order(&mut self, entry: usize) -> usize {
        let slot = self.order.iter().position(|e| *e == Some(entry)).expect("a live entry is in the order");
        self.order[slot] = None;
        while self.order.last() == Some(&None) {
            self.order.pop();
        }
        slot
    }

    fn close_up(&mut self) {
        let used = self.order.iter().flatten().count();
        if self.order.len() > 1024 && self.order.len() > 2 * used {
            self.mark = self.order.iter().take(self.mark).flatten().count();
            self.order.retain(Option::is_some);
        }
    }

    /// The live entry of a code up to 48.
    fn named(&self, code: u64, element: Element<'_>) -> Result<Option<usize>, Wrong> {
        let before = &self.order[..self.mark.min(self.order.len())];
        let after = self.order.get(self.mark + 1..).unwrap_or_default();
        Ok(match code {
            0..=31 => self.order.iter().rev().take(64).flatten().nth(code as usize),
            32..=39 => after.iter().take(64).flatten().nth(code as usize - 32),
            40..=47 => before.iter().rev().take(64).flatten().nth(code as usize - 40),
            48 => {
                let slot = (self.mark as u64).wrapping_add(unfold(element()?));
                usize::try_from(slot).ok().and_then(|slot| self.order.get(slot)).and_then(Option::as_ref)
            }
            _ => None,
        }
        .copied())
    }
}

fn unfold(element: u64) -> u64 {
    if element.is_multiple_of(2) { element / 2 } else { !(element / 2) }
}
