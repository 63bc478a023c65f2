//! A safe interface to DuckDB's C API.
//!
//! Most handles belong to DuckDB and are valid only during the call that provides them, so the types here borrow them.
//! Types that create a handle free it on drop.

use std::ffi::{CStr, CString, c_void};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

use libduckdb_sys as duckdb;

/// A result whose error is a message for the user.
pub(crate) type Result<T> = std::result::Result<T, String>;

/// The requested version of the C API: the first stable one. Later DuckDB releases also support it.
const API: &str = "v1.2.0";

/// Converts text to a C string for DuckDB, truncating it at the first zero byte.
fn c_string(text: &str) -> CString {
    let text = text.split('\0').next().unwrap_or_default();
    CString::new(text).unwrap_or_default()
}

/// The extension while it is being loaded.
pub(crate) struct Loading<'a> {
    info: duckdb::duckdb_extension_info,
    access: &'a duckdb::duckdb_extension_access,
}

impl<'a> Loading<'a> {
    /// Loads the API functions. Returns `None` if this version of DuckDB does not provide them, in which case DuckDB
    /// reports the error.
    ///
    /// # Safety
    /// The arguments must be those of the extension's entry point, and `'a` must end when the entry point returns.
    pub(crate) unsafe fn new(
        info: duckdb::duckdb_extension_info,
        access: *const duckdb::duckdb_extension_access,
    ) -> Option<Self> {
        // SAFETY: the caller promises that the pointers are valid; null is tested here.
        unsafe {
            let access = access.as_ref()?;
            access.get_api?;
            duckdb::duckdb_rs_extension_api_init(info, access, API).ok()?.then_some(Self { info, access })
        }
    }

    /// Opens a connection to the database that loads the extension.
    pub(crate) fn connect(&self) -> Result<Connection> {
        let get = self.access.get_database.ok_or("DuckDB provides no database")?;
        let mut connection = std::ptr::null_mut();
        // SAFETY: `info` is valid while the extension is loaded, and the database outlives the call.
        unsafe {
            let database = get(self.info).as_ref().ok_or("DuckDB provides no database")?;
            if duckdb::duckdb_connect(*database, &raw mut connection) != duckdb::DuckDBSuccess {
                return Err("could not connect to the database".to_owned());
            }
        }
        Ok(Connection(connection))
    }

    /// Reports to DuckDB why the extension cannot be used.
    pub(crate) fn fail(&self, message: &str) -> bool {
        if let Some(set_error) = self.access.set_error {
            // SAFETY: `info` is valid while the extension is loaded; DuckDB copies the text.
            unsafe { set_error(self.info, c_string(message).as_ptr()) };
        }
        false
    }
}

/// A connection for registering functions.
pub(crate) struct Connection(duckdb::duckdb_connection);

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: the connection was opened by `Loading::connect` and is closed once.
        unsafe { duckdb::duckdb_disconnect(&raw mut self.0) };
    }
}

/// A column type, freed on drop. DuckDB copies every type passed to it.
pub(crate) struct LogicalType(duckdb::duckdb_logical_type);

impl LogicalType {
    /// Creates a simple type from its number (`DUCKDB_TYPE_..`).
    pub(crate) fn new(number: duckdb::DUCKDB_TYPE) -> Self {
        // SAFETY: any number is allowed; a number of a nested type creates an invalid type, which DuckDB rejects.
        Self(unsafe { duckdb::duckdb_create_logical_type(number) })
    }

    /// Creates a list type whose elements have the type `of`.
    pub(crate) fn list(of: &Self) -> Self {
        // SAFETY: `of` is a valid type, which DuckDB copies.
        Self(unsafe { duckdb::duckdb_create_list_type(of.0) })
    }

    /// Creates a map type from `keys` to `values`.
    pub(crate) fn map(keys: &Self, values: &Self) -> Self {
        // SAFETY: both are valid types, which DuckDB copies.
        Self(unsafe { duckdb::duckdb_create_map_type(keys.0, values.0) })
    }

    /// Creates a struct type.
    pub(crate) fn structure(fields: &[(String, Self)]) -> Self {
        let names: Vec<CString> = fields.iter().map(|(name, _)| c_string(name)).collect();
        let mut names: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
        let mut types: Vec<_> = fields.iter().map(|(_, logical)| logical.0).collect();
        // SAFETY: both arrays have the given number of elements; DuckDB copies names and types.
        Self(unsafe { duckdb::duckdb_create_struct_type(types.as_mut_ptr(), names.as_mut_ptr(), fields.len() as u64) })
    }
}

