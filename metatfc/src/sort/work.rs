//! Writes the records of all traces to the new trace. Each trace is opened when needed, up to a maximum number of open
//! traces.

use super::clock::Clock;
use super::input::{self, Input, Moving, Order, Out};
use super::runs::{MOST, Run, Runs, Writing};
use super::{Args, Given};
use crate::failure::{Failure, Result, failed, print_message};
use crate::target::Target;
use metatf::container::{LossReport, WriteOptions};
use metatf::dynamic::{Schema, Trace};
use metatf_cli::Progress;
use metatf_tools::convert::{ConvertOptions, Converter};
use metatf_tools::merge::{Keyed, Source as _, TraceSource, merge};
use metatf_tools::roles::Place;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::sync::Arc;

/// The state shared by all steps.
pub(super) struct Work<'a> {
    pub(super) args: &'a Args,
    pub(super) given: &'a [Given],
    pub(super) schema: &'a Schema,
    pub(super) write: &'a WriteOptions,
    pub(super) target: &'a Target,
    pub(super) order: Arc<Order>,
    /// The index of the trace that provides the clock and the user metadata of the new trace.
    pub(super) reference: usize,
    /// The position of the field for the trace number in each record.
    pub(super) numbered: Option<Arc<[Option<Place>]>>,
    /// Offsets that could not be adjusted, as (trace index, section index, lowest such offset).
    pub(super) kept: RefCell<Vec<(usize, usize, u64)>>,
}

