//! What a superuser is told where a client's role may not use the tables of a script: the GRANT that is missing.
//!
//! By a look at the tables' own privileges, and never by the words of the error, which a trigger or a function may have chosen.

use std::collections::BTreeSet;

use bench_base::error::{SqlError, UserError, pack, sqlstate};
use bench_model::spec::{Role, RunSpec};

use crate::server::spi::{fetch_all, quote_identifier, quote_literal};
use crate::server::transaction::transaction;

/// Adds the missing grants to an error for which the sessions of a role other than the caller's may not do what a script does.
pub fn explain(error: SqlError, spec: &RunSpec, role: &Role, script: &str) -> SqlError {
    if error.sqlstate != pack(sqlstate::INSUFFICIENT_PRIVILEGE)
        || spec.owner().oid == role.oid
        || error.hint.is_some()
    {
        return error;
    }
    match transaction(|| missing(role, script)) {
        Ok(Some(hint)) => SqlError { hint: Some(hint), ..error },
        // What the server has said is enough.
        _ => error,
    }
}

/// The grants without which the session's role can do nothing with tables that a script names.
fn missing(role: &Role, script: &str) -> Result<Option<String>, UserError> {
    let names: BTreeSet<(String, String)> = names(script);
    let (schemas, tables): (Vec<String>, Vec<String>) = names.into_iter().unzip();
    let found = fetch_all(
        "SELECT format('%I', n.nspname), format('%I.%I', n.nspname, c.relname), has_schema_privilege(n.oid, 'USAGE'), \
                has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE'), pg_get_userbyid(c.relowner)::text \
         FROM (SELECT DISTINCT * FROM ROWS FROM (unnest($1), unnest($2)) AS u (schema, name)) AS given \
         JOIN pg_class c ON c.relname = given.name::name AND c.relkind = ANY ('{r,p,v,m,f}'::\"char\"[]) \
         JOIN pg_namespace n ON n.oid = c.relnamespace AND (n.nspname = given.schema::name \
             OR given.schema = '' AND n.nspname = ANY (string_to_array(replace($3, ' ', ''), ','))) \
         WHERE NOT (has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE')) \
         ORDER BY 2",
        &[
            schemas.into(),
            tables.into(),
            crate::server::guc::current("search_path").unwrap_or_default().into(),
        ],
        |row| {
            let text = |column| row.get::<String>(column).map(Option::unwrap_or_default);
            Ok((
                text(1)?,
                text(2)?,
                row.get::<bool>(3)?.unwrap_or_default(),
                row.get::<bool>(4)?.unwrap_or_default(),
                text(5)?,
            ))
        },
    )?;
    let Some((.., owner)) = found.first() else { return Ok(None) };
    let to = quote_identifier(&role.name);
    let mut grants = BTreeSet::new();
    for (schema, table, may_look, may_use, _) in &found {
        if !may_look {
            grants.insert(format!("GRANT USAGE ON SCHEMA {schema} TO {to};"));
        }
        if !may_use {
            grants.insert(format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {to};"));
        }
    }
    let grants: Vec<String> = grants.into_iter().collect();
    Ok(Some(format!(
        "{} Or have clients be sessions of the owner: run_as => {}.",
        grants.join(" "),
        quote_literal(owner)
    )))
}

/// All that a text could name, with the schema before it or an empty text: words in lower case, and what stands between double
/// quotes. A name too many does no harm.
fn names(text: &str) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    let mut rest = text;
    let mut schema = String::new();
    while let Some(first) = rest.chars().next() {
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let (name, after) = if let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted.find('"').unwrap_or(quoted.len());
            (quoted[..end].to_owned(), quoted.get(end + 1..).unwrap_or_default())
        } else if is_part(first) {
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            (rest[..end].to_lowercase(), &rest[end..])
        } else {
            schema.clear();
            rest = &rest[first.len_utf8()..];
            continue;
        };
        if let Some(next) = after.strip_prefix('.') {
            schema = name;
            rest = next;
        } else {
            found.insert((std::mem::take(&mut schema), name));
            rest = after;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn names_are_found_with_their_schemas() {
        let found = names("INSERT INTO Shop.\"Orders\" SELECT * FROM items -- é");
        for (schema, name) in [("shop", "Orders"), ("", "items")] {
            assert!(found.contains(&(schema.to_owned(), name.to_owned())), "{found:?}");
        }
    }
}