impl Drop for LogicalType {
    fn drop(&mut self) {
        // SAFETY: the type was created here and is destroyed once.
        unsafe { duckdb::duckdb_destroy_logical_type(&raw mut self.0) };
    }
}

/// A table function. Binding its parameters creates a table, and scanning the table fills chunks of rows.
pub(crate) trait TableFunction: Copy + Send + Sync + 'static {
    /// A call of the function in a query, with its columns.
    type Bound: Send + Sync;
    /// One scan of the table.
    type Scan: Send + Sync;
    /// The per-thread state of a scan.
    type Local: Default;

    /// Returns the function's name in SQL.
    fn name(self) -> String;
    /// Returns the number of parameters. All parameters are text.
    fn parameters(self) -> usize;
    /// Returns the names of the optional parameters, which are also text.
    fn named(self) -> &'static [&'static CStr];
    /// Opens the table that the parameters specify and declares its columns.
    fn bind(self, bind: &Bind) -> Result<Self::Bound>;
    /// Starts a scan of these columns.
    fn start(bound: &Self::Bound, columns: &[u64]) -> Result<Self::Scan>;
    /// Returns the maximum number of threads that may read the table at the same time.
    fn threads(bound: &Self::Bound) -> u64;
    /// Fills a chunk. An empty chunk marks the end of the table.
    fn next(scan: &Self::Scan, local: &mut Self::Local, chunk: &mut Chunk) -> Result<()>;
}

/// Registers a table function.
pub(crate) fn register<F: TableFunction>(to: &Connection, function: F) -> Result<()> {
    let text = LogicalType::new(duckdb::DUCKDB_TYPE_DUCKDB_TYPE_VARCHAR);
    let name = c_string(&function.name());
    // SAFETY: the handle is created and destroyed here; DuckDB copies names and types. The extra information is a boxed
    // `F`, which `bind` reads as an `F` and `free::<F>` frees. The callbacks have the signatures that the API declares.
    let state = unsafe {
        let mut handle = duckdb::duckdb_create_table_function();
        duckdb::duckdb_table_function_set_name(handle, name.as_ptr());
        for _ in 0..function.parameters() {
            duckdb::duckdb_table_function_add_parameter(handle, text.0);
        }
        for named in function.named() {
            duckdb::duckdb_table_function_add_named_parameter(handle, named.as_ptr(), text.0);
        }
        duckdb::duckdb_table_function_set_extra_info(handle, Box::into_raw(Box::new(function)).cast(), Some(free::<F>));
        duckdb::duckdb_table_function_set_bind(handle, Some(bind::<F>));
        duckdb::duckdb_table_function_set_init(handle, Some(init::<F>));
        duckdb::duckdb_table_function_set_local_init(handle, Some(init_local::<F>));
        duckdb::duckdb_table_function_set_function(handle, Some(next::<F>));
        duckdb::duckdb_table_function_supports_projection_pushdown(handle, true);
        let state = duckdb::duckdb_register_table_function(to.0, handle);
        duckdb::duckdb_destroy_table_function(&raw mut handle);
        state
    };
    if state == duckdb::DuckDBSuccess { Ok(()) } else { Err(format!("could not register {}", function.name())) }
}

/// Runs the body of a callback. A panic must not unwind into DuckDB, so it is converted to an error.
fn guard(run: impl FnOnce() -> Result<()>, set_error: impl FnOnce(&CStr)) {
    let result = catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err("internal error in the metatf extension".to_owned()));
    if let Err(message) = result {
        set_error(&c_string(&message));
    }
}

/// Frees a `T` that was passed to DuckDB with `Box::into_raw`.
unsafe extern "C" fn free<T>(data: *mut c_void) {
    if !data.is_null() {
        // A panic in a destructor must not unwind out of the callback. SAFETY: DuckDB calls this once, with the pointer
        // of a boxed `T`.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(unsafe { Box::from_raw(data.cast::<T>()) })));
    }
}

unsafe extern "C" fn bind<F: TableFunction>(info: duckdb::duckdb_bind_info) {
    let run = || {
        // SAFETY: `register` has set a boxed `F`.
        let function = unsafe { duckdb::duckdb_bind_get_extra_info(info).cast::<F>().as_ref() }.ok_or("no function")?;
        let bound = function.bind(&Bind { info, call: PhantomData })?;
        // SAFETY: `info` is valid during the callback; DuckDB frees the box by `free`.
        unsafe {
            duckdb::duckdb_bind_set_bind_data(info, Box::into_raw(Box::new(bound)).cast(), Some(free::<F::Bound>))
        };
        Ok(())
    };
    // SAFETY: `info` is valid during the callback; DuckDB copies the text.
    guard(run, |message| unsafe { duckdb::duckdb_bind_set_error(info, message.as_ptr()) });
}

