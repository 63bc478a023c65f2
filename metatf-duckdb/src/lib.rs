//! Traces as tables of DuckDB: a loadable extension.
//!
//! It uses DuckDB's C API of version 1.2, which later versions keep, so one file is loaded by all of them.
//! Every function (`functions`) makes a `Table` of its parameters; `scan` reads it, and `vector` copies its Arrow batches.
//! `api` alone calls DuckDB: the rest is safe code, except for the writes into DuckDB's vectors.

mod api;
mod files;
mod functions;
mod listing;
mod scan;
#[cfg(feature = "test-tables")]
mod test_tables;
mod types;
mod vector;

use std::panic::{AssertUnwindSafe, catch_unwind};

use libduckdb_sys::{duckdb_extension_access, duckdb_extension_info};

/// What DuckDB calls when the extension is loaded. False: it cannot be used, and DuckDB knows why.
///
/// # Safety
/// DuckDB calls it, with pointers that are valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metatf_init_c_api(
    info: duckdb_extension_info,
    access: *const duckdb_extension_access,
) -> bool {
    // SAFETY: as the caller promises.
    let loading = unsafe { api::Loading::new(info, access) };
    let Some(loading) = loading else { return false };
    let registered = catch_unwind(AssertUnwindSafe(|| loading.connect().and_then(|to| functions::register(&to))));
    match registered {
        Ok(Ok(())) => true,
        Ok(Err(message)) => loading.fail(&message),
        Err(_) => loading.fail("metatf: a fault of the extension"),
    }
}
