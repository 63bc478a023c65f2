//! JSON lines: of `heap.dtd`'s records, with stacks and names in the place of their offsets; HATF 1.0's own are read, too.

use std::io::{BufRead, Read as _, Write};

use metatf::container::Reader;
use metatf::dynamic::{self, JsonOptions, Schema, Trace};
use metatf::reader::Event as TraceEvent;
use serde_json::Value;

use super::native::{NativeMapper, from_hex, parse_record, print_comment};
use super::raw::note_about;
use crate::event::{About, Call, Event, EventSource, Function, Item, What};
use crate::heap::format::FORMAT;
use crate::loss::Losses;
use crate::{Error, Result};

/// Bytes printed before they are written.
const FULL: usize = 1 << 16;
/// The longest line that is read, in bytes.
const LINE: u64 = 16 << 20;

/// Prints a trace of `heap.dtd`: its records and its comments. What it says about itself has no line, and is lost.
///
/// # Errors
/// What is wrong with the trace; the output's.
pub fn print_heap<W: Write>(container: Reader<'_>, mut write: W) -> Result<(W, Losses)> {
    let failed = |error: metatf::Error| Error::Trace(error.to_string().into());
    let schema =
        Schema::parse("heap.dtd", FORMAT.dtd.as_bytes()).map_err(|error| Error::Trace(error.to_string().into()))?;
    let mut trace = Trace::new(schema, container).map_err(failed)?;
    let mut out = Vec::with_capacity(FULL * 2);
    loop {
        let Some(event) = trace.next_entry().map_err(failed)?.map(|entry| entry.event) else { break };
        match event {
            TraceEvent::Record(at) => {
                let resolve = has_offset(&trace, at.record);
                let options = JsonOptions { resolve, ..JsonOptions::default() };
                trace.print_json(event, &mut out, options).map_err(failed)?;
            }
            TraceEvent::Comment(_) => {
                let text = trace.record().iter().next_back().map_or(&[][..], dynamic::Item::bytes);
                print_comment("\"heap\"", text, &mut out)?;
            }
            _ => {}
        }
        if out.len() >= FULL {
            write.write_all(&out)?;
            out.clear();
        }
    }
    write.write_all(&out)?;
    write.flush()?;
    let mut losses = Losses::default();
    for text in trace.reader().container().user_metadata() {
        if let Ok(Value::Object(about)) = serde_json::from_slice::<Value>(text) {
            note_about(&mut losses, &about);
        }
    }
    Ok((write, losses))
}

/// Whether the record that was decoded last holds an offset that says something: a name, or a stack that is known.
fn has_offset(trace: &Trace<'_>, record: u16) -> bool {
    let name = trace.schema().record(record).map_or("", |record| record.name.as_str());
    if matches!(name, "mark" | "phase_begin" | "phase_end" | "image") {
        return true;
    }
    // After the time.
    matches!(trace.record().get(1), Some(dynamic::Item::Number(offset)) if offset != 0)
}

/// Reads JSON lines.
pub struct JsonSource<R> {
    read: R,
    line: Vec<u8>,
    number: u64,
    thread: u64,
    heap: u64,
    native: NativeMapper,
    stack: Vec<u64>,
    text: Vec<u8>,
    done: bool,
}

