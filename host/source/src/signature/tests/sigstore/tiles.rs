//! A log of the second kind: entries in tiles, checkpoints as signed notes, and no time of its own.

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// What the log calls itself in its notes.
const ORIGIN: &str = "tiles.example";
/// The kind of a key in signed notes: Ed25519.
const ED25519: u8 = 1;
/// The name of the algorithm before the 32 bytes of a key, as RFC 8410 has it.
const KEY_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0];

/// A log whose tree has three leaves, of which the second is the entry.
pub(super) struct Tiles(Ed25519KeyPair);

/// What somebody did to an entry after the log had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Tampered {
    /// Nothing.
    Nothing,
    /// It says something else.
    Body,
    /// It is of another signature, which the log has.
    OtherEntry,
    /// Its place is another.
    Index,
    /// A hash on the way to the root is missing.
    Path,
    /// The checkpoint has another root.
    Root,
    /// Another log signed the checkpoint.
    OtherLog,
    /// Nobody shows that it is in the log.
    NoProof,
    /// It claims a time, as entries of older logs have one.
    Time,
    /// Its time stamp is of another signature.
    OtherStamp,
}

impl Tiles {
    pub(super) fn new() -> Self {
        Self(Ed25519KeyPair::generate().unwrap())
    }

    /// What a trust root says about it.
    pub(super) fn document(&self) -> Value {
        let key = [&KEY_PREFIX, self.0.public_key().as_ref()].concat();
        json!({"baseUrl": format!("https://{ORIGIN}"), "hashAlgorithm": "SHA2_256",
            "logId": {"keyId": BASE64_STANDARD.encode(self.id())},
            "publicKey": {"rawBytes": BASE64_STANDARD.encode(key), "keyDetails": "PKIX_ED25519",
                "validFor": {"start": "2020-01-01T00:00:00Z"}}})
    }

    /// The entry of a signature over what has this digest, as it stands in a bundle.
    pub(super) fn entry(
        &self,
        (digest, signature): (&[u8], &str),
        verifier: &Value,
        tampered: Tampered,
    ) -> Value {
        let digest = if tampered == Tampered::OtherEntry { &[7; 32] } else { digest };
        let body = json!({"apiVersion": "0.0.2", "kind": "hashedrekord", "spec": {"hashedRekordV002": {
            "data": {"algorithm": "SHA2_256", "digest": BASE64_STANDARD.encode(digest)},
            "signature": {"content": signature, "verifier": verifier}}}});
        let body = body.to_string();
        let [first, own, last] = [b"first".as_slice(), body.as_bytes(), b"last"].map(leaf);
        let root = node(&node(&first, &own), &last);
        let mut path = vec![BASE64_STANDARD.encode(first), BASE64_STANDARD.encode(last)];
        if tampered == Tampered::Path {
            path.pop();
        }
        let shown = if tampered == Tampered::Body { body.replace("SHA2_256", "SHA2_256 ") } else { body };
        let index = if tampered == Tampered::Index { "0" } else { "1" };
        let mut entry = json!({
            "logIndex": index, "logId": {"keyId": BASE64_STANDARD.encode(self.id())},
            "kindVersion": {"kind": "hashedrekord", "version": "0.0.2"},
            "inclusionProof": {"logIndex": index, "rootHash": BASE64_STANDARD.encode(root), "treeSize": "3",
                "hashes": path, "checkpoint": {"envelope": self.checkpoint(root, tampered)}},
            "canonicalizedBody": BASE64_STANDARD.encode(shown),
        });
        let fields = entry.as_object_mut().unwrap();
        match tampered {
            Tampered::NoProof => drop(fields.remove("inclusionProof")),
            Tampered::Time => drop(fields.insert("integratedTime".to_owned(), json!("1748736000"))),
            _ => {}
        }
        entry
    }

    /// A signed note, which a witness that nobody knows has signed before the log.
    fn checkpoint(&self, root: [u8; 32], tampered: Tampered) -> String {
        let root = if tampered == Tampered::Root { [7; 32] } else { root };
        let note = format!("{ORIGIN}\n3\n{}\n", BASE64_STANDARD.encode(root));
        let other = Self::new();
        let signer = if tampered == Tampered::OtherLog { &other } else { self };
        let witness = BASE64_STANDARD.encode([9; 68]);
        let signature = [&self.id()[..4], signer.0.sign(note.as_bytes()).as_ref()].concat();
        let signature = BASE64_STANDARD.encode(signature);
        format!("{note}\n— witness.example {witness}\n— {ORIGIN} {signature}\n")
    }

    /// The key's name in signed notes; a note has its first four bytes.
    fn id(&self) -> [u8; 32] {
        let named = [ORIGIN.as_bytes(), b"\n", &[ED25519], self.0.public_key().as_ref()].concat();
        Sha256::digest(named).into()
    }
}

fn leaf(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest([&[0], bytes].concat()).into()
}

fn node(left: &[u8; 32], right: &[u8; 32]) -> [u8; 32] {
    Sha256::digest([[1].as_slice(), left, right].concat()).into()
}
