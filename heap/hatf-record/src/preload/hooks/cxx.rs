//! `operator new` and `operator delete` of C++, in all forms.
//!
//! The operators of the C++ library call `malloc` and `free`, which are recorded. The operators of another allocator do
//! not call these functions, so the operators themselves are recorded here, and the calls that they make count as
//! nested.
//!
//! `operator new` throws if there is no memory, and an exception must not pass through Rust. Therefore the entry point
//! itself calls the real function, between two calls to our functions: the exception passes a frame without any Rust
//! code, whose personality routine ends the nesting. A handler of `std::set_new_handler` runs inside of the real
//! function, as often as without the recorder; its own frees are nested.
//!
//! If recording is off or a sample is recorded, the operators of a C++ library need not be recorded: the entry points
//! jump to them, and the functions that they call count like any other call (`short.rs`).

use core::ffi::{CStr, c_int, c_void};
use core::mem::{transmute, zeroed};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use super::alloc::is_not_real;
use crate::event::Kind;
use crate::preload::choose::call::Call;
use crate::preload::elf::got::{self, Hook};
use crate::preload::elf::real;
use crate::preload::events::record;
use crate::preload::platform::thread_state::{self, current, nested, nested_in};
use crate::preload::spool::word::WORD;

/// A real function, or null if the program has no C++ library yet. In that case, the C functions are used, as by the
/// C++ library itself.
#[repr(transparent)]
struct Real(AtomicPtr<c_void>);

impl Real {
    const fn new() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    /// Looks up the function. Returns whether it belongs to a C++ library, whose operators call the C functions.
    fn look_up(&self, name: &CStr) -> bool {
        let function = real::next(name);
        self.0.store(function, Ordering::Release);
        !function.is_null() && is_of_library(function)
    }

    fn get(&self) -> *mut c_void {
        self.0.load(Ordering::Relaxed)
    }
}

/// Returns whether a function belongs to a C++ library.
fn is_of_library(function: *const c_void) -> bool {
    // SAFETY: zeros are a valid value of the structure, which the loader fills in, with the C string of a name.
    let path = unsafe {
        let mut found: libc::Dl_info = zeroed();
        if libc::dladdr(function, &raw mut found) == 0 || found.dli_fname.is_null() {
            return false;
        }
        CStr::from_ptr(found.dli_fname).to_bytes()
    };
    let file = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    [&b"libstdc++.so"[..], b"libc++.so", b"libc++abi.so"].iter().any(|library| file.starts_with(library))
}

/// Defines the entry point of an operator. Unless all calls are recorded, it jumps to the function in `PASS`.
macro_rules! entry {
    ($name:ident, $place:ident) => {
        /// # Safety
        /// The requirements are those of the real function with this name.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, reason = "the name is mangled by C++")]
        pub(crate) unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "mov rax, qword ptr [rip + {word}]",
                // A word of less has no path: see `short.rs`.
                "cmp dword ptr [rax], 0x40000000",
                "jb {complete}",
                "jmp qword ptr [rip + {pass}]",
                ".cfi_endproc",
                word = sym WORD,
                complete = sym $place::complete,
                pass = sym $place::PASS,
            )
        }
    };
}

/// The decision of an entry point whether to record the call, and the previous nesting state.
#[repr(C)]
struct Entered {
    records: usize,
    before: usize,
}

/// Begins a call to a real function, if the call should be recorded. The calling frame begins at `stack_pointer`.
extern "C" fn enter(real: *const c_void, stack_pointer: usize) -> Entered {
    if real.is_null() || current().is_nested() || !real::known() {
        return Entered { records: 0, before: 0 };
    }
    Entered { records: 1, before: thread_state::enter(stack_pointer) }
}

/// Ends the call and records its result.
extern "C" fn leave(block: *mut c_void, size: usize, _: usize, before: usize) -> *mut c_void {
    thread_state::leave(before);
    if !block.is_null() {
        record::allocation(current(), Kind::Malloc, block, size, 0);
    }
    block
}

/// Does the same as [`leave`], with an alignment.
extern "C" fn leave_aligned(block: *mut c_void, size: usize, align: usize, before: usize) -> *mut c_void {
    thread_state::leave(before);
    if !block.is_null() {
        record::allocation(current(), Kind::Memalign, block, size, align);
    }
    block
}

super::jump_to_real::jump_to_real! {
    /// Allocates an exception. An exception thrown by a real `operator new` is freed by the code that catches it, so it
    /// is the program's own block.
    __cxa_allocate_exception known_or_loaded_since after |_, _| thread_state::leave_hooks();
}

/// The personality routine of entry points: an exception that leaves the real function ends the nesting and continues.
pub(crate) extern "C" fn pass(
    _version: c_int,
    actions: c_int,
    _class: u64,
    _exception: *mut c_void,
    _context: *mut c_void,
) -> c_int {
    const CLEANUP_PHASE: c_int = 2;
    const CONTINUE_UNWIND: c_int = 8;
    if actions & CLEANUP_PHASE != 0 {
        thread_state::leave_hooks();
    }
    CONTINUE_UNWIND
}

