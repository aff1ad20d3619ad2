//! From a row to its partition, as COPY FROM finds it (commands/copyfrom.c).

use pgrx::pg_sys;

use crate::driver::session::raw;

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
