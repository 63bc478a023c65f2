//! Passes the operations of a trace to a simulation.

use metatf::typed::TraceOptions;

use crate::regions::{Operation, Simulation};

use super::format::{Protocol, Record, Scoped, Trace};
use super::name_numbers::NameNumbers;
use hatf_trace::forms::Input;
use hatf_trace::{Error, Result};

/// A string that only the DTD `dtds/scoped-log.dtd` contains.
const LOG: &[u8] = b"capture: (tag, thread, site)";

/// Runs the operations of a trace through a simulation and calls `step` for each operation. Returns the names, indexed
/// by the numbers used in the simulation.
///
/// The DTD of the trace must be scoped.dtd or scoped-log.dtd.
///
/// # Errors
/// The trace is corrupt or has another DTD, or the simulation failed.
pub fn simulate(input: Input, simulation: &mut Simulation, mut step: impl FnMut()) -> Result<Vec<String>> {
    let name = input.name().to_owned();
    let about = |error: &dyn std::fmt::Display| Error::Trace(format!("{name}: {error}").into());
    let container = input.into_container()?;
    let text = container.dtd_text().unwrap_or_default();
    let word = b"determineAllocationSite";
    if !container.header().dtd_url.ends_with("scoped.dtd") && !text.windows(word.len()).any(|window| window == word) {
        return Err(about(&"not a trace of scoped memory: its DTD is not scoped.dtd"));
    }
    if text.windows(LOG.len()).any(|window| window == LOG) {
        return super::log::simulate(container, simulation, &mut step, &about);
    }
    let mut trace = Trace::from_opened(TraceOptions::new().read::<Protocol>(container).map_err(|error| about(&error))?);
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
