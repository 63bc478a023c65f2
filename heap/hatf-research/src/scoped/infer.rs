//! Input from the stacks of a heap trace for [`crate::regions::infer`], and output of the inferred regions with their
//! names.

use std::collections::HashMap;

use crate::regions::infer::{Context, Contexts, RegionCandidate, ScopeTable, Scopes, StackCall};
use crate::regions::{Operation, Simulation};
use metatf::container::Sink;

use super::ScopedMemory;
use hatf_trace::Result;
use hatf_trace::stacks::{Location, Stacks};

/// Returns the contexts of a trace's stacks.
///
/// # Errors
/// There are 2^32 or more contexts.
pub fn contexts(stacks: &Stacks) -> Result<Contexts> {
    let mut known = HashMap::new();
    let mut functions = Vec::new();
    for location in stacks.locations() {
        // Calls of inlined functions are not separate calls.
        let function = location.functions.last().map(|function| (&location.module, &function.name));
        let next = known.len() as u64 + 1;
        functions.push(function.map_or(0, |function| *known.entry(function).or_insert(next)));
    }
    let steps = |number| {
        let mut caller = 0;
        let step = |location: &u32| {
            let function = functions.get(*location as usize).copied().unwrap_or(0);
            StackCall { caller: std::mem::replace(&mut caller, u64::from(*location) + 1), function }
        };
        stacks.frames(number).iter().rev().map(step).collect()
    };
    Ok(Contexts::new((0..stacks.count()).map(steps))?)
}

/// The names of contexts and sites.
pub struct Names {
    stacks: Stacks,
    /// The scopes of allocations, if the trace itself contains them.
    scopes: Option<(ScopeTable, HashMap<u64, String>)>,
}

impl Names {
    /// Creates names for contexts that are calls in stacks.
    #[must_use]
    pub fn of_stacks(stacks: Stacks) -> Self {
        Self { stacks, scopes: None }
    }

    pub(super) fn of_scopes(stacks: Stacks, table: ScopeTable, names: HashMap<u64, String>) -> Self {
        Self { stacks, scopes: Some((table, names)) }
    }

    /// Returns the scopes if the trace contains them.
    #[must_use]
    pub fn scopes(&self) -> Option<&ScopeTable> {
        self.scopes.as_ref().map(|(table, _)| table)
    }

    /// Returns the names of a candidate's calls, innermost first.
    #[must_use]
    pub fn context(&self, contexts: &Contexts, candidate: &RegionCandidate) -> Vec<String> {
        if let Some((table, names)) = &self.scopes {
            return table.scopes(candidate.context).filter_map(|scope| names.get(&scope).cloned()).collect();
        }
        let Some(&site) = candidate.sites.first() else { return Vec::new() };
        let inner = self.stacks.frames(site).len().saturating_sub(contexts.depth(candidate.context));
        // Sites can be on several lines of the innermost call's function, so the line of this function is omitted.
        let outermost = |(outer, location): (usize, &Location)| match outer {
            0 => location.names().last(),
            _ => location.names_with_lines().last(),
        };
        self.stacks.get(site).skip(inner).enumerate().map(|named| outermost(named).unwrap_or_default()).collect()
    }

    /// Returns the sites whose stack lacks a function that was entered and not left. Ignores scopes without a name.
    pub fn contradictions(&self) -> impl Iterator<Item = u64> {
        let tables = self.scopes.iter();
        tables
            .flat_map(|(table, names)| table.sites().filter(|(_, site)| self.contradicts(table, names, *site)))
            .map(|(number, _)| number)
    }

    /// Returns whether a site contradicts its scopes, which must be a subsequence of the functions in the site's stack.
    fn contradicts(&self, table: &ScopeTable, names: &HashMap<u64, String>, (stack, context): (u64, Context)) -> bool {
        let mut functions = self.stacks.get(stack).flat_map(|location| &location.functions).peekable();
        let known = |name: &&String| !name.contains("+0x");
        let mut scopes = table.scopes(context).filter_map(|scope| names.get(&scope)).filter(known);
        functions.peek().is_some() && !scopes.all(|name| functions.any(|function| function.name == *name))
    }

    /// Returns the name of a site. The name includes the site number, because many stacks end in the same functions.
    fn site(&self, site: u64) -> String {
        let stack = self.scopes().map_or(site, |table| table.stack(site));
        format!("{} ({site})", self.stacks.name(stack, 1))
    }
}

