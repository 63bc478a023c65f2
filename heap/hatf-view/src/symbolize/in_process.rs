//! Symbolizes addresses in this process.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::answer::{Answer, Image, Missing};
use super::dwarf::{LookUp, Sections};
use super::elf::{Elf, Mapped};
use super::files::{self, Fetched, Files};
use super::symbol_table::SymbolTable;

/// Returns the frames of addresses in an image. Calls `opened` with the total size of the files before they are read.
pub(super) fn answer(image: &Image, addresses: &[u64], files: (&Files, &Fetched), opened: impl FnOnce(u64)) -> Answer {
    // Decoding may panic, because the content of the files is untrusted.
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
