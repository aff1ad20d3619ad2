//! Reading what tables hold. A document's fields take the numbers that the recorder writes, and a table whatever somebody
//! has put there: what a field cannot take becomes the nearest number that it can, so that the rest can be read.

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Value};

/// Figures beyond this are beyond all measure; as `bench_internal.figure` has it.
const LARGEST: f64 = 1e75;

/// A value out of its JSON.
///
/// # Errors
/// For anything that is wrong beside numbers out of range.
pub fn from_json<T: DeserializeOwned>(json: Value) -> Result<T, Error> {
    T::deserialize(Lenient(json))
}

/// The nearest number that can be reckoned with; 0 for none.
pub fn figure(number: f64) -> f64 {
    if number.is_nan() { 0.0 } else { number.clamp(-LARGEST, LARGEST) }
}

struct Lenient(Value);

impl Lenient {
    /// The number, as SQL writes those that JSON has none for.
    fn number(&self) -> Option<f64> {
        match &self.0 {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => match text.as_str() {
                "NaN" => Some(f64::NAN),
                "Infinity" => Some(f64::INFINITY),
                "-Infinity" => Some(f64::NEG_INFINITY),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Integers: as they are where they fit, else the nearest; a conversion from floating point saturates.
macro_rules! integers {
    ($($method:ident $visit:ident $type:ty,)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            let exact = match &self.0 {
                Value::Number(n) => n.as_i64().map(i128::from).or_else(|| n.as_u64().map(i128::from)),
                _ => None,
            };
            match exact.and_then(|n| <$type>::try_from(n).ok()).or_else(|| self.number().map(|n| n as $type)) {
                Some(number) => visitor.$visit(number),
                None => self.0.deserialize_any(visitor),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Lenient {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.0.deserialize_any(visitor)
    }

    integers! {
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64,
        deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64,
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.number() {
            Some(number) => visitor.visit_f64(figure(number)),
            None => self.0.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(values) => visitor.visit_seq(SeqDeserializer::new(values.into_iter().map(Lenient))),
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Object(members) => visitor.visit_map(MapDeserializer::new(
                members.into_iter().map(|(name, value)| (name, Lenient(value))),
            )),
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_map(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i128 u8 u16 u128 f32 char str string bytes byte_buf unit unit_struct tuple tuple_struct
        identifier ignored_any
    }
}

impl IntoDeserializer<'_, Error> for Lenient {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::{Map, json};

    use super::*;

    #[derive(Debug, PartialEq, Deserialize, serde::Serialize)]
    struct Row {
        number: f64,
        maybe: Option<f64>,
        count: u64,
        small: u32,
        signed: Option<i64>,
        shares: BTreeMap<String, f64>,
        tags: Map<String, Value>,
        text: String,
        rest: Vec<Option<f64>>,
    }

    #[test]
    fn numbers_out_of_range_are_the_nearest() {
        let json = json!({
            "number": "NaN", "maybe": "Infinity", "count": -1, "small": 1e19, "signed": u64::MAX,
            "shares": {"CPU": "-Infinity"}, "tags": {"a": "NaN"}, "text": "NaN", "rest": ["NaN", null, 1e300],
        });
        let row: Row = from_json(json).expect("readable");
        assert_eq!((row.number, row.maybe, row.count, row.small), (0.0, Some(1e75), 0, u32::MAX));
        assert_eq!((row.signed, row.shares["CPU"]), (Some(i64::MAX), -1e75));
        assert_eq!((&row.tags["a"], &*row.text), (&json!("NaN"), "NaN"), "texts stay texts");
        assert_eq!(row.rest, [Some(0.0), None, Some(1e75)]);
    }

    #[test]
    fn what_is_no_number_stays_an_error() {
        for json in
            [json!({"number": "many"}), json!({"number": []}), json!({"number": 1, "count": "5"}), json!(1)]
        {
            assert!(from_json::<Row>(json.clone()).is_err(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn what_fits_is_read_as_it_is(number in -1e70..1e70, count: u64, small: u32, signed: Option<i64>, text: String) {
            let json = json!({
                "number": number, "maybe": null, "count": count, "small": small, "signed": signed,
                "shares": {"CPU": 0.5}, "tags": {"a": [1, null, {"b": text}]}, "text": text, "rest": [number],
            });
            let strict: Row = serde_json::from_value(json.clone()).expect("readable");
            prop_assert_eq!(from_json::<Row>(json).expect("readable"), strict);
        }
    }
}