unsafe extern "C" fn init<F: TableFunction>(info: duckdb::duckdb_init_info) {
    let run = || {
        // SAFETY: `bind` has set a boxed `F::Bound`, which lives as long as the plan; `info` is valid during the
        // callback.
        unsafe {
            let bound = duckdb::duckdb_init_get_bind_data(info).cast::<F::Bound>().as_ref().ok_or("no table")?;
            let columns: Vec<_> = (0..duckdb::duckdb_init_get_column_count(info))
                .map(|i| duckdb::duckdb_init_get_column_index(info, i))
                .collect();
            let scan = F::start(bound, &columns)?;
            duckdb::duckdb_init_set_max_threads(info, F::threads(bound));
            duckdb::duckdb_init_set_init_data(info, Box::into_raw(Box::new(scan)).cast(), Some(free::<F::Scan>));
        }
        Ok(())
    };
    // SAFETY: as above.
    guard(run, |message| unsafe { duckdb::duckdb_init_set_error(info, message.as_ptr()) });
}

unsafe extern "C" fn init_local<F: TableFunction>(info: duckdb::duckdb_init_info) {
    let run = || {
        let local = Box::into_raw(Box::new(F::Local::default()));
        // SAFETY: `info` is valid during the callback; DuckDB frees the box by `free`.
        unsafe { duckdb::duckdb_init_set_init_data(info, local.cast(), Some(free::<F::Local>)) };
        Ok(())
    };
    // SAFETY: as above.
    guard(run, |message| unsafe { duckdb::duckdb_init_set_error(info, message.as_ptr()) });
}

unsafe extern "C" fn next<F: TableFunction>(info: duckdb::duckdb_function_info, output: duckdb::duckdb_data_chunk) {
    let run = || {
        // SAFETY: `init` has set a boxed `F::Scan`, which threads share, and `init_local` a boxed `F::Local`, which
        // only this thread uses. The chunk belongs to this callback and is empty.
        unsafe {
            let scan = duckdb::duckdb_function_get_init_data(info).cast::<F::Scan>().as_ref().ok_or("no scan")?;
            let local = duckdb::duckdb_function_get_local_init_data(info)
                .cast::<F::Local>()
                .as_mut()
                .ok_or("no scan of this thread")?;
            let mut chunk = Chunk { chunk: output, call: PhantomData };
            duckdb::duckdb_data_chunk_set_size(output, 0);
            F::next(scan, local, &mut chunk)
        }
    };
    // SAFETY: `info` is valid during the callback; DuckDB copies the text.
    guard(run, |message| unsafe { duckdb::duckdb_function_set_error(info, message.as_ptr()) });
}

/// A call of a table function while it is being bound.
pub(crate) struct Bind<'a> {
    info: duckdb::duckdb_bind_info,
    call: PhantomData<&'a ()>,
}

impl Bind<'_> {
    /// Returns the parameter with this index. NULL is an error.
    pub(crate) fn parameter(&self, index: usize) -> Result<String> {
        // SAFETY: if there is no such parameter, the result is null, which `text` accepts.
        text(unsafe { duckdb::duckdb_bind_get_parameter(self.info, index as u64) })
            .ok_or_else(|| format!("parameter {} is NULL", index + 1))
    }

    /// Returns the parameter with this name, or `None` if it is missing or NULL.
    pub(crate) fn named(&self, name: &CStr) -> Option<String> {
        // SAFETY: if the parameter is not given, the result is null, which `text` accepts.
        text(unsafe { duckdb::duckdb_bind_get_named_parameter(self.info, name.as_ptr()) })
    }

    /// Declares the next column.
    pub(crate) fn add_column(&self, name: &str, logical: &LogicalType) {
        // SAFETY: DuckDB copies name and type.
        unsafe { duckdb::duckdb_bind_add_result_column(self.info, c_string(name).as_ptr(), logical.0) };
    }
}

/// Returns the text of a value and frees the value. Returns `None` if the value is missing or NULL.
fn text(mut value: duckdb::duckdb_value) -> Option<String> {
    if value.is_null() {
        return None;
    }
    // SAFETY: the value is not null, and is destroyed once; so is the text, after it is copied.
    unsafe {
        let text =
            if duckdb::duckdb_is_null_value(value) { std::ptr::null_mut() } else { duckdb::duckdb_get_varchar(value) };
        let copy = (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned());
        duckdb::duckdb_free(text.cast());
        duckdb::duckdb_destroy_value(&raw mut value);
        copy
    }
}

