//! The preloaded recorder of heap events.
