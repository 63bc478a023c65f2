//! The generated code of `tracing.dtd`.

include!(concat!(env!("OUT_DIR"), "/tracing.rs"));
