//! A loadable extension that provides traces as DuckDB tables.
//!
//! It uses version 1.2 of DuckDB's C API, which later versions still support, so all later versions can load the same
//! file. Each table function (`functions`) creates a `Table` from its parameters; `scan` reads the table, and `vector`
//! copies its Arrow batches. Only `api` calls DuckDB: the rest is safe code, except for writing into DuckDB's vectors.

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

/// Initializes the extension; DuckDB calls this when it loads the extension. Returns false if the extension cannot be
/// used, after reporting the reason to DuckDB.
///
/// # Safety
/// Only DuckDB may call this, with pointers that are valid during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metatf_init_c_api(
    info: duckdb_extension_info,
    access: *const duckdb_extension_access,
) -> bool {
    // SAFETY: guaranteed by the caller.
    let loading = unsafe { api::Loading::new(info, access) };
    let Some(loading) = loading else { return false };
    let registered = catch_unwind(AssertUnwindSafe(|| loading.connect().and_then(|to| functions::register(&to))));
    match registered {
        Ok(Ok(())) => true,
        Ok(Err(message)) => loading.fail(&message),
        Err(_) => loading.fail("metatf: internal error in the extension"),
    }
}
