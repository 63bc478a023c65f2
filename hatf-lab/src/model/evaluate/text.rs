//! The experiment as tables for people, in the form of the paper's Tables 9 to 16.

use std::io::{self, Write};

use super::predictions::{Predicted, Predictions, Rank};
use super::student::{Interval, mean};
use super::{Ended, INTRINSIC, Off, Program};
use metatf_page::units::count;

/// Numbers of the paper's tables: actual values, errors, their summary, predicted values.
const TABLES: [(&str, [u32; 4]); 2] = [("OPS AN OBJECT", [9, 10, 11, 15]), ("MEMORY EFFICIENCY", [12, 13, 14, 16])];

/// Prints all tables.
///
/// # Errors
/// The output's.
pub fn text(programs: &[Program], predictions: &[Predictions; 2], trials: u64, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nMODEL / ACTUAL (Figures 3 to 6; mean of {trials} trials, 90 % interval)")?;
    let mut rows = Vec::new();
    for program in programs {
        for model in &program.models {
            let cells = match &model.intrinsic {
                Some(intervals) => intervals.map(of_interval),
                None => [(); 4].map(|()| "stopped".to_owned()),
            };
            rows.push([vec![program.name.clone(), model.model.to_string()], cells.to_vec()].concat());
        }
    }
    let header = ["program", "model"].into_iter().chain(INTRINSIC).map(str::to_owned).collect();
    table(header, rows, 2, out)?;
    writeln!(
        out,
        "\nOVER TIME: windows off by so much of the actual maximum (mean, worst), and those of 100 within 5 %"
    )?;
    let mut rows = Vec::new();
    for program in programs {
        for model in &program.models {
            let off = |of: Off| [format!("{:.3}", of.mean), format!("{:.3}", of.worst), of.within.to_string()];
            let cells = match model.tracking {
                Some([bytes, objects]) => [off(bytes), off(objects)].concat(),
                None => vec!["-".to_owned(); 6],
            };
            rows.push([vec![program.name.clone(), model.model.to_string()], cells].concat());
        }
    }
    let header = ["program", "model", "bytes", "worst", "within", "objects", "worst", "within"];
    table(header.map(str::to_owned).to_vec(), rows, 2, out)?;
    for program in programs {
        for model in &program.models {
            let stopped = model.trials.iter().filter(|ended| matches!(ended, Ended::Stopped(_))).count();
            if stopped > 0 {
                let (name, model) = (&program.name, model.model);
                writeln!(out, "  {name}, {model}: {} trials ran into the memory limit", count(stopped as u64))?;
            }
        }
    }
    for (predictions, (name, numbers)) in predictions.iter().zip(TABLES) {
        one_metric(predictions, name, numbers, out)?;
    }
    Ok(())
}

fn one_metric(of: &Predictions, name: &str, tables: [u32; 4], out: &mut dyn Write) -> io::Result<()> {
    let [actual, errors, summary, raw] = tables;
    let header = |first: &[&str], last: &[&str]| {
        let first = first.iter().map(ToString::to_string);
        first.chain(of.allocators.iter().cloned()).chain(last.iter().map(ToString::to_string)).collect::<Vec<_>>()
    };
    writeln!(out, "\n{name}: ACTUAL (Table {actual})")?;
    let row = |program: &Predicted| numbers(&[&program.name], program.actual.iter().map(|value| Some(*value)));
    table(header(&["program"], &[]), of.programs.iter().map(row).collect(), 1, out)?;

    writeln!(out, "\n{name}: PREDICTED (Table {raw})")?;
    let mut rows = Vec::new();
    for program in &of.programs {
        let with_mean = |values: &Option<Vec<f64>>| {
            let mean = values.as_deref().map(mean);
            let each = |at| values.as_ref().and_then(|values| values.get(at).copied());
            (0..of.allocators.len()).map(each).chain([mean]).collect::<Vec<_>>()
        };
        rows.push(numbers(&[&program.name, "ACTUAL"], with_mean(&Some(program.actual.clone())).into_iter()));
        let models = of.models.iter().zip(&program.models);
        rows.extend(models.map(|(model, values)| numbers(&[&program.name, model], with_mean(values).into_iter())));
    }
    table(header(&["program", "model"], &["mean"]), rows, 2, out)?;

    writeln!(out, "\n{name}: RELATIVE ERRORS (Table {errors}), and pairs of allocators that change places")?;
    let mut rows = Vec::new();
    for program in &of.programs {
        let (errors, ranks) = (program.errors(), program.ranks());
        for (n, model) in of.models.iter().enumerate() {
            let values = errors.errors.get(n).cloned().flatten();
            let each = |at| values.as_ref().and_then(|values| values.get(at).copied());
            let mean = errors.of_models.get(n).copied().flatten();
            let mut row = numbers(&[&program.name, model], (0..of.allocators.len()).map(each).chain([mean]));
            let rank = ranks.get(n).copied().flatten();
            row.push(rank.map_or("-".to_owned(), |Rank { discordant, pairs }| format!("{discordant} of {pairs}")));
            rows.push(row);
        }
        let mut row = numbers(&[&program.name, "MEAN"], errors.of_allocators.iter().copied().chain([None]));
        row.push("-".to_owned());
        rows.push(row);
    }
    table(header(&["program", "model"], &["mean", "pairs"]), rows, 2, out)?;

    writeln!(out, "\n{name}: ERRORS OVER ALL PROGRAMS (Table {summary})")?;
    let means = of.summary();
    let names = [String::new()].into_iter().chain(of.models.iter().cloned()).chain(of.allocators.iter().cloned());
    let row = numbers(&["mean"], means.of_models.into_iter().chain(means.of_allocators));
    table(names.collect(), vec![row], 1, out)
}

fn numbers(names: &[&str], values: impl Iterator<Item = Option<f64>>) -> Vec<String> {
    let value = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
    names.iter().map(ToString::to_string).chain(values.map(value)).collect()
}

fn of_interval(Interval { mean, half }: Interval) -> String {
    match half {
        Some(half) => format!("{mean:.3} ±{half:.3}"),
        None => format!("{mean:.3} -     "),
    }
}

/// Prints a table whose first columns are names. A first column that repeats is left out.
fn table(header: Vec<String>, rows: Vec<Vec<String>>, names: usize, out: &mut dyn Write) -> io::Result<()> {
    let length = |row: &Vec<String>, column| row.get(column).map_or(0, |cell: &String| cell.chars().count());
    let width = |column| rows.iter().chain([&header]).map(|row| length(row, column)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let mut before: Option<&String> = None;
    for row in [&header].into_iter().chain(&rows) {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let repeated = column == 0 && names > 1 && before == Some(cell);
            let cell = if repeated { "" } else { cell };
            let cell = if column < names { format!("  {cell:width$}") } else { format!("  {cell:>width$}") };
            line.push_str(&cell);
        }
        writeln!(out, "{}", line.trim_end())?;
        before = row.first();
    }
    Ok(())
}
