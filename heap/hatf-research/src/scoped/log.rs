//! Operations of a C or C++ program, from a trace of `dtds/scoped-log.dtd`.

use std::collections::HashMap;

use metatf::container::Reader;
use metatf::typed::TraceOptions;

use crate::regions::{Operation, Simulation};

use super::log_format::{Protocol, Record, Scoped, Trace};
use super::name_numbers::NameNumbers;
use hatf_trace::{Error, Result};

/// Runs the operations of a trace through a simulation. Returns the names, indexed by the numbers used in the
/// simulation.
pub(super) fn simulate(
    container: Reader<'_>,
    simulation: &mut Simulation,
    step: &mut dyn FnMut(),
    about: &dyn Fn(&dyn std::fmt::Display) -> Error,
) -> Result<Vec<String>> {
    let options = TraceOptions::new().read::<Protocol>(container).map_err(|error| about(&error))?;
    let mut trace = Trace::from_opened(options);
    let mut names = NameNumbers::default();
    // A registration has one record per site. The records become one operation when the thread does something else.
    let mut registered: HashMap<u64, (u64, Vec<u64>)> = HashMap::new();
    while let Some(Record::Scoped(record)) = trace.next().map_err(|error| about(&error))? {
        let name = |number| names.known(number).ok_or_else(|| about(&format!("no name has the number {number}")));
        let thread = match &record {
            Scoped::Intern(intern) => {
                names.number(intern.id, || Ok(intern.text.to_vec()))?;
                continue;
            }
            Scoped::Capture(capture) => {
                let site = name(capture.site)?;
                registered.entry(capture.thread).and_modify(|(_, sites)| sites.push(site));
                continue;
            }
            Scoped::Register(of) => of.thread,
            Scoped::Enter(of) => of.thread,
            Scoped::Exit(of) => of.thread,
            Scoped::NewInstance(of) => of.thread,
            Scoped::NewAInstance(of) => of.thread,
        };
        if let Some((call_site, sites)) = registered.remove(&thread) {
            simulation.operate(thread, Operation::Register { call_site, sites: &sites })?;
            step();
        }
        let operation = match record {
            Scoped::Intern(_) | Scoped::Capture(_) => continue,
            Scoped::Register(register) => {
                registered.insert(thread, (name(register.call_site)?, Vec::new()));
                continue;
            }
            Scoped::Enter(enter) => Operation::Enter { method: name(enter.region)? },
            Scoped::Exit(_) => Operation::Exit,
            Scoped::NewInstance(new) => Operation::New { site: name(new.site)?, size: new.size },
            Scoped::NewAInstance(new) => Operation::New { site: name(new.site)?, size: new.size },
        };
        simulation.operate(thread, operation)?;
        step();
    }
    for (thread, (call_site, sites)) in registered {
        simulation.operate(thread, Operation::Register { call_site, sites: &sites })?;
    }
    Ok(names.into_names())
}
