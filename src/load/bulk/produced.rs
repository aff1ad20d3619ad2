//! Rows that are produced here, without the executor, and written into heap tuples in place.

use std::ffi::{CStr, c_char};

use bench_base::error::{SqlError, sqlstate};
use bench_model::rows::{Key, KeySelection, RowColumn, RowWriter, Scene};
use bench_script::Prng;
use pgrx::pg_sys;

use super::batch::BATCH_ROWS;
use super::sink::{BulkRows, Sink};
use crate::driver::session::client_session::Session;
use crate::driver::session::raw;
use crate::driver::session::trap::trap;
use crate::shm::CommandCounters;

/// A transaction's own values, as the server has them.
struct RawScene {
    now_us: i64,
    now_text: *const c_char,
    local_now_us: i64,
}

impl Session {
    /// Produces rows here and puts them into the table, in a transaction of its own. False, with nothing done,
    /// when the table is not a plain one of these columns.
    pub fn insert_produced(
        &mut self,
        rows: &BulkRows,
        keys: &KeySelection,
        columns: &[RowColumn],
        random: &mut Prng,
        counters: &CommandCounters,
    ) -> Result<bool, SqlError> {
        let types: Vec<pg_sys::Oid> = columns.iter().map(type_of).collect();
        let mut sink: Option<Sink> = None;
        let mut scene = RawScene { now_us: 0, now_text: c"".as_ptr(), local_now_us: 0 };
        // SAFETY: the closure holds plain pointers; what it makes lasts until the next command begins,
        // or the trap has rolled everything back.
        unsafe {
            let source = rows.source.as_ptr();
            let (sink, scene, types) = (&raw mut sink, &mut scene, &types[..]);
            trap(|| {
                self.begin(source);
                raw::PushActiveSnapshot(raw::GetTransactionSnapshot());
                if let Some(mut open) = Sink::open(rows) {
                    if !open.table.is_null() && (*open.table).is_heap_of(types) {
                        *sink = Some(open);
                    } else {
                        open.close();
                    }
                }
                let now = pg_sys::Datum::from(raw::GetCurrentTransactionStartTimestamp());
                let none = pg_sys::InvalidOid;
                scene.now_us = now.value() as i64;
                scene.now_text = raw::DirectFunctionCall1Coll(raw::timestamptz_out, none, now).cast_mut_ptr();
                scene.local_now_us =
                    raw::DirectFunctionCall1Coll(raw::timestamptz_timestamp, none, now).value() as i64;
                if (*sink).is_none() {
                    raw::PopActiveSnapshot();
                    self.end(counters);
                }
            })?;
        }
        let Some(mut sink) = sink else { return Ok(false) };
        // SAFETY: a NUL-terminated text that lives until the next command begins.
        let now_text = unsafe { CStr::from_ptr(scene.now_text) }.to_string_lossy().into_owned();
        let local_offset_us = scene.local_now_us - scene.now_us;
        let writer = RowWriter::new(columns, Scene { now_us: scene.now_us, now_text, local_offset_us });
        let writer = match writer {
            Ok(writer) => writer,
            Err(text) => {
                self.abort()?;
                let message = format!("a text of a fixture is too long: {text}");
                return Err(SqlError::new(sqlstate::INTERNAL_ERROR, message));
            }
        };
        let mut tuples = BatchTuples::new(&sink, &writer, columns)?;
        let mut keys = keys.rows(rows.first_id, rows.last_id);
        loop {
            let mut count = 0;
            for key in keys.by_ref().take(BATCH_ROWS) {
                tuples.write(count, &writer, key, random);
                count += 1;
            }
            if count == 0 {
                break;
            }
            // SAFETY: the first `count` slots hold rows; nothing to drop in the trap.
            unsafe {
                let sink = &mut sink;
                trap(|| sink.flush_batch(sink.table, count))?;
            }
        }
        // SAFETY: as above; the transaction ends after the table is closed.
        unsafe {
            let sink = &mut sink;
            trap(|| {
                sink.close();
                raw::PopActiveSnapshot();
                self.end(counters);
            })?;
        }
        Ok(true)
    }
}

/// The rows of a batch as heap tuples that are written in place, one in each of a sink's slots.
struct BatchTuples {
    tuples: Vec<pg_sys::HeapTuple>,
    /// Where a tuple has its values.
    header: usize,
    max_length: usize,
    needs_clock: bool,
}

/// SizeofHeapTupleHeader: where a tuple with NULLs has the bits that say which they are.
const BITS: usize = 23;

/// Where a tuple has its values: MAXALIGN of what is before them.
fn header_of(columns: &[RowColumn]) -> usize {
    let bits = if columns.iter().any(RowColumn::is_null) { columns.len().div_ceil(8) } else { 0 };
    (BITS + bits).next_multiple_of(8)
}

