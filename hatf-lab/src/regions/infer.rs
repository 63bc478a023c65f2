//! Finds calls that outlive what is allocated in them: places where a program could have a region, or arena.
//!
//! Where a trace says when functions or phases begin and end, what is found is exact: see [`Scoped`]. Elsewhere there are stacks.
//! A stack says which calls are active at an allocation, and nothing says when they return. A call is taken to go on from one
//! allocation of its thread to the next if the next one's stack has the same call: the same caller's address, and the same
//! function where functions are known. Where a function was left and called again from the same place between the two, one call
//! is seen for several: so what is found is a bound. What is not found is certain: a block that is live when another call is seen
//! at its call's place outlives its call.

mod calls;
mod costs;
mod scopes;
mod with_regions;

use std::collections::HashMap;

use crate::objects::{Change, Object, ObjectEvent};
use crate::observer::Observer;
use crate::{Error, Result};
use calls::{Active, Calls, Seen};

pub use costs::Costs;
pub use scopes::{MOST_DEPTH, Nobody, ScopeObserver, ScopeTable, Scoped};
pub use with_regions::{Peaks, Scopes, WithRegions};

/// A call on a stack: from where, and to which function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackCall {
    /// A number for the place of the call in its caller; the same for all calls that have no caller.
    pub caller: u64,
    /// A number for the function; the same for all that are not known.
    pub function: u64,
}

/// A context: calls one in another, the outermost of which has no caller. 0 is not a context.
pub type Context = u32;

/// The contexts of all sites, as a tree.
#[derive(Clone, Debug)]
pub struct Contexts {
    children: HashMap<(Context, StackCall), Context>,
    /// By context.
    depths: Vec<u32>,
    /// By site: contexts, outermost first.
    paths: Vec<Vec<Context>>,
    /// The trace says when calls begin and end.
    exact: bool,
}

impl Contexts {
    /// Takes the stacks of sites, by number, each with its outermost call first.
    ///
    /// # Errors
    /// 2^32 contexts.
    pub fn new(stacks: impl IntoIterator<Item = Vec<StackCall>>) -> Result<Self> {
        let mut contexts = Self { children: HashMap::new(), depths: vec![0], paths: Vec::new(), exact: false };
        for stack in stacks {
            let mut path = Vec::with_capacity(stack.len());
            let mut at = 0;
            for (depth, frame) in (1..).zip(stack) {
                let new = u32::try_from(contexts.depths.len()).map_err(|_| Error::Limit("2^32 contexts"))?;
                at = *contexts.children.entry((at, frame)).or_insert(new);
                if at == new {
                    contexts.depths.push(depth);
                }
                path.push(at);
            }
            contexts.paths.push(path);
        }
        Ok(contexts)
    }

    /// Returns the contexts of a site, outermost first; none where its stack is not known.
    #[must_use]
    pub fn path(&self, site: u64) -> &[Context] {
        usize::try_from(site).ok().and_then(|site| self.paths.get(site)).map_or(&[], Vec::as_slice)
    }

    /// Returns the calls that an allocation of this site shows: none where the trace says itself which are active.
    fn shown(&self, site: u64) -> &[Context] {
        if self.exact { &[] } else { self.path(site) }
    }

    /// Returns how many calls a context is made of.
    #[must_use]
    pub fn depth(&self, context: Context) -> usize {
        self.depths.get(context as usize).map_or(0, |depth| *depth as usize)
    }

    fn count(&self) -> usize {
        self.depths.len()
    }
}

/// What was counted of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteContext {
    /// Its objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How many of them were freed.
    pub freed: u64,
    /// The innermost context in which all of them end; 0: there is none.
    pub context: Context,
}

/// First pass: finds the innermost context in which all objects of a site end.
#[derive(Debug)]
pub struct Enclosing {
    contexts: Contexts,
    calls: Calls,
    sites: Vec<SiteContext>,
    /// By slot: calls seen before the object's allocation and at it.
    serials: Vec<u64>,
    /// By context: how many calls were seen.
    begun: Vec<u64>,
}

