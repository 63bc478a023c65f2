//! The location of a module, as described by the loader.

/// The location of a module and its tables, which is the result of `_dl_find_object`.
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
