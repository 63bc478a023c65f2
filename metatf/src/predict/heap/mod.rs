//! The heap model, which predicts the object that a free refers to and the address that an allocator returns.
//!
//! A free is coded by the position of its object in the allocation order: among the newest objects, near the most
//! recently freed object, or at a distance from the most recently freed object. An allocation is coded by the origin of
//! its address: the top of the free list of its size class, the neighbors of the block last reused from that list,
//! another block near the top of the list, a recently freed object, or fresh memory after an earlier object. All other
//! addresses are coded as distances, which are stored in the stream section.
//!
//! This file is longer than most because coding, decoding and learning must visit the same candidates in the same order
//! and are kept side by side.

mod blocks;
mod classes;
mod context;
pub(super) mod describe;
mod guess;
mod order;
mod places;

use classes::Rounding;
pub(crate) use guess::Guess;

use super::{CodedValue, NONE, fold, unfold};
use blocks::{HeapBlock, HeapBlocks};
use classes::SizeClass;
use context::{BUMPS, HeapContext, RECENT};
use hashbrown::HashMap;
use metatf_container::{ErrorKind, Result, SizeRule};
use order::LiveOrder;

/// Codes of an allocation.
mod allocated {
    use super::{BUMPS, RECENT};
    /// The newest freed object of its class.
    pub(super) const NEWEST: u64 = 0;
    /// The older and the newer neighbor of the block that was last reused from the list of the class.
    pub(super) const OLDER: u64 = 1;
    pub(super) const NEWER: u64 = 2;
    /// Directly after the last fresh object of its class.
    pub(super) const FRESH: u64 = 3;
    /// Directly after the k-th most recent object in fresh memory.
    pub(super) const BUMP: u64 = 4;
    /// The k-th object from the top of the list of its class.
    pub(super) const DEEP: u64 = BUMP + BUMPS as u64;
    pub(super) const DEPTH: u64 = 24;
    /// At a distance, given by one element, from the address of the last miss.
    pub(super) const MISS: u64 = DEEP + DEPTH;
    /// The address 0, which is not an object.
    pub(super) const NULL: u64 = MISS + 1;
    /// The object freed k frees ago.
    pub(super) const RECENTLY: u64 = NULL + 1;
    pub(super) const END: u64 = RECENTLY + RECENT as u64;
}

/// Codes of a free or a use.
mod freed {
    /// The live object that has k newer live objects.
    pub(super) const NEWEST: u64 = 0;
    pub(super) const NEWER: u64 = 32;
    /// The k-th object after the most recently freed one in the allocation order.
    pub(super) const AFTER: u64 = NEWEST + NEWER;
    pub(super) const NEAR: u64 = 8;
    /// The k-th object before the most recently freed one.
    pub(super) const BEFORE: u64 = AFTER + NEAR;
    /// At a distance, given by one element, from the most recently freed object in the allocation order.
    pub(super) const DISTANCE: u64 = BEFORE + NEAR;
    /// An object of another context, given by two elements: the context, and the number of slots from its newest
    /// object.
    pub(super) const FOREIGN: u64 = DISTANCE + 1;
    /// No live object is known at the address. One element is the distance from the address of the last miss.
    pub(super) const MISS: u64 = FOREIGN + 1;
    /// The address 0.
    pub(super) const NULL: u64 = MISS + 1;
}

/// The heap model. See the module documentation.
#[derive(Clone, Debug)]
pub(crate) struct Heap {
    rule: SizeRule,
    blocks: HeapBlocks,
    contexts: Vec<HeapContext>,
    by: HashMap<u64, u32>,
    /// The key and the result of the most recent lookup in `by`.
    latest: (u64, u32),
    /// Discarded contexts, kept for their memory. The memory of the first context is at the end, so that the first new
    /// context reuses it.
    spare: Vec<HeapContext>,
}

/// Maximum number of addresses that a model knows, including those charged for contexts.
const MOST_ADDRESSES: usize = 1 << 21;
/// Number of addresses charged for a context. A new context takes as much memory as about a hundred addresses, and it
/// grows with use.
const ADDRESSES_PER_CONTEXT: usize = 512;
/// Number of evicted contexts whose memory is kept.
const KEPT_CONTEXTS: usize = 16;

