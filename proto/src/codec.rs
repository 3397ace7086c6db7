//! How messages become frames.

use std::marker::PhantomData;

use prost::Message;
use tonic::codec::{BufferSettings, Codec as Coding};
use tonic_prost::{ProstCodec, ProstDecoder, ProstEncoder};

/// Size that the buffer of a stream of messages has at first and grows by, in bytes.
const BUFFER: usize = 8 << 10;

/// Passes each message of a stream on before the next one is asked for.
///
/// Left to itself, tonic collects up to 32 KiB. To do so it asks for the next message, and passes on
/// what it has when that isn't there yet. The work for that message has begun then: a query of the
/// database that holds a connection for as long as the client reads nothing.
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
