//! Deserializes integers, including those with a fraction of zero: JSON Schema counts `2.0` as an
//! integer, and many clients write it that way.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{self, Unexpected, Visitor},
};

/// An integer type of the contracts.
pub trait Integer: TryFrom<i64> {
    /// Name of the type in error messages.
    const NAME: &'static str;
}

impl Integer for i32 {
    const NAME: &'static str = "i32";
}

impl Integer for i64 {
    const NAME: &'static str = "i64";
}

/// Deserializes an integer, which may have a fraction of zero.
pub fn integer<'de, T: Integer, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(Number(PhantomData))
}

/// Deserializes an integer like [`integer`], or null.
pub fn optional_integer<'de, T: Integer, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Option::<Whole<T>>::deserialize(deserializer).map(|number| number.map(|Whole(number)| number))
}

/// Deserializes an array of integers like [`integer`].
pub fn integers<'de, T: Integer, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let numbers = Vec::<Whole<T>>::deserialize(deserializer)?;
    Ok(numbers.into_iter().map(|Whole(number)| number).collect())
}

struct Whole<T>(T);

impl<'de, T: Integer> Deserialize<'de> for Whole<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        integer(deserializer).map(Self)
    }
}

struct Number<T>(PhantomData<T>);

impl<T: Integer> Visitor<'_> for Number<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::NAME)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        T::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        let signed = i64::try_from(number).ok().and_then(|number| T::try_from(number).ok());
        signed.ok_or_else(|| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
        let whole = whole(number).and_then(|number| T::try_from(number).ok());
        whole.ok_or_else(|| E::invalid_value(Unexpected::Float(number), &self))
    }
}

/// Returns the integer with the value of `number`, if there is one.
#[expect(clippy::cast_possible_truncation, reason = "the result is compared with the original")]
#[expect(clippy::cast_precision_loss, reason = "as above")]
#[expect(clippy::float_cmp, reason = "equality means that nothing was rounded")]
fn whole(number: f64) -> Option<i64> {
    // `i64::MAX as f64` is 2^63, so the cast below does not saturate.
    let in_range = number.abs() < i64::MAX as f64;
    (in_range && number as i64 as f64 == number).then_some(number as i64)
}