/// A simulation of the blocks of regions, which also writes a trace of `dtds/scoped.dtd` if there is a sink.
///
/// # Examples
///
/// ```
/// use hatf_research::regions::infer::{RegionCandidate, Scopes};
/// use hatf_research::regions::{Inter, Intra, Oversize, Settings, Simulation};
/// use hatf_research::scoped::{Names, RegionWriter, contexts};
/// use hatf_trace::event::EventKind;
/// use hatf_trace::stacks::Stacks;
///
/// let mut stacks = Stacks::default();
/// stacks.note(&EventKind::Symbol { frame: 0x10, line: 7, name: b"serve" });
/// let site = stacks.number(&[0x10]);
/// let contexts = contexts(&stacks)?;
/// let context = contexts.path(site)[0];
/// let candidates = [RegionCandidate { context, sites: vec![site], ..RegionCandidate::default() }];
///
/// let settings = Settings { block: 128, intra: Intra::First, inter: Inter::Capture, oversize: Oversize::Grow };
/// let (simulation, names) = (Simulation::new([settings])?, Names::of_stacks(stacks));
/// let mut trace = Vec::new();
/// let mut writer = RegionWriter::new(simulation, Some(&mut trace), &names, &contexts, &candidates)?;
/// writer.enter(1, 0)?;
/// writer.allocate(1, site, 96)?;
/// writer.exit(1)?;
/// let stacks = writer.finish()?.finish(&[]).stacks;
/// assert_eq!((stacks.regions, stacks.captured, trace.is_empty()), (1, 1, false));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RegionWriter<'a> {
    simulation: Simulation,
    memory: Option<ScopedMemory<&'a mut dyn Sink>>,
    /// For each candidate, the name of its region and its sites.
    regions: Vec<(String, Vec<u64>)>,
    /// Names by site.
    names: HashMap<u64, String>,
    error: Option<metatf::Error>,
}

impl<'a> RegionWriter<'a> {
    /// Creates a writer with no region entered.
    ///
    /// # Errors
    /// The sink failed.
    pub fn new(
        simulation: Simulation,
        sink: Option<&'a mut dyn Sink>,
        names: &Names,
        contexts: &Contexts,
        candidates: &[RegionCandidate],
    ) -> Result<Self> {
        let failed = |error: metatf::Error| hatf_trace::Error::Trace(error.to_string().into());
        let memory = sink.map(ScopedMemory::new).transpose().map_err(failed)?;
        let name = |candidate| names.context(contexts, candidate).into_iter().next().unwrap_or_default();
        let regions = candidates.iter().map(|candidate| (name(candidate), candidate.sites.clone())).collect();
        let site = |site: &u64| (*site, names.site(*site));
        let names = candidates.iter().flat_map(|candidate| &candidate.sites).map(site).collect();
        Ok(Self { simulation, memory, regions, names, error: None })
    }

    /// Returns the sink's error, if it stopped the pass.
    pub fn error(&mut self) -> Option<hatf_trace::Error> {
        self.error.take().map(|error| hatf_trace::Error::Trace(error.to_string().into()))
    }

    /// Ends the trace and returns the simulation.
    ///
    /// # Errors
    /// The sink failed.
    pub fn finish(self) -> Result<Simulation> {
        if let Some(memory) = self.memory {
            memory.finish().map_err(|error| hatf_trace::Error::Trace(error.to_string().into()))?;
        }
        Ok(self.simulation)
    }

    /// Stores an error of the sink.
    fn keep_error<T>(&mut self, written: metatf::Result<T>) -> hatf_lab::Result<()> {
        written.map(drop).map_err(|error| {
            self.error = Some(error);
            hatf_lab::Error::Stopped
        })
    }
}

impl Scopes for RegionWriter<'_> {
    fn enter(&mut self, thread: u64, candidate: usize) -> hatf_lab::Result<()> {
        let Some((name, sites)) = self.regions.get(candidate) else { return Ok(()) };
        // The simulation does not need the names of inferred regions.
        self.simulation.operate(thread, Operation::Enter { method: 0 })?;
        self.simulation.operate(thread, Operation::Register { call_site: 0, sites })?;
        let Some(memory) = &mut self.memory else { return Ok(()) };
        let names: Vec<&str> = sites.iter().filter_map(|site| self.names.get(site)).map(String::as_str).collect();
        let entered = memory.enter(thread, name);
        let written = entered.and_then(|_| memory.determine_allocation_site(thread, name, &names));
        self.keep_error(written)
    }

    fn exit(&mut self, thread: u64) -> hatf_lab::Result<()> {
        self.simulation.operate(thread, Operation::Exit)?;
        let exited = self.memory.as_mut().map_or(Ok(()), |memory| memory.exit(thread));
        self.keep_error(exited)
    }

    fn allocate(&mut self, thread: u64, site: u64, size: u64) -> hatf_lab::Result<()> {
        self.simulation.operate(thread, Operation::New { site, size })?;
        let Some(memory) = &mut self.memory else { return Ok(()) };
        let name = self.names.get(&site).map_or("", String::as_str);
        let written = memory.new_instance(thread, name, "block", size);
        self.keep_error(written)
    }
}
