//! An SMTP server that receives the mails of a test. It is slow for some recipients.

use std::{
    io,
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use assay_runtime::Runtime;
use assay_testkit::eventually;
use mailin::{Action, Handler, Response, SessionBuilder, response};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::interval,
};

/// Domains of recipients whose mails the server does not answer after the text, answers byte by byte
/// without an end, and answers when the test allows it.
pub(crate) const HANGS: &str = "@hangs.example";
pub(crate) const DRIPS: &str = "@drips.example";
pub(crate) const LATE: &str = "@late.example";

/// A mail as the server received it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    pub(crate) from: String,
    pub(crate) to: Vec<String>,
    pub(crate) text: String,
}

/// The mails that a server received, and its answers to the next recipients.
#[derive(Clone, Default)]
pub(crate) struct Mailbox {
    pub(crate) received: Arc<Mutex<Vec<Received>>>,
    pub(crate) refusals: Arc<Mutex<Vec<Response>>>,
    /// Number of conversations that wait for an answer to the text.
    waiting: Arc<AtomicUsize>,
    /// Late answers that are allowed.
    pub(crate) late: Arc<Gate>,
}

/// Lets as many late answers pass as the test allows.
pub(crate) struct Gate(pub(crate) Semaphore);

impl Default for Gate {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

struct Conversation {
    mailbox: Mailbox,
    mail: Received,
    /// How the next answer is slow.
    slow: Arc<Mutex<Option<&'static str>>>,
}

impl Handler for Conversation {
    fn mail(&mut self, _: IpAddr, _: &str, from: &str) -> Response {
        self.mail = Received { from: from.to_owned(), ..Received::default() };
        response::OK
    }

    fn rcpt(&mut self, to: &str) -> Response {
        self.mail.to.push(to.to_owned());
        self.mailbox.refusals.lock().unwrap().pop().unwrap_or(response::OK)
    }

    fn data(&mut self, line: &[u8]) -> io::Result<()> {
        self.mail.text.push_str(&String::from_utf8_lossy(line));
        Ok(())
    }

    fn data_end(&mut self) -> Response {
        let to = self.mail.to.concat();
        let slow = [HANGS, DRIPS, LATE].into_iter().find(|domain| to.ends_with(domain));
        *self.slow.lock().unwrap() = slow;
        if slow.is_none_or(|how| how == LATE) {
            self.mailbox.received.lock().unwrap().push(self.mail.clone());
        }
        response::OK
    }
}

impl Mailbox {
    /// Serves SMTP until the test ends; returns the URL.
    pub(crate) async fn serve(&self) -> Result<String> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("smtp://{}", listener.local_addr()?);
        let (mailbox, runtime) = (self.clone(), Runtime::new("mail server"));
        let this = runtime.clone();
        runtime.spawn("mail server", async move {
            loop {
                let (stream, _) = listener.accept().await?;
                let mailbox = mailbox.clone();
                this.spawn("conversation", async {
                    // A client may end a slow conversation at any time.
                    let _ = converse(stream, mailbox).await;
                    Ok(())
                });
            }
        });
        Ok(url)
    }

    /// All mails received so far.
    pub(crate) fn sent(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Waits until this number of conversations wait for an answer.
    pub(crate) async fn waits(&self, count: usize) {
        eventually("slow conversations", async || (self.waiting() == count).then_some(())).await;
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    pub(crate) async fn mails(&self, count: usize) -> Vec<Received> {
        eventually("mails", async || {
            let received = self.received.lock().unwrap().clone();
            (received.len() == count).then_some(received)
        })
        .await
    }
}

async fn converse(stream: TcpStream, mailbox: Mailbox) -> io::Result<()> {
    let (mail, slow) = (Received::default(), Arc::new(Mutex::new(None)));
    let handler = Conversation { mailbox: mailbox.clone(), mail, slow: slow.clone() };
    let mut session =
        SessionBuilder::new("mail.example").build(IpAddr::V4(Ipv4Addr::LOCALHOST), handler);
    let mut stream = BufReader::new(stream);
    let mut answer = session.greeting();
    loop {
        let how = slow.lock().unwrap().take();
        if let Some(how) = how {
            mailbox.waiting.fetch_add(1, Ordering::AcqRel);
            wait(&mut stream, &mailbox, how).await;
            mailbox.waiting.fetch_sub(1, Ordering::AcqRel);
        }
        if !matches!(answer.action, Action::NoReply) {
            stream.write_all(&answer.buffer()?).await?;
        }
        let mut line = Vec::new();
        if matches!(answer.action, Action::Close) || stream.read_until(b'\n', &mut line).await? == 0
        {
            return Ok(());
        }
        answer = session.process(&line);
    }
}

/// Waits before an answer: until the client hangs up, or until the test allows it.
async fn wait(stream: &mut BufReader<TcpStream>, mailbox: &Mailbox, how: &str) {
    match how {
        HANGS => drop(stream.read_until(b'\n', &mut Vec::new()).await),
        DRIPS => {
            let mut drops = interval(Duration::from_millis(20));
            while stream.write_all(b"2").await.is_ok() {
                drops.tick().await;
            }
        }
        _ => mailbox.late.0.acquire().await.unwrap().forget(),
    }
}