/// Allocates for a program that has no C++ library yet, using the function that the C++ library would use.
extern "C" fn by_malloc(size: usize) -> *mut c_void {
    // SAFETY: any size can be requested.
    unsafe { super::alloc::malloc(size.max(1)) }
}

/// Does the same as [`by_malloc`], with an alignment.
extern "C" fn by_memalign(size: usize, align: usize) -> *mut c_void {
    // SAFETY: any size and alignment can be requested.
    unsafe { super::alloc::memalign(align, size.max(1)) }
}

/// Returns the function that reports a lack of memory, which is the throwing function of the C++ library. That library
/// may have been loaded where no other library sees it.
extern "C" fn thrower() -> *const c_void {
    // SAFETY: C strings; a library that is not loaded stays unloaded.
    let function = nested(|| unsafe {
        let library = libc::dlopen(c"libstdc++.so.6".as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if library.is_null() { null_mut() } else { libc::dlsym(library, c"_ZSt17__throw_bad_allocv".as_ptr()) }
    });
    if function.is_null() { libc::abort as *const c_void } else { function }
}

/// Returns the function that reports a lack of memory without throwing.
extern "C" fn no_thrower() -> *const c_void {
    extern "C" fn null() -> *mut c_void {
        null_mut()
    }
    null as *const c_void
}

/// Frees a block for an `operator delete`, using `free` if the C++ library's operator does not exist yet.
fn release(block: *mut c_void, function: *mut c_void, call: impl FnOnce()) {
    if is_not_real(block) {
        return;
    }
    if function.is_null() {
        // SAFETY: the caller's block.
        unsafe { super::alloc::free(block) };
        return;
    }
    let state = current();
    record::call_of(state, Kind::Free, Call { address: block as usize, ..Call::default() });
    nested_in(state, call);
}

macro_rules! news {
    ($($name:ident, $place:ident, $leave:ident, $without:ident, $fail:ident;)*) => {
        $(
            entry!($name, $place);

            #[allow(non_snake_case, reason = "named like the operator")]
            mod $place {
                use super::*;

                pub(super) static REAL: Real = Real::new();
                /// The real function if it calls the C functions, and otherwise [`complete`].
                pub(super) static PASS: AtomicPtr<c_void> = AtomicPtr::new(complete as *mut c_void);

                /// Saves the arguments and calls the real function between [`enter`] and leaving. If the call should
                /// not be recorded, continues with the real function; if there is no real function, requests a block in
                /// another way. With no frame of ours on the stack, jumps to the function that throws.
                ///
                /// # Safety
                /// The requirements are those of the real function.
                #[unsafe(naked)]
                pub(super) unsafe extern "C" fn complete() {
                    core::arch::naked_asm!(
                        ".cfi_startproc",
                        // The personality routine is given by a four-byte distance from this position.
                        ".cfi_personality 0x1b, {pass}",
                        "push rdi",
                        ".cfi_adjust_cfa_offset 8",
                        "push rsi",
                        ".cfi_adjust_cfa_offset 8",
                        "push rdx",
                        ".cfi_adjust_cfa_offset 8",
                        "sub rsp, 16",
                        ".cfi_adjust_cfa_offset 16",
                        "mov rdi, qword ptr [rip + {place}]",
                        "mov rsi, rsp",
                        "call {enter}",
                        "test rax, rax",
                        "je 2f",
                        "mov qword ptr [rsp], rdx",
                        "mov rdi, qword ptr [rsp + 32]",
                        "mov rsi, qword ptr [rsp + 24]",
                        "mov rdx, qword ptr [rsp + 16]",
                        "call qword ptr [rip + {place}]",
                        "mov rdi, rax",
                        "mov rsi, qword ptr [rsp + 32]",
                        "mov rdx, qword ptr [rsp + 24]",
                        "mov rcx, qword ptr [rsp]",
                        "call {leave}",
                        "jmp 4f",
                        "2:",
                        "mov rax, qword ptr [rip + {place}]",
                        "test rax, rax",
                        "jne 3f",
                        "mov rdi, qword ptr [rsp + 32]",
                        "mov rsi, qword ptr [rsp + 24]",
                        "call {without}",
                        "test rax, rax",
                        "jne 4f",
                        "call {fail}",
                        "3:",
                        "add rsp, 16",
                        ".cfi_adjust_cfa_offset -16",
                        "pop rdx",
                        ".cfi_adjust_cfa_offset -8",
                        "pop rsi",
                        ".cfi_adjust_cfa_offset -8",
                        "pop rdi",
                        ".cfi_adjust_cfa_offset -8",
                        "jmp rax",
                        "4:",
                        ".cfi_adjust_cfa_offset 40",
                        "add rsp, 40",
                        ".cfi_adjust_cfa_offset -40",
                        "ret",
                        ".cfi_endproc",
                        pass = sym pass,
                        enter = sym enter,
                        leave = sym $leave,
                        without = sym $without,
                        fail = sym $fail,
                        place = sym REAL,
                    )
                }
            }
        )*

        fn hooks_of_news() -> [Hook; 8] {
            [$(Hook {
                name: CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()).unwrap_or_default(),
                ours: $name as *const () as usize,
                real: $place::REAL.get() as usize,
            }),*]
        }

        fn look_up_news(passes: bool) {
            $(
                let name = concat!(stringify!($name), "\0");
                if let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) {
                    if $place::REAL.look_up(name) && passes {
                        $place::PASS.store($place::REAL.get(), Ordering::Release);
                    }
                }
            )*
        }
    };
}

