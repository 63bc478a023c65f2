//! Symbolization in a child process with limits, because libraries decode untrusted files.

use std::io;
use std::path::PathBuf;

use metatf_cli::{Child, ChildCommand, ChildLimits, Death, serve_parent};
use serde::{Deserialize, Serialize};

use super::answer::{Answer, Image};
use super::elf;
use super::files::{Fetched, Files};
use super::in_process::answer;
use hatf_trace::{Error, Result};

/// Seconds of CPU time for a query. Each [`BYTES_A_SECOND`] bytes of the files and each [`FRAMES_A_SECOND`] frames add
/// a second.
const SECONDS: u64 = 20;
const BYTES_A_SECOND: u64 = 1 << 20;
const FRAMES_A_SECOND: u64 = 1000;

/// The kind of message that contains the child's answer.
const ANSWER: u8 = b'a';

/// A child process that symbolizes frames. The child is started for the first image, and restarted if it ended while
/// processing an image.
#[derive(Debug, Default)]
pub(super) struct Helper(Option<Child>);

/// A request to the child.
#[derive(Serialize, Deserialize)]
struct Question {
    image: Image,
    addresses: Vec<u64>,
    folders: Vec<PathBuf>,
    debug_dirs: Vec<PathBuf>,
    fetched: Fetched,
}

impl Helper {
    /// Requests the frames of addresses in an image from the child.
    ///
    /// # Errors
    /// The reason that there is no answer.
    pub(super) fn ask(
        &mut self,
        command: &ChildCommand,
        image: &Image,
        addresses: &[u64],
        (files, fetched): (&Files, &Fetched),
    ) -> std::result::Result<Answer, String> {
        let (Files { folders, debug_dirs, .. }, fetched) = (files.clone(), fetched.clone());
        let question = Question { image: image.clone(), addresses: addresses.to_vec(), folders, debug_dirs, fetched };
        let question = serde_json::to_vec(&question).map_err(|error| error.to_string())?;
        let was_running = self.0.is_some();
        let mut answer = self.answer(command, &question);
        // Retry in a new child, because memory used for earlier images must not count for this image.
        if was_running && answer.is_err() {
            answer = self.answer(command, &question);
        }
        let answer = answer.map_err(|death| format!("symbolizing it {death}"))?;
        serde_json::from_slice(&answer)
            .map_err(|error| format!("symbolizing it failed: the child process returned an invalid answer ({error})"))
    }

    fn answer(&mut self, command: &ChildCommand, question: &[u8]) -> std::result::Result<Vec<u8>, Death> {
        let mut child = self.0.take().map_or_else(|| command.start(), Ok)?;
        child.send(question)?;
        let answer = child.receive()?;
        self.0 = Some(child);
        Ok(answer.content)
    }
}

/// Answers the requests of a symbolizing command in its child process. Limits the memory and time of the process.
///
/// # Errors
/// A request cannot be read, or an answer cannot be written.
pub fn help() -> Result<()> {
    let served = serve_parent(|question, messages| {
        limits(0, 0).apply();
        let Question { image, addresses, folders, debug_dirs, fetched } = serde_json::from_slice(question)?;
        let files = Files { folders, debug_dirs, perf_map: None, helper: None, debuginfod: None };
        let opened = |bytes| limits(bytes, addresses.len() as u64).apply();
        let answered = serde_json::to_vec(&answer(&image, &addresses, (&files, &fetched), opened));
        ChildLimits::stop_clock();
        messages.send(ANSWER, &answered.map_err(io::Error::from)?)
    });
    served.map_err(Error::system("a pipe"))
}

/// Returns the limits for symbolizing this many frames with files of this size in bytes.
fn limits(bytes: u64, frames: u64) -> ChildLimits {
    let seconds = SECONDS + bytes / BYTES_A_SECOND + frames / FRAMES_A_SECOND;
    ChildLimits { memory: elf::most(bytes), seconds, is_clocked: true }
}
