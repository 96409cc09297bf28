//! The functions of the host as a fake answers them, on the thread of the test.

use crate::{
    bindings::pintle::plugin::{
        images::Image,
        kube_read::Page,
        log::Level,
        types::{ObjectQuery, ObjectRef, ReadError},
    },
    fake::with,
};

pub(crate) fn owner() -> String {
    with(|host| host.owner.to_string())
}

pub(crate) fn config() -> String {
    with(|host| host.config.to_string())
}

pub(crate) fn values() -> String {
    with(|host| host.values.to_string())
}

pub(crate) fn saved() -> Option<String> {
    with(|host| host.saved.as_ref().map(ToString::to_string))
}

pub(crate) fn grants() -> String {
    with(|host| host.grants.to_string())
}

pub(crate) fn get(target: &ObjectRef, fields: &[String]) -> Result<String, ReadError> {
    with(|host| host.get(target, fields))
}

pub(crate) fn find(
    query: &ObjectQuery,
    fields: &[String],
    max_items: u32,
    token: Option<&str>,
) -> Result<Page, ReadError> {
    with(|host| host.find(query, fields, max_items, token))
}

pub(crate) fn tail(
    pod: &ObjectRef,
    container: Option<&str>,
    previous: bool,
    lines: u32,
    _max_bytes: u32,
) -> Result<String, ReadError> {
    with(|host| host.tail(pod, container, previous, lines))
}

pub(crate) fn search(
    pod: &ObjectRef,
    container: Option<&str>,
    pattern: &str,
) -> Result<Option<String>, ReadError> {
    let log = with(|host| host.tail(pod, container, false, u32::MAX))?;
    Ok(log.lines().find(|line| line.contains(pattern)).map(str::to_owned))
}

pub(crate) fn now_ms() -> u64 {
    with(|host| host.now_ms)
}

pub(crate) fn elapsed_ms() -> u64 {
    with(|host| host.elapsed_ms)
}

pub(crate) fn attempt() -> u32 {
    with(|host| host.attempt)
}

pub(crate) fn emit(level: Level, message: &str, fields: &[(String, String)]) {
    with(|host| host.emit(level, message, fields));
}

pub(crate) fn resolve(reference: &str) -> Result<Image, ReadError> {
    with(|host| host.resolve(reference))
}
