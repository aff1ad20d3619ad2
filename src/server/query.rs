//! Users' queries, whose columns are not known in advance, and the server's parser and lists.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use bench_base::error::UserError;
use pgrx::spi::SpiClient;
use pgrx::{Spi, pg_guard, pg_sys};

use crate::error::internal;

/// A column of a query's result.
#[derive(Clone, Debug)]
pub struct ResultColumn {
    pub name: String,
    pub type_oid: pg_sys::Oid,
}

/// The result of the server's analysis of a query.
pub struct Described {
    pub columns: Vec<ResultColumn>,
    /// Whether it inserts, updates, deletes or locks rows.
    pub writes: bool,
}

/// Analyzes one SELECT with parameters of these types, without executing it.
///
/// # Errors
/// Those of the server are raised.
pub fn describe(query: &str, parameters: &[pg_sys::Oid]) -> Result<Described, UserError> {
    let query = CString::new(query).map_err(|e| internal(e.to_string()))?;
    let mut types = parameters.to_vec();
    let describe = |_: &SpiClient| {
        // SAFETY: inside an SPI connection, which frees the plan; SPI_prepare copies as many types as it is told, and returns
        // NULL or a plan, whose list of sources has as many elements as it says, each with the analysed statements and the
        // result's description.
        unsafe {
            let plan = pg_sys::SPI_prepare(query.as_ptr(), types.len() as c_int, types.as_mut_ptr());
            if plan.is_null() {
                let code = pg_sys::SPI_result;
                return Err(internal(format!("unexpected SPI result: {code}")));
            }
            let sources = pg_sys::SPI_plan_get_plan_sources(plan);
            if sources.is_null() || (*sources).length != 1 {
                return Err(internal("a query of several statements"));
            }
            let source: *mut pg_sys::CachedPlanSource = (*(*sources).elements).ptr_value.cast();
            let queries = (*source).query_list;
            let length = if queries.is_null() { 0 } else { (*queries).length as usize };
            let mut writes = length != 1;
            for at in 0..length {
                let analysed: *mut pg_sys::Query = (*(*queries).elements.add(at)).ptr_value.cast();
                writes |= (*analysed).commandType != pg_sys::CmdType::CMD_SELECT
                    || (*analysed).hasModifyingCTE
                    || !(*analysed).rowMarks.is_null();
            }
            Ok(Described { columns: columns((*source).resultDesc), writes })
        }
    };
    Spi::connect(describe)
}

/// A row of a query's result.
pub struct ResultRow {
    tuple: pg_sys::HeapTuple,
    description: pg_sys::TupleDesc,
}

impl ResultRow {
    /// Returns a column's value as its type's output function writes it, in the server's encoding, independent of this session's
    /// settings; `None` for NULL.
    pub fn text(&self, column: usize) -> Option<&CStr> {
        let _portable = PortableOutput::new();
        // SAFETY: tuple and description are of the row that `receive` is at, whose memory is kept until it has been seen;
        // SPI_getvalue returns NULL or a palloc'd text, there too.
        unsafe {
            let text = pg_sys::SPI_getvalue(self.tuple, self.description, column as i32 + 1);
            (!text.is_null()).then(|| CStr::from_ptr(text))
        }
    }
}

/// While it exists, output functions write values as postgres_fdw sends them (set_transmission_modes): dates and times in ISO
/// 8601 with their UTC offset, intervals in PostgreSQL's default style, and floating-point numbers with all digits.
struct PortableOutput {
    date_style: c_int,
    interval_style: c_int,
    extra_float_digits: c_int,
}

impl PortableOutput {
    fn new() -> Self {
        // SAFETY: variables of the process's, which the settings' own functions do not touch before this is dropped.
        unsafe {
            let before = Self {
                date_style: pg_sys::DateStyle,
                interval_style: pg_sys::IntervalStyle,
                extra_float_digits: pg_sys::extra_float_digits,
            };
            pg_sys::DateStyle = pg_sys::USE_ISO_DATES as c_int;
            pg_sys::IntervalStyle = pg_sys::INTSTYLE_POSTGRES as c_int;
            pg_sys::extra_float_digits = pg_sys::extra_float_digits.max(3);
            before
        }
    }
}

impl Drop for PortableOutput {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe {
            pg_sys::DateStyle = self.date_style;
            pg_sys::IntervalStyle = self.interval_style;
            pg_sys::extra_float_digits = self.extra_float_digits;
        }
    }
}

/// A receiver of rows that passes each row on without keeping it.
#[repr(C)]
struct RowReceiver<'a> {
    /// The first field, because the server takes a pointer to this struct for one to a DestReceiver.
    methods: pg_sys::DestReceiver,
    begin: &'a mut dyn FnMut(Vec<ResultColumn>) -> Result<(), UserError>,
    row: &'a mut dyn FnMut(&ResultRow) -> Result<bool, UserError>,
    description: pg_sys::TupleDesc,
    /// Memory for one row.
    scratch: pg_sys::MemoryContext,
    error: Option<UserError>,
}

