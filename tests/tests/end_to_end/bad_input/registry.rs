//! Registries that are away or lie.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// A port on which a registry will be up later.
pub(crate) struct Forward {
    port: u16,
}

/// Something that serves until it is dropped.
pub(crate) struct Serving(JoinHandle<()>);

/// A registry that answers every digest with the same manifest.
pub(crate) struct Liar {
    port: u16,
    _serving: Serving,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.abort();
    }
}

// === impl Forward ===

impl Forward {
    /// A port nobody listens on.
    pub(crate) async fn reserve() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        Self { port: listener.local_addr().unwrap().port() }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Passes connections on to the registry at `address` from now on.
    pub(crate) async fn start(&self, address: &str) -> Serving {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await.unwrap();
        let address = address.to_owned();
        Serving(tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let address = address.clone();
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(address).await?;
                    tokio::io::copy_bidirectional(&mut near, &mut far).await
                });
            }
        }))
    }
}

// === impl Liar ===

impl Liar {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let serving = Serving(tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream));
            }
        }));
        Self { port, _serving: serving }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }
}

/// One request, one answer: a manifest, whatever was asked for.
async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let (mut seen, mut part) = (Vec::new(), [0; 1024]);
    while !seen.ends_with(b"\r\n\r\n") {
        match stream.read(&mut part).await? {
            0 => return Ok(()),
            count => seen.extend_from_slice(&part[..count]),
        }
    }
    let manifest = r#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.wasm.config.v0+json","digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2},"layers":[]}"#;
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.oci.image.manifest.v1+json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        manifest.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(manifest.as_bytes()).await
}
