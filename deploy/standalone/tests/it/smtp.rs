//! A mail server.

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::mail::Mail;

/// A mail as the server receives it.
pub(crate) struct Delivery {
    pub(crate) from: String,
    pub(crate) to: Vec<String>,
    pub(crate) mail: Mail,
}

/// Receives mails according to RFC 5321, and accepts those for which `take` returns true. For others,
/// the client gets no answer.
pub(crate) async fn serve<T: Future<Output = bool> + Send + 'static>(
    listener: TcpListener,
    take: impl Fn(Delivery) -> T + Clone + Send + 'static,
) {
    let mut clients = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        // A client may be killed.
        clients.spawn(converse(stream, take.clone()));
    }
}

async fn converse<T: Future<Output = bool>>(
    stream: TcpStream,
    take: impl Fn(Delivery) -> T,
) -> Result<(), std::io::Error> {
    let mut stream = BufReader::new(stream);
    let (mut from, mut to) = (String::new(), Vec::new());
    stream.write_all(b"220 mail.test\r\n").await?;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(());
        }
        let (verb, rest) = line.trim_end().split_at(4.min(line.trim_end().len()));
        let answer = match verb.to_uppercase().as_str() {
            "EHLO" | "HELO" | "RSET" | "NOOP" => "250 mail.test",
            "MAIL" => {
                rest.trim().clone_into(&mut from);
                "250 OK"
            }
            "RCPT" => {
                to.push(rest.trim().to_owned());
                "250 OK"
            }
            "DATA" => {
                stream.write_all(b"354 go on\r\n").await?;
                let mail = Mail::read(&data(&mut stream).await?);
                let (from, to) = (std::mem::take(&mut from), std::mem::take(&mut to));
                if !take(Delivery { from, to, mail }).await {
                    return Ok(());
                }
                "250 OK"
            }
            "QUIT" => return stream.write_all(b"221 bye\r\n").await,
            _ => "502 what?",
        };
        stream.write_all(format!("{answer}\r\n").as_bytes()).await?;
    }
}

/// Reads up to the line with only a dot.
async fn data(stream: &mut BufReader<TcpStream>) -> Result<String, std::io::Error> {
    let mut text = String::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        if line == ".\r\n" {
            return Ok(text);
        }
        text.push_str(line.strip_prefix('.').unwrap_or(&line));
    }
}
