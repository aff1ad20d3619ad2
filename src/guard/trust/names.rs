//! What the names in a text could mean, before the server looks any of them up: the analysis of a statement evaluates input
//! functions, and with them the constraints of domains.

use std::collections::BTreeSet;

use bench_base::error::{UserError, sqlstate};
use pgrx::pg_sys;

use super::objects::{Object, check_objects, guarded, refusal, trusted};
use crate::server::spi::in_session::{fetch, fetch_all};

/// The longest name in bytes: the server cuts others to it.
const NAMEDATALEN: usize = pg_sys::NAMEDATALEN as usize - 1;

/// All that a text could name: its words as they stand and in lower case, and what stands between double quotes. What is in a
/// comment or a string counts as well; a name too many does no harm.
///
/// # Errors
/// 0A000 for identifiers with Unicode escapes, which nothing but the server's own lexer can read.
fn names(text: &str) -> Result<BTreeSet<String>, UserError> {
    let lower = text.to_ascii_lowercase();
    if lower.contains("u&\"") {
        let message = "identifiers with Unicode escapes cannot be judged";
        return Err(UserError::new(sqlstate::FEATURE_NOT_SUPPORTED, message));
    }
    let mut found = BTreeSet::new();
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
    for text in [text, lower.as_str()] {
        let words = text.split(|c| !is_part(c)).filter(|word| !word.is_empty());
        found.extend(words.map(|word| cut(word).to_owned()));
    }
    // Whichever quote begins a name, it ends at the next one; two of them stand for one within a name.
    for text in [text, &text.replace("\"\"", "\u{1}")] {
        found.extend(text.split('"').map(|part| cut(&part.replace('\u{1}', "\"")).to_owned()));
    }
    Ok(found)
}

