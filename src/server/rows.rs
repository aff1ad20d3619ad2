//! Conversion between rows and structs, for rows that statements return, rows inserted into tables, and rows that functions return.
//! Columns have the names of the struct's fields.

use std::ffi::CString;

use bench_base::error::UserError;
use bench_base::number::rounded;
use pgrx::callconv::{BoxRet, FcInfo};
use pgrx::datum::{Datum, DatumWithOid, TimestampWithTimeZone};
use pgrx::iter::SetOfIterator;
use pgrx::spi::SpiHeapTupleData;
use pgrx::{FromDatum, IntoDatum, JsonB, pg_sys};
use serde::de::value::{Error as NotAStruct, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Error, Visitor};
use serde::{Deserializer, Serialize, forward_to_deserialize_any};
use serde_json::{Map, Value};

use super::spi::{fetch_table, run};
use crate::error::{OrRaise, internal, raise};

/// Runs a query, and returns its rows: structs by the names of the columns, tuples by their order. A NULL is a missing field: `None`,
/// or the value of `#[serde(default)]`.
///
/// # Errors
/// The server's; XX000 for a row that does not fit the type.
pub fn select<T: DeserializeOwned>(sql: &str, arguments: &[DatumWithOid]) -> Result<Vec<T>, UserError> {
    let (names, rows) = fetch_table(sql, arguments, |found| {
        let names = (1..=found.columns()?).map(|place| found.column_name(place));
        let names: Vec<String> = names.collect::<pgrx::spi::Result<_>>()?;
        let values = |row: SpiHeapTupleData| (1..=names.len()).map(|place| value_of(&row, place)).collect();
        let rows = found.map(values).collect::<pgrx::spi::Result<Vec<Vec<Value>>>>()?;
        Ok((names, rows))
    })?;
    let read = |values| {
        let row = FoundRow { names: &names, values };
        T::deserialize(row).map_err(|error| internal(format!("{error}, in a row of {sql}")))
    };
    rows.into_iter().map(read).collect()
}

/// As [`select`], for a query with at most one row.
///
/// # Errors
/// As [`select`].
pub fn select_one<T: DeserializeOwned>(
    sql: &str,
    arguments: &[DatumWithOid],
) -> Result<Option<T>, UserError> {
    Ok(select(sql, arguments)?.into_iter().next())
}

/// As [`select`], for the columns with the names of the struct's fields. `from` is the text behind FROM.
///
/// # Errors
/// As [`select`].
pub fn select_from<T: DeserializeOwned>(from: &str, arguments: &[DatumWithOid]) -> Result<Vec<T>, UserError> {
    select(&format!("SELECT {} FROM {from}", field_names::<T>().join(", ")), arguments)
}

/// Inserts rows into a table: the columns with the names of the struct's fields, and a column with the same value in all rows.
///
/// # Errors
/// The server's.
pub fn insert<T: Serialize>(
    table: &str,
    (common, value): (&str, Value),
    rows: impl IntoIterator<Item = T>,
) -> Result<(), UserError> {
    let mut objects = Vec::new();
    for row in rows {
        let mut object = object_of(row)?;
        object.insert(common.to_owned(), value.clone());
        objects.push(Value::Object(object));
    }
    let Some(columns) = objects.first().and_then(Value::as_object) else { return Ok(()) };
    let columns = columns.keys().map(String::as_str).collect::<Vec<&str>>().join(", ");
    let sql = format!(
        "INSERT INTO {table} ({columns}) SELECT {columns} FROM jsonb_populate_recordset(NULL::{table}, $1)"
    );
    run(&sql, &[JsonB(Value::Array(objects)).into()]).map(drop)
}

/// A row of a query.
struct FoundRow<'a> {
    names: &'a [String],
    values: Vec<Value>,
}

impl<'de> Deserializer<'de> for FoundRow<'_> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        let fields = self.names.iter().map(String::as_str).zip(self.values);
        visitor.visit_map(MapDeserializer::new(fields.filter(|(_, value)| !value.is_null())))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_seq(SeqDeserializer::new(self.values.into_iter()))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple_struct map struct enum identifier ignored_any
    }
}

/// Converts the value of a column to JSON.
fn value_of(row: &SpiHeapTupleData, place: usize) -> pgrx::spi::Result<Value> {
    fn json_value<T: FromDatum + IntoDatum + Serialize>(
        row: &SpiHeapTupleData,
        place: usize,
    ) -> pgrx::spi::Result<Value> {
        // JSON has no infinities and NaN, so these become null.
        Ok(serde_json::to_value(row.get::<T>(place)?).unwrap_or_default())
    }
    match row.get_datum_by_ordinal(place)?.oid() {
        pg_sys::BOOLOID => json_value::<bool>(row, place),
        pg_sys::INT2OID => json_value::<i16>(row, place),
        pg_sys::INT4OID => json_value::<i32>(row, place),
        pg_sys::INT8OID => json_value::<i64>(row, place),
        pg_sys::FLOAT4OID => json_value::<f32>(row, place),
        pg_sys::FLOAT8OID => json_value::<f64>(row, place),
        pg_sys::OIDOID => json_value::<pg_sys::Oid>(row, place),
        pg_sys::JSONBOID => json_value::<JsonB>(row, place),
        pg_sys::TIMESTAMPTZOID => json_value::<TimestampWithTimeZone>(row, place),
        pg_sys::TEXTARRAYOID => json_value::<Vec<Option<String>>>(row, place),
        pg_sys::INT4ARRAYOID => json_value::<Vec<Option<i32>>>(row, place),
        pg_sys::INT8ARRAYOID => json_value::<Vec<Option<i64>>>(row, place),
        pg_sys::FLOAT8ARRAYOID => json_value::<Vec<Option<f64>>>(row, place),
        pg_sys::OIDARRAYOID => json_value::<Vec<Option<pg_sys::Oid>>>(row, place),
        _ => json_value::<String>(row, place),
    }
}