/// What a line says.
enum Said {
    /// Nothing that is an event.
    Nothing,
    /// A comment, whose bytes are kept.
    Comment,
    /// An event of `heap.dtd`; its stack and name are kept.
    Event(What<'static>, u64, u64),
    /// A record of HATF 1.0.
    Native(crate::hatf10::Record<'static>),
}

impl<R: BufRead> JsonSource<R> {
    /// Reads from the start.
    pub fn new(read: R) -> Self {
        Self {
            read,
            line: Vec::new(),
            number: 0,
            thread: 1,
            heap: 0,
            native: NativeMapper::default(),
            stack: Vec::new(),
            text: Vec::new(),
            done: false,
        }
    }

    fn said(&mut self) -> Result<Option<Said>> {
        self.line.clear();
        self.number += 1;
        let read = (&mut self.read).take(LINE + 1).read_until(b'\n', &mut self.line);
        let read = read.map_err(Error::system("JSON lines"))? as u64;
        if read == 0 {
            return Ok(None);
        }
        if read > LINE {
            return Err(self.wrong("a line of over 16 MiB"));
        }
        if self.line.trim_ascii().is_empty() {
            return Ok(Some(Said::Nothing));
        }
        let line: Value = serde_json::from_slice(&self.line).map_err(|error| self.wrong(&error.to_string()))?;
        let section = line.get("@section").and_then(Value::as_str);
        let Some(record) = line.get("@record").and_then(Value::as_str) else {
            let of_the_container = line.get("@group").is_some() || line.get("@reset").is_some();
            return if of_the_container { Ok(Some(Said::Nothing)) } else { Err(self.wrong("no `@record`")) };
        };
        let said = match (section, record) {
            (_, "section" | "metadata") => Ok(Said::Nothing),
            (_, "comment") => self.keep_bytes(line.get("text").unwrap_or(&Value::Null)).map(|()| Said::Comment),
            (None, record) => parse_record(record, &line).map(|(native, attributes)| {
                let native = crate::hatf1::Record { attributes: &attributes, ..native };
                self.native.take(&native).map_or(Said::Nothing, Said::Native)
            }),
            (Some("heap"), record) => self.heap_record(record, &line),
            // Elements of streams and tables: their values stand where they are used.
            (Some(_), _) => Ok(Said::Nothing),
        };
        said.map(Some).map_err(|error| self.wrong(&error.to_string()))
    }

    fn wrong(&mut self, what: &str) -> Error {
        self.done = true;
        Error::Trace(format!("JSON lines, line {}: {what}", self.number).into())
    }

    /// A string, or `{"hex":".."}`.
    fn keep_bytes(&mut self, value: &Value) -> Result<()> {
        let hex = value.get("hex").and_then(Value::as_str).and_then(from_hex);
        let bytes = value.as_str().map(|text| text.as_bytes().to_vec()).or(hex);
        self.text = bytes.ok_or_else(|| Error::Trace(format!("{value} is no text").into()))?;
        Ok(())
    }

    /// The frames of a stack: `0`, or an offset with its element.
    fn keep_stack(&mut self, line: &Value) -> Result<()> {
        self.stack.clear();
        let stack = line.get("stack").unwrap_or(&Value::Null);
        if stack.is_null() || stack.as_u64() == Some(0) {
            return Ok(());
        }
        let frames = stack.get("element").and_then(|element| element.get("frame")).and_then(Value::as_array);
        let frames: Option<Vec<u64>> = frames.and_then(|frames| frames.iter().map(Value::as_u64).collect());
        self.stack = frames.ok_or_else(|| Error::Trace(format!("stack {stack} does not say its frames").into()))?;
        Ok(())
    }

    fn keep_name(&mut self, line: &Value) -> Result<()> {
        let name = line.get("name").unwrap_or(&Value::Null);
        let element = name.get("element").and_then(|element| element.get("vfield"));
        let text = element.ok_or_else(|| Error::Trace(format!("name {name} does not say its text").into()))?;
        self.keep_bytes(&text.clone())
    }

    fn heap_record(&mut self, record: &str, line: &Value) -> Result<Said> {
        let number = |key: &str| -> Result<u64> {
            let value = line.get(key).unwrap_or(&Value::Null);
            value.as_u64().ok_or_else(|| Error::Trace(format!("no number `{key}`, which `{record}` has").into()))
        };
        if record == "thread" {
            self.thread = number("id")?;
            return Ok(Said::Nothing);
        }
        let time = number("time")?;
        self.keep_stack(line)?;
        self.text.clear();
        let call = |function: Function| -> Result<Call> {
            let detail = if function.counts() {
                number("count")?
            } else if line.get("alignment").is_some() {
                number("alignment")?
            } else {
                0
            };
            let old = if function.is_realloc() { number("old")? } else { 0 };
            Ok(Call {
                function,
                detail,
                size: number("size")?,
                usable: number("usable")?,
                old,
                address: number("address")?,
            })
        };
        if let Some(function) = Function::ALL.into_iter().find(|function| function.name() == record) {
            return Ok(Said::Event(What::Call(call(function)?), time, self.thread));
        }
        let mut thread = self.thread;
        let what = match record {
            "free" => What::Free { address: number("address")? },
            "realloc_begin" => What::ReallocBegin { old: number("old")? },
            "realloc_end" => {
                let count = number("count")?;
                let function = if count == 0 { Function::Realloc } else { Function::Reallocarray };
                let (size, usable, address) = (number("size")?, number("usable")?, number("address")?);
                What::ReallocEnd(Call { function, detail: count, size, usable, old: 0, address })
            }
            "failed" => {
                let index = usize::try_from(number("function")?.wrapping_sub(4)).unwrap_or(usize::MAX);
                let function = Function::ALL.get(index).copied().unwrap_or(Function::Malloc);
                let detail = number("count")?.max(number("alignment")?);
                What::Failed(Call { detail, size: number("size")?, old: number("block")?, ..Call::new(function) })
            }
            "thread_start" => {
                thread = number("id")?;
                What::ThreadStart { creator: number("creator")? }
            }
            "thread_end" => {
                thread = number("id")?;
                What::ThreadEnd
            }
            "mark" => What::Mark { name: &[] },
            "phase_begin" => What::PhaseBegin { name: &[] },
            "phase_end" => What::PhaseEnd { name: &[] },
            "image" => {
                self.heap += 1;
                What::Image { process: number("process")?, path: &[] }
            }
            "exit" => What::Exit { status: number("status")? },
            "killed" => What::Killed { signal: number("signal")? },
            "lost" => What::Lost { events: number("events")? },
            _ => return Err(Error::Trace(format!("heap.dtd has no record `{record}`").into())),
        };
        if matches!(record, "mark" | "phase_begin" | "phase_end" | "image") {
            self.keep_name(line)?;
        }
        Ok(Said::Event(what, time, thread))
    }
}

impl<R: BufRead> EventSource for JsonSource<R> {
    fn next(&mut self) -> Result<Option<Item<'_>>> {
        if self.done {
            return Ok(None);
        }
        loop {
            match self.said()? {
                None => {
                    self.done = true;
                    return Ok(None);
                }
                Some(Said::Nothing) => {}
                Some(Said::Comment) => return Ok(Some(Item::Comment(&self.text))),
                Some(Said::Native(record)) => return Ok(Some(Item::Event(self.native.event(record)))),
                Some(Said::Event(what, time, thread)) => {
                    let what = what.named(&self.text);
                    let (heap, stack) = (self.heap, &self.stack[..]);
                    return Ok(Some(Item::Event(Event { what, time, thread, heap, stack, attributes: &[] })));
                }
            }
        }
    }

    fn about(&self) -> About {
        About::new()
    }

    fn losses(&self) -> Losses {
        self.native.losses()
    }
}
