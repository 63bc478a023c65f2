//! Function names of statically linked allocators, and the meaning of the functions' arguments.

use hatf_record::linked::Role;

/// Name prefixes: the empty prefix, and the prefixes of jemalloc in Rust, jemalloc itself, mimalloc, tcmalloc, dlmalloc
/// and rpmalloc.
const PREFIXES: [&str; 7] = ["", "_rjem_", "je_", "mi_", "tc_", "dl", "rp"];

/// Names after the prefix, with their roles and the number of arguments that precede the arguments of the role.
const NAMES: &[(&str, Role, u8)] = &[
    ("malloc", Role::Malloc, 0),
    ("calloc", Role::Calloc, 0),
    ("realloc", Role::Realloc, 0),
    ("free", Role::Free, 0),
    ("cfree", Role::Free, 0),
    ("reallocarray", Role::Reallocarray, 0),
    ("aligned_alloc", Role::AlignedAlloc, 0),
    ("memalign", Role::Memalign, 0),
    ("posix_memalign", Role::PosixMemalign, 0),
    ("valloc", Role::Valloc, 0),
    ("pvalloc", Role::Pvalloc, 0),
    ("free_sized", Role::Free, 0),
    ("free_aligned_sized", Role::Free, 0),
    // jemalloc.
    ("mallocx", Role::Mallocx, 0),
    ("rallocx", Role::Realloc, 0),
    ("dallocx", Role::Free, 0),
    ("sdallocx", Role::Free, 0),
    // mimalloc.
    ("zalloc", Role::Zalloc, 0),
    ("malloc_small", Role::Malloc, 0),
    ("zalloc_small", Role::Zalloc, 0),
    ("mallocn", Role::Calloc, 0),
    ("reallocn", Role::Reallocarray, 0),
    ("recalloc", Role::Reallocarray, 0),
    ("reallocf", Role::Realloc, 0),
    ("rezalloc", Role::Realloc, 0),
    ("malloc_aligned", Role::Aligned, 0),
    ("zalloc_aligned", Role::Aligned, 0),
    ("calloc_aligned", Role::Calloc, 0),
    ("realloc_aligned", Role::Realloc, 0),
    ("rezalloc_aligned", Role::Realloc, 0),
    ("free_size", Role::Free, 0),
    ("free_aligned", Role::Free, 0),
    ("free_size_aligned", Role::Free, 0),
    ("heap_malloc", Role::Malloc, 1),
    ("heap_zalloc", Role::Zalloc, 1),
    ("heap_calloc", Role::Calloc, 1),
    ("heap_realloc", Role::Realloc, 1),
    ("heap_malloc_small", Role::Malloc, 1),
    ("heap_malloc_aligned", Role::Aligned, 1),
    ("heap_zalloc_aligned", Role::Aligned, 1),
    ("heap_realloc_aligned", Role::Realloc, 1),
    ("new", Role::Malloc, 0),
    ("new_nothrow", Role::Malloc, 0),
    ("new_aligned", Role::Aligned, 0),
    ("new_aligned_nothrow", Role::Aligned, 0),
    // tcmalloc.
    ("newarray", Role::Malloc, 0),
    ("newarray_nothrow", Role::Malloc, 0),
    ("newarray_aligned", Role::Aligned, 0),
    ("newarray_aligned_nothrow", Role::Aligned, 0),
    ("delete", Role::Free, 0),
    ("delete_sized", Role::Free, 0),
    ("delete_nothrow", Role::Free, 0),
    ("delete_aligned", Role::Free, 0),
    ("delete_sized_aligned", Role::Free, 0),
    ("delete_aligned_nothrow", Role::Free, 0),
    ("deletearray", Role::Free, 0),
    ("deletearray_sized", Role::Free, 0),
    ("deletearray_nothrow", Role::Free, 0),
    ("deletearray_aligned", Role::Free, 0),
    ("deletearray_sized_aligned", Role::Free, 0),
    ("deletearray_aligned_nothrow", Role::Free, 0),
];

