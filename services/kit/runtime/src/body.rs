//! The body of a request, as it arrives, for a reader that waits: parsers read, they are not fed.

use std::io::{self, BufRead, ErrorKind, Read};

use assay_proto::Fault;
use bytes::{Buf, Bytes};
use futures::{Stream, StreamExt};
use tokio::{sync::mpsc, task};
use tonic::Status;

/// What a body may have at most; the gateway takes no more either.
const LARGEST: usize = 32 << 20;

/// How many pieces are ahead of the reader.
const AHEAD: usize = 4;

/// A piece of a body as it was sent.
#[derive(Debug, Default)]
pub struct Piece {
    pub chunk: Bytes,
    /// Whether a further file starts with it.
    pub next_file: bool,
    /// Whether the body is complete with it.
    pub last: bool,
}

enum Part {
    Chunk(Bytes),
    NextFile,
    End,
}

/// One or several files. Each reads to its end before [`Body::next_file`] goes on to the next.
pub struct Body {
    parts: mpsc::Receiver<Part>,
    chunk: Bytes,
    at: At,
}

#[derive(Clone, Copy, PartialEq)]
enum At {
    InFile,
    EndOfFile,
    End,
}

/// Has `parse` read a body, on a thread where it may wait for it.
pub async fn read<T: Send + 'static>(
    pieces: impl Stream<Item = Result<Piece, Status>>,
    parse: impl FnOnce(Body) -> Result<T, Fault> + Send + 'static,
) -> Result<T, Status> {
    let (sender, parts) = mpsc::channel(AHEAD);
    let parsed =
        task::spawn_blocking(move || parse(Body { parts, chunk: Bytes::new(), at: At::InFile }));
    let sent = send(pieces, sender).await;
    let parsed = parsed.await.map_err(Fault::internal)?;
    sent?;
    Ok(parsed?)
}

/// Passes pieces on until the last one, or until nobody wants them any more. A client that goes away
/// in the middle looks like the end of the stream; so the last piece has to say that it is.
async fn send(
    pieces: impl Stream<Item = Result<Piece, Status>>,
    parts: mpsc::Sender<Part>,
) -> Result<(), Status> {
    let mut pieces = std::pin::pin!(pieces);
    let mut size = 0;
    while let Some(piece) = pieces.next().await {
        let Piece { chunk, next_file, last } = piece?;
        size += chunk.len();
        if size > LARGEST {
            let reason = format!("the body is larger than {} MiB", LARGEST >> 20);
            return Err(Fault::Refused { code: "too_large", reason }.into());
        }
        if next_file && parts.send(Part::NextFile).await.is_err()
            || parts.send(Part::Chunk(chunk)).await.is_err()
        {
            return Ok(());
        }
        if last {
            let _ = parts.send(Part::End).await;
            return Ok(());
        }
    }
    Err(Fault::Malformed("the body broke off".to_owned()).into())
}

impl Body {
    /// Goes on to the next file, if there is one.
    pub fn next_file(&mut self) -> io::Result<bool> {
        while self.at == At::InFile {
            let rest = self.fill_buf()?.len();
            self.consume(rest);
        }
        if self.at == At::End {
            return Ok(false);
        }
        self.at = At::InFile;
        Ok(true)
    }
}

impl BufRead for Body {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.chunk.is_empty() && self.at == At::InFile {
            match self.parts.blocking_recv() {
                Some(Part::Chunk(chunk)) => self.chunk = chunk,
                Some(Part::NextFile) => self.at = At::EndOfFile,
                Some(Part::End) => self.at = At::End,
                None => return Err(ErrorKind::UnexpectedEof.into()),
            }
        }
        Ok(&self.chunk)
    }

    fn consume(&mut self, amount: usize) {
        self.chunk.advance(amount);
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    fn piece(text: &'static str, next_file: bool) -> Piece {
        Piece { chunk: Bytes::from_static(text.as_bytes()), next_file, last: false }
    }

    fn last() -> Piece {
        Piece { last: true, ..Piece::default() }
    }

    fn files(mut body: Body) -> Result<Vec<String>, Fault> {
        let mut files = Vec::new();
        loop {
            files.push(io::read_to_string(&mut body).map_err(Fault::internal)?);
            if !body.next_file().map_err(Fault::internal)? {
                return Ok(files);
            }
        }
    }

    #[tokio::test]
    async fn files_are_read_one_after_the_other() {
        let pieces =
            [piece("a", false), piece("b", false), piece("c", true), piece("", true), last()];
        assert_eq!(read(stream::iter(pieces.map(Ok)), files).await.unwrap(), ["ab", "c", ""]);
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_not_read_as_a_whole_one() {
        let pieces = [Ok(piece("a", false)), Err(Status::cancelled("gone"))];
        let broken = read(stream::iter(pieces), files).await.unwrap_err();
        assert_eq!(broken.message(), "gone");
        // As a call looks that its client has given up.
        let silent = read(stream::iter([Ok(piece("a", false))]), files).await.unwrap_err();
        assert_eq!(silent.message(), "the body broke off");
    }

    #[tokio::test]
    async fn what_is_too_large_is_not_kept() {
        let chunk = Bytes::from(vec![b' '; 1 << 20]);
        let pieces = stream::repeat_with(|| Ok(Piece { chunk: chunk.clone(), ..Piece::default() }));
        let refused =
            read(pieces, |body| io::copy(&mut { body }, &mut io::sink()).map_err(Fault::internal));
        assert!(refused.await.unwrap_err().message().contains("32 MiB"));
    }

    #[tokio::test]
    async fn a_reader_that_has_seen_enough_is_not_sent_more() {
        let endless = stream::repeat_with(|| Ok(piece("a", false)));
        let refused = read(endless, |_| Err::<(), _>(Fault::Malformed("nonsense".to_owned())));
        assert_eq!(refused.await.unwrap_err().message(), "nonsense");
    }
}