/// The live objects of a context: the number that identifies the context, and the objects from oldest to newest. Each
/// object is given by its address and a size that belongs to the object's class.
pub(crate) type Live = (u64, Vec<(u64, u64)>);

/// A candidate, which consists of an address and, if known, its block.
type Candidate = Option<(u64, u32)>;

impl Heap {
    pub(crate) fn new(rule: SizeRule) -> Self {
        Self {
            rule,
            blocks: HeapBlocks::new(),
            contexts: Vec::new(),
            by: HashMap::new(),
            latest: (0, 0),
            spare: Vec::new(),
        }
    }

    /// Resets to the state of [`new`](Self::new) but keeps the memory. The time depends on the number of known objects,
    /// not on the size of the memory.
    fn reset(&mut self, rule: SizeRule) {
        self.rule = rule;
        self.blocks.clear();
        self.contexts.truncate(KEPT_CONTEXTS);
        self.spare.extend(self.contexts.drain(..).rev());
        let surplus = self.spare.len().saturating_sub(KEPT_CONTEXTS);
        self.spare.drain(..surplus);
        clear(&mut self.by);
        self.latest = (0, 0);
    }

    /// Initializes the heap from the start of its stream section, which contains the rule and the objects that are
    /// already live.
    ///
    /// # Errors
    /// The outer result is any error from `next`, and the inner result is an error if the rule is unknown. The heap is
    /// unusable after an error.
    pub(crate) fn open(&mut self, next: &mut dyn FnMut() -> Result<u64>) -> Result<Result<(), ErrorKind>> {
        let number = next()?;
        let Some(rule) = SizeRule::from_number(number) else {
            let expected = "0 or 1";
            return Ok(Err(ErrorKind::Invalid { what: "the size rule of a heap", found: number, expected }));
        };
        self.reset(rule);
        for _ in 0..next()? {
            let by = next()?;
            let mut end = 0_u64;
            for _ in 0..next()? {
                let (address, size) = (end.wrapping_add(unfold(next()?)), next()?);
                self.allocate(by, size, address, allocated::NULL, NONE);
                end = address.wrapping_add(rule.round(size));
            }
        }
        Ok(Ok(()))
    }

    /// Initializes the heap with these live objects and returns the elements that record them.
    pub(crate) fn carry(&mut self, rule: SizeRule, live: &[Live]) -> Vec<u64> {
        self.reset(rule);
        let mut elements = vec![rule.number(), live.len() as u64];
        for (by, objects) in live {
            elements.extend([*by, objects.len() as u64]);
            let mut end = 0_u64;
            for &(address, size) in objects {
                self.allocate(*by, size, address, allocated::NULL, NONE);
                elements.extend([fold(address.wrapping_sub(end)), size]);
                end = address.wrapping_add(rule.round(size));
            }
        }
        elements
    }

    /// Returns the live objects, context by context.
    pub(crate) fn live(&self) -> Vec<Live> {
        let objects = |context: &HeapContext| {
            let size = |class| context.classes.get(class).map_or(0, |class| self.rule.size_of(class.round));
            let block = |slot| self.blocks.get(context.order.slot(slot)?).map(|b| (b.address, size(b.class)));
            (context.by, (0..context.order.slots()).filter_map(block).collect())
        };
        self.contexts.iter().map(objects).filter(|(_, objects): &Live| !objects.is_empty()).collect()
    }

    #[inline]
    fn context(&self, by: u64) -> Option<(u32, &HeapContext)> {
        let context = if by == self.latest.0 { self.latest.1 } else { *self.by.get(&by)? };
        Some((context, self.contexts.get(context as usize)?))
    }

    /// Returns the index of the context with this value, if it exists.
    #[inline]
    fn own(&mut self, by: u64) -> Option<u32> {
        if by == self.latest.0 { Some(self.latest.1) } else { self.other(by) }
    }

    #[inline(never)]
    fn other(&mut self, by: u64) -> Option<u32> {
        let context = *self.by.get(&by)?;
        self.latest = (by, context);
        Some(context)
    }

    /// Returns the context with this value, creating it if necessary.
    #[inline]
    fn enter(&mut self, by: u64) -> u32 {
        if by == self.latest.0 && !self.contexts.is_empty() {
            return self.latest.1;
        }
        self.enter_other(by)
    }

