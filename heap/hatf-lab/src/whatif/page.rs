//! Report-page elements for predictions.

use metatf_page::{Column, Note, Page, Table, Value};

use super::{Advice, BOUND, KnownBy, Now, WhatIf, known_error};

/// Adds the ranking, the suggestions, and warnings about simulators with large errors.
pub fn describe(whatif: &WhatIf, page: &mut Page) {
    let now = whatif.now.allocator.as_str();
    page.note(in_use(&whatif.now));
    page.heading(format!(
        "PREDICTED (peak, mean: bytes of pages held; ops: operations per object; saves: % of the peak of {now})"
    ));
    page.push(predictions(whatif));
    private(whatif, page);
    page.heading("TRY");
    whatif.advice.iter().for_each(|of| advice(of, whatif, page));
    if whatif.advice.is_empty() {
        page.note("nothing: no library or setting saves more than the error of the simulators");
    }
    for family in super::NOW {
        if let Some(error) = known_error(family).filter(|error| error.worst > BOUND) {
            page.note(format!(
                "warning: the {family} simulator was off by up to {} ({}), which is more than {}",
                percent(error.worst),
                error.worst_of,
                percent(BOUND)
            ));
        }
    }
    let with: Vec<String> =
        whatif.advice.iter().filter_map(|of| of.replay).map(|of| format!(" --with '{of}'")).collect();
    let now = if now == "glibc" { "system" } else { now };
    page.note(format!("to measure the savings: hatf replay TRACE --with {now}{}", with.concat()));
}

/// Adds a bar chart of the predicted peak of each candidate, for a sufficiently wide page.
pub fn bars(whatif: &WhatIf, page: &mut Page) {
    let most = whatif.predictions.iter().map(|of| of.peak).max().unwrap_or(0);
    let mut table = Table::new([Column::key("allocator"), Column::new("peak"), Column::new("")]);
    for of in &whatif.predictions {
        table.row([Value::text(of.allocator), Value::Bytes(of.peak), Value::Bar(of.peak, most)]);
    }
    page.heading("PREDICTED PEAKS (bytes of pages held)");
    page.push(table);
}

/// Describes the allocator in use and the evidence for it.
fn in_use(now: &Now) -> String {
    let Now { allocator, in_truth, libc, known_by } = now;
    let libc = libc.as_ref().filter(|libc| allocator == "glibc" && libc.starts_with("glibc"));
    let name = in_truth.as_ref().or(libc).unwrap_or(allocator);
    let model = match in_truth {
        Some(_) => format!("; there is no model of it, so the comparison is with {allocator}"),
        None => String::new(),
    };
    match known_by {
        KnownBy::Given => format!("now: {allocator}, as specified by --now"),
        KnownBy::Module(module) => format!("now: {name}, because {module} is loaded{model}"),
        KnownBy::LinkedIn(function) => {
            format!("now: {name}, because it is linked into the program ({function}){model}")
        }
        KnownBy::NoOther => format!("now: {name}, because the modules include no other allocator"),
        KnownBy::Assumed => {
            format!("now: {name} is assumed, because the trace has no modules (use record --stacks or --now)")
        }
    }
}

/// Returns a table with a row per candidate in ascending order of the peak.
fn predictions(whatif: &WhatIf) -> Table {
    let columns = ["peak", "mean", "ops", "saves %", "error %"].map(Column::new);
    let columns = [Column::key("allocator")].into_iter().chain(columns).chain([Column::new("settings")]);
    let mut table = Table::new(columns);
    for of in &whatif.predictions {
        let hundredths = |part: f64| Value::Number(100.0 * part, 1);
        let is_now = of.allocator == whatif.now.allocator;
        let saves = if is_now { Value::text("now") } else { of.saves.map_or(Value::Unknown, hundredths) };
        table.row([
            Value::text(of.allocator),
            Value::Bytes(of.peak),
            Value::Bytes(of.mean),
            of.ops.map_or(Value::Unknown, |ops| Value::Number(ops, 2)),
            saves,
            of.error.as_ref().map_or(Value::Unknown, |error| hundredths(error.mean)),
            Value::text(of.environment.unwrap_or("(model only; there is no library)")),
        ]);
    }
    table
}

/// Adds a note on the program's memory that does not belong to malloc.
fn private(whatif: &WhatIf, page: &mut Page) {
    let (Some(private), Some(now)) = (whatif.private, whatif.prediction_now()) else { return };
    page.heading("THE PROGRAM, as reported by the kernel");
    // The kernel is queried only at intervals, and counts only pages that have been touched.
    let (note, rest) = match private.checked_sub(now.peak) {
        Some(rest) => (
            "at most {} private, of which malloc uses {} according to the prediction; no allocator can save the other \
             {}",
            Some(rest),
        ),
        None => (
            "at most {} private when the kernel was queried; the {} predicted for malloc include memory that was not \
             in use then",
            None,
        ),
    };
    page.push(Note::new(note).with([private, now.peak].into_iter().chain(rest).map(Value::Bytes)));
    page.push(match whatif.mapped {
        Some(mapped) => {
            Note::new("at most {} were requested by the program's own calls (mmap, brk)").with([Value::Bytes(mapped)])
        }
        None => Note::new("hatf record --pages also records requests by the program's own calls (mmap, brk)"),
    });
}

/// Adds a suggestion and its benefit.
fn advice(of: &Advice, whatif: &WhatIf, page: &mut Page) {
    if let Some(module) = &of.without {
        page.note(format!("run or link the program without {module}: the environment alone has no effect"));
    }
    if !of.set.is_empty() {
        page.note(of.set.to_owned());
    }
    let saves = percent(of.saves);
    let private =
        whatif.private.filter(|private| *private > 0).map(|private| super::float(of.bytes) / super::float(private));
    let private = private.map_or(String::new(), |part| format!(", {} of the program's private memory", percent(part)));
    let error = of.error.map_or("unknown".to_owned(), percent);
    page.note(format!("  {}: saves {saves} of the peak{private}; the simulator's mean error is {error}", of.allocator));
}

fn percent(part: f64) -> String {
    format!("{:.1}%", part * 100.0)
}
