//! Heap allocation traces: record, report and read them.
