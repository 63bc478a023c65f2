//! Detection of allocation wrappers, which are functions that only forward a memory request.

#[cfg(feature = "native")]
use hatf_trace::stacks::Stacks;

use super::place::Place;
use super::qualified::leading;

/// Rules for folding frames into their callers.
///
/// A pattern matches a frame if the name of its function, source file or module contains the pattern.
///
/// # Examples
///
/// ```
/// use hatf_trace::event::EventKind;
/// use hatf_trace::stacks::Stacks;
/// use hatf_view::calls::{Folding, Places};
///
/// let mut stacks = Stacks::default();
/// for (frame, name) in [(0x10, "pool_get"), (0x20, "parse")] {
///     stacks.note(&EventKind::Symbol { frame, line: 0, name: name.as_bytes() });
/// }
/// stacks.number(&[0x10, 0x20]);
///
/// // Stack 0 is unknown.
/// assert_eq!(Places::own_functions(&stacks, &Folding::default()), ["", "pool_get"]);
/// let folding = Folding { skip: vec!["pool_".to_owned()], ..Folding::default() };
/// assert_eq!(Places::own_functions(&stacks, &folding), ["", "parse"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folding {
    /// Patterns of frames to fold in addition to the built-in list.
    pub skip: Vec<String>,
    /// Patterns of application frames. If the list is not empty, all other frames are folded.
    pub project: Vec<String>,
    /// Whether to disable folding.
    pub whole: bool,
}

/// Name prefixes of allocation functions.
const ALLOCATORS: [&str; 23] = [
    "operator new",
    "std::allocator",
    "std::__new_allocator",
    "__gnu_cxx::new_allocator",
    "alloc::alloc::",
    "__rust_",
    "__rustc",
    "__rdl_",
    "__rg_",
    "__libc_malloc",
    "__libc_calloc",
    "__libc_realloc",
    "_mid_memalign",
    "_int_malloc",
    "_int_realloc",
    "_rjem_",
    "je_",
    "mi_",
    "_mi_",
    "tc_",
    "do_malloc",
    "PyMem_",
    "_PyMem_",
];

/// Full names of allocation functions.
const WHOLE_ALLOCATORS: [&str; 20] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
    "valloc",
    "pvalloc",
    "strdup",
    "strndup",
    "__strdup",
    "__strndup",
    "wcsdup",
    "PyObject_Malloc",
    "PyObject_Calloc",
    "PyObject_Realloc",
    "_PyObject_Malloc",
    "_PyObject_Calloc",
    "_PyObject_Realloc",
];

/// File name prefixes of modules that contain only an allocator.
const ALLOCATOR_MODULES: [&str; 5] = ["libjemalloc", "libtcmalloc", "libmimalloc", "libhoard", "libsnmalloc"];

/// Name prefixes of standard library namespaces and functions.
const NAMES: [&str; 18] = [
    "std::",
    "__gnu_cxx::",
    "__cxxabiv1::",
    "__cxa_",
    "operator delete",
    "alloc::",
    "core::",
    "hashbrown::",
    "rust_begin_unwind",
    "__libc_",
    "__GI_",
    "tcmalloc::",
    // Interpreter functions, which run application code.
    "_PyEval_",
    "PyEval_",
    "_PyFunction_Vectorcall",
    "Perl_runops_",
    "luaV_",
    "rb_vm_exec",
];

/// Full names of functions that only run other functions or only allocate for their callers.
const WHOLE_NAMES: [&str; 29] = [
    // Code that runs before main or before a thread's function.
    "_start",
    "clone",
    "clone3",
    "__clone3",
    "start_thread",
    "free",
    "asprintf",
    "vasprintf",
    "getline",
    "getdelim",
    "PyObject_Call",
    "PyObject_CallObject",
    "PyObject_CallNoArgs",
    "PyObject_CallOneArg",
    "PyObject_CallMethod",
    "PyObject_CallFunction",
    "PyObject_CallFunctionObjArgs",
    "PyObject_CallMethodObjArgs",
    "PyObject_Vectorcall",
    "PyObject_VectorcallMethod",
    "PyVectorcall_Call",
    "_PyObject_Call",
    "_PyObject_MakeTpCall",
    "_PyObject_FastCallDictTstate",
    "_PyObject_Call_Prepend",
    "_PyVectorcall_Call",
    "vm_exec_core",
    "luaD_call",
    "luaD_callnoyield",
];

/// File name prefixes of the C and C++ libraries, in which all functions are wrappers.
const MODULES: [&str; 11] = [
    "libc.so",
    "libc-",
    "libpthread",
    "ld-linux",
    "ld-musl",
    "ld-2.",
    "libstdc++.so",
    "libc++.so",
    "libc++abi",
    "libgcc_s",
    "linux-vdso",
];