impl Enclosing {
    /// Starts with no call active.
    #[must_use]
    pub fn new(contexts: Contexts) -> Self {
        let innermost =
            |path: &Vec<Context>| SiteContext { context: path.last().copied().unwrap_or(0), ..SiteContext::default() };
        let sites = contexts.paths.iter().map(innermost).collect();
        let begun = vec![0; contexts.count()];
        Self { contexts, calls: Calls::default(), sites, serials: Vec::new(), begun }
    }

    /// Ends the pass, given the sites of objects that are live: these were never freed, and end in no context.
    #[must_use]
    pub fn finish(mut self, live: impl Iterator<Item = u64>) -> Enclosed {
        for site in live {
            if let Some(site) = index(site).and_then(|site| self.sites.get_mut(site)) {
                site.context = 0;
            }
        }
        Enclosed { contexts: self.contexts, sites: self.sites, begun: self.begun }
    }
}

impl Observer for Enclosing {
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        let Object { slot, size, thread, site: number, .. } = event.object;
        let Some(site) = index(number).and_then(|site| self.sites.get_mut(site)) else { return Ok(()) };
        let path = self.contexts.path(number);
        match event.change {
            Change::Allocated => {
                site.objects += 1;
                site.bytes = site.bytes.saturating_add(size);
                let begun = &mut self.begun;
                self.calls.see(thread, self.contexts.shown(number), |seen| {
                    if let Seen::Begun(context) = seen
                        && let Some(count) = begun.get_mut(context as usize)
                    {
                        *count += 1;
                    }
                    Ok(())
                })?;
                put(&mut self.serials, slot, self.calls.serial);
            }
            Change::Freed => {
                site.freed += 1;
                let serial = self.serials.get(slot as usize).copied().unwrap_or(0);
                let common = self.calls.common(thread, serial);
                if common < self.contexts.depth(site.context) {
                    site.context = common.checked_sub(1).and_then(|last| path.get(last)).copied().unwrap_or(0);
                }
            }
        }
        Ok(())
    }
}

impl ScopeObserver for Enclosing {
    fn entered(&mut self, thread: u64, context: Context) -> Result<()> {
        self.calls.begin(thread, context);
        if let Some(count) = self.begun.get_mut(context as usize) {
            *count += 1;
        }
        Ok(())
    }

    fn left(&mut self, thread: u64) -> Result<()> {
        self.calls.end(thread);
        Ok(())
    }
}

/// The contexts of sites.
#[derive(Clone, Debug)]
pub struct Enclosed {
    /// All contexts.
    pub contexts: Contexts,
    /// By number.
    pub sites: Vec<SiteContext>,
    begun: Vec<u64>,
}

impl Enclosed {
    /// Returns how many objects a site has.
    #[must_use]
    pub fn objects(&self, site: u64) -> u64 {
        index(site).and_then(|number| self.sites.get(number)).map_or(0, |site| site.objects)
    }

    /// Returns how many objects were allocated in a context.
    #[must_use]
    pub fn objects_in_contexts(&self) -> u64 {
        let inside = |number: &u64| !self.contexts.path(*number).is_empty();
        (0..self.sites.len() as u64).filter(inside).map(|number| self.objects(number)).sum()
    }

    /// Returns the contexts in which all objects of a site end, outermost first.
    fn enclosing(&self, site: u64) -> &[Context] {
        let found = index(site).and_then(|number| self.sites.get(number));
        let depth = found.map_or(0, |site| self.contexts.depth(site.context));
        self.contexts.path(site).get(..depth).unwrap_or_default()
    }
}

/// A region that a program could have: it is entered when the innermost call of the context begins, and freed when it returns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionCandidate {
    /// The context.
    pub context: Context,
    /// The sites whose objects go into it, by number.
    pub sites: Vec<u64>,
    /// How many calls were seen.
    pub calls: u64,
    /// Objects of these sites: as many frees are saved.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The most bytes of objects in it that the program has freed, and the region not yet: of all sites that it could have, or where these
    /// are too many the sum of what each of its sites has at most.
    pub cost: u64,
}

fn index(site: u64) -> Option<usize> {
    usize::try_from(site).ok().filter(|site| *site > 0)
}

fn put(values: &mut Vec<u64>, slot: u32, value: u64) {
    let slot = slot as usize;
    if values.len() <= slot {
        values.resize(slot + 1, 0);
    }
    if let Some(place) = values.get_mut(slot) {
        *place = value;
    }
}

#[cfg(test)]
mod tests;
