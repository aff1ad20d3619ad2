//! Fields of JSON documents.

use pgrx::pg_sys;

use super::How;
use super::columns::source;
use super::operators::{bare, is_a, name_of, nth};
use super::walk::{ColumnExpression, Walk};
use crate::server::query::list_length;

/// A field that a row's object has, the same whenever it is asked for, so that its value goes with it.
fn field_of(object: &str) -> String {
    format!(
        "CASE WHEN pg_catalog.jsonb_typeof({object}) OPERATOR(pg_catalog.=) 'object' THEN (SELECT j.key FROM pg_catalog.jsonb_each({object}) AS j \
         ORDER BY pg_catalog.md5(pg_catalog.concat(j.key, ({object})::pg_catalog.text)) LIMIT 1) END"
    )
}

impl Walk {
    /// `document -> $1` and `document ->> $1`: the parameter, and the row's document as jsonb.
    ///
    /// # Safety
    /// A live expression of the scope.
    unsafe fn field(
        &self,
        scope: usize,
        node: *mut pg_sys::Node,
    ) -> Option<(usize, ColumnExpression, String)> {
        // SAFETY: by the caller; a tag says what a node is.
        unsafe {
            if !is_a(node, pg_sys::NodeTag::T_OpExpr) {
                return None;
            }
            let operation: *mut pg_sys::OpExpr = node.cast();
            let name = name_of((*operation).opno);
            if !["->", "->>"].contains(&name.as_str()) || list_length((*operation).args) != 2 {
                return None;
            }
            let parameter = self.parameter(nth((*operation).args, 1))?;
            if self.found.parameters[parameter].type_oid != pg_sys::TEXTOID.to_u32() {
                return None;
            }
            let mut document = source(self, scope, nth((*operation).args, 0))?;
            match document.type_oid {
                pg_sys::JSONBOID => {}
                pg_sys::JSONOID => {
                    document.expression = format!("({})::pg_catalog.jsonb", document.expression)
                }
                _ => return None,
            }
            document.column = None;
            Some((parameter, document, name))
        }
    }

    /// The parameter that names a field is one that the row's document has. Whether it is that.
    ///
    /// # Safety
    /// As [`field`](Self::field).
    pub(super) unsafe fn meets_field(&mut self, scope: usize, node: *mut pg_sys::Node) -> bool {
        // SAFETY: by the caller.
        let Some((parameter, mut document, _)) = (unsafe { self.field(scope, node) }) else { return false };
        document.expression = field_of(&document.expression);
        self.meet(parameter, document, How::Operator, 0);
        true
    }

    /// What a field is whose name is a parameter: its value for the name that this has for the row.
    ///
    /// # Safety
    /// As [`field`](Self::field).
    pub(super) unsafe fn value_of_field(
        &self,
        scope: usize,
        node: *mut pg_sys::Node,
    ) -> Option<ColumnExpression> {
        // SAFETY: by the caller.
        let (_, mut document, name) = unsafe { self.field(scope, bare(node)) }?;
        let object = &document.expression;
        document.expression = format!("(({object}) OPERATOR(pg_catalog.{name}) {})", field_of(object));
        document.type_oid = if name == "->" { pg_sys::JSONBOID } else { pg_sys::TEXTOID };
        Some(document)
    }
}
