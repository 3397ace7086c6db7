//! Receivers of mails and webhooks that hang, refuse and lose answers, with ledgers of what they have
//! received.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use crate::smtp;

/// How a receiver answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mood {
    Accepts,
    /// Does not answer until the mood changes.
    Hangs,
    /// Takes nothing, and closes the connection or answers 500.
    Refuses,
    /// Takes the message, but the answer is lost.
    Loses,
}

/// The mood of a receiver, and the number of times that it has received each message.
struct Counter<T> {
    mood: watch::Sender<Mood>,
    received: Mutex<BTreeMap<String, (usize, T)>>,
}

impl<T: Clone> Counter<T> {
    fn new() -> Arc<Self> {
        Arc::new(Self { mood: watch::Sender::new(Mood::Accepts), received: Mutex::default() })
    }

    /// Counts a message if it is taken, once the receiver does not hang; returns its mood.
    async fn take(&self, id: String, message: T) -> Mood {
        let mood = *self.mood.subscribe().wait_for(|mood| *mood != Mood::Hangs).await.unwrap();
        if matches!(mood, Mood::Accepts | Mood::Loses) {
            self.received.lock().unwrap().entry(id).or_insert((0, message)).0 += 1;
        }
        mood
    }

    fn messages(&self) -> BTreeMap<String, (usize, T)> {
        self.received.lock().unwrap().clone()
    }
}

/// An SMTP server.
pub(super) struct Mailbox {
    counter: Arc<Counter<()>>,
    address: SocketAddr,
    _task: JoinSet<()>,
}

impl Mailbox {
    pub(super) async fn open() -> Self {
        let (counter, listener, address) = opened().await;
        let mut task = JoinSet::new();
        let taking: Arc<Counter<()>> = counter.clone();
        task.spawn(smtp::serve(listener, move |delivery| {
            let counter = taking.clone();
            async move {
                let mut lines = delivery.mail.header.lines();
                let id = lines.find_map(|line| line.strip_prefix("Message-ID: "));
                counter.take(id.unwrap().to_owned(), ()).await == Mood::Accepts
            }
        }));
        Self { counter, address, _task: task }
    }

    pub(super) fn url(&self) -> String {
        format!("smtp://{}", self.address)
    }

    pub(super) fn set(&self, mood: Mood) {
        self.counter.mood.send_replace(mood);
    }

    /// How often each mail was received, by its Message-ID.
    pub(super) fn mails(&self) -> BTreeMap<String, usize> {
        self.counter.messages().into_iter().map(|(id, (count, ()))| (id, count)).collect()
    }
}

/// A receiver of a webhook.
pub(super) struct Receiver {
    counter: Arc<Counter<Value>>,
    address: SocketAddr,
    _task: JoinSet<()>,
}

impl Receiver {
    pub(super) async fn open() -> Self {
        let (counter, listener, address) = opened().await;
        let mut task = JoinSet::new();
        task.spawn(serve(listener, counter.clone()));
        Self { counter, address, _task: task }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    pub(super) fn set(&self, mood: Mood) {
        self.counter.mood.send_replace(mood);
    }

    /// How often each delivery was received, and its notification, by the id of the delivery.
    pub(super) fn deliveries(&self) -> BTreeMap<String, (usize, Value)> {
        self.counter.messages()
    }
}

async fn opened<T: Clone>() -> (Arc<Counter<T>>, TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (Counter::new(), listener, address)
}

async fn serve(listener: TcpListener, counter: Arc<Counter<Value>>) {
    let mut clients = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        // A client may be killed.
        clients.spawn(converse(stream, counter.clone()));
    }
}

/// Answers the requests of a connection.
async fn converse(stream: TcpStream, counter: Arc<Counter<Value>>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let (mut id, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                if line.trim_end().is_empty() {
                    break;
                }
                continue;
            };
            match name.to_lowercase().as_str() {
                "webhook-id" => value.clone_into(&mut id),
                "content-length" => length = value.parse().unwrap(),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let notification: Value = serde_json::from_slice(&body)?;
        let answer = match counter.take(id, notification["data"].clone()).await {
            Mood::Accepts => "HTTP/1.1 204 No Content\r\n\r\n",
            Mood::Loses => return Ok(()),
            _ => "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n",
        };
        stream.write_all(answer.as_bytes()).await?;
    }
}
