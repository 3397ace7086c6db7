//! Bodies that are one object or an array of them. The document has the array only, because many generators
//! of clients make nothing of a choice between the two.

use std::{fmt, marker::PhantomData};

use axum::extract::{FromRequest, Request};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

use super::{
    bounded::Bounds, filter::FieldFilter, json::parse, missing, object::Object, read_filtered,
};
use crate::problem::Problem;

/// One object, or an array of them.
pub(crate) struct OneOrMany<T>(pub(crate) Vec<T>);

impl<S: Sync, T: DeserializeOwned> FromRequest<S> for OneOrMany<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let body = read_filtered(FieldFilter::default(), Bounds::RECORDS, request).await?;
        parse(body.ok_or_else(missing)?.check()?)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Either(PhantomData)).map(Self)
    }
}

struct Either<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array of objects")
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<Vec<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(object)).map(|one| vec![one])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Vec<T>, A::Error> {
        let mut all = Vec::new();
        while let Some(Object(one)) = array.next_element()? {
            all.push(one);
        }
        Ok(all)
    }
}
