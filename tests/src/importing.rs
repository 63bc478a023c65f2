//! Inputs of the fuzz target `import`. The target itself is in `tables/metatf-arrow/tests/it/any_table.rs`, because it
//! needs the table crates.

use std::path::Path;

/// DTD of the tables.
pub const DTD: &[u8] = include_bytes!("../data/import/table.dtd");

/// Rows of the record `r`, as CSV.
const ROWS: &[u8] = b"@number,time,size,name\n0,1000007,1,n1\n1,1000014,2,\"\"\"2\"\n2,1000021,4294967295,\", \"\n";

/// Tables of the record `r`. Decoders panic on the first two, and the third requests 4 GiB.
pub const TABLES: [&[u8]; 4] = [
    include_bytes!("../data/import/panics.arrow"),
    include_bytes!("../data/import/panics.parquet"),
    include_bytes!("../data/import/exhausts.arrow"),
    ROWS,
];

/// Returns the tables, each after a byte of switches. They are unrelated to the vectors, so only one vector returns
/// them.
pub(crate) fn seeds(path: &Path, _: &[u8]) -> Vec<Vec<u8>> {
    if !path.ends_with("bad/dtd/base-unknown-record/format.dtd") {
        return Vec::new();
    }
    TABLES.iter().map(|table| [&[0], *table].concat()).collect()
}
