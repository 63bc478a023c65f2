//! The same by the readers and writers of the project.

pub mod hatf10;
pub mod heap;
pub mod universal;
