//! The functions that the page calls, which access the module's memory.
//!
//! The page writes a request to [`reserve`]d memory, calls [`answer`], and reads the result from [`output`]. Requests
//! and responses have the same form: the length of a JSON text (32 bits, little endian), the text, and bytes.

use crate::request::{State, respond};
use std::cell::RefCell;

/// The state between calls.
#[derive(Default)]
struct Memory {
    state: State,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Message of the last panic, or empty.
    panic: String,
}

thread_local! {
    static MEMORY: RefCell<Memory> = RefCell::default();
}

/// Allocates memory for a request of this many bytes. A previous request that has not been handled is dropped.
#[unsafe(no_mangle)]
pub extern "C" fn reserve(length: usize) -> *mut u8 {
    MEMORY.with_borrow_mut(|memory| {
        memory.input = vec![0; length];
        memory.input.as_mut_ptr()
    })
}

/// Handles the written request and returns the length of the response.
#[unsafe(no_mangle)]
pub extern "C" fn answer() -> usize {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        // If the program panics while it accesses the memory, the message is lost, and the page reports only that the
        // module stopped.
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

/// Returns the address of the last response.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    MEMORY.with_borrow(|memory| memory.output.as_ptr())
}

/// Stores the panic message in place of the response and returns the length of the message. The page calls this after
/// the module has stopped.
#[unsafe(no_mangle)]
pub extern "C" fn stopped() -> usize {
    MEMORY.with_borrow_mut(|memory| {
        memory.output = std::mem::take(&mut memory.panic).into_bytes();
        memory.output.len()
    })
}

/// Decodes a request, handles it, and encodes the response.
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
