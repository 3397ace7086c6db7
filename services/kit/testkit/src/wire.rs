//! A TCP proxy between two programs that can fail, for tests of outages.

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
    Working,
    Frozen,
    Cut,
}

/// Address of the program behind the proxy.
#[derive(Clone)]
enum End {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// A TCP proxy in front of a program.
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

    /// Starts a proxy in front of a test's PostgreSQL. Also returns the URL of the database through
    /// it.
    pub async fn to_postgres(url: &str) -> Result<(Self, String)> {
        let options = PgConnectOptions::from_str(url)?;
        let wire = Self::between(socket_of(&options)?).await?;
        let (user, database) = (options.get_username(), options.get_database());
        let database = database.context("the URL has no database")?;
        let url = format!("postgres://{user}@{}/{database}?sslmode=disable", wire.address);
        Ok((wire, url))
    }

    async fn between(program: End) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (program, state) = (watch::Sender::new(program), watch::Sender::new(State::Working));
        let delay = watch::Sender::new(Duration::ZERO);
        let mut tasks = JoinSet::new();
        let controls = (state.subscribe(), delay.subscribe());
        tasks.spawn(serve(listener, program.subscribe(), controls));
        Ok(Self { address, program, state, delay, _tasks: tasks })
    }

    /// Directs new connections to another PostgreSQL, as a failover does.
    pub fn redirect_to_postgres(&self, url: &str) -> Result<()> {
        self.program.send_replace(socket_of(&PgConnectOptions::from_str(url)?)?);
        Ok(())
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Forwards nothing, but accepts connections, like a program that is stopped by SIGSTOP.
    pub fn freeze(&self) {
        self.state.send_replace(State::Frozen);
    }

    /// Closes and refuses connections, like a program that is killed.
    pub fn cut(&self) {
        self.state.send_replace(State::Cut);
    }

    /// Delays responses of the program by this time, or by up to twice as much.
    pub fn delay_answers(&self, delay: Duration) {
        self.delay.send_replace(delay);
    }

    /// Forwards again, and accepts connections.
    pub fn restore(&self) {
        self.state.send_replace(State::Working);
    }
}

fn socket_of(postgres: &PgConnectOptions) -> Result<End> {
    let dir = postgres.get_socket().context("the URL has no socket")?;
    Ok(End::Unix(dir.join(format!(".s.PGSQL.{}", postgres.get_port()))))
}

async fn serve(
    mut listener: TcpListener,
    program: watch::Receiver<End>,
    (mut state, delay): Controls,
) {
    let address = listener.local_addr().expect("the listener has an address");
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

/// State of the proxy, and delay of responses.
type Controls = (watch::Receiver<State>, watch::Receiver<Duration>);

async fn connect(client: TcpStream, program: End, controls: Controls) {
    match program {
        End::Tcp(address) => {
            let Ok(program) = TcpStream::connect(address).await else { return };
            program.set_nodelay(true).expect("the socket is connected");
            join(client, program, controls).await;
        }
        End::Unix(path) => {
            let Ok(program) = UnixStream::connect(path).await else { return };
            join(client, program, controls).await;
        }
    }
}

async fn join(client: TcpStream, program: impl AsyncRead + AsyncWrite, (state, delay): Controls) {
    client.set_nodelay(true).expect("the socket is connected");
    let ((from_client, to_client), (from_program, to_program)) =
        (client.into_split(), tokio::io::split(program));
    tokio::join!(
        forward(from_client, to_program, state.clone(), None),
        forward(from_program, to_client, state, Some(delay)),
    );
}

/// Forwards bytes in one direction while the proxy works.
async fn forward(
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
        if state.wait_for(|state| *state == State::Working).await.is_err()
            || to.write_all(&bytes[..count]).await.is_err()
        {
            return;
        }
    }
}

/// Returns an address whose connection attempts get no response, as long as the guard is kept.
pub async fn black_hole() -> Result<(SocketAddr, impl Sized)> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let listener = socket.listen(1)?;
    let address = listener.local_addr()?;
    // The system queues a few connections in the backlog, and ignores further attempts.
    let mut waiting = Vec::new();
    while let Ok(connected) = timeout(Duration::from_millis(300), TcpStream::connect(address)).await
    {
        waiting.push(connected?);
    }
    Ok((address, (listener, waiting)))
}
