//! Frames as valgrind prints them in the files of its tools.

use super::HeapProfile;
use hatf_trace::stacks::{Function, Location};

/// Returns the frames of a context as `0xADDRESS: FUNCTION (FILE:LINE)`, innermost first.
pub(super) fn frames(profile: &HeapProfile, context: u64) -> Vec<String> {
    let mut frames: Vec<String> = profile.stack(context).flat_map(of_location).collect();
    if frames.is_empty() {
        frames.push(format!("0x0: {}", profile.name(context, 1)));
    }
    frames
}

fn of_location(location: &Location) -> impl Iterator<Item = String> {
    location.names().enumerate().map(|(number, name)| {
        // Use an address inside the call instruction.
        let address = location.address.saturating_sub(1);
        let place = match location.functions.get(number) {
            Some(Function { file, line, .. }) if !file.is_empty() && *line > 0 => format!(" ({file}:{line})"),
            Some(Function { file, .. }) if !file.is_empty() => format!(" ({file})"),
            _ if !location.module.is_empty() => format!(" (in {})", location.module),
            _ => String::new(),
        };
        format!("0x{address:X}: {name}{place}").replace(['\n', '\r'], " ")
    })
}