#[pg_guard]
unsafe extern "C-unwind" fn start_up(
    receiver: *mut pg_sys::DestReceiver,
    _operation: c_int,
    description: pg_sys::TupleDesc,
) {
    // SAFETY: the server passes the receiver that `read` has given to it, which is the beginning of one of these and which
    // nothing else refers to meanwhile; the description lasts as long as the execution.
    unsafe {
        let receiver = &mut *receiver.cast::<RowReceiver>();
        receiver.description = description;
        receiver.error = (receiver.begin)(columns(description)).err();
    }
}

#[pg_guard]
unsafe extern "C-unwind" fn receive(
    slot: *mut pg_sys::TupleTableSlot,
    receiver: *mut pg_sys::DestReceiver,
) -> bool {
    // SAFETY: as in `start_up`; a slot with a row. All allocations are in a memory context of its own, which is then reset.
    unsafe {
        let receiver = &mut *receiver.cast::<RowReceiver>();
        if receiver.error.is_some() {
            return false;
        }
        let before = pg_sys::MemoryContextSwitchTo(receiver.scratch);
        let mut is_own = false;
        let tuple = pg_sys::ExecFetchSlotHeapTuple(slot, false, &raw mut is_own);
        let result = (receiver.row)(&ResultRow { tuple, description: receiver.description });
        pg_sys::MemoryContextSwitchTo(before);
        pg_sys::MemoryContextReset(receiver.scratch);
        result.unwrap_or_else(|error| {
            receiver.error = Some(error);
            false
        })
    }
}

unsafe extern "C-unwind" fn nothing_to_do(_receiver: *mut pg_sys::DestReceiver) {}

/// As [`read`], for known columns.
///
/// # Errors
/// Those of `row`; the server's are raised.
pub fn each_row(
    query: &str,
    row: impl FnMut(&ResultRow) -> Result<bool, UserError>,
) -> Result<(), UserError> {
    read(query, |_| Ok(()), row)
}

/// Reads a query's rows as a read-only function does, with the latest snapshot, which includes what workers have committed.
/// `begin` receives the columns; `row` returns whether to continue.
///
/// # Errors
/// Those of the closures; the server's are raised.
pub fn read(
    query: &str,
    mut begin: impl FnMut(Vec<ResultColumn>) -> Result<(), UserError>,
    mut row: impl FnMut(&ResultRow) -> Result<bool, UserError>,
) -> Result<(), UserError> {
    let query = CString::new(query).map_err(|e| internal(e.to_string()))?;
    // SAFETY: inside a transaction; popped below, or by the abort after an error.
    unsafe { pg_sys::PushActiveSnapshot(pg_sys::GetLatestSnapshot()) };
    let execute = |_: &SpiClient| {
        // SAFETY: inside an SPI connection, which frees plan and memory context where an error leaves them. The receiver is
        // only used while it is executed, through its methods, and options of zeroes are valid.
        unsafe {
            let plan = pg_sys::SPI_prepare(query.as_ptr(), 0, std::ptr::null_mut());
            if plan.is_null() || !pg_sys::SPI_is_cursor_plan(plan) {
                return Err(internal("a query that returns no rows"));
            }
            let mut receiver = RowReceiver {
                methods: pg_sys::DestReceiver {
                    receiveSlot: Some(receive),
                    rStartup: Some(start_up),
                    rShutdown: Some(nothing_to_do),
                    rDestroy: Some(nothing_to_do),
                    // With DestNone, SPI would report that there are no rows.
                    mydest: pg_sys::CommandDest::DestTuplestore,
                },
                begin: &mut begin,
                row: &mut row,
                description: std::ptr::null_mut(),
                scratch: pg_sys::AllocSetContextCreateInternal(
                    pg_sys::CurrentMemoryContext,
                    c"pgbench_ext row".as_ptr(),
                    pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                    pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                    pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
                ),
                error: None,
            };
            let options = pg_sys::SPIExecuteOptions {
                read_only: true,
                must_return_tuples: true,
                dest: (&raw mut receiver).cast(),
                ..Default::default()
            };
            let code = pg_sys::SPI_execute_plan_extended(plan, &raw const options);
            match receiver.error {
                Some(error) => Err(error),
                None if code == pg_sys::SPI_OK_SELECT as c_int => Ok(()),
                None => Err(internal(format!("unexpected SPI result: {code}"))),
            }
        }
    };
    let result = Spi::connect(execute);
    // SAFETY: the one that was pushed above.
    unsafe { pg_sys::PopActiveSnapshot() };
    result
}

/// # Safety
/// NULL or a valid description.
pub(super) unsafe fn columns(description: pg_sys::TupleDesc) -> Vec<ResultColumn> {
    // SAFETY: the caller vouches for it; a description has as many attributes as it says.
    unsafe {
        if description.is_null() {
            return Vec::new();
        }
        (1..=(*description).natts)
            .map(|number| {
                let name = pg_sys::SPI_fname(description, number);
                ResultColumn {
                    name: CStr::from_ptr(name).to_string_lossy().into_owned(),
                    type_oid: pg_sys::SPI_gettypeid(description, number),
                }
            })
            .collect()
    }
}