/// Returns the names of a struct's fields for deserialization.
fn field_names<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    let _ = T::deserialize(FieldNames(&mut names));
    names
}

/// A deserializer that records the names of a struct's fields, and then fails.
struct FieldNames<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = NotAStruct;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NotAStruct> {
        *self.0 = fields;
        self.deserialize_any(visitor)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NotAStruct> {
        Err(NotAStruct::custom("nothing to read"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The result of a function with RETURNS TABLE, with floating-point numbers [`rounded`]. Each of its columns, at least two, is a
/// field of the struct.
pub type Rows = SetOfIterator<'static, ResultRow>;

/// A row of a function's result.
pub struct ResultRow(Map<String, Value>);

pgrx::impl_sql_translatable!(ResultRow, "record");

/// Returns the result of a function; each row is converted when the server asks for it.
pub fn rows<T: Serialize>(all: impl IntoIterator<Item = T> + 'static) -> Rows {
    SetOfIterator::new(all.into_iter().map(|row| ResultRow(object_of(row).or_raise())))
}

/// Converts a struct to a row by the names of its columns.
///
/// # Errors
/// XX000 for other values than structs.
fn object_of(row: impl Serialize) -> Result<Map<String, Value>, UserError> {
    match serde_json::to_value(row) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(internal("a row is not a struct")),
        Err(error) => Err(internal(format!("{error}, in a row"))),
    }
}

// SAFETY: what is returned is a row of the type that this call of the function is to return.
unsafe impl BoxRet for ResultRow {
    unsafe fn box_into<'fcx>(self, fcinfo: &mut FcInfo<'fcx>) -> Datum<'fcx> {
        // SAFETY: by the caller a call's own; get_call_result_type fills in the descriptor where it says that this is a
        // composite type. Both arrays have a place for each of its attributes.
        unsafe {
            let mut description: pg_sys::TupleDesc = std::ptr::null_mut();
            let kind =
                pg_sys::get_call_result_type(fcinfo.as_mut_ptr(), std::ptr::null_mut(), &mut description);
            if kind != pg_sys::TypeFuncClass::TYPEFUNC_COMPOSITE {
                raise(internal("the function does not return a table"));
            }
            let attributes = pgrx::PgTupleDesc::from_pg_unchecked(description);
            let found =
                attributes.iter().map(|attribute| self.column(attribute)).collect::<Result<Vec<_>, _>>();
            let (mut values, mut nulls): (Vec<pg_sys::Datum>, Vec<bool>) =
                found.or_raise().into_iter().unzip();
            let tuple = pg_sys::heap_form_tuple(
                pg_sys::BlessTupleDesc(description),
                values.as_mut_ptr(),
                nulls.as_mut_ptr(),
            );
            fcinfo.return_raw_datum(pg_sys::HeapTupleHeaderGetDatum((*tuple).t_data))
        }
    }
}

impl ResultRow {
    /// Returns the value of a column, and whether it is NULL.
    ///
    /// # Errors
    /// XX000 if the struct has no such field. The server's are raised.
    fn column(&self, column: &pg_sys::FormData_pg_attribute) -> Result<(pg_sys::Datum, bool), UserError> {
        let name = column.name();
        let value =
            self.0.get(name).ok_or_else(|| internal(format!("column {name} of the result has no field")))?;
        if value.is_null() {
            return Ok((pg_sys::Datum::null(), true));
        }
        let text = match value {
            // Results of functions are for people; the tables have all digits.
            Value::Number(number) if column.atttypid == pg_sys::FLOAT8OID => {
                number.as_f64().map_or_else(|| number.to_string(), |value| rounded(value).to_string())
            }
            Value::String(text) if column.atttypid != pg_sys::JSONBOID => text.clone(),
            other => other.to_string(),
        };
        let text = CString::new(text).map_err(|error| internal(error.to_string()))?;
        // SAFETY: the input function of the column's type reads a text that ends in a zero byte.
        let datum = unsafe {
            let (mut input, mut parameter) = (pg_sys::InvalidOid, pg_sys::InvalidOid);
            pg_sys::getTypeInputInfo(column.atttypid, &mut input, &mut parameter);
            pg_sys::OidInputFunctionCall(input, text.as_ptr().cast_mut(), parameter, column.atttypmod)
        };
        Ok((datum, false))
    }
}
