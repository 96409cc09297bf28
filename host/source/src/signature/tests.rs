//! Signatures of every kind against whoever is wanted, without a network.
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

mod sigstore;

use pintle_api::plugin_policy::Signer;
use serde_json::{Value, json};

use super::*;
use crate::{
    attached::Layer,
    bundle::{Attached, Bundle, Described},
};
use sigstore::{Flaws, ISSUER, SUBJECT, Sigstore, Tampered};

fn plugin() -> Bundle {
    Bundle::new(Described { component: b"\0asm component".to_vec(), ..Described::default() })
}

fn with(attached: impl IntoIterator<Item = Attached>) -> Bundle {
    let mut plugin = plugin();
    attached.into_iter().for_each(|one| plugin.attach(one));
    plugin
}

fn keys(key: &PrivateKey) -> Wanted {
    Wanted { keys: vec![key.public().unwrap()], ..Wanted::default() }
}

fn identities(sigstore: &Sigstore, subject: &str) -> Wanted {
    let identities = vec![IdentityPattern::new(ISSUER, subject).unwrap()];
    Wanted { identities, root: Some(sigstore.root()), ..Wanted::default() }
}

fn refused(plugin: &Bundle, wanted: &Wanted) -> (&'static str, String) {
    let error = verify(plugin, wanted).unwrap_err();
    (error.reason(), error.to_string())
}

#[test]
fn both_forms_of_a_signature_by_a_key_count() {
    let key = PrivateKey::generate().unwrap();
    let signer = vec![Signer::Key(key.public().unwrap().fingerprint())];
    let bundle = key.attest(&plugin()).unwrap();
    let simple = key.sign_simply(&plugin(), "r.example/p", None).unwrap();
    for attached in [vec![bundle.clone()], vec![simple.clone()], vec![simple, bundle]] {
        assert_eq!(verify(&with(attached), &keys(&key)).unwrap(), signer);
    }
}

#[test]
fn nobody_and_somebody_else_are_told_apart() {
    let (key, other) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
    let (reason, text) = refused(&plugin(), &keys(&key));
    assert_eq!(reason, "SignatureMissing");
    assert!(
        text.contains(&plugin().digest()) && text.contains("sign it with `pintle plugin sign`"),
        "{text}"
    );
    let simple = key.sign_simply(&plugin(), "r.example/p", None).unwrap();
    for attached in [key.attest(&plugin()).unwrap(), simple] {
        let (reason, text) = refused(&with([attached]), &keys(&other));
        assert_eq!(reason, "SignerNotTrusted");
        let wanted = format!("wanted key {}; found one by another key", other.public().unwrap().short());
        assert!(text.contains(&wanted) && text.contains("add the key to spec.verify.publicKeys"), "{text}");
    }
}

#[test]
fn a_second_signer_under_the_same_tag_does_not_hide_the_first() {
    let (key, other) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
    let first = key.sign_simply(&plugin(), "r.example/p", None).unwrap();
    let both = other.sign_simply(&plugin(), "r.example/p", Some(&first)).unwrap();
    for wanted in [&key, &other] {
        assert_eq!(verify(&with([both.clone()]), &keys(wanted)).unwrap().len(), 1);
    }
}

#[test]
fn a_signature_of_another_plugin_counts_for_nothing() {
    let key = PrivateKey::generate().unwrap();
    let other = Bundle::new(Described { component: b"\0asm other".to_vec(), ..Described::default() });
    // Hung on this plugin by whoever may push.
    let moved = |attached: Attached, kind: &'static str| {
        let part = attached.layers_of(|_| true).into_iter().next().unwrap();
        let mut layer = Layer::new(kind, part.bytes.unwrap().to_vec());
        layer.annotations = part.annotations;
        match attached.tag {
            None => Attached::referrer(&plugin(), kind, &[], layer),
            Some(_) => Attached::signatures(&plugin(), None, layer),
        }
    };
    let bundle = moved(key.attest(&other).unwrap(), "application/vnd.dev.sigstore.bundle.v0.3+json");
    let simple = moved(key.sign_simply(&other, "r.example/p", None).unwrap(), simple::PAYLOAD);
    for attached in [bundle, simple] {
        let (reason, text) = refused(&with([attached]), &keys(&key));
        assert_eq!(reason, "SignatureOfOtherDigest");
        assert!(text.contains(&format!("found one of another digest, {}", other.digest())), "{text}");
    }
}

