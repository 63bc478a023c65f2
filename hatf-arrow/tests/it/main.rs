//! Tables of real traces, and of damaged ones, beside the reports of `hatf`.

mod docs;
mod equal;
mod hostile;
mod rows;
