//! Answers that no event tells of: logs and registries, asked again while somebody waits (D27).

use std::{
    collections::{HashMap, HashSet},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use futures::{AsyncRead, AsyncReadExt as _};
use pintle_api::{Answer, LogTail, Read};

use super::{Caches, Resolve, changes::Changed, interest::Holder};
use crate::link::{Failure, Link, Query};

/// First pause between two questions; it doubles while the answer stays the same.
const PAUSE: Duration = Duration::from_secs(2);
/// Longest pause between two questions.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A log is read to this many bytes at most, whatever its lines.
const LONGEST_LOG: usize = 8 * 1024 * 1024;
/// How long reading one log may take.
const READ_TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes read at once.
const CHUNK: usize = 16 * 1024;

#[derive(Default)]
pub(super) struct Polled {
    entries: Mutex<HashMap<Read, Entry>>,
}

struct Entry {
    answer: Answer<String>,
    holders: HashSet<Holder>,
}

impl Polled {
    pub(super) fn answer(&self, read: &Read) -> Answer<String> {
        self.lock().get(read).map_or(Answer::NotYet, |entry| entry.answer.clone())
    }

    /// Drops what `holder` holds and `keep` does not name.
    pub(super) fn retain(&self, holder: &Holder, keep: impl Fn(&Read) -> bool) {
        for (read, entry) in self.lock().iter_mut() {
            if !keep(read) {
                entry.holders.remove(holder);
            }
        }
    }

    /// True when nobody asks for it yet: the caller is to start asking.
    fn hold(&self, read: &Read, holder: &Holder) -> bool {
        let mut entries = self.lock();
        let is_new = !entries.contains_key(read);
        let entry = entries
            .entry(read.clone())
            .or_insert_with(|| Entry { answer: Answer::NotYet, holders: HashSet::new() });
        entry.holders.insert(holder.clone());
        is_new
    }

    /// True when the answer is another than before; `None` when nobody waits for it any more.
    fn store(&self, read: &Read, answer: Answer<String>) -> Option<bool> {
        let mut entries = self.lock();
        let entry = entries.get_mut(read)?;
        if entry.holders.is_empty() {
            entries.remove(read);
            return None;
        }
        // A server that is away for a moment does not unsay what it said.
        let differs = entry.answer != answer && !answer.is_not_yet();
        if differs {
            entry.answer = answer;
        }
        Some(differs)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Read, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Caches {
    /// Asks once and waits for the answer; then goes on asking for as long as somebody holds the read.
    pub(super) async fn poll(&self, read: &Read, holder: &Holder) {
        if !self.polled.hold(read, holder) {
            return;
        }
        let answer = ask(&self.link, self.resolver.as_ref(), read).await;
        if self.polled.store(read, answer).is_some() {
            tokio::spawn(ask_again(Weak::clone(&self.myself), read.clone()));
        }
    }

    /// Goes on asking what was asked before, as long as the holder waits for it. A pass that finds its last
    /// answer still good does not poll again, so its record alone keeps the question alive.
    pub(super) fn keep_polling(&self, read: &Read, holder: &Holder) {
        if self.polled.hold(read, holder) {
            tokio::spawn(ask_again(Weak::clone(&self.myself), read.clone()));
        }
    }
}

async fn ask_again(caches: Weak<Caches>, read: Read) {
    let mut pause = PAUSE;
    loop {
        tokio::time::sleep(pause).await;
        let Some(caches) = caches.upgrade() else { return };
        // Nobody waits: the last answer is stored again only to find that out.
        let last = caches.polled.answer(&read);
        if caches.polled.store(&read, last).is_none() {
            return;
        }
        let answer = ask(&caches.link, caches.resolver.as_ref(), &read).await;
        match caches.polled.store(&read, answer) {
            None => return,
            Some(false) => pause = (pause * 2).min(LONGEST_PAUSE),
            Some(true) => {
                pause = PAUSE;
                caches.listeners.tell(&Changed::Text(read.clone()));
            }
        }
    }
}

async fn ask(link: &Link, resolver: Option<&Arc<dyn Resolve>>, read: &Read) -> Answer<String> {
    match (read, resolver) {
        (Read::Tail(log), _) => tail(link, log).await,
        (Read::Resolve(image), Some(resolver)) => resolver.resolve(image).await,
        (Read::Resolve(image), None) => Answer::Denied(format!(
            "no registry is asked for {image}: this process has no registry credentials"
        )),
        (Read::Get(_) | Read::List(_), _) => Answer::NotYet,
    }
}

async fn tail(link: &Link, log: &LogTail) -> Answer<String> {
    match read_tail(link, log).await {
        Ok(text) => Answer::Found(text),
        Err(failure) => match failure.status() {
            // 400: the container has not started, or there is no previous one.
            Some(status) if matches!(status.code, 400 | 404) => Answer::Missing,
            Some(status) if status.code == 403 => Answer::Denied(format!(
                "{} may not get pods/log in namespace {}; add this rule to a role of that account",
                link.account, log.namespace
            )),
            Some(status) if !matches!(status.code, 429 | 503) => Answer::Denied(format!(
                "the log of pod {}/{} could not be read: {}",
                log.namespace, log.pod, status.message
            )),
            _ => Answer::NotYet,
        },
    }
}

/// The last lines and bytes. The server's own byte limit cuts at the end, which is what a tail is about.
async fn read_tail(link: &Link, log: &LogTail) -> Result<String, Failure> {
    let path = format!("/api/v1/namespaces/{}/pods/{}/log", log.namespace, log.pod);
    let mut query = Query::new(&path).with("tailLines", &log.lines.to_string());
    query = query.with("limitBytes", &LONGEST_LOG.to_string());
    if let Some(container) = &log.container {
        query = query.with("container", container);
    }
    if log.previous {
        query = query.with("previous", "true");
    }
    let request = query.stream_as("*/*").map_err(Failure::Malformed)?;
    let text = pin!(link.open("pods/log", request).await?);
    let most = usize::try_from(log.max_bytes).unwrap_or(usize::MAX).min(LONGEST_LOG);
    let reading = tokio::time::timeout(READ_TIMEOUT, last_bytes(text, most));
    let bytes = reading.await.map_err(|_| Failure::TimedOut)??;
    Ok(String::from_utf8_lossy(whole_lines(&bytes, most)).into_owned())
}

async fn last_bytes(mut log: impl AsyncRead + Unpin, most: usize) -> Result<Vec<u8>, Failure> {
    let mut kept: Vec<u8> = Vec::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        let broken = |error| Failure::Broken(Box::new(kube::Error::ReadEvents(error)));
        let read = log.read(&mut chunk).await.map_err(broken)?;
        let Some(read) = chunk.get(..read).filter(|read| !read.is_empty()) else { return Ok(kept) };
        kept.extend_from_slice(read);
        // One byte more than asked for tells whether the first line is whole.
        let excess = kept.len().saturating_sub(most.saturating_add(1));
        kept.drain(..excess);
    }
}

/// From the first line that begins inside of the last `most` bytes; a single longer line is cut.
fn whole_lines(bytes: &[u8], most: usize) -> &[u8] {
    if bytes.len() <= most {
        return bytes;
    }
    let (before, last) = bytes.split_at(bytes.len() - most);
    if before.last() == Some(&b'\n') {
        return last;
    }
    match last.iter().position(|byte| *byte == b'\n') {
        Some(end) if end + 1 < last.len() => last.get(end + 1..).unwrap_or(last),
        _ => last,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_begins_with_a_whole_line() {
        assert_eq!(whole_lines(b"one\ntwo\nthree\n", 9), b"three\n");
        assert_eq!(whole_lines(b"\ntwo\nthree\n", 10), b"two\nthree\n");
        assert_eq!(whole_lines(b"abcdef", 3), b"def");
        assert_eq!(whole_lines(b"ab", 3), b"ab");
    }
}
