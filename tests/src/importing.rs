//! Inputs of the fuzz target `import`, whose body needs the crates of tables: `tables/metatf-arrow/tests/it/any_table.rs` has it.

use std::path::Path;

/// The DTD of the tables.
pub const DTD: &[u8] = include_bytes!("../data/import/table.dtd");

/// Rows of the record `r` as CSV.
const ROWS: &[u8] = b"@number,time,size,name\n0,1000007,1,n1\n1,1000014,2,\"\"\"2\"\n2,1000021,4294967295,\", \"\n";

/// Tables of the record `r`. Decoders panic on the first two, and the third requests 4 GiB.
pub const TABLES: [&[u8]; 4] = [
    include_bytes!("../data/import/panics.arrow"),
    include_bytes!("../data/import/panics.parquet"),
    include_bytes!("../data/import/exhausts.arrow"),
    ROWS,
];

/// The tables, with a byte of switches before each: with one vector alone, as they have nothing to do with any.
pub(crate) fn seeds(path: &Path, _: &[u8]) -> Vec<Vec<u8>> {
    if !path.ends_with("bad/dtd/base-unknown-record/format.dtd") {
        return Vec::new();
    }
    TABLES.iter().map(|table| [&[0], *table].concat()).collect()
}
