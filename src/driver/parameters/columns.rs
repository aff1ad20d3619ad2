//! From an expression to the one relation whose columns it is made of.

use std::ffi::{CStr, c_void};

use pgrx::pg_sys;

use super::operators::{bare, is_a, nth};
use super::walk::{ColumnExpression, Walk};
use crate::server::query::list_length;

/// The column of a relation that a variable stands for, through the aliases of joins, subqueries, CTEs and groups.
///
/// # Safety
/// A live variable of the scope.
unsafe fn chase(
    walk: &Walk,
    scope: usize,
    variable: *mut pg_sys::Var,
    depth: usize,
) -> Option<(*mut pg_sys::RangeTblEntry, i16)> {
    // SAFETY: by the caller; kinds of entries say which of their fields are set.
    unsafe {
        let (scope, entry) = entry_of(walk, scope, variable)?;
        let attribute = (*variable).varattno;
        if (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION {
            return (attribute > 0).then_some((entry, attribute));
        }
        let (scope, node) = beneath(walk, scope, entry, attribute)?;
        let node = bare(node);
        if depth > 50 || !is_a(node, pg_sys::NodeTag::T_Var) {
            return None;
        }
        chase(walk, scope, node.cast(), depth + 1)
    }
}

/// # Safety
/// A live variable of the scope.
unsafe fn entry_of(
    walk: &Walk,
    mut scope: usize,
    variable: *mut pg_sys::Var,
) -> Option<(usize, *mut pg_sys::RangeTblEntry)> {
    // SAFETY: by the caller; a variable's number is a place in its query's range table.
    unsafe {
        for _ in 0..(*variable).varlevelsup {
            scope = walk.scopes[scope].parent?;
        }
        let table = (*walk.scopes[scope].query).rtable;
        let place = usize::try_from((*variable).varno - 1).ok()?;
        (place < list_length(table) as usize).then(|| (scope, nth(table, place).cast()))
    }
}

/// What a column of an entry that is no relation is computed by, and in which scope.
///
/// # Safety
/// A live entry of the scope.
pub(super) unsafe fn beneath(
    walk: &Walk,
    scope: usize,
    entry: *mut pg_sys::RangeTblEntry,
    attribute: i16,
) -> Option<(usize, *mut pg_sys::Node)> {
    let place = usize::try_from(attribute - 1).ok()?;
    // SAFETY: by the caller; kinds of entries say which of their fields are set.
    unsafe {
        let within = |list: *mut pg_sys::List| (place < list_length(list) as usize).then(|| nth(list, place));
        match (*entry).rtekind {
            pg_sys::RTEKind::RTE_JOIN => Some((scope, within((*entry).joinaliasvars)?)),
            #[cfg(since_18)]
            pg_sys::RTEKind::RTE_GROUP => Some((scope, within((*entry).groupexprs)?)),
            pg_sys::RTEKind::RTE_SUBQUERY => output(walk, (*entry).subquery, attribute),
            pg_sys::RTEKind::RTE_FUNCTION if list_length((*entry).functions) == 1 && attribute == 1 => {
                let function: *mut pg_sys::RangeTblFunction = nth((*entry).functions, 0).cast();
                ((*function).funccolcount == 1).then_some((scope, (*function).funcexpr))
            }
            pg_sys::RTEKind::RTE_CTE => {
                let mut scope = scope;
                for _ in 0..(*entry).ctelevelsup {
                    scope = walk.scopes[scope].parent?;
                }
                let list = (*walk.scopes[scope].query).cteList;
                let wanted = CStr::from_ptr((*entry).ctename);
                let all =
                    (0..list_length(list) as usize).map(|at| nth(list, at).cast::<pg_sys::CommonTableExpr>());
                let cte = all.into_iter().find(|&cte| CStr::from_ptr((*cte).ctename) == wanted)?;
                output(walk, (*cte).ctequery.cast(), attribute)
            }
            _ => None,
        }
    }
}

/// A column of a query's result, in that query's scope.
///
/// # Safety
/// A live query.
unsafe fn output(
    walk: &Walk,
    query: *mut pg_sys::Query,
    attribute: i16,
) -> Option<(usize, *mut pg_sys::Node)> {
    let scope = walk.scopes.iter().position(|scope| scope.query == query)?;
    // SAFETY: by the caller; a target list holds target entries.
    unsafe {
        let list = (*query).targetList;
        (0..list_length(list) as usize)
            .map(|at| nth(list, at).cast::<pg_sys::TargetEntry>())
            .find(|&target| (*target).resno == attribute && !(*target).resjunk)
            .map(|target| (scope, (*target).expr.cast()))
    }
}

/// What a variable stands for that is a column of no relation, through as many levels as there are; or the expression itself.
///
/// # Safety
/// A live expression of the scope.
pub(super) unsafe fn resolved(
    walk: &Walk,
    mut scope: usize,
    mut node: *mut pg_sys::Node,
) -> Option<(usize, *mut pg_sys::Node)> {
    // SAFETY: by the caller.
    unsafe {
        for _ in 0..50 {
            let inner = bare(node);
            if !is_a(inner, pg_sys::NodeTag::T_Var) {
                break;
            }
            let (next, entry) = entry_of(walk, scope, inner.cast())?;
            if (*entry).rtekind == pg_sys::RTEKind::RTE_RELATION {
                break;
            }
            (scope, node) = beneath(walk, next, entry, (*inner.cast::<pg_sys::Var>()).varattno)?;
        }
        Some((scope, node))
    }
}

struct Look<'a> {
    walk: &'a Walk,
    scope: usize,
    entry: *mut pg_sys::RangeTblEntry,
    is_simple: bool,
    variables: usize,
}

