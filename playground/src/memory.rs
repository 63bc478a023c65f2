//! The functions that a page calls, over the module's memory.
//!
//! A request is written to [`reserve`]d memory, [`answer`] is called, and its result is read from [`output`]. Both have the
//! same form: the length of a JSON text (32 bits, little endian), the text, and bytes behind it.

use crate::request::{State, respond};
use std::cell::RefCell;

/// What is kept between two calls.
#[derive(Default)]
struct Memory {
    state: State,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Where the program panicked, if it did.
    panic: String,
}

thread_local! {
    static MEMORY: RefCell<Memory> = RefCell::default();
}

/// Gives memory for a request of this many bytes. A request before it that was not answered is dropped.
#[unsafe(no_mangle)]
pub extern "C" fn reserve(length: usize) -> *mut u8 {
    MEMORY.with_borrow_mut(|memory| {
        memory.input = vec![0; length];
        memory.input.as_mut_ptr()
    })
}

/// Answers the request that is written, and returns the length of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> usize {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        // Where the program panics while it answers, the memory is taken; then the page says only that it stopped.
        MEMORY.with(|memory| memory.try_borrow_mut().map(|mut memory| memory.panic = text)).unwrap_or_default();
    }));
    let (mut state, input) =
        MEMORY.with_borrow_mut(|memory| (std::mem::take(&mut memory.state), std::mem::take(&mut memory.input)));
    let output = framed(&mut state, &input);
    MEMORY.with_borrow_mut(|memory| {
        (memory.state, memory.output) = (state, output);
        memory.output.len()
    })
}

/// Where the last answer is.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    MEMORY.with_borrow(|memory| memory.output.as_ptr())
}

/// Puts the message of a panic where the answer would be, and returns its length: asked for after the module has stopped.
#[unsafe(no_mangle)]
pub extern "C" fn stopped() -> usize {
    MEMORY.with_borrow_mut(|memory| {
        memory.output = std::mem::take(&mut memory.panic).into_bytes();
        memory.output.len()
    })
}

/// Takes a request apart, and puts its answer together.
fn framed(state: &mut State, input: &[u8]) -> Vec<u8> {
    let split = input.split_first_chunk::<4>().and_then(|(length, rest)| {
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        rest.split_at_checked(length)
    });
    let (text, bytes) = split.unwrap_or_default();
    let (answer, more) = respond(state, text, bytes);
    let mut out = Vec::with_capacity(4 + answer.len() + more.len());
    out.extend_from_slice(&u32::try_from(answer.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(&answer);
    out.extend_from_slice(&more);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_are_cut_are_answered() {
        for input in [&[][..], &[1, 0], &[255, 255, 255, 255, 0], &[2, 0, 0, 0, b'{', b'}']] {
            let out = framed(&mut State::default(), input);
            let text = String::from_utf8(out[4..].to_vec()).unwrap();
            assert!(text.starts_with("{\"error\":"), "{text}");
        }
    }
}