/// Source directories of standard libraries, which identify inlined functions whose names lack a namespace.
const FILES: [&str; 6] = [
    "/library/alloc/src/",
    "/library/core/src/",
    "/library/std/src/",
    "/include/c++/",
    "/hashbrown-",
    // Python omits this module from its tracebacks, too.
    "<frozen importlib._bootstrap",
];

impl Folding {
    /// Returns whether a function is folded into its callers.
    pub(super) fn passes(&self, place: &Place) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| place.is(pattern));
        if self.whole {
            return false;
        }
        if !self.project.is_empty() {
            return !any(&self.project);
        }
        any(&self.skip) || is_known(place)
    }

    /// Returns whether wrappers are also detected from the stacks. These are functions that only allocate on behalf of
    /// callers, and native frames around Python code.
    pub(super) fn is_by_default(&self) -> bool {
        !self.whole && self.project.is_empty()
    }
}

/// Returns whether each location of the stacks consists only of functions in the built-in lists.
#[cfg(feature = "native")]
pub(crate) fn passing_locations(stacks: &Stacks) -> Vec<bool> {
    stacks.locations().iter().map(|location| Place::of(location).all(|place| is_known(&place))).collect()
}

/// Returns whether a frame matches the built-in lists.
fn is_known(place: &Place) -> bool {
    FILES.iter().any(|folder| place.file.contains(folder))
        || is_any(place, &MODULES, &NAMES, &WHOLE_NAMES)
        || is_allocator(place)
}

/// Returns whether a function only allocates, according to the built-in lists.
pub(super) fn is_allocator(place: &Place) -> bool {
    is_any(place, &ALLOCATOR_MODULES, &ALLOCATORS, &WHOLE_ALLOCATORS)
}

fn is_any(place: &Place, modules: &[&str], names: &[&str], whole_names: &[&str]) -> bool {
    let name = leading(&place.name);
    let word = name.split(['(', '@', '.', ' ']).next().unwrap_or_default();
    modules.iter().any(|module| place.module_name().starts_with(module))
        || names.iter().any(|start| name.starts_with(start))
        || whole_names.contains(&word)
}

/// Returns whether the name of a function suggests that it allocates on behalf of its callers. The rule for
/// [wrappers](super::wrappers) demands less of such a function.
pub(super) fn may_wrap(place: &Place) -> bool {
    let name = leading(&place.name).split('(').next().unwrap_or_default().to_ascii_lowercase();
    ["alloc", "strdup", "strndup", "memdup", "xnew", "obstack"].iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str, module: &str) -> Place {
        Place { name: name.to_owned(), module: module.to_owned(), file: "src/own.c".to_owned(), ..Place::default() }
    }

    #[test]
    fn libraries_and_allocators_pass_on() {
        let folding = Folding::default();
        for name in [
            "malloc",
            "malloc@plt",
            "operator new(unsigned long)",
            "std::__cxx11::basic_string<char>::_M_create(unsigned long&, unsigned long)",
            "void std::vector<Own, std::allocator<Own> >::_M_realloc_insert<Own>(Own&&)",
            "alloc::raw_vec::RawVec<T,A>::grow_one",
            "<alloc::string::String as core::fmt::Write>::write_str",
            "<u64 as alloc::string::SpecToString>::spec_to_string",
            "_PyEval_EvalFrameDefault",
            "PyObject_Call",
        ] {
            assert!(folding.passes(&place(name, "/bin/program")), "{name}");
        }
        let inlined =
            Place { file: "/rustc/1/library/alloc/src/slice.rs".to_owned(), ..place("to_vec_in<u8>", "/bin/program") };
        assert!(folding.passes(&inlined));
        assert!(folding.passes(&place("_IO_file_doallocate", "/lib/x86_64-linux-gnu/libc.so.6")));
        for name in [
            "main",
            "own::std::load",
            "<own::Table as core::ops::Drop>::drop",
            "stdlike",
            "PyObject_CallX",
            "Own operator+(Own, Own)",
        ] {
            assert!(!folding.passes(&place(name, "/bin/program")), "{name}");
        }
    }

    #[test]
    fn patterns_add_and_replace() {
        let skip = Folding { skip: vec!["own.c".to_owned()], ..Folding::default() };
        assert!(skip.passes(&place("main", "/bin/program")));
        let project = Folding { project: vec!["/bin/prog".to_owned()], ..Folding::default() };
        assert!(!project.passes(&place("malloc", "/bin/program")));
        assert!(project.passes(&place("main", "/lib/other.so")));
        let whole = Folding { whole: true, ..skip };
        assert!(!whole.passes(&place("malloc", "/lib/libc.so.6")));
    }

    #[test]
    fn wrappers_are_named_after_what_they_do() {
        for name in ["zmalloc", "Perl_safesysmalloc", "ggc_internal_alloc(unsigned long)", "xstrdup", "PyObject_Malloc"]
        {
            assert!(may_wrap(&place(name, "/bin/p")), "{name}");
        }
        assert!(!may_wrap(&place("load(allocator)", "/bin/p")));
    }
}
