//! Filling a table by the server's bulk path: rows go into it by the batch, a page at a time, instead of one by
//! one through an INSERT's own plan node.

mod batch;
#[cfg_attr(not(since_16), path = "extension_of_15.rs")]
mod extension;
mod free_pages;
mod produced;

use std::cell::Cell;
use std::ffi::{CStr, c_char};

use pgrx::pg_sys;

use crate::driver::session::analysis::error;
use crate::driver::session::raw;
use crate::server::query::list_length;
use crate::shm::Counter;
use batch::{BATCH_ROWS, Batch, forget_expressions};

/// Bytes after which the rows that are held back are enough: MAX_BUFFERED_BYTES of copyfrom.c.
const BATCH_BYTES: usize = 65_535;

/// Partitions that the limits are multiplied by, at most: scattered over many, a thousand rows are one for each.
const MANY: usize = 64;

/// The ids of a transaction, and where it counts the rows that are in the table.
pub struct BulkRows<'a> {
    pub schema: &'a CStr,
    pub table: &'a CStr,
    /// `INSERT INTO schema.table SELECT …`, where $1 and $2 are the first and the last id.
    pub source: &'a CStr,
    pub first_id: i64,
    pub last_id: i64,
    pub done: &'a Counter,
}

/// An open table and the rows that it has not taken yet. Plain data, to be held inside a trap: the
/// transaction's end releases what it holds, if [`Sink::close`] has not.
pub struct Sink {
    /// The table, or NULL for one whose rows go to its partitions.
    pub table: *mut Batch,
    relation: pg_sys::Relation,
    result: *mut pg_sys::ResultRelInfo,
    routing: Option<Routing>,
    /// All that have been opened, in a list.
    batches: *mut Batch,
    /// How many these are.
    partitions: usize,
    estate: *mut pg_sys::EState,
    ring: pg_sys::BulkInsertState,
    /// The relation that the ring holds a page of.
    flushed: *mut Batch,
    /// Rows and bytes that are held back.
    rows: usize,
    bytes: usize,
    /// Where the sink lives.
    context: pg_sys::MemoryContext,
    /// What a batch allocates.
    scratch: pg_sys::MemoryContext,
    /// Rows that the table has taken.
    done: *const Counter,
}

impl Sink {
    /// Opens a table. `None` for one that takes rows only by INSERT.
    ///
    /// # Safety
    /// Inside a trap and a transaction, in a memory context that lasts until [`Sink::close`], as `rows` does.
    pub unsafe fn open(rows: &BulkRows) -> Option<Self> {
        // SAFETY: by the caller; a relation that is open has all that its entry in the relation
        // cache points to.
        unsafe {
            let (schema, table) = (rows.schema.as_ptr().cast_mut(), rows.table.as_ptr().cast_mut());
            let name = raw::makeRangeVar(schema, table, -1);
            let relation = raw::table_openrv(name, pg_sys::RowExclusiveLock as i32);
            let is_partitioned = (*(*relation).rd_rel).relkind == pg_sys::RELKIND_PARTITIONED_TABLE as c_char;
            if !is_partitioned && !takes_batches(relation) {
                raw::table_close(relation, pg_sys::NoLock as i32);
                return None;
            }
            let result: *mut pg_sys::ResultRelInfo = raw::palloc0(size_of::<pg_sys::ResultRelInfo>()).cast();
            (*result).type_ = pg_sys::NodeTag::T_ResultRelInfo;
            // Outside of any range table, as for a partition that rows are routed to.
            raw::InitResultRelInfo(result, relation, 0, std::ptr::null_mut(), 0);
            let estate = raw::CreateExecutorState();
            let mut sink = Self {
                table: std::ptr::null_mut(),
                relation,
                result,
                routing: None,
                batches: std::ptr::null_mut(),
                partitions: 0,
                estate,
                ring: ring(),
                flushed: std::ptr::null_mut(),
                rows: 0,
                bytes: 0,
                context: pg_sys::CurrentMemoryContext,
                scratch: raw::AllocSetContextCreateInternal(
                    pg_sys::CurrentMemoryContext,
                    c"pgbench_ext batch".as_ptr(),
                    pg_sys::ALLOCSET_DEFAULT_MINSIZE as usize,
                    pg_sys::ALLOCSET_DEFAULT_INITSIZE as usize,
                    pg_sys::ALLOCSET_DEFAULT_MAXSIZE as usize,
                ),
                done: rows.done,
            };
            if is_partitioned {
                sink.routing = Some(Routing::new(relation, result, estate));
            } else {
                raw::ExecOpenIndices(result, false);
                sink.table = sink.add(result);
            }
            Some(sink)
        }
    }

