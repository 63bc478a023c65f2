//! Hooks for a running process. Replaces the addresses of functions that its modules call with the addresses of the
//! hooks, and restores them.
//!
//! A module calls a function of another module through an address in its own table (`.got`, `.got.plt`), which the
//! dynamic linker fills at load time or at the first call. Relocations specify which function each address belongs to.
//! A table that is already read-only (RELRO) is made writable temporarily. Each address is replaced by a single store,
//! so running threads call either the function or the hook.

use core::ffi::{CStr, c_int, c_void};
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::found::Found;
use super::segments;
use crate::preload::platform::memory;

/// A hook: the function that it replaces, and its own address.
#[derive(Clone, Copy)]
pub(crate) struct Hook {
    pub(crate) name: &'static CStr,
    pub(crate) ours: usize,
    /// The address of the replaced function, or 0 if the program does not have it.
    pub(crate) real: usize,
}

/// The operation on the tables of all modules.
#[derive(Clone, Copy)]
enum Act<'o> {
    /// Redirects calls while the flag is set. The flag is read while holding the loader's lock, which a restoring
    /// thread waits for.
    Redirect(&'o AtomicBool),
    Restore,
}

struct Pass<'h> {
    act: Act<'h>,
    hooks: &'h [Hook],
    changed: usize,
}

/// Makes all modules except this one call the hooks, unless `on` has become false. Returns the number of replaced
/// addresses.
pub(crate) fn redirect(hooks: &[Hook], on: &AtomicBool) -> usize {
    pass(Act::Redirect(on), hooks)
}

/// Makes all modules call the original functions again.
pub(crate) fn restore(hooks: &[Hook]) -> usize {
    pass(Act::Restore, hooks)
}

/// Returns the address of the function with this name in the first other module that defines it, or 0 if no module
/// does. The loader is not used for this, because it may return the address of code in the program that calls the
/// function through the program's table. If that table is redirected, such code leads to the hook.
pub(crate) fn look_up(name: &CStr) -> usize {
    struct Search<'n> {
        name: &'n CStr,
        found: usize,
    }
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: as in `visit_module`.
        unsafe {
            let search = &mut *data.cast::<Search<'_>>();
            if let Some(module) = Module::of_info(info) {
                search.found = module.definition(search.name, FUNCTION).unwrap_or_default();
            }
            c_int::from(search.found != 0)
        }
    }
    let mut search = Search { name, found: 0 };
    // SAFETY: a function with this signature, and the data that it expects.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

/// Returns whether the program itself, as opposed to a library, defines an exported function with this name.
pub(crate) fn program_defines(name: &CStr) -> bool {
    struct Search<'n> {
        name: &'n CStr,
        found: bool,
    }
    unsafe extern "C" fn visit_first(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: as in `visit_module`.
        unsafe {
            let search = &mut *data.cast::<Search<'_>>();
            let program = Module::of_info(info);
            search.found = program.is_some_and(|program| program.definition(search.name, FUNCTION).is_some());
        }
        1
    }
    let mut search = Search { name, found: false };
    // SAFETY: a function with this signature, and the data that it expects.
    unsafe { libc::dl_iterate_phdr(Some(visit_first), (&raw mut search).cast()) };
    search.found
}

/// Returns whether any module that contains one of these functions of an allocator calls functions of an allocator
/// through its own table, where it would find the hooks. The functions of glibc are known not to do so, although other
/// parts of glibc do.
pub(crate) fn call_allocators(functions: &[usize]) -> bool {
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: as in `visit_module`.
        unsafe {
            let functions = *data.cast::<&[usize]>();
            let Some(module) = Module::of_info(info) else { return 0 };
            let is_asked = functions.iter().any(|function| module.range.contains(function));
            let is_glibc = || module.definition(c"gnu_get_libc_version", FUNCTION).is_some();
            c_int::from(is_asked && !is_glibc() && module.calls_allocator())
        }
    }
    let mut functions = functions;
    // SAFETY: a function with this signature, and the data that it expects.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut functions).cast()) != 0 }
}

