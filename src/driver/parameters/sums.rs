//! Parameters in sums and differences.

use pgrx::pg_sys;

use super::columns::{deparse, source};
use super::operators::{is_without_variables, name_of, nth, type_name};
use super::walk::Walk;
use super::{How, Wrap};
use crate::server::query::list_length;

impl Walk {
    /// A sum or a difference of a parameter and a value that is the same for all rows, which may be another parameter.
    ///
    /// # Safety
    /// Live expressions of the scope.
    pub(super) unsafe fn shift(
        &mut self,
        scope: usize,
        left: *mut pg_sys::Node,
        sum: *mut pg_sys::OpExpr,
        how: How,
    ) {
        // SAFETY: by the caller.
        unsafe {
            let sign = name_of((*sum).opno);
            if list_length((*sum).args) != 2 || (sign != "-" && sign != "+") {
                return;
            }
            let (base, shift) = (nth((*sum).args, 0), nth((*sum).args, 1));
            let (before, after, met) = match (self.parameter(base), self.parameter(shift)) {
                // x > $1 + y
                (Some(base), met) if met.is_some() || is_without_variables(shift) => {
                    let shift = match met {
                        Some(place) => format!("${}", place + 1),
                        None => deparse(shift, pg_sys::InvalidOid),
                    };
                    let sign = if sign == "-" { "+" } else { "-" };
                    ("((".to_owned(), format!(") {sign} ({shift}))"), base)
                }
                // x > y - $1
                (None, Some(met)) if is_without_variables(base) => {
                    let base = deparse(base, pg_sys::InvalidOid);
                    match sign.as_str() {
                        "-" => (format!("(({base}) - ("), "))".to_owned(), met),
                        _ => ("((".to_owned(), format!(") - ({base}))"), met),
                    }
                }
                _ => return,
            };
            if let Some(mut source) = source(self, scope, left) {
                source.wrap = Some(Wrap { before, after, sql_type: type_name(source.type_oid) });
                source.column = None;
                self.meet(met, source, how, 0);
            }
        }
    }
}