    fn enter_other(&mut self, by: u64) -> u32 {
        let next = u32::try_from(self.contexts.len()).unwrap_or(NONE);
        let context = *self.by.entry(by).or_insert(next);
        if context == next {
            let spare = self.spare.pop();
            self.contexts.push(spare.map_or_else(|| HeapContext::new(by), |spare| spare.again(by)));
        }
        self.latest = (by, context);
        context
    }

    /// Returns the coding of a new object's address, without learning the object.
    pub(crate) fn find_allocated(&mut self, by: u64, size: u64, address: u64) -> CodedValue {
        if address == 0 {
            return CodedValue::hit(allocated::NULL, NONE);
        }
        let Some((own, context)) = self.context(by) else {
            return CodedValue::miss(allocated::MISS, fold(address));
        };
        let class = context.classes.find(self.rule.round(size));
        match self.candidate((own, context), class, address) {
            Some((code, hint)) => CodedValue::hit(code, hint),
            None => CodedValue::miss(allocated::MISS, fold(address.wrapping_sub(context.last_miss))),
        }
    }

    /// Returns the code of the first candidate with this address, and its block if it is freed.
    #[inline(always)]
    fn candidate(
        &self,
        (own, context): (u32, &HeapContext),
        class: Option<(u32, &SizeClass)>,
        address: u64,
    ) -> Option<(u64, u32)> {
        let at = self.blocks.at(address).filter(|&block| self.blocks.is_freed(block));
        if let Some(block) = at
            && let Some(code) = class.and_then(|(_, class)| near(class, block))
        {
            return Some((code, block));
        }
        if let Some(k) = context.bumps.iter().position(|&bump| bump == address) {
            return Some((allocated::BUMP + k as u64, NONE));
        }
        if class.is_some_and(|(_, class)| class.fresh == address) {
            return Some((allocated::FRESH, NONE));
        }
        let block = at?;
        self.far(own, context, class, (address, block)).map(|code| (code, block))
    }

    /// Returns the code of a freed block that is deep in the list of the class or was freed recently.
    fn far(
        &self,
        own: u32,
        context: &HeapContext,
        class: Option<(u32, &SizeClass)>,
        (address, block): (u64, u32),
    ) -> Option<u64> {
        let list = class.filter(|class| self.blocks.get(block).is_some_and(|b| (b.context, b.class) == (own, class.0)));
        if let Some(k) = list.and_then(|(_, class)| self.depth(class, block)) {
            return Some(allocated::DEEP + k);
        }
        let k = match self.contexts.len() {
            // There is only one context, so all frees in the heap belong to it.
            1 => self.blocks.frees_since(block).filter(|&k| k < RECENT && context.recent(k) == address),
            _ => context.recency(address),
        };
        k.map(|k| allocated::RECENTLY + k as u64)
    }

    /// Returns the freed block that has `k` newer freed blocks in its class.
    #[inline]
    fn deep(&self, class: &SizeClass, k: u64) -> Option<u32> {
        let mut block = class.newest;
        for _ in 0..k {
            block = self.blocks.get(block)?.older;
        }
        Some(block)
    }

    /// Returns the inverse of [`deep`](Self::deep) for blocks that have a code.
    fn depth(&self, class: &SizeClass, wanted: u32) -> Option<u64> {
        let mut block = class.newest;
        for k in 0..allocated::DEPTH {
            if block == wanted {
                return Some(k);
            }
            block = self.blocks.get(block)?.older;
        }
        None
    }

    /// Returns the address of a new object, given its code, or `None` if the code is invalid.
    ///
    /// # Errors
    /// Returns any error from `next`, which returns the elements of the stream section.
    pub(crate) fn allocated(
        &self,
        by: u64,
        size: u64,
        code: u64,
        next: &mut dyn FnMut() -> Result<u64>,
    ) -> Result<Candidate> {
        use allocated::{MISS, NULL};
        if code == NULL {
            return Ok(Some((0, NONE)));
        }
        let context = self.context(by).map(|(_, context)| context);
        if code == MISS {
            let last = context.map_or(0, |context| context.last_miss);
            return Ok(Some((last.wrapping_add(unfold(next()?)), NONE)));
        }
        Ok(context.and_then(|context| self.allocated_hit(context, size, code)))
    }

