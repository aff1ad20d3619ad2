//! Statements of changes to which a safer way is known, from their parse trees.

use std::ffi::{CStr, CString, c_char};

use bench_base::error::UserError;
use bench_questions::rehearsal::KnownStatement;
use pgrx::pg_sys;
use pgrx::pg_sys::{AlterTableType, ConstrType, NodeTag, ObjectType};

use super::query::{list_length, parse};
use super::spi::quote_identifier;
use crate::error::internal;

/// Returns the statement if the text is a single one that is known.
///
/// # Errors
/// The parser's own errors are raised.
pub fn known_statement(text: &str) -> Result<Option<KnownStatement>, UserError> {
    let parsed = CString::new(text).map_err(|e| internal(e.to_string()))?;
    let statements = parse(&parsed);
    // SAFETY: a list of the parser's, whose elements are raw statements; a node is of the type that its tag says.
    unsafe {
        let [statement] = elements::<pg_sys::RawStmt>(statements)[..] else { return Ok(None) };
        let node = (*statement).stmt;
        Ok(match (*node).type_ {
            NodeTag::T_IndexStmt if !(*node.cast::<pg_sys::IndexStmt>()).concurrent => {
                Some(not_concurrent(text, Some("INDEX")))
            }
            NodeTag::T_DropStmt => {
                let drop: *mut pg_sys::DropStmt = node.cast();
                ((*drop).removeType == ObjectType::OBJECT_INDEX && !(*drop).concurrent)
                    .then(|| not_concurrent(text, Some("INDEX")))
            }
            NodeTag::T_ReindexStmt => {
                let reindex: *mut pg_sys::ReindexStmt = node.cast();
                (!has_option((*reindex).params, c"concurrently")).then_some(KnownStatement::Reindex)
            }
            NodeTag::T_VacuumStmt => {
                let vacuum: *mut pg_sys::VacuumStmt = node.cast();
                has_option((*vacuum).options, c"full").then_some(KnownStatement::Rewrite)
            }
            NodeTag::T_AlterTableStmt => known_alteration(text, node.cast()),
            _ => None,
        })
    }
}

fn not_concurrent(text: &str, behind: Option<&'static str>) -> KnownStatement {
    KnownStatement::NotConcurrent { text: text.to_owned(), behind }
}

/// Returns an ALTER TABLE with one known command.
///
/// # Safety
/// A live node of the parser's.
unsafe fn known_alteration(text: &str, alter: *mut pg_sys::AlterTableStmt) -> Option<KnownStatement> {
    // SAFETY: by the caller; the definition of a command is of the type that its kind has.
    unsafe {
        let [command] = elements::<pg_sys::AlterTableCmd>((*alter).cmds)[..] else { return None };
        let table = qualified((*alter).relation)?;
        let column = || quoted((*command).name);
        match (*command).subtype {
            AlterTableType::AT_SetNotNull => Some(KnownStatement::NotNull { table, column: column()? }),
            AlterTableType::AT_AlterColumnType => {
                Some(KnownStatement::ColumnType { table, column: column()? })
            }
            AlterTableType::AT_AddConstraint => known_constraint(text, table, (*command).def.cast()),
            AlterTableType::AT_DetachPartition => {
                let partition: *mut pg_sys::PartitionCmd = (*command).def.cast();
                (!(*partition).concurrent).then(|| not_concurrent(text, None))
            }
            AlterTableType::AT_AddColumn => {
                let definition: *mut pg_sys::ColumnDef = (*command).def.cast();
                let has_computed_default =
                    elements::<pg_sys::Constraint>((*definition).constraints).iter().any(|constraint| {
                        let expression = (**constraint).raw_expr;
                        (**constraint).contype == ConstrType::CONSTR_DEFAULT
                            && !expression.is_null()
                            && (*expression).type_ == NodeTag::T_FuncCall
                    });
                let column = quoted((*definition).colname)?;
                has_computed_default.then_some(KnownStatement::ComputedDefault { table, column })
            }
            _ => None,
        }
    }
}

/// Returns a known constraint.
///
/// # Safety
/// A live node of the parser's.
unsafe fn known_constraint(
    text: &str,
    table: String,
    constraint: *mut pg_sys::Constraint,
) -> Option<KnownStatement> {
    // SAFETY: by the caller; keys are a list of strings.
    unsafe {
        let name = quoted((*constraint).conname);
        match (*constraint).contype {
            ConstrType::CONSTR_CHECK | ConstrType::CONSTR_FOREIGN if !(*constraint).skip_validation => {
                Some(KnownStatement::Validated { text: text.to_owned(), table, constraint: name })
            }
            kind @ (ConstrType::CONSTR_UNIQUE | ConstrType::CONSTR_PRIMARY)
                if (*constraint).indexname.is_null() =>
            {
                let keys = elements::<pg_sys::String>((*constraint).keys);
                let columns = keys.iter().filter_map(|key| quoted((**key).sval)).collect();
                let is_primary = kind == ConstrType::CONSTR_PRIMARY;
                Some(KnownStatement::Unique { table, constraint: name, columns, is_primary })
            }
            _ => None,
        }
    }
}

/// Whether a list of options has one that is on.
///
/// # Safety
/// A live list of DefElem, or NULL.
unsafe fn has_option(options: *mut pg_sys::List, name: &CStr) -> bool {
    // SAFETY: by the caller.
    unsafe {
        elements::<pg_sys::DefElem>(options)
            .iter()
            .any(|option| CStr::from_ptr((**option).defname) == name && pg_sys::defGetBoolean(*option))
    }
}

/// Returns the elements of a list of pointers.
///
/// # Safety
/// A live list of pointers to such values, or NULL.
unsafe fn elements<T>(list: *mut pg_sys::List) -> Vec<*mut T> {
    // SAFETY: by the caller; the list has as many elements as its length says.
    unsafe {
        (0..list_length(list)).map(|place| (*(*list).elements.add(place as usize)).ptr_value.cast()).collect()
    }
}

/// Returns a name, quoted; `None` for NULL.
///
/// # Safety
/// NULL or NUL-terminated.
unsafe fn quoted(name: *const c_char) -> Option<String> {
    // SAFETY: by the caller.
    (!name.is_null()).then(|| quote_identifier(&unsafe { CStr::from_ptr(name) }.to_string_lossy()))
}

/// Returns a relation's name as written, quoted.
///
/// # Safety
/// NULL or a live node.
unsafe fn qualified(relation: *mut pg_sys::RangeVar) -> Option<String> {
    // SAFETY: by the caller.
    unsafe {
        if relation.is_null() {
            return None;
        }
        let name = quoted((*relation).relname)?;
        Some(match quoted((*relation).schemaname) {
            Some(schema) => format!("{schema}.{name}"),
            None => name,
        })
    }
}
