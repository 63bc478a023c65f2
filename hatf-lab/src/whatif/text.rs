//! Predictions as one page for people.

use std::io::{self, Write};

use super::{Advice, BOUND, KnownBy, WhatIf, known_error};
use metatf_page::units::bytes;

/// Prints the ranking, what to try, and which simulators to doubt.
///
/// # Errors
/// The output's.
pub fn text(whatif: &WhatIf, out: &mut dyn Write) -> io::Result<()> {
    let now = whatif.now.allocator.as_str();
    match &whatif.now.known_by {
        KnownBy::Given => writeln!(out, "  now: {now}, as --now says")?,
        KnownBy::Module(module) => writeln!(out, "  now: {now}, as {module} is loaded")?,
        KnownBy::NoOther => writeln!(out, "  now: {now}, as no other allocator is among the modules")?,
        KnownBy::Assumed => {
            writeln!(
                out,
                "  now: {now} is assumed, as the trace has no modules (record --stacks has them, or use --now)"
            )?;
        }
    }
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
    private(whatif, out)?;
    writeln!(out, "\nTRY")?;
    whatif.advice.iter().try_for_each(|of| advice(of, whatif, out))?;
    if whatif.advice.is_empty() {
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
    let with: Vec<String> =
        whatif.advice.iter().filter_map(|of| of.replay).map(|of| format!(" --with '{of}'")).collect();
    let now = if now == "glibc" { "system" } else { now };
    writeln!(out, "  measure it: hatf replay TRACE --with {now}{}", with.concat())
}

/// Prints what the program has that is not malloc's.
fn private(whatif: &WhatIf, out: &mut dyn Write) -> io::Result<()> {
    let (Some(private), Some(now)) = (whatif.private, whatif.prediction_now()) else { return Ok(()) };
    let rest = private.saturating_sub(now.peak);
    writeln!(out, "\nTHE PROGRAM, by the kernel")?;
    writeln!(
        out,
        "  {} private at most, {} of them malloc's by the prediction: {} are not, and no allocator saves of them",
        bytes(private),
        bytes(now.peak),
        bytes(rest)
    )
}

/// Prints what to do, and what for.
fn advice(of: &Advice, whatif: &WhatIf, out: &mut dyn Write) -> io::Result<()> {
    if let Some(module) = &of.without {
        writeln!(out, "  run, or link, the program without {module}: the environment alone does not")?;
    }
    if !of.set.is_empty() {
        writeln!(out, "  {}", of.set)?;
    }
    let saves = percent(of.saves);
    let private =
        whatif.private.filter(|private| *private > 0).map(|private| super::float(of.bytes) / super::float(private));
    let private = private.map_or(String::new(), |part| format!(", {} of the program's private memory", percent(part)));
    let error = of.error.map_or("unknown".to_owned(), percent);
    writeln!(out, "    {}: saves {saves} of the peak{private}; the simulator's mean error is {error}", of.allocator)
}

fn percent(part: f64) -> String {
    format!("{:.1}%", part * 100.0)
}
