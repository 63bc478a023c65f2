//! Logs of glibc's `mtrace`: one line per call, with the location of the caller.
//!
//! `@ PROGRAM:(FUNCTION+0xOFFSET)[0xPLACE] + 0xADDRESS 0xSIZE` is an allocation, a line with `-` is a free, and two
//! lines with `<` and `>` are a reallocation. The place is an address in the file of the module, so each module is
//! assigned its own range of addresses.

use hashbrown::HashMap;

use super::text::{Log, Queue, TextSource, hex, shown};
use super::{Form, TraceReader};
use crate::event::{Call, EventKind, Function};
use crate::loss::{Loss, Losses};

pub(super) static FORM: Form = Form {
    name: "mtrace",
    about: "Logs of glibc's mtrace",
    suffixes: &[".mtrace"],
    sniff: |head| head.bytes.starts_with(b"= Start\n") || head.bytes.starts_with(b"@ "),
    open: Some(|input, _| Ok(TraceReader::new(TextSource::new(input.into_read(), MtraceLog::default())))),
    create: None,
    lost: "",
};

/// The number of address bits that contain the offset in the module's file. The remaining bits contain the module
/// number.
const OFFSET: u32 = 48;

#[derive(Default)]
struct MtraceLog {
    modules: HashMap<Vec<u8>, u64>,
    /// Frames whose function is known.
    named: HashMap<u64, ()>,
    /// The block of a realloc whose second line has not been read yet.
    old: u64,
    losses: Losses,
}

impl Log for MtraceLog {
    const NAME: &'static str = "mtrace";

    fn line(&mut self, line: &[u8], queue: &mut Queue) -> Result<(), String> {
        if line.is_empty() || line.starts_with(b"= ") {
            return Ok(());
        }
        let wrong = || format!("expected `@ PLACE + ADDRESS SIZE`, found `{}`", shown(line));
        let rest = line.strip_prefix(b"@ ").unwrap_or(line);
        let words: Vec<&[u8]> = rest.split(|byte| *byte == b' ').collect();
        // A path may contain spaces, so the operation is the last word that looks like one.
        let is_operation = |word: &&[u8]| matches!(**word, [b'+' | b'-' | b'<' | b'>' | b'!']);
        let at = words.iter().rposition(is_operation).ok_or_else(wrong)?;
        let (place, operation) = words.split_at(at);
        let (number, size) = match operation {
            [_, number] => (*number, None),
            [_, number, size] => (*number, Some(hex(size).ok_or_else(wrong)?)),
            _ => return Err(wrong()),
        };
        let address = if number == b"(nil)" { 0 } else { hex(number).ok_or_else(wrong)? };
        let kind = operation.first().and_then(|word| word.first()).copied().unwrap_or_default();
        if kind != b'>' && kind != b'!' {
            self.end(queue);
        }
        queue.stack.clear();
        let frame = self.frame(&place.join(&b' '), queue)?;
        queue.stack.extend(frame);
        let old = std::mem::take(&mut self.old);
        match (kind, size) {
            (b'+', Some(size)) => allocation(Function::Malloc, size, 0, address, queue),
            (b'>', Some(size)) => allocation(Function::Realloc, size, old, address, queue),
            (b'!', Some(size)) => allocation(Function::Realloc, size, address, 0, queue),
            (b'-', None) => queue.free(address),
            (b'<', None) => self.old = address,
            _ => return Err(wrong()),
        }
        Ok(())
    }

    /// Frees the block of a realloc whose second line is missing.
    fn end(&mut self, queue: &mut Queue) {
        if self.old != 0 {
            queue.free(std::mem::take(&mut self.old));
        }
    }

    fn losses(&self) -> Losses {
        self.losses
    }
}

fn allocation(function: Function, size: u64, old: u64, address: u64, queue: &mut Queue) {
    if address == 0 && size > 0 {
        let call = Call { size, old, ..Call::new(function) };
        queue.push(EventKind::Failed(call), &[]);
    } else {
        queue.call(function, size, old, address);
    }
}

impl MtraceLog {
    /// Returns the frame of a location of the form `PROGRAM:(FUNCTION+0x1)[0x2]`. The program and the function are
    /// optional.
    fn frame(&mut self, place: &[u8], queue: &mut Queue) -> Result<Option<u64>, String> {
        let Some((before, address)) = place.strip_suffix(b"]").and_then(|place| {
            let at = place.iter().rposition(|byte| *byte == b'[')?;
            Some((place.get(..at)?, hex(place.get(at + 1..)?)?))
        }) else {
            // The caller is unknown.
            self.losses.note(Loss::Stack);
            return Ok(None);
        };
        let (module, function) = match before.iter().rposition(|byte| *byte == b':') {
            Some(at) => (before.get(..at).unwrap_or_default(), before.get(at + 1..).unwrap_or_default()),
            None => (&[][..], before),
        };
        if module.is_empty() || address >> OFFSET != 0 {
            return Ok(Some(address));
        }
        let next = self.modules.len() as u64 + 1;
        if next >> (u64::BITS - OFFSET) != 0 {
            return Err("the log has more than 65,535 modules".to_owned());
        }
        let bias = *self.modules.entry_ref(module).or_insert(next) << OFFSET;
        if bias == next << OFFSET {
            queue.load(module, bias, bias, bias.saturating_add(1 << OFFSET));
        }
        let frame = bias | address;
        let function = function.strip_prefix(b"(").and_then(|function| function.strip_suffix(b")")).unwrap_or_default();
        let name = function.iter().rposition(|byte| matches!(byte, b'+' | b'-')).and_then(|at| function.get(..at));
        let name = name.filter(|name| !name.is_empty());
        if let Some(name) = name
            && self.named.insert(frame, ()).is_none()
        {
            queue.symbol(frame, name, &[], 0);
        }
        Ok(Some(frame))
    }
}
