//! Other formats, each used as its documentation advises. They hold what plain HATF 1.0 holds of an event: kind, size, one or
//! two addresses.
