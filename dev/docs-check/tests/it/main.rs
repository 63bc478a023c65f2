//! Checks that the book and the README match the code.

mod ci;
mod console;
mod diagnostics;
mod exit_codes;
mod help;
mod layout;
mod links;
mod pandas;
mod prose;
mod quotes;
mod samples;
mod scripts;
mod truth;
mod versions;
