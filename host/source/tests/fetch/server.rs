//! A server that answers as a test says, honestly or not, and remembers what it was asked.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// One request: its target and the header `Authorization`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) target: String,
    pub(crate) authorization: Option<String>,
    /// `If-None-Match`
    pub(crate) known: Option<String>,
}

/// What it does with a request.
pub(crate) enum Reply {
    /// A whole answer.
    Full { status: u16, headers: Vec<(&'static str, String)>, body: Vec<u8> },
    /// Half of a body, then the end of the connection.
    Cut(Vec<u8>),
    /// Bytes without an end.
    Endless,
    /// Nothing, ever.
    Silent,
    /// A byte now and then.
    Drip,
}

pub(crate) struct Server {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
    serving: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Reply {
    pub(crate) fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self::Full { status: 200, headers: Vec::new(), body: body.into() }
    }

    pub(crate) fn status(status: u16) -> Self {
        Self::Full { status, headers: Vec::new(), body: b"so it is".to_vec() }
    }

    pub(crate) fn to(place: impl Into<String>) -> Self {
        Self::Full { status: 302, headers: vec![("Location", place.into())], body: Vec::new() }
    }

    pub(crate) fn with(self, name: &'static str, value: impl Into<String>) -> Self {
        match self {
            Self::Full { status, mut headers, body } => {
                headers.push((name, value.into()));
                Self::Full { status, headers, body }
            }
            other => other,
        }
    }
}

impl Server {
    /// Serves until it is dropped; the port is known to the script from the first request on.
    pub(crate) async fn start(script: impl Fn(&Asked, u16) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (script, seen) = (Arc::new(script), Arc::clone(&asked));
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (script, seen) = (Arc::clone(&script), Arc::clone(&seen));
                tokio::spawn(async move {
                    let _ = answer(stream, port, &*script, &seen).await;
                });
            }
        });
        Self { port, asked, serving }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn oci(&self, path: &str) -> String {
        format!("oci://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// How often a target was asked for.
    pub(crate) fn count(&self, target: &str) -> usize {
        self.asked().iter().filter(|asked| asked.target == target).count()
    }
}

async fn answer(
    mut stream: TcpStream,
    port: u16,
    script: &(impl Fn(&Asked, u16) -> Reply + ?Sized),
    seen: &Mutex<Vec<Asked>>,
) -> std::io::Result<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).await? == 0 || head.len() > 64 << 10 {
            return Ok(());
        }
        head.push(byte[0]);
        // The first byte of TLS.
        if head == [0x16] {
            return stream.write_all(b"HTTP/1.0 400 Bad Request\r\n\r\n").await;
        }
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    let header = |name: &str| {
        let line = text.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")));
        line.and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
    };
    let target = text.split(' ').nth(1).unwrap_or_default().to_owned();
    let asked = Asked { target, authorization: header("authorization"), known: header("if-none-match") };
    seen.lock().unwrap().push(asked.clone());
    send(&mut stream, script(&asked, port)).await
}

async fn send(stream: &mut TcpStream, reply: Reply) -> std::io::Result<()> {
    match reply {
        Reply::Full { status, headers, body } => {
            let mut head =
                format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n", body.len());
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            stream.write_all(format!("{head}\r\n").as_bytes()).await?;
            stream.write_all(&body).await
        }
        Reply::Cut(body) => {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len() * 2);
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(&body).await
        }
        Reply::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").await?;
            let piece = vec![b' '; 1 << 20];
            loop {
                stream.write_all(&piece).await?;
            }
        }
        Reply::Silent => {
            tokio::time::sleep(Duration::from_secs(600)).await;
            Ok(())
        }
        Reply::Drip => {
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n").await?;
            loop {
                stream.write_all(b" ").await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}
