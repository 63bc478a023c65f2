//! The functions in the symbol tables of an image, by address.

use std::cmp::Reverse;

use object::{Object, ObjectSymbol, SymbolKind};

use super::answer::Frame;
use super::elf::Elf;
use super::names::{cut_symbol, demangled};

/// A function.
#[derive(Clone, Copy)]
pub(super) struct Symbol<'m> {
    pub(super) start: u64,
    /// The end address (exclusive); equal to `start` if unknown.
    end: u64,
    is_local: bool,
    pub(super) name: &'m [u8],
}

/// The functions of an image.
pub(super) struct SymbolTable<'m> {
    symbols: Vec<Symbol<'m>>,
    /// The exported functions. A stripped image has few of them, so a function without a length is not extended to the
    /// next function.
    dynamic: Vec<Symbol<'m>>,
}

impl<'m> SymbolTable<'m> {
    /// Reads the symbol tables of an image and of its separate debug information file.
    pub(super) fn new(own: &Elf<'m>, separate: Option<&Elf<'m>>) -> Self {
        let mut symbols = separate.map_or_else(Vec::new, |separate| functions(separate.object.symbols()));
        if symbols.is_empty() {
            symbols = functions(own.object.symbols());
        }
        // A function without a length extends to the next function.
        let (mut start, mut next) = (u64::MAX, u64::MAX);
        for symbol in symbols.iter_mut().rev() {
            if symbol.start < start {
                (start, next) = (symbol.start, start);
            }
            if symbol.end == symbol.start {
                symbol.end = next;
            }
        }
        Self { symbols, dynamic: functions(own.object.dynamic_symbols()) }
    }

    /// Returns the function that contains an address.
    pub(super) fn find(&self, address: u64) -> Option<Symbol<'m>> {
        [&self.symbols, &self.dynamic].into_iter().find_map(|symbols| {
            let behind = symbols.partition_point(|symbol| symbol.start <= address);
            let symbol = symbols.get(behind.checked_sub(1)?)?;
            (address < symbol.end).then_some(*symbol)
        })
    }

    /// Returns a frame that consists only of the function that contains an address.
    pub(super) fn frame(&self, address: u64) -> Option<Frame> {
        let name = String::from_utf8_lossy(self.find(address)?.name);
        Some(Frame { function: demangled(&name), symbol: cut_symbol(&name), ..Frame::default() })
    }
}

/// Returns functions sorted by address. Of several functions at one address, the preferred one is last. The longest
/// function is preferred, then an exported one, then the one with the fewest leading underscores.
fn functions<'m, 'e, S: ObjectSymbol<'m>>(symbols: impl Iterator<Item = S> + 'e) -> Vec<Symbol<'m>> {
    // Functions in assembly language may have no type.
    let is_code = |symbol: &S| matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Unknown);
    let symbol = |symbol: S| {
        let (start, name) = (symbol.address(), symbol.name_bytes().ok()?);
        Some(Symbol { start, end: start.saturating_add(symbol.size()), is_local: symbol.is_local(), name })
    };
    let functions = symbols.filter(|symbol| symbol.is_definition() && is_code(symbol)).filter_map(symbol);
    let mut functions: Vec<Symbol<'m>> = functions.filter(|symbol| !symbol.name.is_empty()).collect();
    functions.sort_by_key(|Symbol { start, end, is_local, name }| {
        let underscores = name.iter().take_while(|byte| **byte == b'_').count();
        (*start, *end, !is_local, Reverse((underscores, *name)))
    });
    // A symbol without a length inside a function is a label.
    let mut covered = 0;
    functions.retain(|Symbol { start, end, .. }| {
        let is_function = end > start || *start >= covered;
        covered = covered.max(*end);
        is_function
    });
    functions
}