unsafe extern "C-unwind" {
    fn pg_parse_query(text: *const c_char) -> *mut pg_sys::List;
    fn geterrposition() -> c_int;
    fn errposition(position: c_int) -> c_int;
    fn internalerrposition(position: c_int) -> c_int;
    fn internalerrquery(text: *const c_char) -> c_int;
}

/// Runs `work`; error positions refer to `text`, not to the session's statement.
pub fn in_text<T>(text: &CStr, work: impl FnOnce() -> T) -> T {
    /// Restores the stack of callbacks, also after an error.
    struct RestoreOnDrop(*mut pg_sys::ErrorContextCallback);
    impl Drop for RestoreOnDrop {
        fn drop(&mut self) {
            // SAFETY: the server's own global, back to what it was before this call, whose frames are alive.
            unsafe { pg_sys::error_context_stack = self.0 };
        }
    }
    /// Makes an error's position an internal one, like _SPI_error_callback (executor/spi.c).
    unsafe extern "C-unwind" fn move_position(text: *mut c_void) {
        // SAFETY: an error is being reported within `in_text`, whose text this is.
        unsafe {
            let position = geterrposition();
            if position > 0 {
                errposition(0);
                internalerrposition(position);
                internalerrquery(text.cast());
            }
        }
    }
    // SAFETY: reads the server's own global.
    let previous = unsafe { pg_sys::error_context_stack };
    let arg = text.as_ptr().cast_mut().cast();
    let mut entry = pg_sys::ErrorContextCallback { previous, callback: Some(move_position), arg };
    let _restore = RestoreOnDrop(previous);
    // SAFETY: the entry is in this frame, and removed before that ends.
    unsafe { pg_sys::error_context_stack = &raw mut entry };
    work()
}

/// Parses a text into raw statements, in the current memory context.
///
/// # Errors
/// The parser's are raised, with positions in this text.
pub fn parse(text: &CStr) -> *mut pg_sys::List {
    // SAFETY: a NUL-terminated text.
    in_text(text, || unsafe { pg_sys::ffi::pg_guard_ffi_boundary(|| pg_parse_query(text.as_ptr())) })
}

/// Whether a text is one SELECT, without INTO.
///
/// # Errors
/// The parser's own errors are raised.
pub fn is_one_select(query: &str) -> Result<bool, UserError> {
    let text = CString::new(query).map_err(|e| internal(e.to_string()))?;
    // SAFETY: a NUL-terminated text; the parser's list has one element at least where its length says so.
    Ok(unsafe {
        let statements = parse(&text);
        !statements.is_null() && (*statements).length == 1 && {
            let statement: *mut pg_sys::RawStmt = (*(*statements).elements).ptr_value.cast();
            let node = (*statement).stmt;
            (*node).type_ == pg_sys::NodeTag::T_SelectStmt
                && (*node.cast::<pg_sys::SelectStmt>()).intoClause.is_null()
        }
    })
}

/// The names in a CREATE INDEX.
pub struct NamedIndex {
    pub name: String,
    /// Not qualified.
    pub table: String,
}

/// Parses a CREATE INDEX; `None` unless the text is one, not CONCURRENTLY, with a name, and on an unqualified table.
///
/// # Errors
/// The parser's own errors are raised.
pub fn named_index(text: &str) -> Result<Option<NamedIndex>, UserError> {
    let text = CString::new(text).map_err(|e| internal(e.to_string()))?;
    let name = |name: *const c_char| {
        // SAFETY: NUL-terminated by the parser, in the current memory context, or NULL.
        (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    };
    // SAFETY: a NUL-terminated text; the parser's list has one element at least where its length says so, and a node is of the
    // type that its tag says; an IndexStmt of the grammar has a relation.
    Ok(unsafe {
        let statements = parse(&text);
        if statements.is_null() || (*statements).length != 1 {
            return Ok(None);
        }
        let statement: *mut pg_sys::RawStmt = (*(*statements).elements).ptr_value.cast();
        let node = (*statement).stmt;
        if (*node).type_ != pg_sys::NodeTag::T_IndexStmt {
            return Ok(None);
        }
        let index: *mut pg_sys::IndexStmt = node.cast();
        let relation = (*index).relation;
        if !(*relation).schemaname.is_null() || (*index).concurrent {
            return Ok(None);
        }
        name((*index).idxname).zip(name((*relation).relname)).map(|(name, table)| NamedIndex { name, table })
    })
}

/// # Safety
/// NULL or a live list.
pub unsafe fn list_length(list: *mut pg_sys::List) -> i32 {
    // SAFETY: by the caller.
    if list.is_null() { 0 } else { unsafe { (*list).length } }
}

/// # Safety
/// A live list of pointers with at least one element.
pub unsafe fn list_first(list: *mut pg_sys::List) -> *mut std::ffi::c_void {
    // SAFETY: by the caller.
    unsafe { (*(*list).elements).ptr_value }
}