    /// Returns the address of a new object, given a code without elements.
    #[inline]
    fn allocated_hit(&self, context: &HeapContext, size: u64, code: u64) -> Candidate {
        use allocated::{BUMP, DEEP, END, FRESH, MISS, NEWER, NEWEST, NULL, OLDER, RECENTLY};
        let class = || context.classes.find(self.rule.round(size)).map(|class| class.1);
        let block = match code {
            NEWEST => class()?.newest,
            OLDER => class()?.older,
            NEWER => class()?.newer,
            FRESH => return class().map(|class| (class.fresh, NONE)),
            BUMP..DEEP => return Some((*context.bumps.get(usize::try_from(code - BUMP).ok()?)?, NONE)),
            DEEP..MISS => self.deep(class()?, code - DEEP)?,
            MISS => return None,
            NULL => return Some((0, NONE)),
            RECENTLY..END => self.blocks.at(context.recent(usize::try_from(code - RECENTLY).ok()?))?,
            _ => return None,
        };
        self.blocks.get(block).filter(|x| x.slot == blocks::FREED).map(|x| (x.address, block))
    }

    /// Combines [`find_allocated`](Self::find_allocated) and [`allocate`](Self::allocate) if no element is needed, and
    /// returns the code. Returns `None` and changes nothing otherwise.
    ///
    /// Here and in [`encode_freed`](Self::encode_freed), [`allocated_usual`](Self::allocated_usual) and
    /// [`freed_usual`](Self::freed_usual), rare cases are handled by tail calls, so the common path needs no stack.
    #[inline(never)]
    pub(crate) fn encode_allocated(&mut self, by: u64, size: u64, address: u64) -> Option<u64> {
        if by == self.latest.0
            && let Some(context) = self.contexts.get_mut(self.latest.1 as usize)
            && let Some(class) = context.classes.small(self.rule.round(size))
            && context.is_newest(&self.blocks, class, address)
            && context.take_newest(&mut self.blocks, class).is_some()
        {
            return if context.order.is_sparse() { self.closed_up(allocated::NEWEST) } else { Some(allocated::NEWEST) };
        }
        self.encode_elsewhere(by, size, address)
    }

    /// Returns the code of a new object that is large or does not reuse the newest freed block of its class.
    #[inline(never)]
    fn encode_elsewhere(&mut self, by: u64, size: u64, address: u64) -> Option<u64> {
        if address == 0 {
            return Some(allocated::NULL);
        }
        let own = self.own(by)?;
        let context = self.contexts.get(own as usize)?;
        let round = self.rule.round(size);
        let class = context.classes.find(round);
        let (code, block) = self.candidate((own, context), class, address)?;
        self.begin((own, class.map(|class| class.0)), round, (address, block), code);
        Some(code)
    }

    /// Combines [`find_freed`](Self::find_freed) and [`free`](Self::free) for an object of the context if no element is
    /// needed, as [`encode_allocated`](Self::encode_allocated) does for allocations.
    #[inline(never)]
    pub(crate) fn encode_freed(&mut self, by: u64, address: u64) -> Option<u64> {
        if by == self.latest.0
            && let Some(context) = self.contexts.get_mut(self.latest.1 as usize)
            && let Some(newest) = context.order.last()
            && self.blocks.get(newest).is_some_and(|block| block.address == address)
        {
            context.free_own(&mut self.blocks, newest);
            return if self.blocks.has_surplus() { self.swept(freed::NEWEST) } else { Some(freed::NEWEST) };
        }
        self.encode_older(by, address)
    }

    /// Returns the code of a freed object that is not the newest live object.
    #[inline(never)]
    fn encode_older(&mut self, by: u64, address: u64) -> Option<u64> {
        let own = self.own(by)?;
        let block = self.blocks.at(address)?;
        let slot = self.blocks.get(block).filter(|b| b.slot < blocks::FORGOTTEN && b.context == own)?.slot;
        let context = self.contexts.get_mut(own as usize)?;
        let code = rank(&context.order, slot as usize)?;
        context.free_own(&mut self.blocks, block);
        if self.blocks.has_surplus() { self.swept(code) } else { Some(code) }
    }