/// Prefixes of C++ operator names. The operators' other arguments do not affect what is recorded.
const OPERATORS: [(&str, Role); 6] = [
    ("_ZnwmSt11align_val_t", Role::Aligned),
    ("_ZnamSt11align_val_t", Role::Aligned),
    ("_Znwm", Role::Malloc),
    ("_Znam", Role::Malloc),
    ("_ZdlPv", Role::Free),
    ("_ZdaPv", Role::Free),
];
/// Suffixes that may follow the prefixes in [`OPERATORS`].
const ENDS: [&str; 6] =
    ["", "m", "RKSt9nothrow_t", "St11align_val_t", "mSt11align_val_t", "St11align_val_tRKSt9nothrow_t"];

/// A function of an allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Named {
    /// The allocator, as the index of its prefix. C++ operators belong to the family without a prefix.
    pub(super) family: usize,
    /// The name after the prefix.
    pub(super) rest: &'static str,
    pub(super) role: Role,
    pub(super) skipped: u8,
}

/// Returns the role of functions with this name.
pub(super) fn of(name: &str) -> Option<Named> {
    if name.len() > LONGEST {
        return None;
    }
    for (operator, role) in OPERATORS {
        if let Some(end) = name.strip_prefix(operator)
            && ENDS.contains(&end)
        {
            return Some(Named { family: 0, rest: operator, role, skipped: 0 });
        }
    }
    PREFIXES.iter().enumerate().find_map(|(family, prefix)| {
        let name = name.strip_prefix(prefix)?;
        // Names that only one allocator uses mean something else without its prefix.
        let count = if family > 0 { NAMES.len() } else { OF_C };
        let &(rest, role, skipped) = NAMES.iter().take(count).find(|(rest, ..)| *rest == name)?;
        Some(Named { family, rest, role, skipped })
    })
}

/// Returns the allocator that a function belongs to, by its prefix.
pub(super) fn allocator(name: &str) -> Option<&'static str> {
    match PREFIXES.get(of(name)?.family).copied()? {
        "_rjem_" | "je_" => Some("jemalloc"),
        "mi_" => Some("mimalloc"),
        "tc_" => Some("tcmalloc"),
        _ => None,
    }
}

/// Maximum length of the function names. Most names in a program are longer, so they can be skipped quickly.
const LONGEST: usize = 40;

/// The number of names that a C library also defines.
const OF_C: usize = 13;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let role = |name: &str| of(name).map(|named| (named.family, named.role, named.skipped));
        assert_eq!(role("malloc"), Some((0, Role::Malloc, 0)));
        assert_eq!(role("_rjem_sdallocx"), Some((1, Role::Free, 0)));
        assert_eq!(role("mi_heap_zalloc_aligned"), Some((3, Role::Aligned, 1)));
        assert_eq!(role("tc_newarray_nothrow"), Some((4, Role::Malloc, 0)));
        assert_eq!(role("_ZnwmSt11align_val_tRKSt9nothrow_t"), Some((0, Role::Aligned, 0)));
        assert_eq!(role("_ZdlPvm"), Some((0, Role::Free, 0)));
        let allocators =
            ["_rjem_malloc", "je_mallocx", "mi_new", "tc_malloc", "malloc", "dlmalloc", "x"].map(allocator);
        let jemalloc = Some("jemalloc");
        assert_eq!(allocators, [jemalloc, jemalloc, Some("mimalloc"), Some("tcmalloc"), None, None, None]);
        for other in ["delete", "new", "zalloc", "mi_option_get", "_ZdlPvS_", "_Znwmm_", "_rjem_je_malloc"] {
            assert_eq!(role(other), None, "{other}");
        }
        assert_eq!(NAMES[OF_C - 1].0, "free_aligned_sized");
        for (prefix, (name, ..)) in PREFIXES.iter().flat_map(|prefix| NAMES.iter().map(move |name| (prefix, name))) {
            assert!(prefix.len() + name.len() <= LONGEST, "{prefix}{name}");
        }
        assert_eq!(role("_ZnamSt11align_val_tRKSt9nothrow_t"), Some((0, Role::Aligned, 0)));
    }
}
