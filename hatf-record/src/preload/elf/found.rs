//! Where a module lies, as the loader describes it.

/// Where a module lies, and its tables: what `_dl_find_object` answers.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Found {
    pub(crate) flags: u64,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) link: *const Link,
    pub(crate) eh_frame_header: *const u8,
    pub(crate) reserved: [u64; 7],
}

/// The beginning of glibc's `struct link_map`.
#[repr(C)]
pub(crate) struct Link {
    pub(crate) bias: usize,
    pub(crate) name: *const core::ffi::c_char,
}