/// Makes each variable of a copy one of the first relation of a range table, as long as all are of one relation.
#[pgrx::pg_guard]
unsafe extern "C-unwind" fn rebase(node: *mut pg_sys::Node, context: *mut c_void) -> bool {
    use pg_sys::NodeTag::*;
    // SAFETY: called by the walker with live nodes, and with the context that `source` gives it.
    unsafe {
        if node.is_null() {
            return false;
        }
        let look: *mut Look = context.cast();
        match (*node).type_ {
            T_Var => {
                let variable: *mut pg_sys::Var = node.cast();
                match chase((*look).walk, (*look).scope, variable, 0) {
                    Some((entry, attribute)) if (*look).entry.is_null() || (*look).entry == entry => {
                        (*look).entry = entry;
                        (*look).variables += 1;
                        (*variable).varno = 1;
                        (*variable).varattno = attribute;
                        (*variable).varlevelsup = 0;
                        (*variable).varnosyn = 1;
                        (*variable).varattnosyn = attribute;
                        #[cfg(since_16)]
                        {
                            (*variable).varnullingrels = std::ptr::null_mut();
                        }
                        false
                    }
                    _ => {
                        (*look).is_simple = false;
                        true
                    }
                }
            }
            T_Param | T_Aggref | T_WindowFunc | T_SubLink | T_GroupingFunc | T_Query | T_CurrentOfExpr
            | T_SetToDefault => {
                (*look).is_simple = false;
                true
            }
            _ => pg_sys::expression_tree_walker(node, Some(rebase), context),
        }
    }
}

/// The relation whose columns alone an expression is made of, and the expression over them.
///
/// # Safety
/// A live expression of the scope.
pub(super) unsafe fn source(walk: &Walk, scope: usize, node: *mut pg_sys::Node) -> Option<ColumnExpression> {
    // SAFETY: a copy of a live tree; the walker goes on while it is told false. The context of deparsing is of one relation,
    // which all variables have been made to be of.
    unsafe {
        // A variable that stands for an expression: that one's.
        let (scope, node) = resolved(walk, scope, node)?;
        let copy: *mut pg_sys::Node = pg_sys::copyObjectImpl(node.cast()).cast();
        let mut look = Look { walk, scope, entry: std::ptr::null_mut(), is_simple: true, variables: 0 };
        rebase(copy, (&raw mut look).cast());
        if !look.is_simple || look.entry.is_null() || pg_sys::contain_volatile_functions(copy) {
            return None;
        }
        let inner = bare(copy);
        let is_column = look.variables == 1 && is_a(inner, pg_sys::NodeTag::T_Var);
        // A column by itself has its own type: a parameter's cast comes from the statement.
        let shown = if is_column { inner } else { copy };
        let column = is_column.then(|| (*inner.cast::<pg_sys::Var>()).varattno);
        let expression = deparse(shown, (*look.entry).relid);
        let type_oid = pg_sys::exprType(shown);
        Some(ColumnExpression { entry: look.entry, expression, column, type_oid, wrap: None })
    }
}

impl Walk {
    /// As [`source`].
    ///
    /// # Safety
    /// A live expression of the scope.
    pub(super) unsafe fn source(
        &mut self,
        scope: usize,
        node: *mut pg_sys::Node,
    ) -> Option<ColumnExpression> {
        if let Some((last_scope, last, found)) = &self.last_source
            && (*last_scope, *last) == (scope, node)
        {
            return found.clone();
        }
        // SAFETY: by the caller.
        let found = unsafe { source(self, scope, node) };
        self.last_source = Some((scope, node, found.clone()));
        found
    }
}

/// An expression over the columns of one relation, as the server writes it.
///
/// # Safety
/// A live expression all of whose variables are of the first relation.
pub(super) unsafe fn deparse(node: *mut pg_sys::Node, relation: pg_sys::Oid) -> String {
    // SAFETY: by the caller; a palloc'd string.
    unsafe {
        let context = match relation {
            pg_sys::InvalidOid => std::ptr::null_mut(),
            relation => pg_sys::deparse_context_for(c"r".as_ptr(), relation),
        };
        CStr::from_ptr(pg_sys::deparse_expression(node, context, false, false)).to_string_lossy().into_owned()
    }
}