#[test]
fn a_changed_byte_in_what_is_signed_is_found() {
    let key = PrivateKey::generate().unwrap();
    let signed = key.attest(&plugin()).unwrap();
    let bundle = signed.layers_of(|_| true).remove(0).bytes.unwrap().to_vec();
    let mut document: Value = serde_json::from_slice(&bundle).unwrap();
    let payload = document["dsseEnvelope"]["payload"].as_str().unwrap().to_owned();
    document["dsseEnvelope"]["payload"] = json!(format!("{}A{}", &payload[..4], &payload[5..]));
    let kind = "application/vnd.dev.sigstore.bundle.v0.3+json";
    let changed =
        |text: &str| Attached::referrer(&plugin(), kind, &[], Layer::new(kind, text.as_bytes().to_vec()));
    assert_eq!(refused(&with([changed(&document.to_string())]), &keys(&key)).0, "SignerNotTrusted");
    let (reason, text) = refused(&with([changed("{\"mediaType\": 1}")]), &keys(&key));
    assert!(reason == "SignatureInvalid" && text.contains("found one that cannot be read"), "{text}");
}

#[test]
fn an_attestation_about_something_else_is_no_signature() {
    let (sigstore, key) = (Sigstore::new(), PrivateKey::generate().unwrap());
    let flaws = Flaws { predicate: "https://slsa.dev/provenance/v1", ..Flaws::default() };
    let by_key = with([sigstore.attest_with_key(&plugin(), &key, &flaws)]);
    let by_identity = with([sigstore.attest(&plugin(), &flaws)]);
    for (plugin, wanted) in [(by_key, keys(&key)), (by_identity, identities(&sigstore, SUBJECT))] {
        let (reason, text) = refused(&plugin, &wanted);
        assert_eq!(reason, "SignatureInvalid");
        assert!(text.contains("an attestation of type \"https://slsa.dev/provenance/v1\""), "{text}");
    }
}

#[test]
fn keys_of_other_kinds_verify_what_they_signed() {
    use aws_lc_rs::{
        rand::SystemRandom,
        rsa::KeySize,
        signature::{Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair},
    };
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    let pem = |der: &[u8]| {
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", BASE64_STANDARD.encode(der))
    };
    let payload = json!({"critical": {"identity": {"docker-reference": ""},
        "image": {"docker-manifest-digest": plugin().digest()}, "type": simple::KIND}, "optional": null});
    let payload = payload.to_string().into_bytes();
    let ed25519 = Ed25519KeyPair::generate().unwrap();
    let raw = ed25519.public_key().as_ref();
    // The algorithm's name before 32 bytes, as RFC 8410 has it.
    let der = [hex::decode("302a300506032b6570032100").unwrap(), raw.to_vec()].concat();
    let rsa = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let rsa_der =
        aws_lc_rs::encoding::AsDer::<aws_lc_rs::encoding::PublicKeyX509Der<'_>>::as_der(rsa.public_key());
    let mut by_rsa = vec![0; rsa.public_modulus_len()];
    rsa.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), &payload, &mut by_rsa).unwrap();
    let by_ed25519 = ed25519.sign(&payload).as_ref().to_vec();
    for (key, signature) in [(pem(&der), by_ed25519), (pem(rsa_der.unwrap().as_ref()), by_rsa)] {
        let wanted = Wanted { keys: vec![PublicKey::parse(&key).unwrap()], ..Wanted::default() };
        let mut layer = Layer::new(simple::PAYLOAD, payload.clone());
        let signature = BASE64_STANDARD.encode(signature);
        layer.annotations.insert(simple::SIGNATURE.to_owned(), signature);
        let plugin = with([Attached::signatures(&plugin(), None, layer)]);
        assert_eq!(verify(&plugin, &wanted).unwrap().len(), 1);
    }
}

