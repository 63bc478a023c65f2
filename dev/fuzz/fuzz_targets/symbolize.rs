#![no_main]

use std::panic;

/// Permits panics in libraries that read programs. They are converted to errors (`catch_unwind`) and are not findings,
/// unlike panics in this project.
fn set_up() {
    let abort = panic::take_hook();
    panic::set_hook(Box::new(move |about| {
        if !about.location().is_some_and(|place| place.file().contains("/registry/")) {
            abort(about);
        }
    }));
}

libfuzzer_sys::fuzz_target!(init: set_up(), |input: &[u8]| metatf_tests::symbolizing::symbolize(input));
