//! Gives the operations of a trace to a simulation.

use std::collections::HashMap;
use std::path::Path;

use metatf::typed::TraceOptions;

use hatf_lab::regions::{Operation, Simulation};

use super::format::{Protocol, Record, Scoped, Trace};
use crate::forms::Input;
use crate::{Error, Result};

/// Runs the operations of a trace through a simulation; `step` is called for each.
///
/// # Errors
/// The trace is damaged or of another kind; the simulation's.
pub fn simulate(path: &Path, simulation: &mut Simulation, mut step: impl FnMut()) -> Result<()> {
    let about = |error: &dyn std::fmt::Display| Error::Trace(format!("{}: {error}", path.display()).into());
    let container = Input::open(path)?.into_container()?;
    let text = container.dtd_text().unwrap_or_default();
    let word = b"determineAllocationSite";
    if !container.header().dtd_url.ends_with("scoped.dtd") && !text.windows(word.len()).any(|window| window == word) {
        return Err(about(&"not a trace of scoped memory: its DTD is not scoped.dtd"));
    }
    let mut trace =
        Trace::with_options(TraceOptions::new().read::<Protocol>(container).map_err(|error| about(&error))?);
    let names = trace.names();
    let mut sites = Sites::default();
    let mut registered = Vec::new();
    while let Some(record) = trace.next().map_err(|error| about(&error))? {
        let Record::Scoped(record) = record;
        let mut site = |offset| -> Result<u64> {
            let name = || names.get(offset).map(|name| name.vfield.to_vec()).map_err(|error| about(&error));
            sites.number(offset, name)
        };
        let (thread, operation) = match record {
            Scoped::Enter(enter) => (enter.thread, Operation::Enter),
            Scoped::Exit(exit) => (exit.thread, Operation::Exit),
            Scoped::DetermineAllocationSite(sites) => {
                registered.clear();
                for offset in &sites.site {
                    registered.push(site(*offset)?);
                }
                (sites.thread, Operation::Register(&registered))
            }
            Scoped::NewInstance(new) => (new.thread, Operation::New { site: site(new.site)?, size: new.size }),
            Scoped::NewAInstance(new) => (new.thread, Operation::New { site: site(new.site)?, size: new.size }),
        };
        simulation.operate(thread, operation)?;
        step();
    }
    Ok(())
}

/// Numbers of creation sites: equal names have one, wherever they stand.
#[derive(Default)]
struct Sites {
    by_offset: HashMap<u64, u64>,
    by_name: HashMap<Vec<u8>, u64>,
}

impl Sites {
    fn number(&mut self, offset: u64, name: impl FnOnce() -> Result<Vec<u8>>) -> Result<u64> {
        if let Some(number) = self.by_offset.get(&offset) {
            return Ok(*number);
        }
        let next = self.by_name.len() as u64;
        let number = *self.by_name.entry(name()?).or_insert(next);
        self.by_offset.insert(offset, number);
        Ok(number)
    }
}