#[test]
fn what_is_no_public_key_says_what_is_one() {
    for (text, says) in [
        ("", "no public key in PEM"),
        ("-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----", "no public key in PEM"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "of a kind that is not served"),
    ] {
        let said = PublicKey::parse(text).unwrap_err().to_string();
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn an_identity_that_a_root_vouches_for_counts_in_both_forms() {
    let sigstore = Sigstore::new();
    let expected = vec![Signer::Identity { issuer: ISSUER.to_owned(), subject: SUBJECT.to_owned() }];
    let (bundle, simple) =
        (sigstore.attest(&plugin(), &Flaws::default()), sigstore.sign_simply(&plugin(), &Flaws::default()));
    for attached in [bundle, simple] {
        for subject in [SUBJECT, "https://git.example/vendor/plugin/**@refs/tags/*"] {
            let found = verify(&with([attached.clone()]), &identities(&sigstore, subject));
            assert_eq!(found.unwrap(), expected, "{subject}");
        }
    }
}

#[test]
fn what_is_wrong_with_an_identity_is_named() {
    let sigstore = Sigstore::new();
    let wanted = identities(&sigstore, SUBJECT);
    let other = "https://git.example/evil/plugin/.github/workflows/release.yml@refs/tags/v1";
    let digest = format!("sha256:{}", "0".repeat(64));
    for (flaws, expected, says) in [
        (
            Flaws { subject: other, ..Flaws::default() },
            "SignerNotTrusted",
            "found one by https://git.example/evil/",
        ),
        (
            Flaws { digest: Some(digest.clone()), ..Flaws::default() },
            "SignatureOfOtherDigest",
            digest.as_str(),
        ),
        (Flaws { expired: true, ..Flaws::default() }, "CertificateExpired", "not valid at the time"),
    ] {
        for attached in [sigstore.attest(&plugin(), &flaws), sigstore.sign_simply(&plugin(), &flaws)] {
            let (reason, text) = refused(&with([attached]), &wanted);
            assert_eq!(reason, expected, "{text}");
            assert!(text.contains(says), "{text}");
        }
    }
    let foreign = Sigstore::new();
    for attached in
        [foreign.attest(&plugin(), &Flaws::default()), foreign.sign_simply(&plugin(), &Flaws::default())]
    {
        let (reason, text) = refused(&with([attached]), &wanted);
        assert!(["CertificateNotTrusted", "LogEntryMissing"].contains(&reason), "{reason}: {text}");
    }
}

#[test]
fn a_missing_or_changed_log_entry_is_named() {
    let (sigstore, key) = (Sigstore::new(), PrivateKey::generate().unwrap());
    let logged_key = Wanted { transparency_log: true, root: Some(sigstore.root()), ..keys(&key) };
    let by_identity = identities(&sigstore, SUBJECT);
    let unlogged = Flaws { logged: false, ..Flaws::default() };
    let changed = Flaws { changed_entry: true, ..Flaws::default() };
    for flaws in [unlogged, changed] {
        for (attached, wanted) in [
            (sigstore.attest(&plugin(), &flaws), &by_identity),
            (sigstore.attest_with_key(&plugin(), &key, &flaws), &logged_key),
        ] {
            let (reason, text) = refused(&with([attached]), wanted);
            assert_eq!(reason, "LogEntryMissing", "{text}");
        }
    }
    let unlogged = key.attest(&plugin()).unwrap();
    assert_eq!(refused(&with([unlogged]), &logged_key).0, "LogEntryMissing");
    let logged = sigstore.attest_with_key(&plugin(), &key, &Flaws::default());
    assert_eq!(verify(&with([logged]), &logged_key).unwrap().len(), 1);
}

#[test]
fn a_time_stamp_takes_the_place_of_a_log_where_the_root_has_none() {
    let sigstore = Sigstore::new();
    let mut document = sigstore.document();
    document["tlogs"] = json!([]);
    let root = |document: &Value| TrustRoot::parse(&document.to_string()).unwrap();
    let wanted = Wanted { root: Some(root(&document)), ..identities(&sigstore, SUBJECT) };
    let stamped = Flaws { logged: false, stamped: true, ..Flaws::default() };
    let signed = sigstore.attest(&plugin(), &stamped);
    assert_eq!(verify(&with([signed.clone()]), &wanted).unwrap().len(), 1);
    let timeless = sigstore.attest(&plugin(), &Flaws { stamped: false, ..stamped.clone() });
    assert_eq!(refused(&with([timeless]), &wanted).0, "LogEntryMissing");
    let late = sigstore.attest(&plugin(), &Flaws { expired: true, ..stamped.clone() });
    assert_eq!(refused(&with([late]), &wanted).0, "CertificateExpired");
    // A root with a log wants the entry as well.
    assert_eq!(refused(&with([signed.clone()]), &identities(&sigstore, SUBJECT)).0, "LogEntryMissing");
    document["timestampAuthorities"] = Sigstore::new().document()["timestampAuthorities"].clone();
    let elsewhere = Wanted { root: Some(root(&document)), ..wanted };
    assert_eq!(refused(&with([signed]), &elsewhere).0, "SigningTimeMissing");
}

#[test]
fn an_entry_in_a_log_of_tiles_counts_with_a_time_stamp_beside_it() {
    let (sigstore, key) = (Sigstore::new(), PrivateKey::generate().unwrap());
    let by_identity = identities(&sigstore, SUBJECT);
    let by_key = Wanted { transparency_log: true, root: Some(sigstore.root()), ..keys(&key) };
    let stamped = Flaws { stamped: true, ..Flaws::default() };
    let signed = with([sigstore.attest_in_tiles(&plugin(), &stamped, Tampered::Nothing)]);
    let expected = vec![Signer::Identity { issuer: ISSUER.to_owned(), subject: SUBJECT.to_owned() }];
    assert_eq!(verify(&signed, &by_identity).unwrap(), expected);
    // A key has no time at which it is over, so none is needed.
    let signed = with([sigstore.attest_with_key_in_tiles(&plugin(), &key, Tampered::Nothing)]);
    assert_eq!(verify(&signed, &by_key).unwrap().len(), 1);
    // Such a log vouches for no time: neither silence nor a claim stands for one.
    for tampered in [Tampered::Nothing, Tampered::Time] {
        let timeless = with([sigstore.attest_in_tiles(&plugin(), &Flaws::default(), tampered)]);
        assert_eq!(refused(&timeless, &by_identity).0, "SigningTimeMissing", "{tampered:?}");
    }
    let late = Flaws { expired: true, ..stamped };
    let late = with([sigstore.attest_in_tiles(&plugin(), &late, Tampered::Nothing)]);
    assert_eq!(refused(&late, &by_identity).0, "CertificateExpired");
}

#[test]
fn an_entry_that_a_log_of_tiles_does_not_have_counts_for_nothing() {
    let (sigstore, key) = (Sigstore::new(), PrivateKey::generate().unwrap());
    let by_identity = identities(&sigstore, SUBJECT);
    let by_key = Wanted { transparency_log: true, root: Some(sigstore.root()), ..keys(&key) };
    let stamped = Flaws { stamped: true, ..Flaws::default() };
    for (tampered, expected) in [
        (Tampered::Body, "LogEntryMissing"),
        (Tampered::OtherEntry, "SignatureInvalid"),
        (Tampered::Index, "LogEntryMissing"),
        (Tampered::Path, "LogEntryMissing"),
        (Tampered::Root, "LogEntryMissing"),
        (Tampered::OtherLog, "LogEntryMissing"),
        (Tampered::NoProof, "LogEntryMissing"),
    ] {
        let signed = with([sigstore.attest_in_tiles(&plugin(), &stamped, tampered)]);
        assert_eq!(refused(&signed, &by_identity).0, expected, "{tampered:?}");
        let signed = with([sigstore.attest_with_key_in_tiles(&plugin(), &key, tampered)]);
        assert_eq!(refused(&signed, &by_key).0, expected, "{tampered:?}, by a key");
    }
    let stamp = with([sigstore.attest_in_tiles(&plugin(), &stamped, Tampered::OtherStamp)]);
    assert_eq!(refused(&stamp, &by_identity).0, "SigningTimeMissing");
    let foreign = with([Sigstore::new().attest_in_tiles(&plugin(), &stamped, Tampered::Nothing)]);
    assert!(["SigningTimeMissing", "CertificateNotTrusted"].contains(&refused(&foreign, &by_identity).0));
    // A log that the root does not name has nothing to say, whatever it shows.
    let mut document = sigstore.document();
    document["tlogs"].as_array_mut().unwrap().pop();
    let root = TrustRoot::parse(&document.to_string()).unwrap();
    let signed = with([sigstore.attest_in_tiles(&plugin(), &stamped, Tampered::Nothing)]);
    let unnamed = Wanted { root: Some(root), ..by_identity };
    assert_eq!(refused(&signed, &unnamed).0, "LogEntryMissing");
}

#[test]
fn without_a_root_no_identity_counts() {
    let sigstore = Sigstore::new();
    let signed = with([sigstore.attest(&plugin(), &Flaws::default())]);
    let wanted = Wanted { root: None, ..identities(&sigstore, SUBJECT) };
    assert_eq!(refused(&signed, &wanted).0, "TrustRootMissing");
    let key = PrivateKey::generate().unwrap();
    let either = Wanted { identities: wanted.identities.clone(), ..keys(&key) };
    assert_eq!(refused(&signed, &either).0, "SignerNotTrusted");
    assert_eq!(refused(&signed, &Wanted::default()).0, "NoSignerNamed");
    assert_eq!(refused(&signed, &Wanted { transparency_log: true, ..keys(&key) }).0, "TrustRootMissing");
}

#[test]
fn a_root_with_logs_of_certificates_wants_their_stamps() {
    let sigstore = Sigstore::new();
    let mut document = sigstore.document();
    document["ctlogs"] = document["tlogs"].clone();
    let root = TrustRoot::parse(&document.to_string()).unwrap();
    let wanted = Wanted { root: Some(root), ..identities(&sigstore, SUBJECT) };
    let (reason, text) = refused(&with([sigstore.attest(&plugin(), &Flaws::default())]), &wanted);
    assert!(reason == "CertificateNotTrusted" && text.contains("SCT"), "{text}");
}

#[test]
fn a_root_that_is_over_or_none_is_refused() {
    let sigstore = Sigstore::new();
    let mut over = sigstore.document();
    over["certificateAuthorities"][0]["validFor"]["end"] = json!("2021-01-01T00:00:00Z");
    let wanted =
        Wanted { root: Some(TrustRoot::parse(&over.to_string()).unwrap()), ..identities(&sigstore, SUBJECT) };
    let signed = with([sigstore.attest(&plugin(), &Flaws::default())]);
    assert_eq!(refused(&signed, &wanted).0, "CertificateNotTrusted");
    let mut timeless = sigstore.document();
    timeless["tlogs"] = json!([]);
    timeless["timestampAuthorities"] = json!([]);
    assert!(matches!(TrustRoot::parse(&timeless.to_string()), Err(RootError::Timeless)));
    assert!(matches!(TrustRoot::parse("{}"), Err(RootError::Document(_) | RootError::Timeless)));
    assert!(TrustRoot::public().is_ok());
}

#[test]
fn claims_say_who_without_believing_it() {
    let (sigstore, key) = (Sigstore::new(), PrivateKey::generate().unwrap());
    let all = [
        key.attest(&plugin()).unwrap(),
        sigstore.attest(&plugin(), &Flaws::default()),
        sigstore.sign_simply(&plugin(), &Flaws::default()),
    ];
    let lines = claims(&with(all));
    assert_eq!(lines.len(), 3);
    assert!(lines[0].starts_with("bundle, by a key"), "{lines:?}");
    assert_eq!(lines[1], format!("bundle, by {SUBJECT} of {ISSUER}"));
    assert_eq!(lines[2], format!("simple signature, by {SUBJECT} of {ISSUER}"));
}
