//! `flood ADDRESS CLIENTS SECONDS METHOD PATH TOKEN [BODY]` sends requests from many clients at
//! once. Each client sends its next request as soon as it has a response, even if the response asks
//! it to wait.
//!
//! Prints, as JSON, the responses per second by status, and percentiles of the time until a
//! successful response in milliseconds. The first quarter of the time is not counted.

use std::{
    collections::BTreeMap,
    env,
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use futures::future::join_all;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpSocket, TcpStream},
    time::sleep,
};

/// Number of addresses that the clients connect from: a server limits the connections of each.
const ADDRESSES: usize = 8;

/// Pause of a client before it connects again.
const PAUSE: Duration = Duration::from_millis(100);

struct Flood {
    address: SocketAddr,
    request: Vec<u8>,
    counted_from: Instant,
    until: Instant,
}

/// Responses by status, 0 for none, and the times until those that were successful.
#[derive(Default)]
struct Answers {
    by_status: BTreeMap<u16, usize>,
    times: Vec<Duration>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    assay_runtime::raise_file_limit();
    let words: Vec<String> = env::args().skip(1).collect();
    let [address, clients, seconds, method, path, token, body @ ..] = &words[..] else {
        bail!("usage: flood ADDRESS CLIENTS SECONDS METHOD PATH TOKEN [BODY]");
    };
    let body = body.first().map_or("", String::as_str);
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthentication: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let duration = Duration::from_secs(seconds.parse()?);
    let started = Instant::now();
    let flood = Flood {
        address: address.parse()?,
        request: request.into_bytes(),
        counted_from: started + duration / 4,
        until: started + duration,
    };
    let clients: usize = clients.parse()?;
    let answers = join_all((0..clients).map(|number| flood.client(number))).await;
    print(answers, (flood.until - flood.counted_from).as_secs_f64());
    Ok(())
}

impl Flood {
    /// Sends requests one after the other, on one connection for as long as it is open.
    async fn client(&self, number: usize) -> Answers {
        let mut answers = Answers::default();
        while Instant::now() < self.until {
            if self.on_one_connection(number, &mut answers).await.is_err() {
                self.count(&mut answers, 0, Instant::now());
                sleep(PAUSE).await;
            }
        }
        answers
    }

    async fn on_one_connection(&self, number: usize, answers: &mut Answers) -> Result<()> {
        let socket = TcpSocket::new_v4()?;
        let host = u8::try_from(number % ADDRESSES)? + 1;
        socket.bind((Ipv4Addr::new(127, 0, 0, host), 0).into())?;
        let mut stream = socket.connect(self.address).await?;
        stream.set_nodelay(true)?;
        let mut buffer = Vec::new();
        while Instant::now() < self.until {
            let began = Instant::now();
            stream.write_all(&self.request).await?;
            let status = status_of_response(&mut stream, &mut buffer).await?;
            self.count(answers, status, began);
        }
        Ok(())
    }

    fn count(&self, answers: &mut Answers, status: u16, began: Instant) {
        let now = Instant::now();
        if (self.counted_from..self.until).contains(&now) {
            *answers.by_status.entry(status).or_default() += 1;
            if (200..300).contains(&status) {
                answers.times.push(now - began);
            }
        }
    }
}

/// Reads a response to its end, by its length.
async fn status_of_response(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<u16> {
    buffer.clear();
    let head = loop {
        if stream.read_buf(buffer).await? == 0 {
            bail!("the connection was closed");
        }
        if let Some(end) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let text = str::from_utf8(&buffer[..head])?;
    let status = text.get(9..12).context("no status")?.parse()?;
    let lengths = text.lines().filter_map(|line| line.split_once(": "));
    let mut lengths = lengths.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let (_, length) = lengths.next().context("a response without a length")?;
    let end = head + length.parse::<usize>()?;
    while buffer.len() < end {
        if stream.read_buf(buffer).await? == 0 {
            bail!("the response broke off");
        }
    }
    Ok(status)
}

#[expect(clippy::cast_precision_loss, reason = "counts are small")]
fn print(answers: Vec<Answers>, seconds: f64) {
    let mut by_status = BTreeMap::<u16, usize>::new();
    let mut times = Vec::new();
    for answers in answers {
        for (status, count) in answers.by_status {
            *by_status.entry(status).or_default() += count;
        }
        times.extend(answers.times);
    }
    times.sort_unstable();
    let percentile = |part: usize| {
        let time = times.get(times.len() * part / 100);
        time.map(|time| (time.as_secs_f64() * 1e4).round() / 10.0)
    };
    let rates: BTreeMap<String, f64> = by_status
        .into_iter()
        .map(|(status, count)| (status.to_string(), (count as f64 / seconds).round()))
        .collect();
    println!("{}", json!({ "rates": rates, "p50": percentile(50), "p99": percentile(99) }));
}
