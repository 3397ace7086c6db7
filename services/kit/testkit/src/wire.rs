//! What is between two programs, for tests in which it breaks.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    str::FromStr,
};

use anyhow::{Context, Result};
use sqlx::postgres::PgConnectOptions;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream, UnixStream},
    sync::watch,
    task::JoinSet,
    time::{Duration, sleep, timeout},
};

#[derive(Clone, Copy, PartialEq)]
enum State {
    Whole,
    Frozen,
    Cut,
}

/// Where the program at the far end listens.
#[derive(Clone)]
enum End {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// An address where a program can be reached, as long as the wire is whole.
pub struct Wire {
    address: SocketAddr,
    program: watch::Sender<End>,
    state: watch::Sender<State>,
    delay: watch::Sender<Duration>,
    _tasks: JoinSet<()>,
}

impl Wire {
    pub async fn to(program: SocketAddr) -> Result<Self> {
        Self::between(End::Tcp(program)).await
    }

    /// A wire to a test's PostgreSQL, and the URL of the database at this end of it.
    pub async fn to_postgres(url: &str) -> Result<(Self, String)> {
        let options = PgConnectOptions::from_str(url)?;
        let wire = Self::between(socket_of(&options)?).await?;
        let (user, database) = (options.get_username(), options.get_database());
        let database = database.context("the URL names a database")?;
        let url = format!("postgres://{user}@{}/{database}?sslmode=disable", wire.address);
        Ok((wire, url))
    }

    async fn between(program: End) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (program, state) = (watch::Sender::new(program), watch::Sender::new(State::Whole));
        let delay = watch::Sender::new(Duration::ZERO);
        let mut tasks = JoinSet::new();
        let fate = (state.subscribe(), delay.subscribe());
        tasks.spawn(lay(listener, program.subscribe(), fate));
        Ok(Self { address, program, state, delay, _tasks: tasks })
    }

    /// Leads new connections to another PostgreSQL, as a name does after a failover.
    pub fn lead_to_postgres(&self, url: &str) -> Result<()> {
        self.program.send_replace(socket_of(&PgConnectOptions::from_str(url)?)?);
        Ok(())
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Nothing gets through any more, though connections are made: as with a program that was
    /// stopped by SIGSTOP.
    pub fn freeze(&self) {
        self.state.send_replace(State::Frozen);
    }

    /// Connections break, and are refused: as with a program that was killed.
    pub fn cut(&self) {
        self.state.send_replace(State::Cut);
    }

    /// What the program answers arrives later by this, or by up to twice as much.
    pub fn delay_answers(&self, delay: Duration) {
        self.delay.send_replace(delay);
    }

    pub fn mend(&self) {
        self.state.send_replace(State::Whole);
    }
}

fn socket_of(postgres: &PgConnectOptions) -> Result<End> {
    let dir = postgres.get_socket().context("it is reached by a socket")?;
    Ok(End::Unix(dir.join(format!(".s.PGSQL.{}", postgres.get_port()))))
}

async fn lay(mut listener: TcpListener, program: watch::Receiver<End>, (mut state, delay): Fate) {
    let address = listener.local_addr().expect("it listens");
    loop {
        let mut connections = JoinSet::new();
        let mut cut = state.clone();
        let accepting = async {
            while let Ok((client, _)) = listener.accept().await {
                let program = program.borrow().clone();
                connections.spawn(connect(client, program, (state.clone(), delay.clone())));
            }
        };
        tokio::select! {
            () = accepting => {}
            _ = cut.wait_for(|state| *state == State::Cut) => {}
        }
        drop((listener, connections));
        if state.wait_for(|state| *state != State::Cut).await.is_err() {
            return;
        }
        listener = TcpListener::bind(address).await.expect("the address is still free");
    }
}

/// Whether a wire is whole, and how late answers arrive.
type Fate = (watch::Receiver<State>, watch::Receiver<Duration>);

async fn connect(client: TcpStream, program: End, fate: Fate) {
    match program {
        End::Tcp(address) => {
            let Ok(program) = TcpStream::connect(address).await else { return };
            program.set_nodelay(true).expect("it is a connection");
            join(client, program, fate).await;
        }
        End::Unix(path) => {
            let Ok(program) = UnixStream::connect(path).await else { return };
            join(client, program, fate).await;
        }
    }
}

async fn join(client: TcpStream, program: impl AsyncRead + AsyncWrite, (state, delay): Fate) {
    client.set_nodelay(true).expect("it is a connection");
    let ((from_client, to_client), (from_program, to_program)) =
        (client.into_split(), tokio::io::split(program));
    tokio::join!(
        carry(from_client, to_program, state.clone(), None),
        carry(from_program, to_client, state, Some(delay)),
    );
}

/// Carries what one says to the other, while the wire is whole.
async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut state: watch::Receiver<State>,
    delay: Option<watch::Receiver<Duration>>,
) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let pause = delay.as_ref().map(|delay| *delay.borrow()).unwrap_or_default();
        if !pause.is_zero() {
            sleep(pause).await;
        }
        if state.wait_for(|state| *state == State::Whole).await.is_err()
            || to.write_all(&bytes[..count]).await.is_err()
        {
            return;
        }
    }
}

/// An address to which nothing gets through: whoever tries waits, and hears nothing. It is one as
/// long as what comes with it is kept.
pub async fn black_hole() -> Result<(SocketAddr, impl Sized)> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let listener = socket.listen(1)?;
    let address = listener.local_addr()?;
    // Of those who are not accepted, the system keeps a few waiting, and does not answer the others.
    let mut waiting = Vec::new();
    while let Ok(connected) = timeout(Duration::from_millis(300), TcpStream::connect(address)).await
    {
        waiting.push(connected?);
    }
    Ok((address, (listener, waiting)))
}