impl BatchTuples {
    fn new(sink: &Sink, writer: &RowWriter, columns: &[RowColumn]) -> Result<Self, SqlError> {
        let max_length = writer.max_length();
        let header = header_of(columns);
        let mut tuples: Vec<pg_sys::HeapTuple> = vec![std::ptr::null_mut(); BATCH_ROWS];
        // SAFETY: a tuple with a header that says how many columns there are and how long it is. Each slot
        // keeps a copy of its own, in one piece (heap_copytuple), which nobody frees or moves while
        // the slot is not cleared.
        unsafe {
            let (tuples, has_variable_width) = (tuples.as_mut_ptr(), writer.has_variable_width());
            trap(|| {
                let size = size_of::<pg_sys::HeapTupleData>() + header + max_length;
                let template: pg_sys::HeapTuple = raw::palloc0(size).cast();
                (*template).t_len = (header + max_length) as u32;
                (*template).t_data = template.add(1).cast();
                (*(*template).t_data).t_hoff = header as u8;
                (*(*template).t_data).t_infomask2 = columns.len() as u16;
                if has_variable_width {
                    (*(*template).t_data).t_infomask = pg_sys::HEAP_HASVARWIDTH as u16;
                }
                if columns.iter().any(RowColumn::is_null) {
                    (*(*template).t_data).t_infomask |= pg_sys::HEAP_HASNULL as u16;
                    let bits = (*template).t_data.cast::<u8>().add(BITS);
                    for (index, _) in columns.iter().enumerate().filter(|(_, column)| !column.is_null()) {
                        *bits.add(index / 8) |= 1 << (index % 8);
                    }
                }
                for index in 0..BATCH_ROWS {
                    let mut should_free = false;
                    let slot = (*sink.table).slot(index);
                    raw::ExecForceStoreHeapTuple(template, slot, false);
                    *tuples.add(index) = raw::ExecFetchSlotHeapTuple(slot, false, &raw mut should_free);
                }
            })?;
        }
        let needs_clock = writer.needs_clock();
        let mut tuples = Self { tuples, header, max_length, needs_clock };
        (0..BATCH_ROWS).for_each(|index| writer.prepare(tuples.values(index)));
        Ok(tuples)
    }

    /// Where a tuple's values are.
    fn values(&mut self, index: usize) -> &mut [u8] {
        // SAFETY: the tuple has this much room after its header, which ends at an alignment of eight; the slice is
        // gone before another one of the same tuple is made.
        unsafe {
            let start = (*self.tuples[index]).t_data.cast::<u8>().add(self.header);
            std::slice::from_raw_parts_mut(start, self.max_length)
        }
    }

    fn write(&mut self, index: usize, writer: &RowWriter, key: Key, random: &mut Prng) {
        let clock_us = if self.needs_clock { clock_us() } else { 0 };
        let length = writer.write(key, clock_us, random, self.values(index));
        // SAFETY: a live tuple.
        unsafe { (*self.tuples[index]).t_len = (self.header + length) as u32 };
    }
}

/// The wall clock in microseconds since 2000, as GetCurrentTimestamp has it.
fn clock_us() -> i64 {
    const EPOCH_SECS: i64 = 946_684_800;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a valid pointer; CLOCK_REALTIME is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut time) };
    (time.tv_sec - EPOCH_SECS) * 1_000_000 + time.tv_nsec / 1000
}

fn type_of(column: &RowColumn) -> pg_sys::Oid {
    match column {
        RowColumn::Id4
        | RowColumn::Group4(_)
        | RowColumn::Constant4(_)
        | RowColumn::Uniform4(..)
        | RowColumn::Null4 => pg_sys::INT4OID,
        RowColumn::Id8 | RowColumn::Constant8(_) => pg_sys::INT8OID,
        RowColumn::Text(_) | RowColumn::IdText(_) | RowColumn::RandomHex | RowColumn::NowText => {
            pg_sys::TEXTOID
        }
        RowColumn::Blanks(_) => pg_sys::BPCHAROID,
        RowColumn::Clock | RowColumn::Now | RowColumn::NullTime => pg_sys::TIMESTAMPTZOID,
        RowColumn::LocalClock | RowColumn::LocalClockSeconds => pg_sys::TIMESTAMPOID,
        RowColumn::ConstantDecimal(..) => pg_sys::NUMERICOID,
        RowColumn::Derived(derived) if derived.is_integer() => pg_sys::INT4OID,
        RowColumn::Derived(derived) if derived.is_decimal() => pg_sys::NUMERICOID,
        RowColumn::Derived(_) => pg_sys::TEXTOID,
    }
}
