//! Contexts of calls whose start and end a trace records as functions or phases.
//!
//! A first pass collects the scopes in which each stack allocates; a site is then a stack in one context. Scopes
//! without allocations do not become contexts, so their number is not limited.

use std::collections::HashMap;

use super::{Context, Contexts};
use hatf_lab::{Change, Error, Object, ObjectEvent, Observer, Result};

/// The maximum depth of scopes. A deeper scope counts as part of the scope that contains it.
pub const MOST_DEPTH: usize = 256;

/// An observer of the start and end of contexts.
pub trait ScopeObserver: Observer {
    /// Called when a thread enters a context, which becomes the thread's innermost context.
    ///
    /// # Errors
    /// After an error, no more calls should be delivered.
    fn entered(&mut self, thread: u64, context: Context) -> Result<()> {
        let _ = (thread, context);
        Ok(())
    }

    /// Notifies that a thread leaves the context it entered last.
    ///
    /// # Errors
    /// After an error, no more calls should be delivered.
    fn left(&mut self, thread: u64) -> Result<()> {
        let _ = thread;
        Ok(())
    }
}

/// Contexts built from scopes, and the sites in these contexts.
#[derive(Clone, Debug, Default)]
pub struct ScopeTable {
    children: HashMap<(Context, u64), Context>,
    /// The parent and the scope of each context, indexed by context less 1.
    parents: Vec<(Context, u64)>,
    sites: HashMap<(u64, Context), u64>,
    /// The stack and the context of each site, indexed by site less 1.
    by_number: Vec<(u64, Context)>,
}

impl ScopeTable {
    /// Returns the scopes of a context, innermost first.
    pub fn scopes(&self, context: Context) -> impl Iterator<Item = u64> {
        self.upwards(context).map(|(_, scope)| scope)
    }

    /// Returns all sites with their numbers, stacks and contexts.
    pub fn sites(&self) -> impl Iterator<Item = (u64, (u64, Context))> {
        (1..).zip(self.by_number.iter().copied())
    }

    /// Returns the scopes of all contexts. A scope of several contexts occurs several times.
    pub fn all_scopes(&self) -> impl Iterator<Item = u64> {
        self.parents.iter().map(|(_, scope)| *scope)
    }

    /// Returns the stack number of a site.
    #[must_use]
    pub fn stack(&self, site: u64) -> u64 {
        super::index(site).and_then(|site| self.by_number.get(site - 1)).map_or(0, |(stack, _)| *stack)
    }

    /// Returns the contexts of all sites.
    ///
    /// # Errors
    /// Fails if there are 2^32 contexts.
    pub fn contexts(&self) -> Result<Contexts> {
        let mut contexts = Contexts { exact: true, ..Contexts::new([])? };
        for (parent, _) in &self.parents {
            contexts.depths.push(contexts.depths.get(*parent as usize).map_or(1, |depth| depth + 1));
        }
        contexts.paths.push(Vec::new());
        for (_, context) in &self.by_number {
            let mut path: Vec<Context> = self.upwards(*context).map(|(context, _)| context).collect();
            path.reverse();
            contexts.paths.push(path);
        }
        Ok(contexts)
    }

    fn upwards(&self, context: Context) -> impl Iterator<Item = (Context, u64)> {
        let parent = |context: Context| self.parents.get((context as usize).checked_sub(1)?).copied();
        let steps = move |&(context, _): &(Context, u64)| {
            let (outer, _) = parent(context)?;
            parent(outer).map(|(_, scope)| (outer, scope))
        };
        std::iter::successors(parent(context).map(|(_, scope)| (context, scope)), steps)
    }

    fn add(&mut self, parent: Context, scope: u64) -> Result<Context> {
        if let Some(context) = self.children.get(&(parent, scope)) {
            return Ok(*context);
        }
        let context = u32::try_from(self.parents.len() + 1).map_err(|_| Error::Limit("2^32 contexts"))?;
        self.parents.push((parent, scope));
        self.children.insert((parent, scope), context);
        Ok(context)
    }
}

/// A scope that a thread has entered.
#[derive(Clone, Copy, Debug)]
struct Open {
    scope: u64,
    /// The context, or `None` if nothing is allocated in the scope.
    context: Option<Context>,
}

/// The scopes that a thread has entered.
#[derive(Debug, Default)]
struct Thread {
    open: Vec<Open>,
    /// The number of scopes entered beyond [`MOST_DEPTH`].
    beyond: u64,
}

