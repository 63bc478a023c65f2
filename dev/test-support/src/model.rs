//! Models of lock-free code. Loom runs the code under every relevant interleaving, and with every value that a load may
//! return.
//!
//! Production code imports its atomics from `crate::sync`, which re-exports the atomics of `core`. In tests with `--cfg
//! loom`, it re-exports the types below instead. They have the same layout, so they may be in statics and in mapped
//! memory, and zeros are a valid value. Outside of a model, they behave like the types of `core`. In a model, loom
//! keeps their values by address, so each execution starts with the memory contents from before the model and leaves
//! the memory unchanged.
//!
//! Loom explores each access to a word that the model [shares](Share::share). Any other word belongs to the first
//! thread that writes it, and an access by a second thread fails the model. Only the thread that runs the model may
//! access all words, which it does before it spawns other threads and after it has joined them.

use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic as plain;

pub use std::sync::atomic::{Ordering, compiler_fence};

/// The maximum number of branches in an execution. An execution with more branches is considered an endless loop.
const BRANCHES_MOST: usize = 20_000;

/// Words by address.
type Words = HashMap<usize, Rc<dyn Any>>;

/// An execution of a model.
#[derive(Default)]
struct Execution {
    shared: Words,
    /// Words that belong to one thread each.
    own: Words,
    owners: HashMap<usize, u32>,
    threads: Vec<loom::thread::ThreadId>,
}

thread_local! {
    /// The current execution. Loom runs all threads of a model in one system thread.
    static EXECUTION: RefCell<Option<Execution>> = const { RefCell::new(None) };
}

/// Runs a model under every interleaving with at most this many preemptions.
pub fn model(preemptions: usize, run: impl Fn() + 'static) {
    let run = InOneThread(run);
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.max_branches = BRANCHES_MOST;
    builder.check(move || {
        EXECUTION.replace(Some(Execution::default()));
        let _ = number();
        run.call();
        EXECUTION.take();
    });
}

/// A function that loom calls in the thread that runs the model.
struct InOneThread<F>(F);

// SAFETY: only one system thread uses the function.
unsafe impl<F> Send for InOneThread<F> {}
// SAFETY: as above.
unsafe impl<F> Sync for InOneThread<F> {}

impl<F: Fn()> InOneThread<F> {
    fn call(&self) {
        (self.0)();
    }
}

/// Returns whether the caller runs in a model.
#[must_use]
pub fn is_running() -> bool {
    EXECUTION.with_borrow(Option::is_some)
}

/// Spawns a thread of a model.
pub fn spawn<T: 'static>(run: impl FnOnce() -> T + 'static) -> loom::thread::JoinHandle<T> {
    loom::thread::spawn(run)
}

/// Returns the number of the model's current thread, counting from 1.
#[must_use]
pub fn number() -> u32 {
    let id = loom::thread::current().id();
    EXECUTION.with_borrow_mut(|execution| {
        let threads = &mut execution.as_mut().unwrap().threads;
        let place = threads.iter().position(|known| *known == id).unwrap_or_else(|| {
            threads.push(id);
            threads.len() - 1
        });
        u32::try_from(place + 1).unwrap()
    })
}

/// Lets other threads run, in places where production code waits.
pub fn pause() {
    loom::thread::yield_now();
}

/// Executes a fence.
pub fn fence(order: Ordering) {
    if is_running() { loom::sync::atomic::fence(order) } else { plain::fence(order) }
}

/// One or more words that the threads of a model can share.
pub trait Share {
    /// Makes loom explore concurrent accesses to these words.
    fn share(&self);
}

impl<T: Share> Share for [T] {
    fn share(&self) {
        self.iter().for_each(Share::share);
    }
}

impl<T: Share, const N: usize> Share for [T; N] {
    fn share(&self) {
        self.as_slice().share();
    }
}

/// The storage of a word's value.
enum Home<L, P> {
    /// Memory, because no model is running.
    Memory,
    Shared(Rc<L>),
    Own(Rc<P>),
}

/// Finds the storage of the word at an address. `load` reads its memory.
fn home<L: 'static, P: 'static>(address: usize, writes: bool, load: impl FnOnce() -> P) -> Home<L, P> {
    let is_shared =
        EXECUTION.with_borrow(|execution| execution.as_ref().map(|execution| execution.shared.get(&address).cloned()));
    match is_shared {
        None => Home::Memory,
        Some(Some(word)) => Home::Shared(word.downcast().expect("one type for each word")),
        Some(None) => {
            let thread = number();
            EXECUTION.with_borrow_mut(|execution| {
                let execution = execution.as_mut().unwrap();
                let owner = execution.owners.get(&address).copied();
                assert!(
                    thread == 1 || owner.is_none_or(|owner| owner == thread),
                    "threads {owner:?} and {thread} access {address:#x}, but the model does not share it"
                );
                if !writes && owner.is_none() {
                    return Home::Own(execution.own.get(&address).map_or_else(
                        || Rc::new(load()),
                        |word| Rc::clone(word).downcast().expect("one type for each word"),
                    ));
                }
                if thread != 1 {
                    execution.owners.insert(address, thread);
                }
                let word = execution.own.entry(address).or_insert_with(|| Rc::new(load()));
                Home::Own(Rc::clone(word).downcast().expect("one type for each word"))
            })
        }
    }
}