impl Work<'_> {
    /// Writes all records.
    pub(super) fn all(&self, out: &mut Out) -> Result<()> {
        for json in self.user() {
            out.inner().user_metadata(&json).map_err(|e| self.failure(&e))?;
        }
        let records = self.given.iter().map(|one| one.survey.records).sum();
        let mut progress = Progress::new("records").of(records);
        let mut put = |out: &mut Out, keyed: &Keyed| {
            progress.step();
            out.record(keyed.section, keyed.record, &keyed.owned).map_err(|e| self.failure(&e))
        };
        let mut inputs = Vec::new();
        if self.given.len() <= MOST {
            for index in 0..self.given.len() {
                self.input(index, out, &mut inputs)?;
            }
        } else {
            let mut runs = self.first_runs(out)?;
            while runs.len() > MOST {
                runs = self.join(runs, out)?;
            }
            for run in runs {
                inputs.push(self.run_input(run)?);
            }
        }
        merge(&mut inputs, out, &mut put)?;
        for input in &inputs {
            self.done(input);
        }
        self.check_offsets(out)
    }

    /// Merges the traces into runs, with as many open traces at a time as allowed.
    fn first_runs(&self, out: &mut Out) -> Result<Vec<Run>> {
        let indices: Vec<usize> = (0..self.given.len()).collect();
        let run = |indices: &[usize]| {
            let mut inputs = Vec::new();
            indices.iter().try_for_each(|index| self.input(*index, out, &mut inputs))?;
            self.run_of(inputs, out)
        };
        indices.chunks(MOST).map(run).collect()
    }

    fn join(&self, runs: Vec<Run>, out: &mut Out) -> Result<Vec<Run>> {
        let (mut joined, mut inputs) = (Vec::new(), Vec::new());
        for run in runs {
            inputs.push(self.run_input(run)?);
            if inputs.len() == MOST {
                joined.push(self.run_of(std::mem::take(&mut inputs), out)?);
            }
        }
        if !inputs.is_empty() {
            joined.push(self.run_of(inputs, out)?);
        }
        Ok(joined)
    }

    /// Writes a run. Table elements are written to the new trace.
    fn run_of(&self, mut inputs: Vec<Input<'_>>, out: &mut Out) -> Result<Run> {
        let mut writing = Writing::new(self.schema, self.write)?;
        merge(&mut inputs, out, &mut |_, keyed| writing.put(keyed))?;
        inputs.iter().for_each(|input| self.done(input));
        writing.finish()
    }

    /// Adds a trace to the sources, sorted if necessary. The sorted parts of an only trace are separate sources.
    fn input<'s>(&'s self, index: usize, out: &mut Out, inputs: &mut Vec<Input<'s>>) -> Result<()> {
        let Some(given) = self.given.get(index) else { return failed("a trace is missing") };
        let (name, salvage) = (given.file.name(), self.args.salvage);
        let (_, reader) = self.args.raw.reopen(&given.file, &self.args.dtd, salvage)?;
        let problem =
            |e: &metatf::Error| Failure::Failed(format!("{name}: {}", metatf::explain(&given.schema.format, e)));
        let mut trace = Trace::new(given.schema.clone(), reader).map_err(|e| problem(&e))?;
        trace.reader_mut().set_salvage(salvage);
        let converter = Converter::new(&given.schema, self.schema, &ConvertOptions::default());
        let converter = converter.map_err(|unconvertible| Failure::Failed(format!("{name}: {unconvertible}")))?;
        let times = given.clock.as_ref().filter(|_| index != self.reference).map(Arc::clone);
        let first = match &*self.order {
            Order::Field(_) => given.survey.first,
            Order::Times(_, to) => {
                let moved = |from: &Arc<Clock>| to.time(from.real(given.survey.first_time));
                input::key_of(times.as_ref().map_or(given.survey.first_time, moved))
            }
        };
        let number = self.numbered.as_ref().map(|places| (Arc::clone(places), index as u64 + 1));
        let keys = input::keys(Arc::clone(&self.order), times, number);
        let source = TraceSource::new(trace, converter, first, keys);
        let (target, target_schema) = (self.target, self.schema);
        let mut moving = Moving { index, source, name, schema: &given.schema, target, target_schema, salvage };
        if given.survey.is_sorted {
            inputs.push(Input::Trace(Box::new(moving)));
            return Ok(());
        }
        let mut runs = Runs::new(self.schema, self.write, self.args.memory.bytes());
        let mut keyed = Keyed::default();
        while moving.next(out, &mut keyed)? {
            runs.add(std::mem::take(&mut keyed))?;
        }
        self.done(&Input::Trace(Box::new(moving)));
        if self.given.len() > 1 {
            inputs.push(self.run_input(runs.into_run()?)?);
            return Ok(());
        }
        let (written, kept) = runs.into_parts();
        for run in written {
            inputs.push(self.run_input(run)?);
        }
        inputs.push(Input::Kept(kept));
        Ok(())
    }

    fn run_input(&self, run: Run) -> Result<Input<'_>> {
        run.open(self.schema).map(|reading| Input::Run(Box::new(reading)))
    }

    /// Prints warnings for a trace and records the offsets that could not be adjusted.
    fn done(&self, input: &Input<'_>) {
        let Input::Trace(moving) = input else { return };
        let (name, container) = (moving.name, moving.source.trace().reader().container());
        if let Some(loss) = container.loss_report().filter(|loss| !LossReport::is_empty(loss)) {
            for line in loss.to_string().lines() {
                print_message(&format!("{name}: salvage: {line}"));
            }
        }
        let kept = moving.source.converter().kept_offsets();
        self.kept.borrow_mut().extend(kept.map(|(section, offset)| (moving.index, section, offset)));
    }

    /// Checks references to offsets at which the input contains no element. These offsets were copied unchanged, so the
    /// merged trace must not contain another trace's element there.
    fn check_offsets(&self, out: &Out) -> Result<()> {
        let kept = self.kept.borrow();
        let wrong = kept
            .iter()
            .filter(|_| self.given.len() > 1)
            .find(|(_, section, offset)| out.next_offset(*section) > *offset);
        let Some((index, section, offset)) = wrong else { return Ok(()) };
        let section = self.schema.section(*section).and_then(|section| section.name.as_deref()).unwrap_or_default();
        failed(format!(
            "{}: a record refers to offset {offset} of section {section}, where the trace contains no element, but the \
             merged trace contains an element of another trace",
            self.given.get(*index).map_or("", |given| given.file.name())
        ))
    }

    /// Returns the user metadata of the new trace.
    fn user(&self) -> Vec<String> {
        let mut user = self.given.get(self.reference).map(|given| given.survey.user.clone()).unwrap_or_default();
        if self.given.len() > 1 {
            let traces = (1_usize..).zip(self.given).map(|(number, given)| {
                let (name, user) = (given.file.name(), given.survey.metadata());
                json!({"number": number, "name": name, "records": given.survey.records, "user": user})
            });
            user.push(json!({"merge": {"traces": traces.collect::<Vec<Value>>()}}).to_string());
        }
        user
    }

    fn failure(&self, error: &metatf::Error) -> Failure {
        self.target.failure(&self.schema.format, error)
    }
}