    /// Combines [`allocated`](Self::allocated) and [`allocate`](Self::allocate) if no element is needed. Returns `None`
    /// and changes nothing otherwise.
    #[inline(never)]
    pub(crate) fn allocated_usual(&mut self, by: u64, size: u64, code: u64) -> Option<u64> {
        if code == allocated::NEWEST
            && by == self.latest.0
            && let Some(context) = self.contexts.get_mut(self.latest.1 as usize)
            && let Some(class) = context.classes.small(self.rule.round(size))
            && let Some(address) = context.take_newest(&mut self.blocks, class)
        {
            return if context.order.is_sparse() { self.closed_up(address) } else { Some(address) };
        }
        self.allocated_otherwise(by, size, code)
    }

    /// Closes up the allocation order of the current context and returns `result`.
    #[cold]
    #[inline(never)]
    fn closed_up(&mut self, result: u64) -> Option<u64> {
        let context = self.contexts.get_mut(self.latest.1 as usize)?;
        context.order.close_up_now(&mut self.blocks);
        Some(result)
    }

    #[inline(never)]
    fn allocated_otherwise(&mut self, by: u64, size: u64, code: u64) -> Option<u64> {
        let own = self.own(by)?;
        let round = self.rule.round(size);
        let (address, hint) = self.allocated_hit(self.contexts.get(own as usize)?, size, code)?;
        if address != 0 {
            self.begin((own, None), round, (address, hint), code);
        }
        Some(address)
    }

    /// Combines [`freed`](Self::freed) and [`free`](Self::free) if no element is needed. Returns `None` and changes
    /// nothing otherwise.
    #[inline(never)]
    pub(crate) fn freed_usual(&mut self, by: u64, code: u64) -> Option<u64> {
        let own = if by == self.latest.0 { self.latest.1 } else { return self.freed_elsewhere(by, code) };
        let context = self.contexts.get_mut(own as usize)?;
        let Some(block) = context.by_rank(code) else { return (code == freed::NULL).then_some(0) };
        let address = context.free_own(&mut self.blocks, block)?;
        if self.blocks.has_surplus() { self.swept(address) } else { Some(address) }
    }

    /// Handles a free in a context other than the current one.
    #[cold]
    #[inline(never)]
    fn freed_elsewhere(&mut self, by: u64, code: u64) -> Option<u64> {
        self.other(by)?;
        self.freed_usual(by, code)
    }

    /// Evicts surplus freed blocks and returns `result`.
    #[cold]
    #[inline(never)]
    fn swept(&mut self, result: u64) -> Option<u64> {
        self.sweep();
        Some(result)
    }

    /// Learns that an object was allocated. `hint` is the block at its address, if known.
    #[inline(never)]
    pub(crate) fn allocate(&mut self, by: u64, size: u64, address: u64, code: u64, hint: u32) {
        if address == 0 {
            return;
        }
        let own = self.enter(by);
        let round = self.rule.round(size);
        if code == allocated::NEWEST
            && let Some(context) = self.contexts.get_mut(own as usize)
            && let Some(class) = context.classes.index(round)
            && context.take_newest(&mut self.blocks, class).is_some()
        {
            context.order.close_up(&mut self.blocks);
            return;
        }
        let hint = if self.blocks.is_freed_at(hint, address) { hint } else { NONE };
        self.begin((own, None), round, (address, hint), code);
    }

    /// Adds a new object to a context and, if its class is known, to the class. `hint` is its freed block, or `NONE`.
    #[inline(always)]
    fn begin(&mut self, (own, class): (u32, Option<u32>), round: u64, (address, hint): (u64, u32), code: u64) {
        let Some(context) = self.contexts.get_mut(own as usize) else { return };
        let class = class.unwrap_or_else(|| context.classes.find_or_add(round));
        let block = match self.blocks.get(hint) {
            // Usually, the block belongs to this context.
            Some(b) if b.context == own => {
                context.unlink(&mut self.blocks, hint, true);
                self.blocks.leave();
                hint
            }
            _ => {
                let Some(block) = self.place(own, class, address, hint) else { return };
                block
            }
        };
        let Some(context) = self.contexts.get_mut(own as usize) else { return };
        if code >= allocated::FRESH {
            learn_fresh(context, class, (address, address.wrapping_add(round)), code);
        }
        let Some(slot) = context.order.push(block) else { return };
        if let Some(b) = self.blocks.get_mut(block) {
            b.context = own;
            b.class = class;
            b.slot = slot;
        }
        self.blocks.count_live();
        context.order.close_up(&mut self.blocks);
        if hint == NONE {
            self.stay_in_bounds();
        }
    }

