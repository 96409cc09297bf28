//! One file over HTTP on loopback, for those who get charts that way.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// A file that is served until this is dropped.
#[derive(Debug)]
pub(crate) struct Served {
    pub url: String,
    task: JoinHandle<()>,
}

// === impl Served ===

impl Served {
    pub(crate) async fn start(name: &str, bytes: Vec<u8>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}/{name}", listener.local_addr()?);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, bytes.clone()));
            }
        });
        Ok(Self { url, task })
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers whatever is asked with the file. A peer that goes away early asks again by itself.
async fn answer(mut stream: TcpStream, bytes: Vec<u8>) {
    let (mut asked, mut buffer) = (Vec::new(), [0; 1024]);
    while !asked.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(read @ 1..) => asked.extend(buffer.iter().take(read)),
            _ => return,
        }
    }
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", bytes.len());
    if stream.write_all(head.as_bytes()).await.is_ok() {
        drop(stream.write_all(&bytes).await);
        drop(stream.shutdown().await);
    }
}
