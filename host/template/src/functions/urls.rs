//! URLs taken apart and put together as Go's `net/url` does, and names of hosts.

use super::args::{NIL_POINTER, map, text};
use super::{MAP, STRING};
use crate::function::{Ctx, Entry, FnError};
use crate::quote::quote;
use crate::value::{Entries, Value, as_text, is_nil, kind_of, map_value};

pub(super) const TABLE: &[Entry] = &[
    Entry::fixed("urlParse", &[STRING], url_parse),
    Entry::fixed("urlJoin", &[MAP], url_join),
    // Helm answers with nothing unless DNS was asked for; a render of ours never asks.
    Entry::fixed("getHostByName", &[STRING], |_, _| Ok(Value::from(""))),
];

type Result<T = Value> = std::result::Result<T, FnError>;

/// The parts of a URL, decoded.
#[derive(Debug, Default)]
struct Url {
    scheme: String,
    opaque: String,
    userinfo: Option<String>,
    host: String,
    path: String,
    query: String,
    forced_query: bool,
    fragment: String,
}

fn url_parse(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let text = text(args, 0)?;
    let url = parse(&text).map_err(|reason| {
        let quoted = quote(text.as_bytes());
        FnError::new(format!("unable to parse url: parse {quoted}: {reason}"))
    })?;
    let hostname = hostname(&url.host).to_owned();
    let entries = [
        ("scheme", url.scheme),
        ("host", url.host),
        ("hostname", hostname),
        ("path", url.path),
        ("query", url.query),
        ("opaque", url.opaque),
        ("fragment", url.fragment),
        ("userinfo", url.userinfo.unwrap_or_default()),
    ];
    let entries = entries.map(|(key, text)| (key.into(), Value::from(text)));
    Ok(map_value(Entries::from(entries)))
}

fn hostname(host: &str) -> &str {
    if let Some(end) = host.strip_prefix('[').and_then(|host| host.find(']')) {
        return host.get(1..=end).unwrap_or_default();
    }
    host.split_once(':').map_or(host, |(name, _)| name)
}

fn parse(text: &str) -> std::result::Result<Url, String> {
    if text.contains(|c: char| c.is_ascii_control()) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (scheme, mut rest) = split_scheme(rest)?;
    let mut url = Url { scheme: scheme.to_ascii_lowercase(), ..Url::default() };
    url.fragment = unescape(fragment, Place::Fragment)?;
    url.forced_query = rest.ends_with('?') && rest.matches('?').count() == 1;
    if let Some((path, query)) = rest.split_once('?') {
        (rest, url.query) = (path, query.to_owned());
    }
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        let segment = rest.split('/').next().unwrap_or_default();
        if segment.contains(':') {
            return Err("first path segment in URL cannot contain colon".to_owned());
        }
    }
    let authority = rest.strip_prefix("//").filter(|after| !url.scheme.is_empty() || !after.starts_with('/'));
    if let Some(after) = authority {
        let end = after.find('/').unwrap_or(after.len());
        let (authority, path) = after.split_at(end);
        rest = path;
        (url.userinfo, url.host) = parse_authority(authority)?;
    }
    url.path = unescape(rest, Place::Path)?;
    Ok(url)
}

