//! A program to record, which uses its heap as its first argument says.
//! Tests compile it with rustc and without any crates, so it declares C functions itself.

use std::ffi::{c_char, c_int, c_long, c_void};
use std::hint::black_box;
use std::ptr::{null, null_mut};

unsafe extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn calloc(count: usize, size: usize) -> *mut c_void;
    fn realloc(block: *mut c_void, size: usize) -> *mut c_void;
    fn reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void;
    fn free(block: *mut c_void);
    fn memalign(align: usize, size: usize) -> *mut c_void;
    fn posix_memalign(place: *mut *mut c_void, align: usize, size: usize) -> c_int;
    fn aligned_alloc(align: usize, size: usize) -> *mut c_void;
    fn valloc(size: usize) -> *mut c_void;
    fn pvalloc(size: usize) -> *mut c_void;
    fn malloc_usable_size(block: *mut c_void) -> usize;
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn execv(path: *const c_char, arguments: *const *const c_char) -> c_int;
    fn signal(number: c_int, handler: extern "C" fn(c_int)) -> usize;
    fn raise(number: c_int) -> c_int;
    fn setitimer(which: c_int, new: *const [c_long; 4], old: *mut [c_long; 4]) -> c_int;
    fn _exit(status: c_int) -> !;
    fn abort() -> !;
    fn pthread_create(
        thread: *mut usize,
        attributes: *const c_void,
        routine: extern "C-unwind" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void,
    ) -> c_int;
    fn mmap(
        place: *mut c_void,
        length: usize,
        access: c_int,
        flags: c_int,
        file: c_int,
        offset: c_long,
    ) -> *mut c_void;
    fn pthread_join(thread: usize, result: *mut *mut c_void) -> c_int;
}
unsafe extern "C-unwind" {
    fn pthread_exit(result: *mut c_void) -> !;
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |n: usize| arguments.get(n).and_then(|a| a.parse().ok()).unwrap_or(0_usize);
    match arguments[1].as_str() {
        "calls" => calls(),
        "threads" => threads(number(2), number(3)),
        "pthread_exit" => ended_by_pthread_exit(),
        "fork" => forked(number(2)),
        "raw_fork" => forked_behind_libc(),
        "exec" => exec(number(2)),
        "signal" => in_a_handler(),
        "timer" => interrupted(),
        "_exit" => unsafe {
            give(1_000_001);
            _exit(7)
        },
        "abort" => unsafe {
            give(1_000_001);
            abort()
        },
        "kill" => unsafe {
            give(1_000_001);
            raise(9);
        },
        "pairs" => pairs(number(2)),
        "progress" => progress(&arguments[2], number(3)),
        other => panic!("no mode {other}"),
    }
}

fn give(size: usize) -> *mut c_void {
    black_box(unsafe { malloc(black_box(size)) })
}

/// Calls each function with a size that identifies it.
fn calls() {
    unsafe {
        let a = give(1_000_001);
        let b = calloc(3, 1_000_002);
        let c = reallocarray(null_mut(), 5, 1_000_003);
        let d = realloc(null_mut(), 1_000_004);
        let e = memalign(64, 1_000_005);
        let mut f = null_mut();
        assert_eq!(posix_memalign(&mut f, 128, 1_000_006), 0);
        let g = aligned_alloc(256, 1_000_192);
        let h = valloc(1_000_007);
        let i = pvalloc(1_000_008);
        assert!(malloc_usable_size(a) >= 1_000_001 && malloc_usable_size(null_mut()) == 0);
        assert!((e as usize).is_multiple_of(64) && (f as usize).is_multiple_of(128));
        let a = realloc(a, 2_000_001);
        let c = reallocarray(c, 7, 2_000_003);
        assert!(give(usize::MAX / 2).is_null());
        assert!(reallocarray(null_mut(), usize::MAX, 2).is_null());
        assert_eq!(posix_memalign(&mut null_mut(), 3, 1), 22);
        free(null_mut());
        assert!(black_box(realloc(d, 0)).is_null());
        for block in [a, b, c, e, f, g, h, i] {
            free(block);
        }
    }
}

/// Threads that allocate, resize, and free each other's blocks.
fn threads(count: usize, rounds: usize) {
    use std::sync::Mutex;
    static SHARED: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let handles: Vec<_> = (0..count)
        .map(|seed| {
            std::thread::spawn(move || {
                let mut random = seed as u64 + 1;
                let mut next = move || {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    random as usize
                };
                for _ in 0..rounds {
                    unsafe {
                        let mut block = give(next() % 300);
                        if next() % 2 == 0 {
                            block = realloc(block, 1 + next() % 3000);
                        }
                        let mut shared = SHARED.lock().unwrap();
                        shared.push(block as usize);
                        let other = (shared.len() > 50).then(|| {
                            let n = next() % shared.len();
                            shared.swap_remove(n)
                        });
                        drop(shared);
                        if let Some(other) = other {
                            if next() % 4 == 0 {
                                free(realloc(other as *mut c_void, 1 + next() % 5000));
                            } else {
                                free(other as *mut c_void);
                            }
                        }
                    }
                }
            })
        })
        .collect();
    for handle in handles {
        handle.join().unwrap();
    }
}

