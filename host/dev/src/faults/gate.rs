//! The door of the proxy: while the API server is "away" connections break and new ones are dropped.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Takes connections unless the API server is away.
pub(super) struct Gate {
    pub(super) listener: TcpListener,
    pub(super) away: watch::Receiver<bool>,
}

impl Listener for Gate {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        loop {
            let accepted = self.listener.accept().await;
            if *self.away.borrow() {
                continue;
            }
            match accepted {
                Ok((stream, address)) => {
                    return (Connection::new(stream, self.away.clone()), address);
                }
                // Out of file handles, or a client that has gone: both pass.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that breaks when the API server goes away.
pub(super) struct Connection {
    stream: TcpStream,
    broken: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_broken: bool,
}

impl Connection {
    fn new(stream: TcpStream, mut away: watch::Receiver<bool>) -> Self {
        let broken = Box::pin(async move {
            // A proxy that is gone breaks its connections, too.
            drop(away.wait_for(|away| *away).await);
        });
        Self { stream, broken, is_broken: false }
    }

    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        self.is_broken = self.is_broken || self.broken.as_mut().poll(context).is_ready();
        if self.is_broken { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
