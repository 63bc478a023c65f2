//! Measures interning a known string in a string table, and looking up a string.

use crate::report::{Cell, Table};
use crate::suite::Suite;
use metatf_bench::Result;
use metatf_bench::ours::names;
use std::collections::HashMap;
use std::hint::black_box;
use string_interner::StringInterner;
use string_interner::backend::StringBackend;
use string_interner::symbol::{Symbol as _, SymbolUsize};

pub(crate) fn run(suite: &mut Suite, records: usize) -> Result<()> {
    let distinct = names::distinct();
    let used = names::uses(&distinct, records);
    let total: u64 = used.iter().map(|name| name.len() as u64).sum();
    let mut table = Table::new(
        "Tables of strings, 20,000 of 20 to 60 bytes: million strings a second",
        &["", "intern one that is known", "look up, with a copy"],
    );
    let mut ours = names::filled(&used)?;
    let offsets = ours.intern(&used)?;
    let trace = names::trace(&used)?;
    let cells = [
        suite.rate("names", "ours-intern", &offsets, || ours.intern(black_box(&used)))?,
        suite.rate("names", "ours-get", &total, || names::lengths(black_box(&trace)))?,
    ];
    table.row("Meta-TF, `intern`; `next` and `get`", cells);

    let mut interner: StringInterner<StringBackend<SymbolUsize>> = StringInterner::new();
    let mut intern = |names: &[&str]| -> Result<u64> {
        Ok(names.iter().map(|name| interner.get_or_intern(name).to_usize() as u64).sum())
    };
    let symbols = intern(&used)?;
    let interned = suite.rate("names", "string-interner-intern", &symbols, || intern(black_box(&used)))?;
    let symbols: Vec<SymbolUsize> = used.iter().map(|name| interner.get_or_intern(name)).collect();
    let resolve = || {
        let found = symbols.iter().map(|&symbol| interner.resolve(symbol).map(str::to_owned));
        Ok(found.flatten().map(|name| name.len() as u64).sum())
    };
    table.row("string-interner", [interned, suite.rate("names", "string-interner-get", &total, resolve)?]);

    let mut map: HashMap<String, u64> = HashMap::new();
    for &name in &used {
        let next = map.len() as u64;
        map.entry(name.to_owned()).or_insert(next);
    }
    let numbers: u64 = used.iter().map(|&name| map[name]).sum();
    let look = || Ok(black_box(&used).iter().filter_map(|&name| map.get(name)).sum());
    table.row("`HashMap<String, u64>` of std", [suite.rate("names", "map", &numbers, look)?, Cell::None]);
    suite.table(table);
    Ok(())
}
