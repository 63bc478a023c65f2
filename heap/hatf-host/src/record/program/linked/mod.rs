//! Statically linked allocators. Calls to these allocators bypass the dynamic linker, where the recorder could
//! intercept them. Instead, the recorder places a jump at the start of each allocator function listed in the symbol
//! table. This module prepares the data that the recorder needs to place these jumps.
//!
//! Either all functions of an allocator are recorded or none, because a trace that contains only allocations or only
//! frees would be wrong.

mod instruction;
mod moved;
mod names;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hatf_record::linked::{JUMP_BYTES, PATCHES_MAX, Patch, Role, Source, TAKEN_MAX};
use memchr::memmem;
use object::elf::STT_GNU_IFUNC;
use object::read::ReadCache;
use object::{Architecture, Object, ObjectSection, ReadRef, SectionKind};
use serde_json::{Value, json};

use super::executable::{has_recorder, open};
use super::sanitizer::Sanitizer;
use super::symbols::{Symbol, Symbols};
use instruction::{Instruction, Kind, decode};
use moved::{Refusal, move_beginning};
use names::Named;

/// A statically linked allocator of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedIn {
    /// The program.
    pub program: PathBuf,
    /// An allocation function of the allocator, or a description of how it was found.
    pub function: String,
    /// The allocator, if its names identify it: jemalloc, mimalloc or tcmalloc.
    pub allocator: Option<&'static str>,
    /// The plan for the recorder, or the reason why there is no plan.
    plan: std::result::Result<Vec<u8>, String>,
}

impl LinkedIn {
    /// Returns whether the calls cannot be recorded. Otherwise, the recorder determines at run time whether they are
    /// recorded.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.plan.is_err()
    }

    /// Returns the allocator as in the user metadata of a trace.
    pub(crate) fn to_json(&self) -> Value {
        json!({"function": self.function, "allocator": self.allocator})
    }

    /// Returns the plan that the recorder reads.
    pub(super) fn plan(&self) -> Option<&[u8]> {
        self.plan.as_deref().ok()
    }
}

/// Prints that the calls are not recorded, and the reason.
impl fmt::Display for LinkedIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { program, function, plan, .. } = self;
        write!(
            f,
            "{} has a statically linked allocator ({function}), whose calls are not recorded",
            program.display()
        )?;
        if let Err(why) = plan { write!(f, ": {why}") } else { Ok(()) }
    }
}

/// Searches for an allocator in a program. The program file is located in the same way as by the system. Also returns
/// `None` if the file cannot be read, or if the program records its calls itself.
#[must_use]
pub fn linked_in(program: &OsStr) -> Option<LinkedIn> {
    let (path, file) = open(program)?;
    searched(path, &file)?.1
}

/// Searches for an allocator in a program as [`linked_in`] does. Also returns the identity of the program's file.
pub(super) fn searched(path: PathBuf, file: &File) -> Option<(Source, Option<LinkedIn>)> {
    let source = source(file)?;
    let mut searched = SEARCHED.lock().unwrap_or_else(PoisonError::into_inner);
    let found = searched.entry((path, source)).or_insert_with_key(|(path, _)| search(path, file));
    Some((source, found.clone()))
}

/// The results for programs that were searched. Many processes of a recording execute the same program.
static SEARCHED: Mutex<BTreeMap<(PathBuf, Source), Option<LinkedIn>>> = Mutex::new(BTreeMap::new());

/// Searches for an allocator in a program file.
fn search(path: &Path, file: &File) -> Option<LinkedIn> {
    let cache = ReadCache::new(file);
    let parsed = object::File::parse(&cache).ok()?;
    let symbols = Symbols::of(&parsed);
    let found = functions(&symbols);
    let is_stripped_allocator = || !symbols.has_debugging() && has_allocator(&parsed);
    if found.is_none() && !is_stripped_allocator() || Sanitizer::in_symbols(&symbols).is_some() || has_recorder(file) {
        return None;
    }
    let (function, plan) = match found {
        Some((function, functions)) => {
            let plan = plan(file, &parsed, &symbols, &functions).map_err(|(name, refusal)| format!("{name} {refusal}"));
            (function, plan)
        }
        None => ("recognized by its messages".to_owned(), Err("its symbols are stripped".to_owned())),
    };
    let allocator = names::allocator(&function).or_else(|| by_symbols(&symbols));
    Some(LinkedIn { program: path.to_owned(), function, allocator, plan })
}

