//! Scoped memory for programs. Each operation is written to a trace.

use std::collections::{BTreeSet, HashMap};

use metatf::Result;
use metatf::container::{Sink, WriteOptions};

use super::format::{DetermineAllocationSite, Enter, Exit, NewAInstance, NewInstance, Writer};

/// An entered region, identified by a unique number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region(u64);

/// An object and the region that captures it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// The region, or `None` if the object is in the heap.
    region: Option<Region>,
    thread: u64,
}

/// The region stacks of a program's threads. Operations on them are written to a trace.
///
/// ```
/// # fn main() -> metatf::Result<()> {
/// use hatf_research::scoped::ScopedMemory;
/// let mut memory = ScopedMemory::new(Vec::new())?;
/// memory.enter(1, "main")?;
/// memory.determine_allocation_site(1, "main.2", &["load.3"])?;
/// let outer = memory.current(1);
/// memory.enter(1, "load")?;
/// let config = memory.new_instance(1, "load.3", "Config", 96)?;
/// let line = memory.new_instance(1, "load.4", "Line", 32)?;
/// assert_eq!(memory.region_of(config), outer);
/// assert!(memory.may_refer(line, config) && !memory.may_refer(config, line));
/// memory.exit(1)?;
/// memory.exit(1)?;
/// let trace = memory.finish()?;
/// # assert!(!trace.is_empty());
/// # Ok(())
/// # }
/// ```
pub struct ScopedMemory<S: Sink> {
    writer: Writer<S>,
    /// Region stacks by thread, outermost region first.
    stacks: HashMap<u64, Vec<Active>>,
    entered: u64,
}

/// A region on a stack.
struct Active {
    region: Region,
    /// The creation sites whose objects the region captures.
    captured: BTreeSet<String>,
}

impl<S: Sink> ScopedMemory<S> {
    /// Begins a trace with no region entered.
    ///
    /// # Errors
    /// The sink failed.
    pub fn new(sink: S) -> Result<Self> {
        let writer = Writer::with_options(sink, &WriteOptions::default())?;
        Ok(Self { writer, stacks: HashMap::new(), entered: 0 })
    }

    /// Pushes a region onto a thread's stack.
    ///
    /// # Errors
    /// The sink failed.
    pub fn enter(&mut self, thread: u64, name: &str) -> Result<Region> {
        let region = Region(self.entered);
        self.entered += 1;
        let name = self.writer.names().intern(name.as_bytes())?;
        self.writer.enter(&Enter { thread, region: name })?;
        self.stacks.entry(thread).or_default().push(Active { region, captured: BTreeSet::new() });
        Ok(region)
    }

    /// Collects the objects of the top region and pops the region. Does nothing if the thread has not entered a region.
    ///
    /// # Errors
    /// The sink failed.
    pub fn exit(&mut self, thread: u64) -> Result<()> {
        if self.stacks.get_mut(&thread).and_then(Vec::pop).is_some() {
            self.writer.exit(&Exit { thread })?;
        }
        Ok(())
    }

    /// Returns the top region.
    #[must_use]
    pub fn current(&self, thread: u64) -> Option<Region> {
        self.stack(thread).last().map(|active| active.region)
    }

    /// Registers the creation sites that the top region captures from now on, replacing the previously registered
    /// sites. The sites belong to the method about to be called at `call_site`.
    ///
    /// # Errors
    /// The sink failed.
    pub fn determine_allocation_site(&mut self, thread: u64, call_site: &str, sites: &[&str]) -> Result<()> {
        let Some(top) = self.stacks.get_mut(&thread).and_then(|stack| stack.last_mut()) else { return Ok(()) };
        top.captured = sites.iter().map(|site| (*site).to_owned()).collect();
        let mut names = self.writer.names();
        let call_site = names.intern(call_site.as_bytes())?;
        let site = sites.iter().map(|site| names.intern(site.as_bytes())).collect::<Result<_>>()?;
        self.writer.determine_allocation_site(&DetermineAllocationSite { thread, call_site, site })?;
        Ok(())
    }

    /// Creates an object of a class.
    ///
    /// # Errors
    /// The sink failed.
    pub fn new_instance(&mut self, thread: u64, site: &str, class: &str, size: u64) -> Result<Object> {
        let object = self.object(thread, site);
        let mut names = self.writer.names();
        let (site, class) = (names.intern(site.as_bytes())?, names.intern(class.as_bytes())?);
        self.writer.new_instance(&NewInstance { thread, site, class, size })?;
        Ok(object)
    }

    /// Creates an array.
    ///
    /// # Errors
    /// The sink failed.
    pub fn new_a_instance(&mut self, thread: u64, site: &str, class: &str, elements: u64, size: u64) -> Result<Object> {
        let object = self.object(thread, site);
        let mut names = self.writer.names();
        let (site, class) = (names.intern(site.as_bytes())?, names.intern(class.as_bytes())?);
        self.writer.new_a_instance(&NewAInstance { thread, site, class, elements, size })?;
        Ok(object)
    }

    /// Returns the regions in which an object created at this site may be placed, outermost first (section 3.2). These
    /// are the regions up to the innermost one that registered the site, or all regions if no region registered it.
    #[must_use]
    pub fn reclaim(&self, thread: u64, site: &str) -> Vec<Region> {
        let stack = self.stack(thread);
        let captor = stack.iter().rposition(|active| active.captured.contains(site));
        stack.iter().take(captor.map_or(stack.len(), |captor| captor + 1)).map(|active| active.region).collect()
    }

    /// Returns the region that captures an object, or `None` if the object is in the heap.
    #[must_use]
    pub fn region_of(&self, object: Object) -> Option<Region> {
        object.region
    }

    /// Returns whether an object may refer to another (section 3). An object may refer to objects in its own region, in
    /// a region that is active at least as long, or in the heap.
    #[must_use]
    pub fn may_refer(&self, from: Object, to: Object) -> bool {
        let place = |region| self.stack(from.thread).iter().position(|active| active.region == region);
        match (from.region, to.region) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(from), Some(to)) => {
                from == to || matches!((place(to), place(from)), (Some(to), Some(from)) if to < from)
            }
        }
    }

    /// Ends the trace and returns the sink.
    ///
    /// # Errors
    /// The sink failed.
    pub fn finish(self) -> Result<S> {
        self.writer.finish()
    }

    fn stack(&self, thread: u64) -> &[Active] {
        self.stacks.get(&thread).map_or(&[], Vec::as_slice)
    }

    fn object(&self, thread: u64, site: &str) -> Object {
        Object { region: self.reclaim(thread, site).last().copied(), thread }
    }
}

/// Returns `register(l)` of section 3.1, which is the set of last elements (creation sites) of the captured paths that
/// begin with the call site. `captured` are the paths captured by the method that contains the call site.
#[must_use]
pub fn register<'p>(captured: &[&[&'p str]], call_site: &str) -> BTreeSet<&'p str> {
    let begin = captured.iter().filter(|path| path.first() == Some(&call_site));
    begin.filter_map(|path| path.last().copied()).collect()
}