    /// Returns the block for a new object at an address, after removing it from its free list or allocation order.
    /// `hint` is the block, if known.
    #[inline(never)]
    fn place(&mut self, own: u32, class: u32, address: u64, hint: u32) -> Option<u32> {
        let (block, known) = match hint {
            NONE => self.blocks.at_or_add(HeapBlock::new(address, own, class, blocks::FORGOTTEN))?,
            _ => (hint, true),
        };
        if known {
            self.clear(block);
        }
        Some(block)
    }

    /// Prepares a block for reuse by removing it from its list or from the allocation order.
    fn clear(&mut self, block: u32) {
        let Some(&old) = self.blocks.get(block) else { return };
        let Some(owner) = self.contexts.get_mut(old.context as usize) else { return };
        if self.blocks.is_freed(block) {
            owner.unlink(&mut self.blocks, block, true);
            self.blocks.leave();
        } else if self.blocks.is_live(block) {
            owner.order.bury(old.slot as usize, false);
            self.blocks.count_dead();
        }
    }

    /// Returns the coding of the address of a freed or used object, without learning the object.
    pub(crate) fn find_freed(&mut self, by: u64, address: u64) -> CodedValue {
        if address == 0 {
            return CodedValue::hit(freed::NULL, NONE);
        }
        let own = self.context(by).map(|(own, _)| own);
        let newest = own.and_then(|own| self.contexts.get(own as usize)?.order.last());
        if let Some(newest) = newest.filter(|&b| self.blocks.get(b).is_some_and(|b| b.address == address)) {
            return CodedValue::hit(freed::NEWEST, newest);
        }
        let block = self.blocks.at(address);
        let context = own.and_then(|own| self.contexts.get(own as usize));
        let last_miss = context.map_or(0, |context| context.last_miss);
        let miss = CodedValue::miss(freed::MISS, fold(address.wrapping_sub(last_miss)));
        let Some(block) = block.filter(|&b| self.blocks.is_live(b)) else { return miss };
        let Some(b) = self.blocks.get(block) else { return miss };
        let slot = b.slot as usize;
        match context {
            Some(context) if own == Some(b.context) => match rank(&context.order, slot) {
                Some(code) => CodedValue::hit(code, block),
                None => {
                    let distance = fold(context.order.distance_from_freed(slot));
                    CodedValue { hint: block, ..CodedValue::miss(freed::DISTANCE, distance) }
                }
            },
            _ => {
                let slots = self.contexts.get(b.context as usize).map_or(0, |context| context.order.slots());
                CodedValue::misses(freed::FOREIGN, [b.context.into(), (slots - 1 - slot) as u64], block)
            }
        }
    }

    /// Returns the address of a freed or used object, given its code, or `None` if the code is invalid.
    ///
    /// # Errors
    /// Returns any error from `next`, which returns the elements of the stream section.
    pub(crate) fn freed(&self, by: u64, code: u64, next: &mut dyn FnMut() -> Result<u64>) -> Result<Candidate> {
        use freed::{DISTANCE, FOREIGN, MISS, NULL};
        if code == NULL {
            return Ok(Some((0, NONE)));
        }
        if code == FOREIGN {
            let (context, back) = (next()?, next()?);
            let context = usize::try_from(context).ok().and_then(|c| self.contexts.get(c));
            let slot = |order: &LiveOrder| order.slots().checked_sub(1)?.checked_sub(usize::try_from(back).ok()?);
            return Ok(self.named(context.and_then(|c| c.order.slot(slot(&c.order)?))));
        }
        let Some((_, context)) = self.context(by) else {
            return Ok(if code == MISS { Some((unfold(next()?), NONE)) } else { None });
        };
        let block = match code {
            DISTANCE => context.order.slot_from_freed(unfold(next()?)).and_then(|slot| context.order.slot(slot)),
            MISS => return Ok(Some((context.last_miss.wrapping_add(unfold(next()?)), NONE))),
            _ => context.by_rank(code),
        };
        Ok(self.named(block))
    }

