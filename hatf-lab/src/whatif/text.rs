//! Predictions as one page for people.

use std::io::{self, Write};

use super::{BOUND, WhatIf, known_error};
use crate::units::bytes;

/// Prints the ranking, what to try, and which simulators to doubt.
///
/// # Errors
/// The output's.
pub fn text(whatif: &WhatIf, out: &mut dyn Write) -> io::Result<()> {
    let now = &whatif.now;
    writeln!(out, "\nPREDICTED (bytes of pages held; ops: acts an object; saves: of the peak of {now})")?;
    writeln!(
        out,
        "  {:24} {:>9} {:>9} {:>7} {:>7} {:>7}  settings",
        "allocator", "peak", "mean", "ops", "saves", "error"
    )?;
    for of in &whatif.predictions {
        let mark = if of.allocator == now { "now" } else { "" };
        let saves = if mark.is_empty() { of.saves.map_or("-".to_owned(), percent) } else { mark.to_owned() };
        let ops = of.ops.map_or("-".to_owned(), |ops| format!("{ops:.2}"));
        let error = of.error.as_ref().map_or("-".to_owned(), |error| percent(error.mean));
        let (peak, mean) = (bytes(of.peak), bytes(of.mean));
        let settings = of.environment.unwrap_or("(a model: there is no library)");
        writeln!(out, "  {:24} {peak:>9} {mean:>9} {ops:>7} {saves:>7} {error:>7}  {settings}", of.allocator)?;
    }
    writeln!(out, "\nTRY")?;
    let advice = whatif.advice();
    for of in &advice {
        let saves = percent(of.saves.unwrap_or(0.0));
        let error = of.error.as_ref().map_or("unknown".to_owned(), |error| percent(error.mean));
        writeln!(out, "  {}", of.environment.unwrap_or_default())?;
        writeln!(out, "    saves {saves} of the peak; the simulator's mean error is {error}")?;
    }
    if advice.is_empty() {
        writeln!(out, "  nothing: no library or setting saves more than the simulators' errors")?;
    }
    for family in super::NOW {
        if let Some(error) = known_error(family).filter(|error| error.worst > BOUND) {
            writeln!(
                out,
                "  beware: the simulator of {family} was off by up to {} ({}), which is more than {}",
                percent(error.worst),
                error.worst_of,
                percent(BOUND)
            )?;
        }
    }
    let with: Vec<String> = advice.iter().filter_map(|of| of.replay).map(|of| format!(" --with '{of}'")).collect();
    let now = if now == "glibc" { "system" } else { now };
    writeln!(out, "  measure it: hatf replay TRACE --with {now}{}", with.concat())
}

fn percent(part: f64) -> String {
    format!("{:.1}%", part * 100.0)
}