fn cut(name: &str) -> &str {
    let mut end = name.len().min(NAMEDATALEN);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// Schemas in which a session looks for the names in `$1`, and those that these name; or only the latter. pg_catalog belongs to
/// the server.
fn places(with_path: bool) -> String {
    let path = if with_path { "pg_catalog.current_schemas(true)" } else { "'{}'::pg_catalog.name[]" };
    format!(
        "place AS (SELECT n.oid, n.nspname, n.nspacl, n.nspowner, \
             CASE WHEN n.nspowner OPERATOR(pg_catalog.=) 'pg_database_owner'::pg_catalog.regrole THEN \
                 (SELECT b.datdba FROM pg_catalog.pg_database b WHERE b.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()) \
             ELSE n.nspowner END AS owner \
         FROM pg_catalog.pg_namespace n \
         WHERE n.nspname OPERATOR(pg_catalog.<>) 'pg_catalog'::pg_catalog.name \
           AND (n.nspname OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.name[]) OR n.nspname OPERATOR(pg_catalog.=) ANY ({path})))"
    )
}

/// Sees that nobody whom a role does not trust owns one of these schemas, or may create objects in it.
fn check_places(role: pg_sys::Oid, names: &[String], with_path: bool) -> Result<(), UserError> {
    let sql = format!(
        "WITH {}, power (schema, role, owns) AS ( \
             SELECT nspname, owner, true FROM place UNION ALL \
             SELECT nspname, a.grantee, false FROM place CROSS JOIN LATERAL pg_catalog.aclexplode(nspacl) AS a \
             WHERE a.privilege_type OPERATOR(pg_catalog.=) 'CREATE' AND a.grantee OPERATOR(pg_catalog.<>) nspowner) \
         SELECT p.schema::pg_catalog.text, p.owns, coalesce((SELECT g.rolname::pg_catalog.text FROM pg_catalog.pg_roles g \
             WHERE g.oid OPERATOR(pg_catalog.=) p.role), 'public') FROM power p \
         WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.oid OPERATOR(pg_catalog.=) p.role AND {}) \
         ORDER BY 1, 2 DESC, 3 LIMIT 1",
        places(with_path),
        trusted("$2")
    );
    let found = fetch_all(&sql, &[names.to_vec().into(), role.into()], |row| {
        let text = |column| row.get::<String>(column).map(Option::unwrap_or_default);
        Ok((text(1)?, row.get::<bool>(2)?.unwrap_or_default(), text(3)?))
    })?;
    match found.into_iter().next() {
        None => Ok(()),
        Some((schema, true, other)) => {
            Err(refusal(format!("schema \"{schema}\" belongs to role \"{other}\"")))
        }
        Some((schema, false, other)) => {
            Err(refusal(format!("role \"{other}\" may create objects in schema \"{schema}\"")))
        }
    }
}

/// Sees that a schema, which comes first where the current role's sessions look for names, has nothing of others in it and
/// gets nothing from them, if that role has special rights.
///
/// # Errors
/// 42501; never for a schema that does not exist.
pub fn check_schema(schema: &str) -> Result<(), UserError> {
    let Some(role) = guarded()? else { return Ok(()) };
    check_places(role, &[schema.to_owned()], false)?;
    let sql = format!(
        "WITH {}, object (owner) AS ( \
             SELECT c.relowner FROM place JOIN pg_catalog.pg_class c ON c.relnamespace OPERATOR(pg_catalog.=) place.oid UNION \
             SELECT c.proowner FROM place JOIN pg_catalog.pg_proc c ON c.pronamespace OPERATOR(pg_catalog.=) place.oid UNION \
             SELECT c.oprowner FROM place JOIN pg_catalog.pg_operator c ON c.oprnamespace OPERATOR(pg_catalog.=) place.oid UNION \
             SELECT c.typowner FROM place JOIN pg_catalog.pg_type c ON c.typnamespace OPERATOR(pg_catalog.=) place.oid UNION \
             SELECT c.collowner FROM place JOIN pg_catalog.pg_collation c ON c.collnamespace OPERATOR(pg_catalog.=) place.oid) \
         SELECT coalesce((SELECT g.rolname::pg_catalog.text FROM pg_catalog.pg_roles g WHERE g.oid OPERATOR(pg_catalog.=) o.owner), \
             o.owner::pg_catalog.text) FROM object o \
         WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.oid OPERATOR(pg_catalog.=) o.owner AND {}) ORDER BY 1 LIMIT 1",
        places(false),
        trusted("$2")
    );
    match fetch::<String>(&sql, &[vec![schema.to_owned()].into(), role.into()])? {
        None => Ok(()),
        Some(other) => Err(refusal(format!("role \"{other}\" owns objects in schema \"{schema}\""))),
    }
}

/// As [`check_schema`], of its owner only: for what is done there by its name.
///
/// # Errors
/// As [`check_schema`].
pub fn check_schema_owner(schema: &str) -> Result<(), UserError> {
    let Some(role) = guarded()? else { return Ok(()) };
    let sql = format!(
        "WITH {} SELECT coalesce((SELECT g.rolname::pg_catalog.text FROM pg_catalog.pg_roles g \
             WHERE g.oid OPERATOR(pg_catalog.=) place.owner), place.owner::pg_catalog.text) FROM place \
         WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles r WHERE r.oid OPERATOR(pg_catalog.=) place.owner AND {})",
        places(false),
        trusted("$2")
    );
    match fetch::<String>(&sql, &[vec![schema.to_owned()].into(), role.into()])? {
        None => Ok(()),
        Some(other) => Err(refusal(format!("schema \"{schema}\" belongs to role \"{other}\""))),
    }
}

/// Sees that whatever the names in a text mean in this session belongs to those whom a role trusts, and that nobody else can
/// have them mean something else.
///
/// # Errors
/// 42501 with the object or the schema, and the role that it belongs to.
pub fn check_names(role: pg_sys::Oid, text: &str) -> Result<(), UserError> {
    let names: Vec<String> = names(text)?.into_iter().collect();
    check_places(role, &names, true)?;
    // Operators by their schemas alone: of those outside of pg_catalog there are few.
    let objects = format!(
        "WITH {} \
         SELECT 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid, c.oid FROM place JOIN pg_catalog.pg_class c \
             ON c.relnamespace OPERATOR(pg_catalog.=) place.oid \
         WHERE c.relname OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.name[]) UNION ALL \
         SELECT 'pg_catalog.pg_proc'::pg_catalog.regclass::pg_catalog.oid, c.oid FROM place JOIN pg_catalog.pg_proc c \
             ON c.pronamespace OPERATOR(pg_catalog.=) place.oid WHERE c.proname OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.name[]) UNION ALL \
         SELECT 'pg_catalog.pg_type'::pg_catalog.regclass::pg_catalog.oid, c.oid FROM place JOIN pg_catalog.pg_type c \
             ON c.typnamespace OPERATOR(pg_catalog.=) place.oid WHERE c.typname OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.name[]) UNION ALL \
         SELECT 'pg_catalog.pg_operator'::pg_catalog.regclass::pg_catalog.oid, c.oid FROM place JOIN pg_catalog.pg_operator c \
             ON c.oprnamespace OPERATOR(pg_catalog.=) place.oid",
        places(true)
    );
    let none = pg_sys::InvalidOid;
    let seeds = fetch_all(&objects, &[names.into()], |row| {
        let oid = |column| row.get::<pg_sys::Oid>(column).map(|oid| oid.unwrap_or(none));
        Ok(Object { class: oid(1)?, id: oid(2)? })
    })?;
    check_objects(role, &seeds)
}