    fn named(&self, block: Option<u32>) -> Candidate {
        block.and_then(|b| self.blocks.get(b).map(|x| (x.address, b)))
    }

    /// Learns that an object was freed. `hint` is its block, or `NONE` if the object is unknown.
    pub(crate) fn free(&mut self, by: u64, hint: u32) {
        let Some(&block) = self.blocks.get(hint).filter(|_| self.blocks.is_live(hint)) else { return };
        let by = self.enter(by);
        if block.context == by {
            if let Some(context) = self.contexts.get_mut(by as usize) {
                context.free_own(&mut self.blocks, hint);
            }
            return self.forget_surplus();
        }
        let Some(owner) = self.contexts.get_mut(block.context as usize) else { return };
        owner.order.bury(block.slot as usize, false);
        self.blocks.count_dead();
        let round = owner.classes.get(block.class).map_or(0, |class| class.round);
        let Some(context) = self.contexts.get_mut(by as usize) else { return };
        let class = context.classes.find_or_add(round);
        if let Some(b) = self.blocks.get_mut(hint) {
            b.context = by;
        }
        context.push(&mut self.blocks, hint, (class, block.address));
        self.forget_surplus();
        self.stay_in_bounds();
    }

    /// Resets a model that knows too many addresses.
    #[inline]
    fn stay_in_bounds(&mut self) {
        if self.blocks.known() + ADDRESSES_PER_CONTEXT * self.contexts.len() >= MOST_ADDRESSES {
            self.reset(self.rule);
        }
    }

    /// Limits memory to a multiple of the peak number of live objects.
    #[inline]
    fn forget_surplus(&mut self) {
        if self.blocks.has_surplus() {
            self.sweep();
        }
    }

    #[cold]
    fn sweep(&mut self) {
        for block in self.blocks.surplus() {
            let context = self.blocks.get(block).map_or(NONE, |b| b.context);
            if let Some(context) = self.contexts.get_mut(context as usize) {
                context.unlink(&mut self.blocks, block, false);
            }
            self.blocks.leave();
            self.blocks.forget(block);
        }
    }
}

/// Returns the code of a live object, given by its slot, or `None` if the object is near neither the newest nor the
/// most recently freed one.
#[inline(always)]
fn rank(order: &LiveOrder, slot: usize) -> Option<u64> {
    if let Some(rank) = order.rank_from_newest(slot).filter(|&rank| rank < freed::NEWER) {
        return Some(freed::NEWEST + rank);
    }
    if let Some(rank) = order.rank_after_freed(slot).filter(|&rank| rank < freed::NEAR) {
        return Some(freed::AFTER + rank);
    }
    order.rank_before_freed(slot).filter(|&rank| rank < freed::NEAR).map(|rank| freed::BEFORE + rank)
}

/// Returns the code of a freed block if it is the newest of its class or a neighbor of the block reused last.
#[inline]
fn near(class: &SizeClass, block: u32) -> Option<u64> {
    match block {
        _ if block == class.newest => Some(allocated::NEWEST),
        _ if block == class.older => Some(allocated::OLDER),
        _ if block == class.newer => Some(allocated::NEWER),
        _ => None,
    }
}

/// Updates the ends of fresh memory for a new object.
fn learn_fresh(context: &mut HeapContext, class: u32, (address, end): (u64, u64), code: u64) {
    let bump = match code {
        allocated::BUMP..allocated::DEEP => usize::try_from(code - allocated::BUMP).unwrap_or(0),
        allocated::MISS | allocated::RECENTLY..allocated::END => BUMPS - 1,
        allocated::FRESH => BUMPS,
        _ => return,
    };
    if bump < BUMPS {
        context.bump(bump, end);
    }
    if !(allocated::BUMP..allocated::DEEP).contains(&code)
        && let Some(class) = context.classes.get_mut(class)
    {
        class.fresh = end;
    }
    if code == allocated::MISS {
        context.last_miss = address;
    }
}

/// Empties a map. Keeps its memory only if the memory is not much larger than the contents, because emptying a map
/// takes time proportional to its memory.
fn clear(map: &mut HashMap<u64, u32>) {
    if map.capacity() > 16 * map.len().max(64) {
        *map = HashMap::new();
    } else {
        map.clear();
    }
}

#[cfg(test)]
mod tests;
