//! Makes components of the files in `tests/guests`; their README says how they are written.

use std::{fmt::Write as _, fs, path::Path};

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

const MANIFEST: &str = r#"{"manifest":"pintle.dev/manifest/v1","name":"guest","version":"0.1.0"}"#;
const VERSION: &str = "0.1.0";
const WORLD: &str = "include pintle:plugin/readiness-plugin@0.1.0;";
/// What tests import of WASI; the host brings its own, complete description.
const WASI: [(&str, &str); 6] = [
    ("clocks.wit", "package wasi:clocks@0.2.0; interface monotonic-clock { now: func() -> u64; }"),
    ("random.wit", "package wasi:random@0.2.0; interface random { get-random-u64: func() -> u64; }"),
    (
        "io.wit",
        "package wasi:io@0.2.0; interface error { resource error; } interface streams { use error.{error}; \
         variant stream-error { last-operation-failed(error), closed } resource output-stream { \
         blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>; } }",
    ),
    (
        "cli.wit",
        "package wasi:cli@0.2.0; interface stdout { use wasi:io/streams@0.2.0.{output-stream}; \
         get-stdout: func() -> output-stream; } interface environment { \
         get-environment: func() -> list<tuple<string, string>>; get-arguments: func() -> list<string>; }",
    ),
    (
        "filesystem.wit",
        "package wasi:filesystem@0.2.0; interface types { resource descriptor; } interface preopens { \
         use types.{descriptor}; get-directories: func() -> list<tuple<descriptor, string>>; }",
    ),
    (
        "sockets.wit",
        "package wasi:sockets@0.2.0; interface network { resource network; enum error-code { unknown, \
         access-denied, not-supported, invalid-argument, out-of-memory, timeout, concurrency-conflict, \
         not-in-progress, would-block, invalid-state, new-socket-limit, address-not-bindable, address-in-use, \
         remote-unreachable, connection-refused, connection-reset, connection-aborted, datagram-too-large, \
         name-unresolvable, temporary-resolver-failure, permanent-resolver-failure } } \
         interface instance-network { use network.{network}; instance-network: func() -> network; } \
         interface ip-name-lookup { use network.{network, error-code}; resource resolve-address-stream; \
         resolve-addresses: func(network: borrow<network>, name: string) -> \
         result<resolve-address-stream, error-code>; }",
    ),
];

/// The component of a file in `tests/guests`, without its ending.
pub(crate) fn guest(name: &str) -> Vec<u8> {
    guest_for(name, &wit())
}

/// The same, made for other interfaces than ours.
pub(crate) fn guest_for(name: &str, wit: &str) -> Vec<u8> {
    encode(name, &read(&format!("host/plugin/tests/guests/{name}.wat")), wit)
}

/// The component of a file in `tests/guests` in which words were replaced.
pub(crate) fn guest_with(name: &str, words: &[(&str, &str)]) -> Vec<u8> {
    let text = read(&format!("host/plugin/tests/guests/{name}.wat"));
    let text = words.iter().fold(text, |text, (word, other)| text.replace(word, other));
    encode(name, &text, &wit())
}

/// The interfaces of this host.
pub(crate) fn wit() -> String {
    read("wit/plugin.wit")
}

/// The component of a text that is written as those files are.
pub(crate) fn encode(name: &str, text: &str, wit: &str) -> Vec<u8> {
    encode_version(name, text, wit, VERSION)
}

/// The same for interfaces of another version.
pub(crate) fn encode_version(name: &str, text: &str, wit: &str, version: &str) -> Vec<u8> {
    let code = text.lines().find(|line| !line.starts_with(";;")).unwrap_or_default();
    if code.starts_with("(component") || code.starts_with("(module") {
        return wat::parse_str(text).unwrap();
    }
    let mut resolve = Resolve::default();
    resolve.push_str("plugin.wit", wit).unwrap();
    for (file, wit) in WASI {
        resolve.push_str(file, wit).unwrap();
    }
    let lines = directive(text, "world").unwrap_or(WORLD).replace(VERSION, version);
    let package =
        resolve.push_str("guest.wit", &format!("package test:guest; world guest {{ {lines} }}")).unwrap();
    let world = resolve.select_world(&[package], Some("guest")).unwrap();
    let mut module = wat::parse_str(module(text).replace("@0.1.0#", &format!("@{version}#")))
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    let encoder =
        ComponentEncoder::default().module(&module).and_then(|encoder| encoder.validate(true).encode());
    encoder.unwrap_or_else(|error| panic!("{name}: {error:#}"))
}

/// The guest's text with texts, manifest, memory and allocator added.
fn module(text: &str) -> String {
    let mut module = format!("(module\n{text}\n");
    let mut at = 4096;
    for line in text.lines().filter_map(|line| line.strip_prefix(";; text ")) {
        let (name, literal) = line.split_once(": ").unwrap();
        let literal = literal.trim().trim_matches('"');
        let len = literal.len() - 2 * literal.matches('\\').count();
        writeln!(module, "(data (i32.const {at}) \"{literal}\")").unwrap();
        writeln!(module, "(global {name} i32 (i32.const {at})) (global {name}.len i32 (i32.const {len}))")
            .unwrap();
        at += len + 8;
    }
    let (pages, heap) =
        (directive(text, "memory").unwrap_or("4"), directive(text, "heap").unwrap_or("65536"));
    module + &describe(directive(text, "manifest").unwrap_or(MANIFEST)) + &memory(pages, heap) + ")"
}

fn describe(manifest: &str) -> String {
    if manifest == "none" {
        return String::new();
    }
    let (len, hex) =
        (manifest.len(), manifest.bytes().map(|byte| format!("\\{byte:02x}")).collect::<String>());
    format!(
        r#"(data (i32.const 32768) "{hex}")
        (func (export "pintle:plugin/plugin-info@0.1.0#describe") (result i32)
          (i32.store (i32.const 512) (i32.const 32768)) (i32.store (i32.const 516) (i32.const {len}))
          (i32.const 512))
        (func (export "pintle:plugin/plugin-info@0.1.0#validate-config") (param i32 i32 i32 i32) (result i32)
          (i32.const 528))"#
    )
}

fn memory(pages: &str, heap: &str) -> String {
    format!(
        r#"(memory (export "memory") {pages})
        (global $heap (mut i32) (i32.const {heap}))
        (func (export "cabi_realloc") (param i32 i32 i32) (param $size i32) (result i32)
          (local $at i32)
          (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
          (global.set $heap (i32.add (local.get $at) (local.get $size)))
          (block $fits
            (loop $more
              (br_if $fits (i32.le_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536))))
              (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
            (unreachable))
          (local.get $at))"#
    )
}

fn directive<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let prefix = format!(";; {name}: ");
    text.lines().find_map(|line| line.strip_prefix(&prefix))
}

/// A file of the source tree: this module is also part of the end-to-end tests.
fn read(path: &str) -> String {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let tree = folders.into_iter().find(|folder| folder.join("wit").is_dir()).unwrap();
    let path = tree.join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
