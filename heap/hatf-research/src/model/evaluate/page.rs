//! Report-page elements for the experiment, including tables like Tables 9 to 16 of the paper.

use metatf_page::{Column, Note, Page, Table, Value};

use super::predictions::{Predicted, Predictions, Rank};
use super::{Ended, INTRINSIC, Off, Program};
use hatf_lab::statistics::{Interval, mean};

/// For each metric, the numbers of the paper's tables of actual values, errors, error summaries and predicted values.
const TABLES: [(&str, [u32; 4]); 2] = [("OPS PER OBJECT", [9, 10, 11, 15]), ("MEMORY EFFICIENCY", [12, 13, 14, 16])];

/// Adds all tables.
pub fn describe(programs: &[Program], predictions: &[Predictions; 2], trials: u64, page: &mut Page) {
    page.heading(format!("MODEL / ACTUAL (Figures 3 to 6; mean of {trials} trials, 90% confidence interval)"));
    let mut rows = Vec::new();
    for program in programs {
        for model in &program.models {
            let cells = match &model.intrinsic {
                Some(intervals) => intervals.map(of_interval),
                None => [(); 4].map(|()| Value::text("stopped")),
            };
            rows.push([names(&[&program.name, &model.model.to_string()]), cells.to_vec()].concat());
        }
    }
    let header = ["program", "model"].into_iter().chain(INTRINSIC).map(str::to_owned).collect();
    table(header, rows, 2, page);
    page.heading(
        "OVER TIME: deviation of window maxima from the actual ones, relative to the peak (mean, worst); windows of \
         100 within 5%",
    );
    let mut rows = Vec::new();
    for program in programs {
        for model in &program.models {
            let off = |of: Off| [Value::Number(of.mean, 3), Value::Number(of.worst, 3), Value::Count(of.within as u64)];
            let cells = match model.tracking {
                Some([bytes, objects]) => [off(bytes), off(objects)].concat(),
                None => vec![Value::Unknown; 6],
            };
            rows.push([names(&[&program.name, &model.model.to_string()]), cells].concat());
        }
    }
    let header = ["program", "model", "bytes", "worst", "within", "objects", "worst", "within"];
    table(header.map(str::to_owned).to_vec(), rows, 2, page);
    for program in programs {
        for model in &program.models {
            let stopped = model.trials.iter().filter(|ended| matches!(ended, Ended::Stopped(_))).count();
            if stopped > 0 {
                let note = Note::new("{}, {}: {} trials reached the memory limit");
                let of = names(&[&program.name, &model.model.to_string()]);
                page.push(note.with(of.into_iter().chain([Value::Count(stopped as u64)])));
            }
        }
    }
    for (predictions, (name, numbers)) in predictions.iter().zip(TABLES) {
        one_metric(predictions, name, numbers, page);
    }
}

fn one_metric(of: &Predictions, name: &str, tables: [u32; 4], page: &mut Page) {
    let [actual, errors, summary, raw] = tables;
    let header = |first: &[&str], last: &[&str]| {
        let first = first.iter().map(ToString::to_string);
        first.chain(of.allocators.iter().cloned()).chain(last.iter().map(ToString::to_string)).collect::<Vec<_>>()
    };
    page.heading(format!("{name}: ACTUAL (Table {actual})"));
    let row = |program: &Predicted| numbers(&[&program.name], program.actual.iter().map(|value| Some(*value)));
    table(header(&["program"], &[]), of.programs.iter().map(row).collect(), 1, page);

    page.heading(format!("{name}: PREDICTED (Table {raw})"));
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
    table(header(&["program", "model"], &["mean"]), rows, 2, page);

    page.heading(format!("{name}: RELATIVE ERRORS (Table {errors}), and allocator pairs ranked in the wrong order"));
    let mut rows = Vec::new();
    for program in &of.programs {
        let (errors, ranks) = (program.errors(), program.ranks());
        for (n, model) in of.models.iter().enumerate() {
            let values = errors.errors.get(n).cloned().flatten();
            let each = |at| values.as_ref().and_then(|values| values.get(at).copied());
            let mean = errors.of_models.get(n).copied().flatten();
            let mut row = numbers(&[&program.name, model], (0..of.allocators.len()).map(each).chain([mean]));
            let rank = ranks.get(n).copied().flatten();
            row.push(
                rank.map_or(Value::Unknown, |Rank { discordant, pairs }| {
                    Value::text(format!("{discordant} of {pairs}"))
                }),
            );
            rows.push(row);
        }
        let mut row = numbers(&[&program.name, "MEAN"], errors.of_allocators.iter().copied().chain([None]));
        row.push(Value::Unknown);
        rows.push(row);
    }
    table(header(&["program", "model"], &["mean", "pairs"]), rows, 2, page);

    page.heading(format!("{name}: ERRORS OVER ALL PROGRAMS (Table {summary})"));
    let means = of.summary();
    let names = [String::new()].into_iter().chain(of.models.iter().cloned()).chain(of.allocators.iter().cloned());
    let row = numbers(&["mean"], means.of_models.into_iter().chain(means.of_allocators));
    table(names.collect(), vec![row], 1, page);
}

fn names(of: &[&str]) -> Vec<Value> {
    of.iter().map(|name| Value::text((*name).to_owned())).collect()
}

fn numbers(of: &[&str], values: impl Iterator<Item = Option<f64>>) -> Vec<Value> {
    let value = |value: Option<f64>| value.map_or(Value::Unknown, |value| Value::Number(value, 3));
    names(of).into_iter().chain(values.map(value)).collect()
}

fn of_interval(Interval { mean, half, .. }: Interval) -> Value {
    Value::Interval(mean, half, 3)
}

/// Adds a table whose first `names` columns are names. If there are several name columns, a first name equal to that of
/// the previous row is omitted.
fn table(header: Vec<String>, rows: Vec<Vec<Value>>, names: usize, page: &mut Page) {
    let column = |(at, name)| if at < names { Column::key(name) } else { Column::new(name) };
    let mut table = Table::new(header.into_iter().enumerate().map(column));
    let mut before = Value::Blank;
    for mut row in rows {
        if let Some(first) = row.first_mut().filter(|_| names > 1) {
            if *first == before {
                *first = Value::Blank;
            } else {
                before = first.clone();
            }
        }
        table.row(row);
    }
    page.push(table);
}
