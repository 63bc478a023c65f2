//! Gives the operations of a trace to a simulation.

use std::collections::HashMap;
use std::path::Path;

use metatf::typed::TraceOptions;

use hatf_lab::regions::{Operation, Simulation};

use super::format::{Protocol, Record, Scoped, Trace};
use crate::forms::Input;
use crate::{Error, Result};

/// What the DTD of `dtds/scoped-log.dtd` has, and no other.
const LOG: &[u8] = b"capture: (tag, thread, site)";

/// Runs the operations of a trace through a simulation; `step` is called for each. Returns the names that it knows by their numbers.
///
/// The trace is of scoped.dtd, or of scoped-log.dtd.
///
/// # Errors
/// The trace is damaged or of another kind; the simulation's.
pub fn simulate(path: &Path, simulation: &mut Simulation, mut step: impl FnMut()) -> Result<Vec<String>> {
    let about = |error: &dyn std::fmt::Display| Error::Trace(format!("{}: {error}", path.display()).into());
    let container = Input::open(path)?.into_container()?;
    let text = container.dtd_text().unwrap_or_default();
    let word = b"determineAllocationSite";
    if !container.header().dtd_url.ends_with("scoped.dtd") && !text.windows(word.len()).any(|window| window == word) {
        return Err(about(&"not a trace of scoped memory: its DTD is not scoped.dtd"));
    }
    if text.windows(LOG.len()).any(|window| window == LOG) {
        return super::log::simulate(container, simulation, &mut step, &about);
    }
    let mut trace =
        Trace::with_options(TraceOptions::new().read::<Protocol>(container).map_err(|error| about(&error))?);
    let names = trace.names();
    let mut sites = NameNumbers::default();
    let mut registered = Vec::new();
    while let Some(record) = trace.next().map_err(|error| about(&error))? {
        let Record::Scoped(record) = record;
        let mut site = |offset| -> Result<u64> {
            let name = || names.get(offset).map(|name| name.vfield.to_vec()).map_err(|error| about(&error));
            sites.number(offset, name)
        };
        let (thread, operation) = match record {
            Scoped::Enter(enter) => (enter.thread, Operation::Enter { method: site(enter.region)? }),
            Scoped::Exit(exit) => (exit.thread, Operation::Exit),
            Scoped::DetermineAllocationSite(sites) => {
                registered.clear();
                for offset in &sites.site {
                    registered.push(site(*offset)?);
                }
                (sites.thread, Operation::Register { call_site: site(sites.call_site)?, sites: &registered })
            }
            Scoped::NewInstance(new) => (new.thread, Operation::New { site: site(new.site)?, size: new.size }),
            Scoped::NewAInstance(new) => (new.thread, Operation::New { site: site(new.site)?, size: new.size }),
        };
        simulation.operate(thread, operation)?;
        step();
    }
    Ok(sites.into_names())
}

/// Numbers of names: equal ones have one, wherever they stand.
#[derive(Default)]
pub(super) struct NameNumbers {
    by_offset: HashMap<u64, u64>,
    by_name: HashMap<Vec<u8>, u64>,
    names: Vec<String>,
}

impl NameNumbers {
    /// Returns the names, each at its number.
    pub(super) fn into_names(self) -> Vec<String> {
        self.names
    }

    /// Returns the number of a name that was met before, by how the trace names it.
    pub(super) fn known(&self, offset: u64) -> Option<u64> {
        self.by_offset.get(&offset).copied()
    }

    /// Returns the number of a name, by how the trace names it.
    pub(super) fn number(&mut self, offset: u64, name: impl FnOnce() -> Result<Vec<u8>>) -> Result<u64> {
        if let Some(number) = self.by_offset.get(&offset) {
            return Ok(*number);
        }
        let (next, name) = (self.by_name.len() as u64, name()?);
        let shown = || String::from_utf8_lossy(&name).into_owned();
        let number = match self.by_name.get(&name) {
            Some(number) => *number,
            None => {
                self.names.push(shown());
                self.by_name.insert(name, next);
                next
            }
        };
        self.by_offset.insert(offset, number);
        Ok(number)
    }
}
