//! Enums in JSON and SQL, by the names of their variants, and ids in SQL.

use std::marker::PhantomData;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, value::StrDeserializer},
    ser::Error as _,
};

/// An enum of the contracts.
pub trait Choice: TryFrom<i32> + Into<i32> + Serialize + DeserializeOwned {}

impl<E: TryFrom<i32> + Into<i32> + Serialize + DeserializeOwned> Choice for E {}

/// Returns the name of an enum value in JSON and SQL.
///
/// # Panics
///
/// If the value does not serialize to a string. Enums of the contracts do.
pub fn name_of(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        other => panic!("an enum value is a string in JSON, not {other:?}"),
    }
}

/// Largest number of a value of the enums of the contracts.
const LARGEST: i32 = 100;

/// Returns the names of all values of an enum in JSON and SQL, in the order of the contract. The zero value, of a field
/// that was not set, has no name.
pub fn names_of<E: Choice>() -> Vec<String> {
    (1..=LARGEST).filter_map(|number| E::try_from(number).ok()).map(name_of).collect()
}

/// Returns the enum value with a name in JSON and SQL.
pub fn value_of<E: DeserializeOwned>(name: &str) -> Option<E> {
    E::deserialize(StrDeserializer::<serde::de::value::Error>::new(name)).ok()
}

fn variant<E: Choice, S: Serializer>(number: i32) -> Result<E, S::Error> {
    E::try_from(number).map_err(|_| S::Error::custom("unknown enum value"))
}

/// Serializes an enum field as the name of its variant.
pub struct EnumName<E>(PhantomData<E>);

impl<E: Choice> EnumName<E> {
    pub fn serialize<S: Serializer>(number: &i32, serializer: S) -> Result<S::Ok, S::Error> {
        variant::<E, S>(*number)?.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
        E::deserialize(deserializer).map(Into::into)
    }
}

/// Serializes an optional enum field as the name of its variant, or null.
pub struct OptionalEnumName<E>(PhantomData<E>);

impl<E: Choice> OptionalEnumName<E> {
    pub fn serialize<S: Serializer>(
        number: &Option<i32>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        number.map(variant::<E, S>).transpose()?.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<i32>, D::Error> {
        Ok(Option::<E>::deserialize(deserializer)?.map(Into::into))
    }
}

/// Serializes a repeated enum field as the names of its variants.
pub struct EnumNames<E>(PhantomData<E>);

impl<E: Choice> EnumNames<E> {
    pub fn serialize<S: Serializer>(numbers: &[i32], serializer: S) -> Result<S::Ok, S::Error> {
        let variants: Result<Vec<E>, _> =
            numbers.iter().map(|number| variant::<E, S>(*number)).collect();
        variants?.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<i32>, D::Error> {
        Ok(Vec::<E>::deserialize(deserializer)?.into_iter().map(Into::into).collect())
    }
}

#[cfg(feature = "sql")]
pub use self::sql::*;

#[cfg(feature = "sql")]
mod sql {
    use sqlx::{
        Decode, Postgres, Type,
        error::BoxDynError,
        postgres::{PgTypeInfo, PgValueRef},
    };
    use uuid::Uuid;

    use super::{Choice, value_of};

    /// Declares types that read a column of one type into a field of another.
    macro_rules! columns {
        ($($(#[$doc:meta])* $name:ident $(<$e:ident>)? ($target:ty) reads $column:ty,
            $value:ident => $read:expr;)*) => {$(
            $(#[$doc])*
            pub struct $name $(<$e>)? ($target $(, std::marker::PhantomData<$e>)?);

            impl $(<$e>)? Type<Postgres> for $name $(<$e>)? {
                fn type_info() -> PgTypeInfo {
                    <$column as Type<Postgres>>::type_info()
                }

                fn compatible(column: &PgTypeInfo) -> bool {
                    <$column as Type<Postgres>>::compatible(column)
                }
            }

            impl<'r $(, $e: Choice)?> Decode<'r, Postgres> for $name $(<$e>)? {
                fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
                    let $value = <$column as Decode<'r, Postgres>>::decode(value)?;
                    Ok(Self($read $(, std::marker::PhantomData::<$e>)?))
                }
            }

            impl $(<$e>)? From<$name $(<$e>)?> for $target {
                fn from(column: $name $(<$e>)?) -> Self {
                    column.0
                }
            }
        )*};
    }

    columns! {
        /// A nullable `uuid` column.
        OptionalIdColumn(Option<String>) reads Option<Uuid>, id => id.map(String::from);
        /// A `text` column with the name of a variant.
        EnumColumn<E>(i32) reads String, name => number::<E>(&name)?;
        /// A nullable `text` column with the name of a variant.
        OptionalEnumColumn<E>(Option<i32>) reads Option<String>,
            name => name.map(|name| number::<E>(&name)).transpose()?;
        /// A `text[]` column with the names of variants.
        EnumColumns<E>(Vec<i32>) reads Vec<String>,
            names => names.iter().map(|name| number::<E>(name)).collect::<Result<_, _>>()?;
    }

    fn number<E: Choice>(name: &str) -> Result<i32, String> {
        value_of::<E>(name).map(Into::into).ok_or_else(|| format!("unknown enum value {name:?}"))
    }
}
