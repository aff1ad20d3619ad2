//! The words of full text searches.

use pgrx::pg_sys;

use super::columns::{resolved, source};
use super::operators::{bare, is_a, nth, type_name};
use super::walk::Walk;
use super::{How, Wrap};
use crate::server::query::list_length;

impl Walk {
    /// `vector @@ to_tsquery($1)` and its like, also where the query is a function in FROM: the parameter's value is made of the
    /// vector's words. Whether it is that.
    ///
    /// # Safety
    /// Live expressions of the scope.
    pub(super) unsafe fn words(
        &mut self,
        scope: usize,
        vector: *mut pg_sys::Node,
        query: *mut pg_sys::Node,
    ) -> bool {
        // SAFETY: by the caller.
        unsafe {
            let parameter = match self.parameter(query) {
                Some(parameter) => Some(parameter),
                None => resolved(self, scope, query).and_then(|(_, node)| self.searched(bare(node))),
            };
            let (Some(parameter), Some(mut source)) = (parameter, source(self, scope, vector)) else {
                return false;
            };
            source.column = None;
            // A text is made a vector by the operator.
            if source.type_oid != pg_sys::TSVECTOROID {
                source.expression =
                    format!("pg_catalog.to_tsvector(({})::pg_catalog.text)", source.expression);
            }
            if self.found.parameters[parameter].type_oid == pg_sys::TSQUERYOID.to_u32() {
                let sql_type = type_name(pg_sys::TEXTOID);
                source.wrap = Some(Wrap {
                    before: "(".to_owned(),
                    after: ")::pg_catalog.tsquery".to_owned(),
                    sql_type,
                });
            }
            self.meet(parameter, source, How::Words, 0);
            true
        }
    }

    /// The text that a function makes a tsquery of: its last argument.
    ///
    /// # Safety
    /// A live expression.
    unsafe fn searched(&self, node: *mut pg_sys::Node) -> Option<usize> {
        // SAFETY: by the caller; a tag says what a node is.
        unsafe {
            if !is_a(node, pg_sys::NodeTag::T_FuncExpr) {
                return None;
            }
            let call: *mut pg_sys::FuncExpr = node.cast();
            let count = list_length((*call).args);
            if (*call).funcresulttype != pg_sys::TSQUERYOID || !(1..=2).contains(&count) {
                return None;
            }
            self.parameter(nth((*call).args, count as usize - 1))
        }
    }
}