/// Returns whether this module was preloaded. A preloaded module precedes the C library, and any other module follows
/// it.
pub(crate) fn is_preloaded() -> bool {
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, is_first: *mut c_void) -> c_int {
        // SAFETY: as in `visit_module`, and the variable in `is_preloaded`.
        unsafe {
            if (*info).dlpi_phdr.is_null() {
                return 0;
            }
            let table = core::slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum.into());
            let mut loaded = table.iter().filter(|segment| segment.p_type == libc::PT_LOAD);
            let own = is_preloaded as *const () as usize;
            if loaded.any(|segment| segments::place(address((*info).dlpi_addr), segment).contains(&own)) {
                is_first.cast::<bool>().write(true);
                return 1;
            }
            // The C library is the only module that defines this function.
            let is_libc = |module: &Module<'_>| module.definition(c"__errno_location", FUNCTION).is_some();
            c_int::from(Module::of_info(info).as_ref().is_some_and(is_libc))
        }
    }
    let mut is_first = false;
    // SAFETY: a function with this signature, and the data that it expects.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut is_first).cast()) };
    is_first
}

/// Returns the number of modules ever loaded.
pub(crate) fn loaded() -> u64 {
    unsafe extern "C" fn note(info: *mut libc::dl_phdr_info, _: usize, adds: *mut c_void) -> c_int {
        // SAFETY: the loader's structure, and the number in `loaded`.
        unsafe { *adds.cast::<u64>() = (*info).dlpi_adds };
        1
    }
    let mut adds = 0_u64;
    // SAFETY: a function with this signature, and the data that it expects.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut adds).cast()) };
    adds
}

fn pass<'h>(act: Act<'h>, hooks: &'h [Hook]) -> usize {
    let mut pass = Pass { act, hooks, changed: 0 };
    // SAFETY: a function with this signature, and the data that it expects.
    unsafe { libc::dl_iterate_phdr(Some(visit_module), (&raw mut pass).cast()) };
    pass.changed
}

unsafe extern "C" fn visit_module(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader's structure, whose program table has this many entries, and the pass from `pass`.
    unsafe {
        let pass = &mut *data.cast::<Pass<'_>>();
        if matches!(pass.act, Act::Redirect(on) if !on.load(Ordering::Relaxed)) {
            return 1;
        }
        if let Some(module) = Module::of_info(info) {
            module.change(pass);
        }
    }
    0
}

fn address(number: u64) -> usize {
    usize::try_from(number).unwrap_or_default()
}

/// An entry of the dynamic section.
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

/// Tags, named as in the C library's headers.
const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_STRSZ: i64 = 10;
const DT_JMPREL: i64 = 23;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;
/// Kinds of symbols.
pub(crate) const OBJECT: u8 = 1;
pub(crate) const FUNCTION: u8 = 2;
const R_64: u32 = 1;
const R_GLOB_DAT: u32 = 6;
const R_JUMP_SLOT: u32 = 7;

const PAGE: usize = 4096;

/// A module and the locations of its tables.
#[derive(Default)]
pub(crate) struct Module<'t> {
    base: usize,
    segments: &'t [libc::Elf64_Phdr],
    /// The range of all segments.
    range: Range<usize>,
    /// The range that became read-only after loading.
    fixed: Range<usize>,
    names: Range<usize>,
    symbols: usize,
    relocations: [Range<usize>; 2],
    /// The hash table of exported symbols, or 0 if there is none.
    hashes: usize,
    /// The versions of symbols, or 0 if there are none.
    versions: usize,
}

