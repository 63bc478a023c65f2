//! The book and the README are what the code is.

mod ci;
mod console;
mod diagnostics;
mod exit_codes;
mod layout;
mod links;
mod pandas;
mod prose;
mod quotes;
mod samples;
mod versions;