/// A pass that notifies an observer of contexts and of the sites in them.
///
/// # Examples
///
/// ```
/// use hatf_lab::{Objects, Observer};
/// use hatf_research::regions::infer::Scoped;
/// use hatf_trace::Event;
///
/// let (thread, scope, stack) = (1, 7, 0);
/// let mut learn = Scoped::learn();
/// learn.enter(thread, scope)?;
/// Objects::new().follow(&Event::malloc(16, 10), stack, &mut |event| learn.event(event))?;
/// assert!(learn.leave(thread)?);
///
/// let table = learn.finish();
/// assert_eq!(table.sites().collect::<Vec<_>>(), [(1, (stack, 1))]);
/// assert_eq!(table.scopes(1).collect::<Vec<_>>(), [scope]);
/// assert_eq!(table.contexts()?.path(1), [1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Scoped<O> {
    table: ScopeTable,
    /// Whether this is the first pass.
    learns: bool,
    threads: HashMap<u64, Thread>,
    /// The sites of live objects, by slot.
    sites: Vec<u64>,
    observer: O,
}

/// The empty observer of the first pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Observer for Nobody {
    fn event(&mut self, _: &ObjectEvent) -> Result<()> {
        Ok(())
    }
}

impl ScopeObserver for Nobody {}

impl Scoped<Nobody> {
    /// Creates the first pass.
    #[must_use]
    pub fn learn() -> Self {
        Self { learns: true, ..Self::new(ScopeTable::default(), Nobody) }
    }

    /// Ends the first pass and returns its table.
    #[must_use]
    pub fn finish(self) -> ScopeTable {
        self.table
    }
}

impl<O: ScopeObserver> Scoped<O> {
    /// Creates a pass over the trace from which the table was built.
    pub fn new(table: ScopeTable, observer: O) -> Self {
        Self { table, learns: false, threads: HashMap::new(), sites: Vec::new(), observer }
    }

    /// Enters a scope on a thread.
    ///
    /// # Errors
    /// Returns the errors of the observer.
    pub fn enter(&mut self, thread: u64, scope: u64) -> Result<()> {
        let entered = self.threads.entry(thread).or_default();
        if entered.open.len() >= MOST_DEPTH {
            entered.beyond += 1;
            return Ok(());
        }
        let around = entered.open.last().map_or(Some(0), |open| open.context);
        let context = around.and_then(|around| self.table.children.get(&(around, scope))).copied();
        entered.open.push(Open { scope, context });
        context.map_or(Ok(()), |context| self.observer.entered(thread, context))
    }

    /// Leaves the scope that the thread entered last. Returns whether there was such a scope.
    ///
    /// # Errors
    /// Returns the errors of the observer.
    pub fn leave(&mut self, thread: u64) -> Result<bool> {
        let Some(left) = self.threads.get_mut(&thread) else { return Ok(false) };
        if left.beyond > 0 {
            left.beyond -= 1;
            return Ok(true);
        }
        let Some(open) = left.open.pop() else { return Ok(false) };
        if open.context.is_some() {
            self.observer.left(thread)?;
        }
        Ok(true)
    }

    /// Ends a thread.
    ///
    /// # Errors
    /// Returns the errors of the observer.
    pub fn end_thread(&mut self, thread: u64) -> Result<()> {
        while self.leave(thread)? {}
        self.threads.remove(&thread);
        Ok(())
    }

    /// Ends all threads.
    ///
    /// # Errors
    /// Returns the errors of the observer.
    pub fn end_threads(&mut self) -> Result<()> {
        let mut threads: Vec<u64> = self.threads.keys().copied().collect();
        threads.sort_unstable();
        threads.into_iter().try_for_each(|thread| self.end_thread(thread))
    }

    /// Returns the innermost scope of a thread.
    #[must_use]
    pub fn innermost(&self, thread: u64) -> Option<u64> {
        self.threads.get(&thread)?.open.last().map(|open| open.scope)
    }

    /// Returns the site of a live object.
    #[must_use]
    pub fn site(&self, object: &Object) -> u64 {
        self.sites.get(object.slot as usize).copied().unwrap_or(0)
    }

    /// Returns a mutable reference to the observer.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Ends the pass and returns the observer.
    pub fn into_inner(self) -> O {
        self.observer
    }

    /// Returns the site of an allocation in the current context of a thread.
    fn site_of(&mut self, thread: u64, stack: u64) -> Result<u64> {
        let Self { table, learns, threads, .. } = self;
        let mut context = 0;
        for open in threads.get_mut(&thread).into_iter().flat_map(|thread| &mut thread.open) {
            if *learns && open.context.is_none() {
                open.context = Some(table.add(context, open.scope)?);
            }
            context = open.context.unwrap_or(context);
        }
        if *learns && !table.sites.contains_key(&(stack, context)) {
            table.by_number.push((stack, context));
            table.sites.insert((stack, context), table.by_number.len() as u64);
        }
        Ok(table.sites.get(&(stack, context)).copied().unwrap_or(0))
    }
}

impl<O: ScopeObserver> Observer for Scoped<O> {
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        let object = event.object;
        let site = match event.change {
            Change::Allocated => {
                let site = self.site_of(object.thread, object.site)?;
                super::put(&mut self.sites, object.slot, site);
                site
            }
            Change::Freed => self.site(&object),
        };
        self.observer.event(&ObjectEvent { object: Object { site, ..object }, ..*event })
    }
}
