//! The gRPC codec of the generated clients and servers.

use std::marker::PhantomData;

use prost::Message;
use tonic::codec::{BufferSettings, Codec as Coding};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

/// Initial size and growth of the buffer of a stream, in bytes.
const BUFFER: usize = 8 << 10;

/// A codec that flushes each message of a stream before the next one is requested.
///
/// By default, tonic buffers up to 32 KiB: it polls for the next message and flushes only if that
/// is pending. The work for that message has started by then, for instance a query that holds a
/// database connection for as long as the client does not read.
#[derive(Debug)]
pub struct Codec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for Codec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Coding for Codec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = ProstDecoder<U>;

    fn encoder(&mut self) -> ProstEncoder<T> {
        ProstEncoder::new(BufferSettings::new(BUFFER, 1))
    }

    fn decoder(&mut self) -> ProstDecoder<U> {
        ProstCodec::<T, U>::raw_decoder(BufferSettings::default())
    }
}
