//! What the page asks for, and what comes back: JSON, and bytes beside it.

use crate::open::{File, Opened};
use crate::{Result, check, encode, heap, open, rows, samples};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// What is kept from one request to the next: the file that is looked at.
#[derive(Default)]
pub struct State {
    file: Option<File>,
}

/// What can be asked for; the JSON's `ask` is the name.
#[derive(Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request<'r> {
    /// What is wrong in a DTD, and what it declares.
    Check {
        /// The DTD.
        #[serde(borrow)]
        text: Cow<'r, str>,
    },
    /// A DTD laid out as `metatfc fmt` does.
    Format {
        /// The DTD.
        #[serde(borrow)]
        text: Cow<'r, str>,
    },
    /// The names of all samples.
    Samples,
    /// One of them.
    Sample {
        /// Its name.
        #[serde(borrow)]
        name: Cow<'r, str>,
    },
    /// A trace of JSON lines, which are the bytes behind the request; the trace comes as bytes, and is opened.
    Encode {
        /// The DTD.
        #[serde(borrow)]
        text: Cow<'r, str>,
        /// How it is written.
        options: encode::Options,
    },
    /// Opens the file whose bytes are behind the request. If a trace was made of it, that comes as bytes.
    Open {
        /// Its name, for messages.
        #[serde(borrow)]
        name: Cow<'r, str>,
        /// The DTD of the page, which reads a file that no other DTD is for.
        #[serde(borrow)]
        text: Cow<'r, str>,
    },
    /// Records and all else of the open file, from a place on.
    Rows {
        /// How many are left out before.
        from: u64,
        /// How many at most.
        count: usize,
    },
    /// The page of the heap that the open file is a trace of, as bytes, and what of the trace is not in it.
    Heap,
}

#[derive(Serialize)]
struct Failed<'f> {
    error: &'f str,
}

/// Answers a request: a JSON text, and bytes. What cannot be done is `{"error":".."}`.
pub fn respond(state: &mut State, request: &[u8], bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let answered = match serde_json::from_slice::<Request<'_>>(request) {
        Ok(request) => answer(state, request, bytes),
        Err(error) => Err(format!("the request is not one: {error}")),
    };
    answered.unwrap_or_else(|error| (json(&Failed { error: &error }).unwrap_or_default(), Vec::new()))
}

fn answer(state: &mut State, request: Request<'_>, bytes: &[u8]) -> Result<(Vec<u8>, Vec<u8>)> {
    let text = match request {
        Request::Check { text } => json(&check::check(&text)),
        Request::Format { text } => json(&check::format(&text)?),
        Request::Samples => json(&samples::names()),
        Request::Sample { name } => {
            let sample = samples::named(&name)?;
            return Ok((json(&sample)?, sample.file.to_vec()));
        }
        Request::Encode { text, options } => {
            let trace = encode::encode(&text, bytes, options)?;
            return Ok((json(&keep(state, trace.clone(), "the trace", &text)?)?, trace));
        }
        Request::Open { name, text } => {
            let opened = json(&keep(state, bytes.to_vec(), &name, &text)?)?;
            let made = state.file.as_ref().and_then(|file| file.converted().map(|made| made.trace.to_vec()));
            return Ok((opened, made.unwrap_or_default()));
        }
        Request::Rows { from, count } => {
            let file = state.file.as_mut().ok_or("no file is open")?;
            json(&rows::rows(file, from, count)?)
        }
        Request::Heap => {
            let file = state.file.as_ref().ok_or("no file is open")?;
            let made = heap::page(file)?;
            return Ok((json(&made)?, made.html));
        }
    };
    Ok((text?, Vec::new()))
}

/// Opens a file, and keeps it.
fn keep(state: &mut State, bytes: Vec<u8>, name: &str, text: &str) -> Result<Opened> {
    state.file = None;
    let file = open::open(bytes, name, text)?;
    let opened = file.summary()?;
    state.file = Some(file);
    Ok(opened)
}

fn json(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| error.to_string())
}
