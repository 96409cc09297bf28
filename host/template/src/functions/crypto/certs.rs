//! Certificates, made as Sprig makes them: RSA of 2,048 bits, valid from the time of the run on.

use std::net::IpAddr;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType, SerialNumber,
};

use super::Result;
use super::der::{from_pem, read, to_pem};
use super::keys::{PrivateKey, parse, rsa};
use crate::function::{Ctx, FnError};
use crate::functions::args::{any, int, items, strval, text};
use crate::functions::encoding::decode_base64;
use crate::value::object::{GoObject, downcast};
use crate::value::{Value, as_text, is_nil, object_value};

/// The name of the type.
pub(super) const CERTIFICATE: &str = "sprig.certificate";

/// A certificate and its key, both PEM.
#[derive(Debug)]
struct Certificate {
    cert: String,
    key: String,
}

impl GoObject for Certificate {
    fn type_name(&self) -> &'static str {
        CERTIFICATE
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Cert" => Some(Value::from(self.cert.as_str())),
            "Key" => Some(Value::from(self.key.as_str())),
            _ => None,
        }
    }

    fn entries(&self) -> Vec<(Value, Value)> {
        let entry = |name: &str, text: &str| (Value::from(name), Value::from(text));
        vec![entry("Cert", &self.cert), entry("Key", &self.key)]
    }
}

/// Who signs: the certificate itself, or another one.
enum Signer<'s> {
    Own,
    Other(&'s Certificate),
}

pub(super) fn gen_ca(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let key = rsa(ctx, 2048)?;
    ca(ctx, args, key)
}

pub(super) fn gen_ca_with_key(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    ca(ctx, args, given_key(args, 2)?)
}

fn ca(ctx: &mut Ctx<'_>, args: &[Value], key: PrivateKey) -> Result {
    let mut params = params(ctx, &text(args, 0)?, int(args, 1)?)?;
    params.key_usages.push(KeyUsagePurpose::KeyCertSign);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    sign(&params, &key, &Signer::Own)
}

pub(super) fn gen_self_signed(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let key = rsa(ctx, 2048)?;
    sign(&server_params(ctx, args)?, &key, &Signer::Own)
}

pub(super) fn gen_self_signed_with_key(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let key = given_key(args, 4)?;
    sign(&server_params(ctx, args)?, &key, &Signer::Own)
}

pub(super) fn gen_signed(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let key = rsa(ctx, 2048)?;
    signed(ctx, args, &key)
}

pub(super) fn gen_signed_with_key(ctx: &mut Ctx<'_>, args: &[Value]) -> Result {
    let key = given_key(args, 5)?;
    signed(ctx, args, &key)
}

fn signed(ctx: &mut Ctx<'_>, args: &[Value], key: &PrivateKey) -> Result {
    let authority = downcast::<Certificate>(any(args, 4)?).ok_or_else(FnError::arguments)?;
    let mut params = server_params(ctx, args)?;
    params.use_authority_key_identifier_extension = true;
    sign(&params, key, &Signer::Other(authority))
}

/// A certificate and a key that exist already, base64 of PEM.
pub(super) fn build_custom(_: &mut Ctx<'_>, args: &[Value]) -> Result {
    let decoded = |index: usize, what: &str| {
        let bytes = decode_base64(text(args, index)?.as_bytes());
        let text = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        text.ok_or_else(|| FnError::new(format!("unable to decode base64 {what}")))
    };
    let (cert, key) = (decoded(0, "certificate")?, decoded(1, "private key")?);
    let Some((_, der)) = from_pem(&cert) else {
        return Err(FnError::new("unable to decode certificate"));
    };
    if read(&der).is_none_or(|(tag, _, rest)| tag != super::der::SEQUENCE || !rest.is_empty()) {
        let text = "error parsing certificate: decodedCert.Bytes: x509: malformed certificate";
        return Err(FnError::new(text));
    }
    parsed(&key, "error parsing private key")?;
    Ok(object_value(Certificate { cert, key }))
}