    /// A batch for a table or a partition.
    ///
    /// # Safety
    /// As `open`, with the relation of an open result.
    unsafe fn add(&mut self, result: *mut pg_sys::ResultRelInfo) -> *mut Batch {
        // SAFETY: by the caller. Whoever sees the pointer in the result put it there.
        unsafe {
            let context = pg_sys::CurrentMemoryContext;
            pg_sys::CurrentMemoryContext = self.context;
            self.batches = Batch::new(result, self.batches);
            self.partitions += 1;
            pg_sys::CurrentMemoryContext = context;
            (*result).ri_CopyMultiInsertBuffer = self.batches.cast();
            self.batches
        }
    }

    /// Whether what a plan returns are the table's columns, dropped ones among them: ExecCheckPlanOutput of
    /// executor/nodeModifyTable.c.
    ///
    /// # Safety
    /// Inside a trap; a plan's target list.
    pub unsafe fn takes_columns(&self, targets: *mut pg_sys::List) -> bool {
        // SAFETY: by the caller; the table is open.
        unsafe {
            list_length(targets) == (*(*self.relation).rd_att).natts
                && (0..list_length(targets) as usize).all(|index| {
                    let target: *mut pg_sys::TargetEntry = (*(*targets).elements.add(index)).ptr_value.cast();
                    let of_type = raw::get_atttype(self.oid(), index as i16 + 1);
                    // A dropped column has no type, and NULLs.
                    !(*target).resjunk
                        && (of_type == pg_sys::InvalidOid || of_type == raw::exprType((*target).expr.cast()))
                })
        }
    }

    /// The table's own OID.
    pub fn oid(&self) -> pg_sys::Oid {
        // SAFETY: the table is open.
        unsafe { (*self.relation).rd_id }
    }

    /// Takes a row of the table's columns, in their order and of their types.
    ///
    /// # Safety
    /// Inside a trap; `row` is a slot of such a row.
    pub unsafe fn take(&mut self, row: *mut pg_sys::TupleTableSlot) {
        // SAFETY: by the caller.
        unsafe {
            forget_expressions(self.estate);
            let (batch, row) = match &self.routing {
                None => (self.table, row),
                Some(routing) => {
                    let (partition, row) = routing.find(self.result, row);
                    let known: *mut Batch = (*partition).ri_CopyMultiInsertBuffer.cast();
                    (if known.is_null() { self.add_partition(partition) } else { known }, row)
                }
            };
            if (*batch).has_constraints {
                raw::ExecConstraints((*batch).result, row, self.estate);
            }
            self.bytes += (*batch).push(row);
            self.rows += 1;
            let many = self.partitions.clamp(1, MANY);
            if (*batch).count == BATCH_ROWS
                || self.rows >= BATCH_ROWS * many
                || self.bytes >= BATCH_BYTES * many
            {
                self.flush();
            }
        }
    }

    /// # Safety
    /// As `add`.
    unsafe fn add_partition(&mut self, partition: *mut pg_sys::ResultRelInfo) -> *mut Batch {
        // SAFETY: by the caller.
        unsafe {
            if !takes_batches((*partition).ri_RelationDesc) {
                // Nothing has this when the load begins: see `catalog::tables_for_insert`.
                error(
                    pgrx::PgSqlErrorCode::ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
                    c"a partition has been changed while it is being loaded",
                );
            }
            self.add(partition)
        }
    }

    /// Puts all rows that are held back into their tables.
    ///
    /// # Safety
    /// Inside a trap.
    unsafe fn flush(&mut self) {
        // SAFETY: by the caller.
        unsafe {
            let mut batch = self.batches;
            while !batch.is_null() {
                let count = (*batch).count;
                self.flush_batch(batch, count);
                (*batch).clear(count);
                batch = (*batch).next;
            }
            self.rows = 0;
            self.bytes = 0;
        }
    }

    /// Puts the rows of a table's first `count` slots into it and its indexes.
    ///
    /// # Safety
    /// Inside a trap; those slots hold rows.
    pub unsafe fn flush_batch(&mut self, batch: *mut Batch, count: usize) {
        // SAFETY: by the caller. The insertion may leak memory, hence a context for it.
        unsafe {
            if count == 0 {
                return;
            }
            if self.flushed != batch {
                raw::ReleaseBulkInsertStatePin(self.ring);
                self.flushed = batch;
            }
            let context = pg_sys::CurrentMemoryContext;
            pg_sys::CurrentMemoryContext = self.scratch;
            (*batch).insert(count, self.ring, self.estate);
            pg_sys::CurrentMemoryContext = context;
            raw::MemoryContextReset(self.scratch);
            (*self.done).add(count as u64);
        }
    }