news! {
    _Znwm, NEW, leave, by_malloc, thrower;
    _Znam, NEW_ARRAY, leave, by_malloc, thrower;
    _ZnwmRKSt9nothrow_t, NEW_NO, leave, by_malloc, no_thrower;
    _ZnamRKSt9nothrow_t, NEW_ARRAY_NO, leave, by_malloc, no_thrower;
    _ZnwmSt11align_val_t, NEW_ALIGNED, leave_aligned, by_memalign, thrower;
    _ZnamSt11align_val_t, NEW_ARRAY_ALIGNED, leave_aligned, by_memalign, thrower;
    _ZnwmSt11align_val_tRKSt9nothrow_t, NEW_ALIGNED_NO, leave_aligned, by_memalign, no_thrower;
    _ZnamSt11align_val_tRKSt9nothrow_t, NEW_ARRAY_ALIGNED_NO, leave_aligned, by_memalign, no_thrower;
}

macro_rules! deletes {
    ($($name:ident, $place:ident ($($argument:ident),*);)*) => {
        $(
            entry!($name, $place);

            #[allow(non_snake_case, reason = "named like the operator")]
            mod $place {
                use super::*;

                pub(super) static REAL: Real = Real::new();
                /// The real function if it calls the C functions, and otherwise [`complete`].
                pub(super) static PASS: AtomicPtr<c_void> = AtomicPtr::new(complete as *mut c_void);

                /// Records the end of a block and calls the real function.
                ///
                /// # Safety
                /// The requirements are those of the real function.
                pub(super) unsafe extern "C" fn complete(block: *mut c_void $(, $argument: usize)*) {
                    type Function = unsafe extern "C" fn(*mut c_void $(, deletes!(@type $argument))*);
                    let function = REAL.get();
                    // SAFETY: dlsym's result for the name of a function with this signature, and the caller's
                    // arguments.
                    let call = || unsafe { transmute::<*mut c_void, Function>(function)(block $(, $argument)*) };
                    release(block, function, call);
                }
            }
        )*

        fn hooks_of_deletes() -> [Hook; 12] {
            [$(Hook {
                name: CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()).unwrap_or_default(),
                ours: $name as *const () as usize,
                real: $place::REAL.get() as usize,
            }),*]
        }

        fn look_up_deletes(passes: bool) {
            $(
                let name = concat!(stringify!($name), "\0");
                if let Ok(name) = CStr::from_bytes_with_nul(name.as_bytes()) {
                    if $place::REAL.look_up(name) && passes {
                        $place::PASS.store($place::REAL.get(), Ordering::Release);
                    }
                }
            )*
        }
    };
    (@type $argument:ident) => { usize };
}

deletes! {
    _ZdlPv, DELETE ();
    _ZdaPv, DELETE_ARRAY ();
    _ZdlPvm, DELETE_SIZED (size);
    _ZdaPvm, DELETE_ARRAY_SIZED (size);
    _ZdlPvSt11align_val_t, DELETE_ALIGNED (align);
    _ZdaPvSt11align_val_t, DELETE_ARRAY_ALIGNED (align);
    _ZdlPvmSt11align_val_t, DELETE_SIZED_ALIGNED (size, align);
    _ZdaPvmSt11align_val_t, DELETE_ARRAY_SIZED_ALIGNED (size, align);
    _ZdlPvRKSt9nothrow_t, DELETE_NO (nothrow);
    _ZdaPvRKSt9nothrow_t, DELETE_ARRAY_NO (nothrow);
    _ZdlPvSt11align_val_tRKSt9nothrow_t, DELETE_ALIGNED_NO (align, nothrow);
    _ZdaPvSt11align_val_tRKSt9nothrow_t, DELETE_ARRAY_ALIGNED_NO (align, nothrow);
}

/// The number of hooks.
pub(crate) const HOOKS: usize = 20;

/// Returns the hooks.
pub(crate) fn hooks() -> [Hook; HOOKS] {
    let mut all = [Hook { name: c"", ours: 0, real: 0 }; HOOKS];
    let (news, deletes) = all.split_at_mut(8);
    news.copy_from_slice(&hooks_of_news());
    deletes.copy_from_slice(&hooks_of_deletes());
    all
}

/// Looks up the real functions.
pub(crate) fn look_up() {
    // Otherwise, the C++ library calls the program's own functions.
    let passes = !got::program_defines(c"malloc") && !got::program_defines(c"free");
    look_up_news(passes);
    look_up_deletes(passes);
    // The C library stores a message about failed lookups and frees it at the second call. Without these calls, the
    // program would free this block, which was never recorded.
    // SAFETY: messages of this thread, from before the application code runs.
    unsafe {
        libc::dlerror();
        libc::dlerror();
    }
}
