//! Timestamps, with the same precision in gRPC, JSON and SQL.

use std::fmt;

use chrono::{DateTime, SecondsFormat, SubsecRound, Utc};
use prost::{
    DecodeError,
    bytes::{Buf, BufMut},
    encoding::{DecodeContext, WireType},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A time in UTC with the precision of PostgreSQL, microseconds: `google.protobuf.Timestamp` in
/// gRPC, RFC 3339 with six fractional digits and `Z` in JSON, `timestamptz` in SQL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub DateTime<Utc>);

/// The fields of `google.protobuf.Timestamp`.
#[derive(Clone, Copy, PartialEq, prost::Message)]
struct Wire {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

impl Timestamp {
    fn wire(self) -> Wire {
        let nanos = i32::try_from(self.0.timestamp_subsec_nanos()).unwrap_or_default();
        Wire { seconds: self.0.timestamp(), nanos }
    }
}

impl prost::Message for Timestamp {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        self.wire().encode_raw(buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        let mut wire = self.wire();
        wire.merge_field(tag, wire_type, buf, context)?;
        let nanos = u32::try_from(wire.nanos).unwrap_or_default();
        self.0 = DateTime::from_timestamp(wire.seconds, nanos).unwrap_or_default();
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        self.wire().encoded_len()
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_rfc3339_opts(SecondsFormat::Micros, true))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let time = DateTime::<Utc>::deserialize(deserializer)?.trunc_subsecs(6);
        // RFC 3339 has no years outside this range.
        if (0..=9999).contains(&chrono::Datelike::year(&time)) {
            return Ok(Self(time));
        }
        Err(serde::de::Error::custom("must be a time between the years 0 and 9999"))
    }
}

#[cfg(feature = "sql")]
mod sql {
    use chrono::{DateTime, Utc};
    use sqlx::{
        Decode, Encode, Postgres, Type,
        encode::IsNull,
        error::BoxDynError,
        postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueRef},
    };

    use super::Timestamp;

    impl Type<Postgres> for Timestamp {
        fn type_info() -> PgTypeInfo {
            <DateTime<Utc> as Type<Postgres>>::type_info()
        }
    }

    impl PgHasArrayType for Timestamp {
        fn array_type_info() -> PgTypeInfo {
            <DateTime<Utc> as PgHasArrayType>::array_type_info()
        }
    }

    impl<'r> Decode<'r, Postgres> for Timestamp {
        fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
            DateTime::decode(value).map(Self)
        }
    }

    impl Encode<'_, Postgres> for Timestamp {
        fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
            self.0.encode_by_ref(buffer)
        }
    }
}
