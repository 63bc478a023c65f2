//! Symbolizes addresses in images.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::answer::{Answer, Image, Missing};
use super::dwarf::{LookUp, Sections};
use super::elf::{Elf, Mapped};
use super::files::{self, Fetched, Files};
use super::helper::Helper;
use super::symbol_table::SymbolTable;

/// Symbolizes addresses in images. If [`Files::helper`] specifies a child, one child serves many images.
#[derive(Debug, Default)]
pub struct Symbolizer {
    files: Files,
    helper: Helper,
}

impl Symbolizer {
    /// Creates a symbolizer that searches these locations for images and their debug information.
    #[must_use]
    pub fn new(files: Files) -> Self {
        Self { files, helper: Helper::default() }
    }

    /// Returns the frames of each return address in an image. Addresses are those in the image's file, without the load
    /// bias. Each call opens the files of the image, so all addresses of an image should be passed in one call.
    ///
    /// Files missing on this machine are requested from debuginfod if [`Files::debuginfod`] contains its client.
    #[must_use]
    pub fn symbolize(&mut self, image: &Image, addresses: &[u64]) -> Answer {
        let mut fetched = Fetched::default();
        let mut answer = self.ask(image, addresses, &fetched);
        let Some(client) = self.files.debuginfod.clone() else { return answer };
        if let Some(Missing::File(_)) = answer.missing
            && let Some(file) = client.executable(&image.build_id)
        {
            fetched.image = Some(file);
            answer = self.ask(image, addresses, &fetched);
        }
        if answer.missing == Some(Missing::DebugInformation)
            && let Some(file) = client.debug_information(&image.build_id)
        {
            fetched.debug_information = Some(file);
            answer = self.ask(image, addresses, &fetched);
        }
        answer
    }

    /// Passes a query to the child, if there is one. A missing file needs no child.
    fn ask(&mut self, image: &Image, addresses: &[u64], fetched: &Fetched) -> Answer {
        if let Err(missing) = files::candidates_of(image, &self.files, fetched) {
            return Answer::without(addresses.len(), missing);
        }
        let files = (&self.files, fetched);
        let Some(command) = &self.files.helper else { return here(image, addresses, files, |_| ()) };
        let answer = self.helper.ask(command, image, addresses, files);
        answer.unwrap_or_else(|why| Answer::without(addresses.len(), Missing::Image(why)))
    }
}

/// Symbolizes addresses in this process. Calls `opened` with the total size of the files before they are read.
pub(super) fn here(image: &Image, addresses: &[u64], files: (&Files, &Fetched), opened: impl FnOnce(u64)) -> Answer {
    // The content of the files is untrusted.
    let answer = catch_unwind(AssertUnwindSafe(|| {
        let own = files::open_image(image, files.0, files.1)?;
        look_up(&own, addresses, files, opened).map_err(Missing::Image)
    }));
    let answer = answer.unwrap_or_else(|_| Err(Missing::Image("its debug information is corrupt".to_owned())));
    answer.unwrap_or_else(|missing| Answer::without(addresses.len(), missing))
}

fn look_up(
    own: &Mapped,
    addresses: &[u64],
    (files, fetched): (&Files, &Fetched),
    opened: impl FnOnce(u64),
) -> Result<Answer, String> {
    let own = Elf::parse(own)?;
    let (separate, mut missing) = files::open_debug(&own, files, fetched)?;
    let separate = separate.as_ref().map(Elf::parse).transpose()?;
    let debug = separate.as_ref().unwrap_or(&own);
    let shared = files::open_shared(debug, files)?;
    let shared = shared.as_ref().map(Elf::parse).transpose()?;
    let package = files::open_package(&own, debug)?;
    let package = package.as_ref().map(Elf::parse).transpose()?;
    let all = [Some(&own), separate.as_ref(), shared.as_ref(), package.as_ref()];
    opened(all.iter().flatten().map(|elf| elf.bytes()).sum());

    let symbols = SymbolTable::new(&own, separate.as_ref());
    // A call precedes its return address.
    let calls = addresses.iter().map(|address| address.wrapping_sub(1));
    let by_table = |call| symbols.frame(call).into_iter().collect();
    if !debug.has_debug_information() {
        let missing = missing.map_or(Missing::DebugInformation, Missing::Part);
        return Ok(Answer { frames: calls.map(by_table).collect(), missing: Some(missing) });
    }
    let damaged = |error| format!("its debug information is corrupt: {error}");
    let sections = Sections::read(debug, shared.as_ref(), package.as_ref()).map_err(|error| error.to_string());
    let look_up = match &sections {
        Ok(sections) => LookUp::new(sections, &symbols, &own, files).map_err(damaged),
        Err(why) => Err(why.clone()),
    };
    let look_up = match look_up {
        Ok(look_up) => look_up,
        Err(why) => return Ok(Answer { frames: calls.map(by_table).collect(), missing: Some(Missing::Part(why)) }),
    };
    let mut frames = |call| match look_up.frames(call) {
        Ok(frames) if !frames.is_empty() => frames,
        Ok(_) => by_table(call),
        Err(error) => {
            missing.get_or_insert_with(|| damaged(error));
            by_table(call)
        }
    };
    let frames = calls.map(&mut frames).collect();
    Ok(Answer { frames, missing: missing.or(look_up.missing()).map(Missing::Part) })
}