    /// Puts what is left into the table and closes it; its lock stays until the transaction ends.
    ///
    /// # Safety
    /// Inside a trap, before the transaction ends.
    pub unsafe fn close(&mut self) {
        // SAFETY: by the caller; the order is that of the end of CopyFrom.
        unsafe {
            self.flush();
            raw::ReleaseBulkInsertStatePin(self.ring);
            let mut batch = self.batches;
            while !batch.is_null() {
                (*batch).finish();
                batch = (*batch).next;
            }
            // Slots that the routing made refer to descriptions of partitions.
            raw::ExecResetTupleTable((*self.estate).es_tupleTable, false);
            match &self.routing {
                Some(routing) => routing.close(),
                None => raw::ExecCloseIndices(self.result),
            }
            raw::FreeExecutorState(self.estate);
            raw::table_close(self.relation, pg_sys::NoLock as i32);
        }
    }
}

/// The ring of buffers that the process fills tables through. One for all transactions: a new one
/// would take its buffers out of those that others use, 16 MB of them.
///
/// # Safety
/// Inside a trap.
unsafe fn ring() -> pg_sys::BulkInsertState {
    thread_local! {
        static RING: Cell<pg_sys::BulkInsertState> = const { Cell::new(std::ptr::null_mut()) };
    }
    // SAFETY: by the caller. What is allocated lasts as long as the process; between transactions
    // it holds no buffer (ReleaseBulkInsertStatePin in access/heap/heapam.c), and after an error
    // the process fills no more tables.
    unsafe {
        if RING.get().is_null() {
            let context = pg_sys::CurrentMemoryContext;
            pg_sys::CurrentMemoryContext = pg_sys::TopMemoryContext;
            RING.set(raw::GetBulkInsertState());
            pg_sys::CurrentMemoryContext = context;
        }
        RING.get()
    }
}

/// Whether a table can be filled by the batch: nothing comes between a row and its place.
///
/// # Safety
/// An open relation.
unsafe fn takes_batches(relation: pg_sys::Relation) -> bool {
    // SAFETY: by the caller.
    unsafe {
        let class = (*relation).rd_rel;
        let triggers = (*relation).trigdesc;
        let constraints = (*(*relation).rd_att).constr;
        let fires = !triggers.is_null()
            && ((*triggers).trig_insert_before_row
                || (*triggers).trig_insert_after_row
                || (*triggers).trig_insert_before_statement
                || (*triggers).trig_insert_after_statement);
        (*class).relkind == pg_sys::RELKIND_RELATION as c_char
            && !fires
            && (*relation).rd_rules.is_null()
            && !(*class).relforcerowsecurity
            && (constraints.is_null() || !(*constraints).has_generated_stored)
            && (*(*relation).rd_tableam).multi_insert.is_some()
    }
}

// From a row to its partition, as COPY FROM finds it (commands/copyfrom.c).

/// The way to a table's partitions. Plain data, as a sink.
pub struct Routing {
    state: *mut pg_sys::ModifyTableState,
    partitions: *mut pg_sys::PartitionTupleRouting,
}

impl Routing {
    /// # Safety
    /// Inside a trap, with the table open; all live as long as the routing.
    pub unsafe fn new(
        relation: pg_sys::Relation,
        result: *mut pg_sys::ResultRelInfo,
        estate: *mut pg_sys::EState,
    ) -> Self {
        // SAFETY: by the caller. The state has what the routing looks for, and no plan.
        unsafe {
            let state: *mut pg_sys::ModifyTableState =
                raw::palloc0(size_of::<pg_sys::ModifyTableState>()).cast();
            (*state).ps.type_ = pg_sys::NodeTag::T_ModifyTableState;
            (*state).ps.state = estate;
            (*state).operation = pg_sys::CmdType::CMD_INSERT;
            (*state).mt_nrels = 1;
            (*state).resultRelInfo = result;
            (*state).rootResultRelInfo = result;
            Self { state, partitions: raw::ExecSetupPartitionTupleRouting(estate, relation) }
        }
    }

    /// A row's partition, and the row as the partition has it, whose columns may stand in another order.
    ///
    /// # Safety
    /// Inside a trap; `row` is a slot with a row of the whole table.
    pub unsafe fn find(
        &self,
        result: *mut pg_sys::ResultRelInfo,
        row: *mut pg_sys::TupleTableSlot,
    ) -> (*mut pg_sys::ResultRelInfo, *mut pg_sys::TupleTableSlot) {
        // SAFETY: by the caller.
        unsafe {
            let estate = (*self.state).ps.state;
            let partition = raw::ExecFindPartition(self.state, result, self.partitions, row, estate);
            #[cfg(not(since_16))]
            let map = (*partition).ri_RootToPartitionMap;
            #[cfg(since_16)]
            let map = raw::ExecGetRootToChildMap(partition, estate);
            let row = if map.is_null() {
                row
            } else {
                raw::execute_attr_map_slot((*map).attrMap, row, (*partition).ri_PartitionTupleSlot)
            };
            (partition, row)
        }
    }

    /// Closes the partitions and their indexes.
    ///
    /// # Safety
    /// Inside a trap, once.
    pub unsafe fn close(&self) {
        // SAFETY: by the caller.
        unsafe { raw::ExecCleanupTupleRouting(self.state, self.partitions) }
    }
}
