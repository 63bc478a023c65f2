//! Heap traces as the tables that people ask: objects, sites, stacks, timeline, marks, processes.
