//! What is between two programs, for tests in which it breaks.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpSocket, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
    task::JoinSet,
    time::{Duration, timeout},
};

#[derive(Clone, Copy, PartialEq)]
enum State {
    Whole,
    Frozen,
    Cut,
}

/// An address where a program can be reached, as long as the wire is whole.
pub struct Wire {
    address: SocketAddr,
    state: watch::Sender<State>,
    _tasks: JoinSet<()>,
}

impl Wire {
    pub async fn to(program: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let state = watch::Sender::new(State::Whole);
        let mut tasks = JoinSet::new();
        tasks.spawn(lay(listener, program, state.subscribe()));
        Ok(Self { address, state, _tasks: tasks })
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

    pub fn mend(&self) {
        self.state.send_replace(State::Whole);
    }
}

async fn lay(mut listener: TcpListener, program: SocketAddr, mut state: watch::Receiver<State>) {
    let address = listener.local_addr().expect("it listens");
    loop {
        let mut connections = JoinSet::new();
        let mut cut = state.clone();
        let accepting = async {
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(connect(client, program, state.clone()));
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

async fn connect(client: TcpStream, program: SocketAddr, state: watch::Receiver<State>) {
    let Ok(program) = TcpStream::connect(program).await else { return };
    for stream in [&client, &program] {
        stream.set_nodelay(true).expect("it is a connection");
    }
    let ((from_client, to_client), (from_program, to_program)) =
        (client.into_split(), program.into_split());
    tokio::join!(
        carry(from_client, to_program, state.clone()),
        carry(from_program, to_client, state),
    );
}

/// Carries what one says to the other, while the wire is whole.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut state: watch::Receiver<State>) {
    let mut bytes = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
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