/// A chunk of rows for DuckDB, with one vector per requested column.
pub(crate) struct Chunk<'a> {
    chunk: duckdb::duckdb_data_chunk,
    call: PhantomData<&'a mut ()>,
}

impl Chunk<'_> {
    /// Returns the maximum number of rows in a chunk.
    pub(crate) fn capacity() -> usize {
        // SAFETY: the function has no arguments.
        usize::try_from(unsafe { duckdb::duckdb_vector_size() }).unwrap_or(0)
    }

    /// Returns the vector of a column, which has the declared type and room for [`capacity`](Self::capacity) rows.
    pub(crate) fn vector(&mut self, column: usize) -> Option<Vector<'_>> {
        // SAFETY: the chunk is valid during the callback, and the column index is in range.
        unsafe {
            ((column as u64) < duckdb::duckdb_data_chunk_get_column_count(self.chunk)).then(|| Vector {
                vector: duckdb::duckdb_data_chunk_get_vector(self.chunk, column as u64),
                rows: Self::capacity(),
                chunk: PhantomData,
            })
        }
    }

    /// Sets the number of rows written to the chunk.
    pub(crate) fn set_rows(&mut self, rows: usize) {
        // SAFETY: the chunk is valid during the callback, and the number does not exceed its capacity.
        unsafe { duckdb::duckdb_data_chunk_set_size(self.chunk, rows.min(Self::capacity()) as u64) };
    }
}

/// A column of a chunk, or a part of a column.
pub(crate) struct Vector<'a> {
    vector: duckdb::duckdb_vector,
    rows: usize,
    chunk: PhantomData<&'a mut ()>,
}

impl Vector<'_> {
    /// Returns the capacity of the vector in rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the values as DuckDB stores them.
    ///
    /// # Safety
    /// DuckDB must store values of the vector's type as `T`, and any bytes must be a valid `T`.
    pub(crate) unsafe fn values<T: Copy>(&mut self) -> &mut [T] {
        // SAFETY: the vector is flat, has room for `rows` values, and is borrowed for the lifetime of the slice. DuckDB
        // initializes its memory with zeros or earlier values.
        unsafe { std::slice::from_raw_parts_mut(duckdb::duckdb_vector_get_data(self.vector).cast::<T>(), self.rows) }
    }

    /// Marks the rows with these indices as NULL.
    pub(crate) fn set_null(&mut self, rows: impl Iterator<Item = usize>) {
        // SAFETY: after `ensure_validity_writable`, there is a bit for each row; indices out of range are skipped.
        unsafe {
            duckdb::duckdb_vector_ensure_validity_writable(self.vector);
            let validity = duckdb::duckdb_vector_get_validity(self.vector);
            rows.filter(|row| *row < self.rows)
                .for_each(|row| duckdb::duckdb_validity_set_row_invalid(validity, row as u64));
        }
    }

    /// Copies text or bytes into a row. The vector must contain text or bytes.
    pub(crate) fn set_bytes(&mut self, row: usize, bytes: &[u8]) {
        if row < self.rows {
            // SAFETY: the row is in the vector; DuckDB copies the bytes.
            unsafe {
                duckdb::duckdb_vector_assign_string_element_len(
                    self.vector,
                    row as u64,
                    bytes.as_ptr().cast(),
                    bytes.len() as u64,
                )
            };
        }
    }

    /// Returns the vector of a struct member.
    pub(crate) fn member(&mut self, index: usize) -> Vector<'_> {
        // SAFETY: the vector is a struct vector whose type has this member; the caller created the type.
        let vector = unsafe { duckdb::duckdb_struct_vector_get_child(self.vector, index as u64) };
        Vector { vector, rows: self.rows, chunk: PhantomData }
    }

    /// Returns the number of list elements written so far.
    pub(crate) fn list_length(&self) -> usize {
        // SAFETY: the vector is a list vector.
        usize::try_from(unsafe { duckdb::duckdb_list_vector_get_size(self.vector) }).unwrap_or(0)
    }

    /// Reserves room for `elements` list elements and returns their vector. Existing elements keep their positions.
    pub(crate) fn elements(&mut self, elements: usize) -> Result<Vector<'_>> {
        // SAFETY: the vector is a list vector; its elements may move, so the child vector is fetched afterwards.
        unsafe {
            if duckdb::duckdb_list_vector_reserve(self.vector, elements as u64) != duckdb::DuckDBSuccess
                || duckdb::duckdb_list_vector_set_size(self.vector, elements as u64) != duckdb::DuckDBSuccess
            {
                return Err(format!("not enough memory for {elements} list elements"));
            }
            Ok(Vector { vector: duckdb::duckdb_list_vector_get_child(self.vector), rows: elements, chunk: PhantomData })
        }
    }
}
