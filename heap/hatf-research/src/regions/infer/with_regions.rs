//! The operations and the memory usage of a program with regions.

use std::collections::HashMap;

use super::{Active, Calls, Context, Contexts, RegionCandidate, ScopeObserver, Seen};
use hatf_lab::{Change, Object, ObjectEvent, Observer, Result};

/// A receiver of the operations of a program with regions.
pub trait Scopes {
    /// Notifies that a thread enters the region of a candidate, given by index.
    ///
    /// # Errors
    /// After an error, no more operations should be delivered.
    fn enter(&mut self, thread: u64, candidate: usize) -> Result<()>;

    /// Notifies that a thread leaves the region it entered last.
    ///
    /// # Errors
    /// After an error, no more operations should be delivered.
    fn exit(&mut self, thread: u64) -> Result<()>;

    /// Notifies that a thread allocates in one of the regions that it has entered.
    ///
    /// # Errors
    /// After an error, no more operations should be delivered.
    fn allocate(&mut self, thread: u64, site: u64, size: u64) -> Result<()>;
}

/// Ignores all operations.
impl Scopes for () {
    fn enter(&mut self, _: u64, _: usize) -> Result<()> {
        Ok(())
    }

    fn exit(&mut self, _: u64) -> Result<()> {
        Ok(())
    }

    fn allocate(&mut self, _: u64, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
}

/// The third pass, which derives the operations and memory usage of a program that uses the candidates.
///
/// # Examples
///
/// ```
/// use hatf_lab::{Objects, Observer};
/// use hatf_research::regions::infer::{Contexts, RegionCandidate, StackCall, WithRegions};
/// use hatf_trace::Event;
///
/// let contexts = Contexts::new([Vec::new(), vec![StackCall { caller: 0, function: 1 }]])?;
/// let context = contexts.path(1)[0];
/// let candidate = RegionCandidate { context, sites: vec![1], ..RegionCandidate::default() };
/// let mut regions = WithRegions::new(contexts, vec![candidate], ());
/// let mut objects = Objects::new();
/// for event in [Event::malloc(16, 10), Event::free(16), Event::malloc(16, 10), Event::free(16)] {
///     objects.follow(&event, 1, &mut |event| regions.event(event))?;
/// }
/// let (peaks, ()) = regions.finish()?;
/// // The region holds both blocks until the function returns.
/// assert_eq!((peaks.before, peaks.after), (10, 20));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct WithRegions<S> {
    contexts: Contexts,
    candidates: Vec<RegionCandidate>,
    /// Indices in `candidates`, by site.
    by_site: HashMap<u64, usize>,
    calls: Calls,
    live: u64,
    peaks: Peaks,
    regions: Regions<S>,
}

/// The regions that threads enter and leave.
#[derive(Debug)]
struct Regions<S> {
    /// Indices of candidates, by context.
    by_context: HashMap<Context, usize>,
    /// Freed bytes still held by a region.
    idle: u64,
    scopes: S,
}

impl<S: Scopes> Regions<S> {
    fn begun(&mut self, thread: u64, context: Context) -> Result<()> {
        self.by_context.get(&context).map_or(Ok(()), |candidate| self.scopes.enter(thread, *candidate))
    }

    fn over(&mut self, thread: u64, over: &Active) -> Result<()> {
        if !self.by_context.contains_key(&over.context) {
            return Ok(());
        }
        self.idle = self.idle.saturating_sub(over.bytes);
        self.scopes.exit(thread)
    }
}

/// The maximum memory usage of the entire heap in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peaks {
    /// Live bytes of the program without regions.
    pub before: u64,
    /// Live bytes outside of regions plus all bytes in the program's regions.
    pub after: u64,
}

impl<S: Scopes> WithRegions<S> {
    /// Creates a pass with an empty heap.
    pub fn new(contexts: Contexts, candidates: Vec<RegionCandidate>, scopes: S) -> Self {
        let by_context = candidates.iter().zip(0..).map(|(candidate, number)| (candidate.context, number)).collect();
        let by_site =
            (0..).zip(&candidates).flat_map(|(n, candidate)| candidate.sites.iter().map(move |site| (*site, n)));
        let (by_site, calls, peaks) = (by_site.collect(), Calls::default(), Peaks::default());
        let regions = Regions { by_context, idle: 0, scopes };
        Self { contexts, candidates, by_site, calls, live: 0, peaks, regions }
    }

    /// Returns the receiver of operations.
    pub fn scopes_mut(&mut self) -> &mut S {
        &mut self.regions.scopes
    }

    /// Ends the pass by leaving all regions. Returns the peaks and the receiver of operations.
    ///
    /// # Errors
    /// Returns the errors of [`Scopes`].
    pub fn finish(mut self) -> Result<(Peaks, S)> {
        for (thread, active) in self.calls.threads {
            active.iter().try_for_each(|active| self.regions.over(thread, active))?;
        }
        Ok((self.peaks, self.regions.scopes))
    }
}

impl<S: Scopes> Observer for WithRegions<S> {
    fn event(&mut self, event: &ObjectEvent) -> Result<()> {
        let Object { size, thread, site, .. } = event.object;
        let candidate = self.by_site.get(&site).copied();
        match event.change {
            Change::Allocated => {
                let Self { contexts, calls, regions, .. } = self;
                calls.see(thread, contexts.shown(site), |seen| match seen {
                    Seen::Begun(context) => regions.begun(thread, context),
                    Seen::Over(over) => regions.over(thread, &over),
                })?;
                self.live = self.live.saturating_add(size);
                if let Some(candidate) = candidate.and_then(|candidate| self.candidates.get(candidate)) {
                    let depth = self.contexts.depth(candidate.context);
                    let active = self.calls.threads.get_mut(&thread);
                    if let Some(active) = active.and_then(|active| active.get_mut(depth.saturating_sub(1))) {
                        active.bytes = active.bytes.saturating_add(size);
                    }
                    self.regions.scopes.allocate(thread, site, size)?;
                }
            }
            Change::Freed => {
                self.live = self.live.saturating_sub(size);
                if candidate.is_some() {
                    self.regions.idle = self.regions.idle.saturating_add(size);
                }
            }
        }
        self.peaks.before = self.peaks.before.max(self.live);
        self.peaks.after = self.peaks.after.max(self.live.saturating_add(self.regions.idle));
        Ok(())
    }
}

impl<S: Scopes> ScopeObserver for WithRegions<S> {
    fn entered(&mut self, thread: u64, context: Context) -> Result<()> {
        self.calls.begin(thread, context);
        self.regions.begun(thread, context)
    }

    fn left(&mut self, thread: u64) -> Result<()> {
        self.calls.end(thread).map_or(Ok(()), |over| self.regions.over(thread, &over))
    }
}