fn ended_by_pthread_exit() {
    extern "C-unwind" fn routine(_: *mut c_void) -> *mut c_void {
        unsafe {
            free(give(1_000_001));
            pthread_exit(5 as *mut c_void)
        }
    }
    unsafe {
        let (mut thread, mut result) = (0, null_mut());
        assert_eq!(pthread_create(&mut thread, null(), routine, null_mut()), 0);
        assert_eq!(pthread_join(thread, &mut result), 0);
        assert_eq!(result as usize, 5);
    }
}

fn forked(children: usize) {
    for _ in 0..children {
        unsafe {
            give(1_000_001);
            let child = fork();
            if child == 0 {
                give(3_000_001);
                _exit(0);
            }
            waitpid(child, null_mut(), 0);
            give(1_000_002);
        }
    }
}

/// Forks by a system call, which bypasses fork handlers.
fn forked_behind_libc() {
    const SYS_CLONE: c_long = if cfg!(target_arch = "x86_64") { 56 } else { 220 };
    unsafe {
        give(1_000_001);
        let child = syscall(SYS_CLONE, 17 as c_long, 0 as c_long, 0 as c_long, 0 as c_long, 0 as c_long);
        if child == 0 {
            give(3_000_001);
            _exit(0);
        }
        waitpid(child as c_int, null_mut(), 0);
        give(1_000_002);
    }
}

fn exec(times: usize) {
    give(1_000_001 + times);
    if times == 0 {
        return;
    }
    let times = format!("{}\0", times - 1);
    let arguments = [c"heap".as_ptr(), c"exec".as_ptr(), times.as_ptr().cast(), null()];
    unsafe { execv(c"/proc/self/exe".as_ptr(), arguments.as_ptr()) };
    panic!("exec failed");
}

extern "C" fn allocates(_: c_int) {
    unsafe { free(give(1_000_003)) }
}

fn in_a_handler() {
    unsafe {
        signal(10, allocates);
        for _ in 0..10 {
            raise(10);
        }
    }
}

/// Makes a call that fails before the allocator takes its lock. The handler of a timer can interrupt a hook at any
/// instruction, so it must run only the recorder's own code and cannot allocate.
extern "C" fn fails(_: c_int) {
    unsafe { assert!(reallocarray(null_mut(), usize::MAX, 2).is_null()) }
}

fn interrupted() {
    unsafe {
        signal(14, fails);
        setitimer(0, &[0, 50, 0, 50], null_mut());
        for _ in 0..300_000 {
            free(give(100));
        }
        setitimer(0, &[0, 0, 0, 0], null_mut());
    }
}

/// Prints the cost of a call to malloc or free.
fn pairs(count: usize) {
    let begun = std::time::Instant::now();
    for _ in 0..count {
        unsafe { free(give(64)) };
    }
    println!("{:.1} ns a call", begun.elapsed().as_nanos() as f64 / (2 * count) as f64);
}

/// Runs threads that allocate forever and free each other's blocks. Their progress is in a file that outlives the
/// process: the process ID in the first word, then the number of blocks that each thread has received and counted.
fn progress(path: &str, count: usize) {
    use std::os::fd::AsRawFd;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    static SHARED: [AtomicUsize; 16] = [const { AtomicUsize::new(0) }; 16];
    let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
    let words = unsafe { mmap(null_mut(), 4096, 3, 1, file.as_raw_fd(), 0) } as usize;
    let word = move |n: usize| unsafe { &*((words + 8 * n) as *const AtomicU64) };
    word(0).store(std::process::id().into(), Ordering::SeqCst);
    for thread in 0..count {
        std::thread::spawn(move || {
            for n in 1_u64.. {
                let block = give(7001 + thread) as usize;
                word(1 + thread).store(n, Ordering::SeqCst);
                let at = (n as usize * 7 + thread) % SHARED.len();
                let mut other = SHARED[at].swap(block, Ordering::SeqCst) as *mut c_void;
                if n % 5 == 0 && !other.is_null() {
                    other = unsafe { realloc(other, 9000 + n as usize % 3) };
                }
                unsafe { free(other) };
            }
        });
    }
    loop {
        std::thread::park();
    }
}
