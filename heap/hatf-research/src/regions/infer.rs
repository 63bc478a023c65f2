//! Finds calls that outlive all objects allocated during them. In such a call, a program could use a region (arena).
//!
//! If a trace contains the start and end of functions or phases, the results are exact: see [`Scoped`]. Otherwise,
//! calls are derived from stacks. A stack shows which calls are active at an allocation but not when they return. A
//! call is assumed to continue from one allocation of its thread to the next if the next stack contains the same call:
//! the same caller address and, if functions are known, the same function. If a function returned and was called again
//! from the same place in between, several calls look like one. A found region is therefore only an upper bound. A
//! negative result is certain: a block that is still live when another call appears in place of the block's call has
//! outlived that call.
//!
//! # Examples
//!
//! ```
//! use hatf_lab::{Objects, Observer};
//! use hatf_research::regions::infer::{Contexts, Costs, Enclosing, StackCall};
//! use hatf_trace::Event;
//!
//! // Site 1 allocates in a function that `main` calls.
//! let stack = vec![StackCall { caller: 0, function: 1 }, StackCall { caller: 1, function: 2 }];
//! let pass = |observer: &mut dyn Observer| -> hatf_lab::Result<Objects> {
//!     let mut objects = Objects::new();
//!     for event in [Event::malloc(16, 10), Event::free(16), Event::malloc(16, 10), Event::free(16)] {
//!         objects.follow(&event, 1, &mut |event| observer.event(event))?;
//!     }
//!     Ok(objects)
//! };
//! let mut enclosing = Enclosing::new(Contexts::new([Vec::new(), stack])?);
//! let objects = pass(&mut enclosing)?;
//! let mut costs = Costs::new(enclosing.finish(objects.live().map(|object| object.site)));
//! pass(&mut costs)?;
//! let (enclosed, candidates) = costs.finish(1000);
//! // A region of `main` saves two frees, but holds the bytes of both blocks until the end.
//! assert_eq!(enclosed.contexts.depth(candidates[0].context), 1);
//! assert_eq!((candidates[0].objects, candidates[0].cost), (2, 20));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod calls;
mod costs;
mod scopes;
mod with_regions;

use std::collections::HashMap;

use calls::{Active, Calls, Seen};
use hatf_lab::{Change, Error, Object, ObjectEvent, Observer, Result};

pub use costs::Costs;
pub use scopes::{MOST_DEPTH, Nobody, ScopeObserver, ScopeTable, Scoped};
pub use with_regions::{Peaks, Scopes, WithRegions};

/// A call on a stack, with its call site and callee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackCall {
    /// A number that identifies the call site in the caller; equal for all calls without a caller.
    pub caller: u64,
    /// A number that identifies the function; equal for all unknown functions.
    pub function: u64,
}

/// A context, which is a chain of nested calls. The outermost call has no caller. 0 is not a context.
pub type Context = u32;

/// The contexts of all sites as a tree.
#[derive(Clone, Debug)]
pub struct Contexts {
    children: HashMap<(Context, StackCall), Context>,
    /// Depths by context.
    depths: Vec<u32>,
    /// The contexts of each site, from the outermost to the innermost.
    paths: Vec<Vec<Context>>,
    /// Whether the trace contains the start and end of calls.
    exact: bool,
}

impl Contexts {
    /// Builds the tree from the stacks of sites, indexed by site number. Each stack starts with its outermost call.
    ///
    /// # Errors
    /// Fails if there are 2^32 contexts.
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

    /// Returns the contexts of a site, outermost first, or an empty slice if the site's stack is unknown.
    #[must_use]
    pub fn path(&self, site: u64) -> &[Context] {
        usize::try_from(site).ok().and_then(|site| self.paths.get(site)).map_or(&[], Vec::as_slice)
    }

    /// Returns the calls that an allocation at this site reveals. Returns an empty slice if the trace records calls
    /// explicitly.
    fn shown(&self, site: u64) -> &[Context] {
        if self.exact { &[] } else { self.path(site) }
    }

    /// Returns the number of nested calls in a context.
    #[must_use]
    pub fn depth(&self, context: Context) -> usize {
        self.depths.get(context as usize).map_or(0, |depth| *depth as usize)
    }

    fn count(&self) -> usize {
        self.depths.len()
    }
}

/// The statistics of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteContext {
    /// The number of objects.
    pub objects: u64,
    /// The bytes of the objects.
    pub bytes: u64,
    /// The number of freed objects.
    pub freed: u64,
    /// The innermost context in which all objects end, or 0 if there is none.
    pub context: Context,
}

/// The first pass, which finds the innermost context in which all objects of a site end.
#[derive(Debug)]
pub struct Enclosing {
    contexts: Contexts,
    calls: Calls,
    sites: Vec<SiteContext>,
    /// The number of calls seen up to an object's allocation, by slot.
    serials: Vec<u64>,
    /// The number of calls seen, by context.
    begun: Vec<u64>,
}

impl Enclosing {
    /// Creates an observer without active calls.
    #[must_use]
    pub fn new(contexts: Contexts) -> Self {
        let innermost =
            |path: &Vec<Context>| SiteContext { context: path.last().copied().unwrap_or(0), ..SiteContext::default() };
        let sites = contexts.paths.iter().map(innermost).collect();
        let begun = vec![0; contexts.count()];
        Self { contexts, calls: Calls::default(), sites, serials: Vec::new(), begun }
    }

    /// Ends the pass. `live` contains the sites of live objects, which were never freed and end in no context.
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

/// The result of the first pass.
#[derive(Clone, Debug)]
pub struct Enclosed {
    /// All contexts.
    pub contexts: Contexts,
    /// Statistics by site number.
    pub sites: Vec<SiteContext>,
    begun: Vec<u64>,
}

impl Enclosed {
    /// Returns the number of objects of a site.
    #[must_use]
    pub fn objects(&self, site: u64) -> u64 {
        index(site).and_then(|number| self.sites.get(number)).map_or(0, |site| site.objects)
    }

    /// Returns the number of objects allocated in at least one context.
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

/// A possible region in a program. The region is entered when the innermost call of the context begins, and freed when
/// that call returns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegionCandidate {
    /// The context.
    pub context: Context,
    /// The numbers of the sites that allocate in the region.
    pub sites: Vec<u64>,
    /// The number of calls seen.
    pub calls: u64,
    /// The number of objects of these sites, which is the number of frees saved.
    pub objects: u64,
    /// The bytes of these objects.
    pub bytes: u64,
    /// The maximum number of bytes that the program has freed but the region still holds. This is the maximum for all
    /// suitable sites together or, if they are too costly, the sum of the maxima of the chosen sites.
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