/// Identifies an allocator whose functions have the C library's names, based on its other functions.
fn by_symbols(symbols: &Symbols<'_>) -> Option<&'static str> {
    let defined = symbols.iter().filter(|symbol| symbol.is_definition && symbol.is_code());
    defined.into_iter().find_map(|symbol| match symbol.name {
        b"mallctl" | b"je_mallctl" => Some("jemalloc"),
        b"mi_version" => Some("mimalloc"),
        b"tc_version" | b"MallocExtension_ReleaseFreeMemory" => Some("tcmalloc"),
        _ => None,
    })
}

/// The beginnings of messages that allocators print.
const MESSAGES: [&[u8]; 3] = [b"<jemalloc>: ", b"mimalloc: warning: ", b"tcmalloc: large alloc "];

/// Returns whether a file contains messages of an allocator.
fn has_allocator<'d, R: ReadRef<'d>>(file: &object::File<'d, R>) -> bool {
    let constants = || file.section_by_name(".rodata")?.data().ok();
    let has = |data: &[u8]| MESSAGES.iter().any(|message| memmem::find(data, message).is_some());
    constants().is_some_and(has)
}

/// A function in the symbol table.
struct Function {
    name: String,
    named: Named,
    address: u64,
    size: u64,
    /// Whether the address belongs to a resolver that returns the function's address.
    chosen: bool,
}

impl Function {
    /// Returns whether the function indicates an allocator. Linkers omit functions that are not called, so any function
    /// with a prefix is sufficient. C++ operators that call the `malloc` of a library occur in any program.
    fn is_allocator(&self, imports_malloc: bool) -> bool {
        let Named { family, rest, role, .. } = self.named;
        match family {
            0 => rest == "malloc" || rest == "_Znwm" && !imports_malloc,
            _ => !matches!(role, Role::Free | Role::Realloc | Role::Reallocarray),
        }
    }
}

/// Returns the allocator functions in a file, with their addresses and names. Includes only allocators that have
/// functions both for allocating and for freeing. Also returns the name of an allocation function, if there is one.
fn functions(symbols: &Symbols<'_>) -> Option<(String, Vec<Function>)> {
    let (mut all, mut imports_malloc) = (BTreeMap::new(), false);
    for symbol in symbols.iter() {
        let Symbol { address, size, kind, is_undefined, is_definition, .. } = symbol;
        let Ok(name) = str::from_utf8(symbol.name) else { continue };
        let Some(named) = names::of(name) else { continue };
        if is_undefined {
            imports_malloc |= name == "malloc";
        } else if is_definition && symbol.is_code() {
            let function = Function { name: name.to_owned(), named, address, size, chosen: kind == STT_GNU_IFUNC };
            all.insert((address, name.to_owned()), function);
        }
    }
    let families = |wanted: &dyn Fn(&Function) -> bool| -> BTreeSet<usize> {
        all.values().filter(|function| wanted(function)).map(|function| function.named.family).collect()
    };
    let allocate = families(&|function| function.is_allocator(imports_malloc));
    let free = families(&|function| function.named.role == Role::Free);
    let wanted = |function: &Function| [&allocate, &free].iter().all(|them| them.contains(&function.named.family));
    let all: Vec<Function> = all.into_values().filter(wanted).collect();
    // Report a function name that users know, preferably `malloc`.
    let shown = all.iter().filter(|function| function.is_allocator(imports_malloc));
    let shown = shown.max_by_key(|function| (function.named.family, function.named.rest == "malloc"))?.name.clone();
    Some((shown, all))
}

/// The reason why there is no plan: the function and the problem with it.
type Unplanned = (String, Refusal);

/// Builds the plan for these functions.
fn plan<'d, R: ReadRef<'d>>(
    file: &File,
    parsed: &object::File<'d, R>,
    symbols: &Symbols<'d>,
    functions: &[Function],
) -> std::result::Result<Vec<u8>, Unplanned> {
    let refused = |function: &Function, refusal| (function.name.clone(), refusal);
    let mut patches: Vec<(&Function, Patch)> = Vec::new();
    for function in functions {
        if parsed.architecture() != Architecture::X86_64 {
            return Err(refused(function, Refusal::Machine));
        }
        if patches.len() == PATCHES_MAX {
            return Err(refused(function, Refusal::Many));
        }
        if let Some((before, patch)) = patches.last().filter(|(before, _)| before.address == function.address) {
            // Both names belong to the same function, so their meanings must agree.
            if !takes_the_same(patch.role, function.named.role) || before.named.skipped != function.named.skipped {
                return Err(refused(function, Refusal::Shared));
            }
            continue;
        }
        let patch = patch(parsed, function).map_err(|refusal| refused(function, refusal))?;
        patches.push((function, patch));
    }
    // Patches are sorted by address. No other code may branch to the replaced bytes or begin there.
    let replaced = |address: u64| {
        let place = patches.partition_point(|(function, _)| function.address < address);
        let (function, patch) = patches.get(place.checked_sub(1)?)?;
        (address - function.address < u64::from(patch.taken)).then_some(*function)
    };
    for Symbol { address, .. } in symbols.iter().filter(|symbol| symbol.is_definition) {
        if let Some(function) = replaced(address) {
            return Err(refused(function, Refusal::Shared));
        }
    }
    for section in parsed.sections().filter(|section| section.kind() == SectionKind::Text) {
        // Skip sections that cannot be read. They contain no functions to replace, because those have already been
        // read.
        let Ok(data) = section.data() else { continue };
        for (at, target) in branches(section.address(), data) {
            if let Some(function) = replaced(target).filter(|_| may_branch(symbols, section.address(), data, at)) {
                return Err(refused(function, Refusal::Branch));
            }
        }
    }
    let mut bytes = source(file).ok_or((String::new(), Refusal::Absent))?.to_bytes().to_vec();
    bytes.extend(patches.iter().flat_map(|(_, patch)| patch.to_bytes()));
    Ok(bytes)
}

/// Returns whether functions of two roles have the same arguments in the same order.
fn takes_the_same(one: Role, other: Role) -> bool {
    let kind = |role| match role {
        Role::Malloc | Role::Zalloc | Role::Valloc | Role::Pvalloc => 0,
        Role::AlignedAlloc | Role::Memalign => 1,
        Role::Calloc => 2,
        Role::Realloc => 3,
        Role::Reallocarray => 4,
        Role::Free => 5,
        Role::Aligned => 6,
        Role::PosixMemalign => 7,
        Role::Mallocx => 8,
    };
    kind(one) == kind(other)
}

/// Builds the patch for a function.
fn patch<'d, R: ReadRef<'d>>(file: &object::File<'d, R>, function: &Function) -> std::result::Result<Patch, Refusal> {
    let Function { named, address, size, chosen, .. } = *function;
    if chosen {
        return Err(Refusal::Chosen);
    }
    let inside = |section: &object::Section<'d, '_, R>| {
        section.kind() == SectionKind::Text && address.wrapping_sub(section.address()) < section.size()
    };
    let section = file.sections().find(inside).ok_or(Refusal::Absent)?;
    let data = section.data().map_err(|_| Refusal::Absent)?;
    let start = usize::try_from(address - section.address()).map_err(|_| Refusal::Absent)?;
    let rest = data.get(start..).ok_or(Refusal::Absent)?;
    let (function, filling) =
        rest.split_at_checked(usize::try_from(size).unwrap_or(usize::MAX)).ok_or(Refusal::Absent)?;
    let moved = move_beginning(address, function, filling.get(..TAKEN_MAX).unwrap_or(filling))?;
    let mut original = [0; TAKEN_MAX];
    let beginning = rest.get(..moved.taken).ok_or(Refusal::Short)?;
    original.get_mut(..moved.taken).ok_or(Refusal::Short)?.copy_from_slice(beginning);
    let narrow = |number: usize| u8::try_from(number).map_err(|_| Refusal::Instruction);
    Ok(Patch {
        address,
        role: named.role,
        skipped: named.skipped,
        taken: narrow(moved.taken)?,
        moved: narrow(moved.length)?,
        fixes: narrow(moved.fixes)?,
        original,
        code: moved.code,
        fix: moved.fix,
    })
}

/// Returns the positions and targets of near branches in code at an address, including bytes that only look like a
/// branch.
fn branches(address: u64, code: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    (address..).zip(code.windows(JUMP_BYTES + 1)).filter_map(|(at, bytes)| {
        let [first, second, distance @ ..] = bytes else { return None };
        // The window includes a preceding byte, because conditional branches have two opcode bytes.
        let is_one = matches!(second, 0xe8 | 0xe9) || *first == 0x0f && second & 0xf0 == 0x80;
        let distance = i32::from_le_bytes(*distance.first_chunk()?);
        is_one.then(|| (at.wrapping_add(1), at.wrapping_add(6).wrapping_add_signed(distance.into())))
    })
}

/// Returns whether the byte at an address in this code may belong to a branch. It cannot if the instructions of its
/// function can be decoded up to that address and the byte belongs to an instruction other than a near branch.
fn may_branch(symbols: &Symbols<'_>, start: u64, code: &[u8], at: u64) -> bool {
    let is_around = |symbol: &Symbol<'_>| {
        symbol.is_code() && at.wrapping_sub(symbol.address) < symbol.size && (start..=at).contains(&symbol.address)
    };
    let Some(mut from) = symbols.iter().find(is_around).map(|symbol| symbol.address) else { return true };
    loop {
        let rest = usize::try_from(from - start).ok().and_then(|from| code.get(from..));
        let Some(Instruction { length, kind }) = rest.and_then(decode) else { return true };
        from = from.saturating_add(length as u64);
        if from > at {
            return matches!(kind, Kind::Branch { short: false, .. });
        }
    }
}

/// Returns the file metadata that identifies a file version.
fn source(file: &File) -> Option<Source> {
    let known = file.metadata().ok()?;
    let number = |number: i64| u64::try_from(number).ok();
    let changed = (number(known.mtime())?, number(known.mtime_nsec())?);
    Some(Source { device: known.dev(), inode: known.ino(), bytes: known.len(), changed })
}

#[cfg(test)]
mod tests;