/// Declares an atomic type.
macro_rules! atomic {
    ($name:ident $(<$of:ident>)?, $value:ty, $($operation:ident)*) => {
        #[doc = concat!("`", stringify!($name), "` of `core`, of which loom may keep the value.")]
        #[repr(transparent)]
        pub struct $name$(<$of>)?(plain::$name$(<$of>)?);

        impl$(<$of>)? $name$(<$of>)? {
            /// Creates an atomic with this value.
            pub const fn new(value: $value) -> Self {
                Self(plain::$name::new(value))
            }

            /// Returns a view of memory as an atomic.
            ///
            /// # Safety
            /// The same conditions apply as for the function in `core`.
            pub const unsafe fn from_ptr<'a>(at: *mut $value) -> &'a Self {
                // SAFETY: guaranteed by the caller; the layout is that of the value.
                unsafe { &*at.cast() }
            }

            /// Returns a pointer to the value.
            pub const fn as_ptr(&self) -> *mut $value {
                self.0.as_ptr()
            }
        }

        impl$(<$of: 'static>)? $name$(<$of>)? {
            fn home(&self, writes: bool) -> Home<loom::sync::atomic::$name$(<$of>)?, plain::$name$(<$of>)?> {
                home(self.as_ptr() as usize, writes, || plain::$name::new(self.0.load(Ordering::Relaxed)))
            }

            /// Loads the value.
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                match self.home(false) {
                    Home::Memory => self.0.load(order),
                    Home::Shared(word) => word.load(order),
                    Home::Own(word) => word.load(order),
                }
            }

            /// Stores a value.
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                match self.home(true) {
                    Home::Memory => self.0.store(value, order),
                    Home::Shared(word) => word.store(value, order),
                    Home::Own(word) => word.store(value, order),
                }
            }

            /// Stores a value if the current one equals `from`.
            #[track_caller]
            pub fn compare_exchange(&self, from: $value, to: $value, order: Ordering, failure: Ordering) -> Result<$value, $value> {
                match self.home(true) {
                    Home::Memory => self.0.compare_exchange(from, to, order, failure),
                    Home::Shared(word) => word.compare_exchange(from, to, order, failure),
                    Home::Own(word) => word.compare_exchange(from, to, order, failure),
                }
            }

            /// Applies a function to the value and stores the result, unless it is `None`.
            #[track_caller]
            pub fn fetch_update(&self, order: Ordering, load: Ordering, change: impl FnMut($value) -> Option<$value>) -> Result<$value, $value> {
                let mut change = change;
                let mut before = self.load(load);
                while let Some(next) = change(before) {
                    match self.compare_exchange(before, next, order, load) {
                        Err(other) => before = other,
                        done => return done,
                    }
                }
                Err(before)
            }

            $(
                /// Changes the value and returns the previous one.
                #[track_caller]
                pub fn $operation(&self, value: $value, order: Ordering) -> $value {
                    match self.home(true) {
                        Home::Memory => self.0.$operation(value, order),
                        Home::Shared(word) => word.$operation(value, order),
                        Home::Own(word) => word.$operation(value, order),
                    }
                }
            )*
        }

        impl$(<$of: 'static>)? Share for $name$(<$of>)? {
            fn share(&self) {
                let word = Rc::new(loom::sync::atomic::$name::new(self.load(Ordering::Relaxed)));
                EXECUTION.with_borrow_mut(|execution| {
                    let execution = execution.as_mut().expect("a model runs");
                    execution.shared.insert(self.as_ptr() as usize, word);
                });
            }
        }

        impl$(<$of: 'static>)? core::fmt::Debug for $name$(<$of>)? {
            fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.load(Ordering::Relaxed).fmt(formatter)
            }
        }
    };
}

atomic!(AtomicBool, bool, swap);
atomic!(AtomicU32, u32, swap fetch_add fetch_sub fetch_and fetch_or fetch_max fetch_min);
atomic!(AtomicU64, u64, swap fetch_add fetch_sub fetch_and fetch_or fetch_max fetch_min);
atomic!(AtomicI64, i64, swap);
atomic!(AtomicUsize, usize, swap fetch_add fetch_sub fetch_and fetch_or fetch_max fetch_min);
atomic!(AtomicPtr<T>, *mut T, swap);

macro_rules! defaults {
    ($($name:ident)*) => {
        $(
            impl Default for $name {
                fn default() -> Self {
                    Self(plain::$name::default())
                }
            }
        )*
    };
}

defaults!(AtomicBool AtomicU32 AtomicU64 AtomicI64 AtomicUsize);

impl<T> Default for AtomicPtr<T> {
    fn default() -> Self {
        Self::new(std::ptr::null_mut())
    }
}
