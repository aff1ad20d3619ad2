//! Values that no row gives: of unique columns that are inserted into, and of parameters that meet no column.

use bench_base::error::UserError;
use pgrx::pg_sys;

use super::columns::target;
use crate::driver::parameters::{TypeShape, shape_of};
use crate::server::spi::fetch;

/// SQL for the value of a column that INSERT must not find there already; `None` where an existing row's serves.
///
/// Whole numbers come from the column's sequence, or at random from above those that are there; texts and bytes end in a
/// random UUID's digits, as far as the type lets them.
pub fn value(relation: pg_sys::Oid, column: i16, sql_type: &str) -> Result<Option<String>, UserError> {
    let target = target(relation, column)?;
    if let Some(default) = &target.default
        && (default == "DEFAULT" || default.starts_with("nextval("))
    {
        // As an expression: DEFAULT stands in no other place than VALUES.
        return Ok(Some(if default == "DEFAULT" { identity(relation, column)? } else { default.clone() }));
    }
    if !(target.is_unique || target.ends_key && matches!(sql_type, "smallint" | "integer" | "bigint")) {
        return Ok(None);
    }
    Ok(match sql_type {
        "bigint" | "numeric" => Some("(1000000000 + pg_catalog.random() * 8e18)::pg_catalog.int8".to_owned()),
        "integer" => Some("(1000000000 + pg_catalog.random() * 1147483647)::pg_catalog.int4".to_owned()),
        "smallint" => Some("(10000 + pg_catalog.random() * 22767)::pg_catalog.int2".to_owned()),
        "uuid" => Some("pg_catalog.gen_random_uuid()".to_owned()),
        "text" | "character varying" => Some("pg_catalog.gen_random_uuid()::pg_catalog.text".to_owned()),
        _ => None,
    })
}

/// The next value of an identity column's sequence.
fn identity(relation: pg_sys::Oid, column: i16) -> Result<String, UserError> {
    let sql = "SELECT format('pg_catalog.nextval(%L::pg_catalog.regclass)', \
                   d.objid::regclass::text) \
               FROM pg_depend d \
               WHERE d.classid = 'pg_class'::regclass \
                 AND d.refclassid = 'pg_class'::regclass \
                 AND d.refobjid = $1 AND d.refobjsubid = $2 \
                 AND d.deptype = 'i'::\"char\"";
    let found = fetch::<String>(sql, &[relation.into(), i32::from(column).into()])?;
    Ok(found.unwrap_or_else(|| "DEFAULT".to_owned()))
}

/// An argument that only some words serve for; of fields of a time, one with so many values as rows came back, if there is one.
pub fn argument(function: &str, place: usize, rows: f64) -> Option<&'static str> {
    match (function, place) {
        ("date_trunc", 0) => Some("day"),
        ("date_part" | "extract", 0) => Some(match rows.round() as i64 {
            7 => "dow",
            8..=12 => "month",
            25..=31 => "day",
            _ => "hour",
        }),
        ("timezone", 0) => Some("UTC"),
        // Words of a tsvector are looked for as they are.
        ("to_tsquery" | "plainto_tsquery" | "phraseto_tsquery" | "websearch_to_tsquery", 0) => {
            Some("pg_catalog.simple")
        }
        ("to_char", 1) => Some("YYYY-MM-DD"),
        _ => None,
    }
}

/// Whether a type is one of numbers.
pub fn is_number(type_oid: u32) -> bool {
    let types = [
        pg_sys::INT2OID,
        pg_sys::INT4OID,
        pg_sys::INT8OID,
        pg_sys::FLOAT4OID,
        pg_sys::FLOAT8OID,
        pg_sys::NUMERICOID,
    ];
    types.contains(&pg_sys::Oid::from(type_oid))
}

/// A value of a type that meets no column: one whose size matters little. Of an enum the first, of a domain one of its base
/// type, of arrays and ranges the empty one.
pub fn of_type(type_oid: u32) -> Result<Option<String>, UserError> {
    let base = match shape_of(type_oid.into()) {
        TypeShape::Array => return Ok(Some("{}".to_owned())),
        TypeShape::Range => return Ok(Some("empty".to_owned())),
        TypeShape::Multirange => return Ok(Some("{}".to_owned())),
        TypeShape::Other(base) => base,
    };
    if let Some(text) = of_base_type(base) {
        return Ok(Some(text.to_owned()));
    }
    let sql = "SELECT e.enumlabel::text FROM pg_enum e \
               WHERE e.enumtypid = $1 ORDER BY e.enumsortorder LIMIT 1";
    fetch::<String>(sql, &[base.into()])
}

fn of_base_type(type_oid: pg_sys::Oid) -> Option<&'static str> {
    match type_oid {
        pg_sys::INT2OID | pg_sys::INT4OID | pg_sys::INT8OID => Some("1"),
        pg_sys::FLOAT4OID | pg_sys::FLOAT8OID | pg_sys::NUMERICOID => Some("1"),
        pg_sys::BOOLOID => Some("true"),
        pg_sys::INTERVALOID => Some("1 day"),
        pg_sys::DATEOID | pg_sys::TIMESTAMPOID | pg_sys::TIMESTAMPTZOID => Some("now"),
        pg_sys::TEXTOID | pg_sys::VARCHAROID | pg_sys::BPCHAROID => Some("a"),
        pg_sys::JSONOID | pg_sys::JSONBOID => Some("{}"),
        pg_sys::REGCONFIGOID => Some("pg_catalog.english"),
        pg_sys::TIMEOID | pg_sys::TIMETZOID => Some("12:00"),
        pg_sys::MONEYOID => Some("1"),
        pg_sys::UUIDOID => Some("00000000-0000-0000-0000-000000000000"),
        pg_sys::INETOID | pg_sys::CIDROID => Some("127.0.0.1"),
        pg_sys::MACADDROID => Some("00:00:00:00:00:00"),
        pg_sys::BYTEAOID => Some("a"),
        pg_sys::NAMEOID => Some("a"),
        pg_sys::BITOID | pg_sys::VARBITOID => Some("1"),
        pg_sys::OIDOID | pg_sys::XIDOID | pg_sys::XID8OID | pg_sys::CIDOID => Some("1"),
        pg_sys::TIDOID => Some("(0,1)"),
        pg_sys::TSQUERYOID | pg_sys::TSVECTOROID => Some("a"),
        pg_sys::JSONPATHOID => Some("$"),
        pg_sys::PG_LSNOID => Some("0/1"),
        pg_sys::MACADDR8OID => Some("00:00:00:00:00:00:00:00"),
        pg_sys::XMLOID => Some("<a/>"),
        pg_sys::POINTOID => Some("(0,0)"),
        pg_sys::LINEOID => Some("{1,0,0}"),
        pg_sys::LSEGOID | pg_sys::BOXOID | pg_sys::PATHOID | pg_sys::POLYGONOID => Some("((0,0),(1,1))"),
        pg_sys::CIRCLEOID => Some("<(0,0),1>"),
        pg_sys::REGCLASSOID => Some("pg_catalog.pg_class"),
        pg_sys::REGTYPEOID => Some("pg_catalog.int4"),
        pg_sys::CHAROID => Some("a"),
        _ => None,
    }
}