fn given_key(args: &[Value], index: usize) -> Result<PrivateKey> {
    parsed(&text(args, index)?, "parsing private key")
}

fn parsed(pem: &str, context: &str) -> Result<PrivateKey> {
    parse(pem).map_err(|reason| FnError::new(format!("{context}: {reason}")))
}

fn failed(err: &rcgen::Error) -> FnError {
    FnError::new(format!("error creating certificate: {err}"))
}

/// What all certificates have: name, number, validity, uses.
fn params(ctx: &mut Ctx<'_>, name: &str, days: i64) -> Result<CertificateParams> {
    let mut serial = [0; 16];
    ctx.random(&mut serial);
    // A leading one bit would make the number negative.
    if let Some(first) = serial.first_mut() {
        *first &= 0x7f;
    }
    let at = |seconds: i64| {
        let time = time::OffsetDateTime::from_unix_timestamp(seconds);
        time.map_err(|_| FnError::new("error creating certificate: validity out of range"))
    };
    let now = ctx.run().time;
    let mut params = CertificateParams::default();
    params.not_before = at(now)?;
    params.not_after = at(now.saturating_add(days.saturating_mul(86_400)))?;
    params.serial_number = Some(SerialNumber::from(serial.to_vec()));
    params.distinguished_name = DistinguishedName::new();
    if !name.is_empty() {
        params.distinguished_name.push(DnType::CommonName, name);
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    params.is_ca = IsCa::ExplicitNoCa;
    Ok(params)
}

/// The parameters of a certificate with addresses and names, whose days are the fourth argument.
fn server_params(ctx: &mut Ctx<'_>, args: &[Value]) -> Result<CertificateParams> {
    let mut params = params(ctx, &text(args, 0)?, int(args, 3)?)?;
    let listed = |index| any(args, index).map(|value| items(value).unwrap_or_default());
    for name in listed(2)?.iter() {
        let dns = as_text(name).ok_or_else(|| not_a_string("processing alternate dns name", name))?;
        let dns = dns.into_owned().try_into().map_err(|err| failed(&err))?;
        params.subject_alt_names.push(SanType::DnsName(dns));
    }
    for address in listed(1)?.iter() {
        let ip = as_text(address).ok_or_else(|| not_a_string("parsing ip", address))?;
        let ip: IpAddr = ip.parse().map_err(|_| FnError::new(format!("error parsing ip: {ip}")))?;
        params.subject_alt_names.push(SanType::IpAddress(ip));
    }
    Ok(params)
}

fn not_a_string(context: &str, value: &Value) -> FnError {
    let shown = match strval(value) {
        Ok(_) if is_nil(value) => "<nil>".to_owned(),
        Ok(text) => String::from_utf8_lossy(&text).into_owned(),
        Err(err) => return err,
    };
    FnError::new(format!("error {context}: {shown} is not a string"))
}

fn key_pair(key: &PrivateKey) -> Result<KeyPair> {
    KeyPair::try_from(key.der.as_slice()).map_err(|err| failed(&err))
}

fn sign(params: &CertificateParams, key: &PrivateKey, signer: &Signer<'_>) -> Result {
    let pair = key_pair(key)?;
    let certificate = match signer {
        Signer::Own => params.self_signed(&pair),
        Signer::Other(authority) => {
            if from_pem(&authority.cert).is_none() {
                return Err(FnError::new("unable to decode certificate"));
            }
            let signing_key = parsed(&authority.key, "error parsing private key")?;
            let issuer = Issuer::from_ca_cert_pem(&authority.cert, key_pair(&signing_key)?);
            params.signed_by(&pair, &issuer.map_err(|err| failed(&err))?)
        }
    };
    let certificate = certificate.map_err(|err| failed(&err))?;
    let cert = to_pem("CERTIFICATE", certificate.der());
    Ok(object_value(Certificate { cert, key: key.pem() }))
}
