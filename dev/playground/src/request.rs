//! The page's requests and the responses to them. Both consist of JSON with attached bytes.

use crate::open::{File, Opened};
use crate::{Result, check, encode, heap, open, rows, samples};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The state kept between requests: the open file.
#[derive(Default)]
pub struct State {
    file: Option<File>,
}

/// A request. The JSON member `ask` contains its name.
#[derive(Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request<'r> {
    /// Checks a DTD and counts its declarations.
    Check {
        /// The DTD.
        #[serde(borrow)]
        text: Cow<'r, str>,
    },
    /// Formats a DTD like `metatfc fmt`.
    Format {
        /// The DTD.
        #[serde(borrow)]
        text: Cow<'r, str>,
    },
    /// Lists all samples.
    Samples,
    /// Returns a sample.
    Sample {
        /// The name of the sample.
        #[serde(borrow)]
        name: Cow<'r, str>,
    },
    /// Encodes the attached JSON lines as a trace, returns the trace as bytes, and opens it.
    Encode {
        /// The DTD.
        #[serde(borrow)]
        text: Cow<'r, str>,
        /// Options for writing.
        options: encode::Options,
    },
    /// Opens the file that is attached as bytes. If the file is converted to a trace, the trace is returned as bytes.
    Open {
        /// The name of the file, for messages.
        #[serde(borrow)]
        name: Cow<'r, str>,
        /// The DTD on the page, for files that no other DTD matches.
        #[serde(borrow)]
        text: Cow<'r, str>,
    },
    /// Returns records and all other entries of the open file.
    Rows {
        /// Number of entries to skip.
        from: u64,
        /// Maximum number of entries.
        count: usize,
    },
    /// Returns the page of the open heap trace as bytes, and a description of damage.
    Heap,
}

#[derive(Serialize)]
struct Failed<'f> {
    error: &'f str,
}

/// Handles a request and returns the response as JSON text and bytes. The response to a failed request is
/// `{"error":".."}`.
pub fn respond(state: &mut State, request: &[u8], bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let answered = match serde_json::from_slice::<Request<'_>>(request) {
        Ok(request) => answer(state, request, bytes),
        Err(error) => Err(format!("invalid request: {error}")),
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

/// Opens a file and keeps it for later requests.
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
