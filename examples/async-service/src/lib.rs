//! An asynchronous service whose tasks write a trace: a bounded channel connects the tasks to a single writer.

pub mod trace_log;

/// The format of the trace.
pub mod service {
    include!(concat!(env!("OUT_DIR"), "/service.rs"));
}
