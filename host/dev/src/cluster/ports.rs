//! Free ports on loopback.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// Below the range from which the kernel takes ports of outgoing connections (32768 and up): a port of that range
/// could be taken by any connection between our look and the program's start.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// `N` ports that were free a moment ago. They stay taken until the value is dropped.
pub(crate) struct Reserved<const N: usize> {
    listeners: [TcpListener; N],
}

impl<const N: usize> Reserved<N> {
    /// # Errors
    /// There are no `N` free ports.
    pub(crate) fn new() -> io::Result<Self> {
        let start = u16::try_from(u32::from(jitter()?) % u32::from(COUNT)).unwrap_or_default();
        let candidates = (0..COUNT).map(|offset| FIRST + (start + offset) % COUNT);
        let free: Vec<TcpListener> = candidates
            .filter_map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).ok())
            .take(N)
            .collect();
        let listeners = free.try_into().map_err(|_| io::Error::other("no free ports on loopback"))?;
        Ok(Self { listeners })
    }

    pub(crate) fn release(self) -> io::Result<[u16; N]> {
        let mut ports = [0; N];
        for (port, listener) in ports.iter_mut().zip(&self.listeners) {
            *port = listener.local_addr()?.port();
        }
        Ok(ports)
    }
}

fn jitter() -> io::Result<u16> {
    let token = super::pki::random_token()?;
    Ok(u16::from_str_radix(token.get(..4).unwrap_or_default(), 16).unwrap_or_default())
}