fn split_scheme(text: &str) -> std::result::Result<(&str, &str), String> {
    for (at, c) in text.char_indices() {
        match c {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            ':' => {
                return Ok((text.get(..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default()));
            }
            _ => break,
        }
    }
    Ok(("", text))
}

type Authority = (Option<String>, String);

fn parse_authority(authority: &str) -> std::result::Result<Authority, String> {
    let Some((user, host)) = authority.rsplit_once('@') else {
        return Ok((None, parse_host(authority)?));
    };
    let host = parse_host(host)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if !user.chars().all(fits) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let part = |text: &str| Ok::<_, String>(escape(&unescape(text, Place::User)?, Place::User));
    let user = match user.split_once(':') {
        Some((name, password)) => format!("{}:{}", part(name)?, part(password)?),
        None => part(user)?,
    };
    Ok((Some(user), host))
}

fn parse_host(host: &str) -> std::result::Result<String, String> {
    let port = match host.strip_prefix('[') {
        Some(address) => match address.split_once(']') {
            Some((_, port)) => port,
            None => return Err("missing ']' in host".to_owned()),
        },
        None => host.find(':').and_then(|at| host.get(at..)).unwrap_or_default(),
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    let valid =
        digits.bytes().all(|byte| byte.is_ascii_digit()) && (port.is_empty() || port.starts_with(':'));
    if !valid {
        return Err(format!("invalid port {} after host", quote(port.as_bytes())));
    }
    unescape(host, Place::Host)
}

/// Where a text stands in a URL, which decides what is escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    User,
    Host,
    Path,
    Fragment,
}

fn unescape(text: &str, place: Place) -> std::result::Result<String, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if *byte != b'%' {
            let plain = place != Place::Host || *byte >= 0x80 || !b" \"<>\\^`{|}".contains(byte);
            if !plain && !b"\"<>".contains(byte) {
                let shown = quote(&[*byte]);
                return Err(format!("invalid character {shown} in host name"));
            }
            out.push(*byte);
            at += 1;
            continue;
        }
        let hex = text.get(at + 1..at + 3).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(code) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) else {
            let end = text.char_indices().map(|(at, _)| at).find(|end| *end >= at + 3);
            let fault = text.get(at..end.unwrap_or(text.len())).unwrap_or_default();
            return Err(format!("invalid URL escape {}", quote(fault.as_bytes())));
        };
        if place == Place::Host && code < 0x80 && code != b'%' {
            let fault = text.get(at..at + 3).unwrap_or_default();
            return Err(format!("invalid URL escape {}", quote(fault.as_bytes())));
        }
        out.push(code);
        at += 3;
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn escape(text: &str, place: Place) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_plain(byte, place) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn is_plain(byte: u8, place: Place) -> bool {
    if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
        return true;
    }
    match place {
        Place::User => b"$&+,;=".contains(&byte),
        Place::Host => b"!$&'()*+,;=:[]<>\"".contains(&byte),
        Place::Path => b"$&+,/:;=@".contains(&byte),
        Place::Fragment => b"$&+,/:;=?@!()*".contains(&byte),
    }
}

fn url_join(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let part = |key: &str| match map(args, 0)?.and_then(|map| map.get(key)) {
        None => Ok(String::new()),
        Some(value) if is_nil(&value) => Err(FnError::new(NIL_POINTER)),
        Some(value) => as_text(&value).map(String::from).ok_or_else(|| {
            let kind = kind_of(&value);
            let text = format!("unable to parse {key} key, must be of type string, but {kind} found");
            FnError::new(text)
        }),
    };
    let mut url = Url {
        scheme: part("scheme")?,
        host: part("host")?,
        path: part("path")?,
        query: part("query")?,
        opaque: part("opaque")?,
        fragment: part("fragment")?,
        ..Url::default()
    };
    let userinfo = part("userinfo")?;
    if !userinfo.is_empty() {
        let proto = format!("proto://{userinfo}@host");
        let parsed = parse(&proto).map_err(|reason| {
            let quoted = quote(proto.as_bytes());
            FnError::new(format!("unable to parse userinfo in dict: parse {quoted}: {reason}"))
        })?;
        url.userinfo = parsed.userinfo;
    }
    Ok(Value::from(joined(&url)))
}

fn joined(url: &Url) -> String {
    let mut out = String::new();
    if !url.scheme.is_empty() {
        out.push_str(&url.scheme);
        out.push(':');
    }
    if url.opaque.is_empty() {
        join_path(url, &mut out);
    } else {
        out.push_str(&url.opaque);
    }
    if url.forced_query || !url.query.is_empty() {
        out.push('?');
        out.push_str(&url.query);
    }
    if !url.fragment.is_empty() {
        out.push('#');
        out.push_str(&escape(&url.fragment, Place::Fragment));
    }
    out
}

fn join_path(url: &Url, out: &mut String) {
    let authority = !url.host.is_empty() || url.userinfo.is_some();
    if authority || (!url.scheme.is_empty() && !url.path.is_empty() && url.path.starts_with("//")) {
        out.push_str("//");
        if let Some(user) = &url.userinfo {
            out.push_str(user);
            out.push('@');
        }
        out.push_str(&escape(&url.host, Place::Host));
    }
    let path = escape(&url.path, Place::Path);
    if !path.is_empty() && !path.starts_with('/') && !url.host.is_empty() {
        out.push('/');
    }
    if out.is_empty() && path.split('/').next().is_some_and(|segment| segment.contains(':')) {
        out.push_str("./");
    }
    out.push_str(&path);
}