impl<'t> Module<'t> {
    /// Finds the tables of a module reported by the loader.
    ///
    /// # Safety
    /// `info` must come from the loader, which must hold its lock for as long as the result lives.
    unsafe fn of_info(info: *const libc::dl_phdr_info) -> Option<Self> {
        // SAFETY: by the caller's promise: the program table has this many entries.
        unsafe {
            let info = info.as_ref().filter(|info| !info.dlpi_phdr.is_null())?;
            Self::of(address(info.dlpi_addr), core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()))
        }
    }

    /// Finds the tables of a module that contains a known address, without the loader's lock.
    pub(crate) fn of_found(found: &Found) -> Option<Self> {
        // SAFETY: the loader's description of the module, whose beginning is public.
        let base = unsafe { found.link.as_ref() }?.bias;
        Self::of(base, segments::of(found)?)
    }

    /// Finds the tables of a module and checks that they are inside the module. Returns `None` if the module has no
    /// tables or is the recorder itself.
    fn of(base: usize, table: &'t [libc::Elf64_Phdr]) -> Option<Self> {
        let place = |segment: &libc::Elf64_Phdr| segments::place(base, segment);
        let of_kind = |kind: u32| table.iter().filter(move |segment| segment.p_type == kind);
        let start = of_kind(libc::PT_LOAD).map(|segment| place(segment).start).min()?;
        let range = start..of_kind(libc::PT_LOAD).map(|segment| place(segment).end).max()?;
        if range.contains(&(visit_module as *const () as usize)) {
            return None;
        }
        let mut module = Self { base, segments: table, range: range.clone(), ..Self::default() };
        if let Some(segment) = of_kind(libc::PT_GNU_RELRO).next() {
            let Range { start, end } = place(segment);
            module.fixed = start & !(PAGE - 1)..end & !(PAGE - 1);
        }
        let mut at = place(of_kind(libc::PT_DYNAMIC).next()?).start;
        let (mut sizes, mut starts, mut names) = ([0; 2], [0; 2], [0; 2]);
        // The loader has relocated some of the offsets to addresses, but not others.
        let within = |value: usize| if range.contains(&value) { value } else { base.wrapping_add(value) };
        while range.contains(&at) && range.contains(&(at + size_of::<Dynamic>() - 1)) {
            // SAFETY: inside of the module's dynamic section, which is readable and ends with a tag of 0.
            let (tag, value) = unsafe {
                let entry = &*(at as *const Dynamic);
                (entry.tag, address(entry.value))
            };
            match tag {
                0 => break,
                DT_STRTAB => names[0] = within(value),
                DT_STRSZ => names[1] = value,
                DT_SYMTAB => module.symbols = within(value),
                DT_RELA => starts[0] = within(value),
                DT_RELASZ => sizes[0] = value,
                DT_JMPREL => starts[1] = within(value),
                DT_PLTRELSZ => sizes[1] = value,
                DT_GNU_HASH => module.hashes = within(value),
                DT_VERSYM => module.versions = within(value),
                _ => {}
            }
            at += size_of::<Dynamic>();
        }
        let inside = |start: usize, bytes: usize| {
            let end = start.checked_add(bytes).filter(|end| range.contains(&start) && *end <= range.end)?;
            Some(start..end)
        };
        module.names = inside(names[0], names[1])?;
        module.symbols = inside(module.symbols, size_of::<libc::Elf64_Sym>())?.start;
        for (place, (start, bytes)) in module.relocations.iter_mut().zip(starts.into_iter().zip(sizes)) {
            *place = inside(start, bytes).unwrap_or_default();
        }
        Some(module)
    }

    /// Redirects the table slots of functions that have hooks.
    fn change(&self, pass: &mut Pass<'_>) {
        let mut opened = false;
        for table in &self.relocations {
            let count = table.len() / size_of::<libc::Elf64_Rela>();
            for number in 0..count {
                // SAFETY: inside of the table, which is in a readable part of the module.
                let relocation = unsafe { &*(table.start as *const libc::Elf64_Rela).add(number) };
                let Some((slot, new)) = self.wanted(relocation, pass) else { continue };
                if !opened && self.is_being_loaded() {
                    return;
                }
                if self.fixed.contains(&(slot.as_ptr() as usize)) && !opened {
                    opened = self.protect(libc::PROT_READ | libc::PROT_WRITE);
                    if !opened {
                        return;
                    }
                }
                slot.store(new, Ordering::Release);
                pass.changed += 1;
            }
        }
        if opened {
            self.protect(libc::PROT_READ);
        }
    }

    /// Returns the address of a symbol of this kind that the module defines.
    pub(crate) fn definition(&self, name: &CStr, kind: u8) -> Option<usize> {
        let word = |at: usize| {
            let inside = self.range.contains(&at) && self.range.contains(&(at + 3)) && at.is_multiple_of(4);
            // SAFETY: a word inside of the module, whose tables are readable.
            inside.then(|| unsafe { *(at as *const u32) })
        };
        let number = |at: usize| word(at).and_then(|word| usize::try_from(word).ok());
        if self.hashes == 0 {
            return None;
        }
        let hash =
            name.to_bytes().iter().fold(5381_u32, |hash, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)));
        let (buckets, first, words) = (number(self.hashes)?, number(self.hashes + 4)?, number(self.hashes + 8)?);
        let table = words.checked_mul(8)?.checked_add(self.hashes + 16)?;
        let bucket = usize::try_from(hash).ok()?.checked_rem(buckets)?;
        let chains = buckets.checked_mul(4)?.checked_add(table)?;
        let mut symbol = number(bucket.checked_mul(4)?.checked_add(table)?)?;
        while symbol >= first && symbol != 0 {
            let link = word((symbol - first).checked_mul(4)?.checked_add(chains)?)?;
            if link | 1 == hash | 1
                && let Some(address) = self.defined(symbol, name, kind)
            {
                return Some(address);
            }
            if link & 1 != 0 {
                break;
            }
            symbol += 1;
        }
        None
    }

    /// Returns the address of a symbol if it has this kind and is defined under this name as the default version.
    fn defined(&self, number: usize, name: &CStr, kind: u8) -> Option<usize> {
        const HIDDEN: u16 = 0x8000;
        let (found, is_own) = self.symbol(number)?;
        let version = number.checked_mul(2)?.checked_add(self.versions)?;
        let is_readable = self.versions != 0 && self.range.contains(&version) && self.range.contains(&(version + 1));
        // SAFETY: inside of the module; and the symbol was checked just now.
        let (hidden, symbol) = unsafe {
            let hidden = is_readable && (version as *const u16).read_unaligned() & HIDDEN != 0;
            (hidden, &*(self.symbols as *const libc::Elf64_Sym).add(number))
        };
        let is_it = is_own && !hidden && symbol.st_info & 15 == kind && found == name;
        is_it.then(|| self.base.wrapping_add(address(symbol.st_value)))
    }

    /// Returns whether the module calls functions of an allocator through its table.
    fn calls_allocator(&self) -> bool {
        let is_allocator = |name: &CStr| {
            let name = name.to_bytes();
            let name = name.strip_prefix(b"__libc_").unwrap_or(name);
            name.starts_with(b"_Zn")
                || name.starts_with(b"_Zd")
                || [&b"malloc"[..], b"calloc", b"realloc", b"reallocarray", b"free", b"cfree"].contains(&name)
                || [&b"memalign"[..], b"aligned_alloc", b"posix_memalign", b"valloc", b"pvalloc"].contains(&name)
        };
        self.relocations.iter().any(|table| {
            (0..table.len() / size_of::<libc::Elf64_Rela>()).any(|number| {
                // SAFETY: inside of the table, which is in a readable part of the module.
                let relocation = unsafe { &*(table.start as *const libc::Elf64_Rela).add(number) };
                self.symbol(address(relocation.r_info >> 32)).is_some_and(|(name, _)| is_allocator(name))
            })
        })
    }

    /// Returns whether the range that becomes read-only is still writable, which means that the loader is still writing
    /// there. The test asks the kernel to populate the page for writing, which changes nothing (Linux 5.14).
    fn is_being_loaded(&self) -> bool {
        let start = self.fixed.start as *mut c_void;
        // SAFETY: a page of the module; the advice changes no byte.
        !self.fixed.is_empty() && unsafe { memory::advise(start, PAGE, libc::MADV_POPULATE_WRITE) == 0 }
    }

    fn protect(&self, access: c_int) -> bool {
        let Range { start, end } = self.fixed;
        // SAFETY: complete pages of the module, which stay readable, and whose protection is restored.
        unsafe { libc::mprotect(start as *mut c_void, end - start, access) == 0 }
    }

    /// Returns the slot of a relocation and the address to store in it, or `None` if the slot need not change.
    fn wanted(&self, relocation: &libc::Elf64_Rela, pass: &Pass<'_>) -> Option<(&'static AtomicUsize, usize)> {
        #[expect(clippy::cast_possible_truncation, reason = "only the low half is needed")]
        let kind = relocation.r_info as u32;
        if !matches!(kind, R_64 | R_GLOB_DAT | R_JUMP_SLOT) || kind == R_64 && relocation.r_addend != 0 {
            return None;
        }
        let slot = self.slot(address(relocation.r_offset))?;
        let value = slot.load(Ordering::Acquire);
        // The slot of a function not called yet contains an address in the module; the code there makes the loader look
        // the function up.
        let unbound = kind == R_JUMP_SLOT && self.range.contains(&value);
        let is_it = |hook: &&Hook| match pass.act {
            Act::Redirect(_) => hook.real != 0 && (value == hook.real || unbound),
            Act::Restore => value == hook.ours,
        };
        // Most relocations are for functions without hooks. Skip those before comparing names.
        pass.hooks.iter().find(is_it)?;
        let (name, is_own) = self.symbol(address(relocation.r_info >> 32))?;
        let hook = pass.hooks.iter().filter(is_it).find(|hook| hook.name == name)?;
        match pass.act {
            Act::Redirect(_) => (value == hook.real || !is_own).then_some((slot, hook.ours)),
            Act::Restore => Some((slot, hook.real)),
        }
    }

    /// Returns the word at an offset, if it is in a segment that was writable when the module was loaded.
    fn slot(&self, offset: usize) -> Option<&'static AtomicUsize> {
        let at = self.base.wrapping_add(offset);
        let is_writable = self.segments.iter().any(|segment| {
            let start = self.base.wrapping_add(address(segment.p_vaddr));
            let place = start..start.saturating_add(address(segment.p_memsz));
            segment.p_type == libc::PT_LOAD
                && segment.p_flags & libc::PF_W != 0
                && place.contains(&at)
                && place.contains(&(at + size_of::<usize>() - 1))
        });
        // SAFETY: a word of a segment that stays while the loader holds its lock; the program itself writes there only
        // when it binds a function, also with one store.
        (is_writable && at.is_multiple_of(size_of::<usize>())).then(|| unsafe { &*(at as *const AtomicUsize) })
    }

    /// Returns the name of a symbol, and whether the module itself defines it.
    fn symbol(&self, number: usize) -> Option<(&'static CStr, bool)> {
        let at = number.checked_mul(size_of::<libc::Elf64_Sym>())?.checked_add(self.symbols)?;
        if !self.range.contains(&at) || !self.range.contains(&(at + size_of::<libc::Elf64_Sym>() - 1)) {
            return None;
        }
        // SAFETY: a symbol of the module's table, inside of the module.
        let symbol = unsafe { &*(at as *const libc::Elf64_Sym) };
        let name = self.names.start.checked_add(usize::try_from(symbol.st_name).ok()?)?;
        let left = self.names.end.checked_sub(name).filter(|left| *left > 0)?;
        // SAFETY: the rest of the table of names, which is in the module.
        let bytes = unsafe { core::slice::from_raw_parts(name as *const u8, left.min(NAME_MAX)) };
        Some((CStr::from_bytes_until_nul(bytes).ok()?, symbol.st_shndx != 0))
    }
}

/// An upper bound for the length of a hook's name in bytes.
const NAME_MAX: usize = 64;
