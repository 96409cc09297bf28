//! Keys and certificates of one control plane.

use std::fs;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};

/// Where the files of a control plane's keys are.
#[derive(Clone, Debug)]
pub(crate) struct Pki {
    folder: PathBuf,
}

impl Pki {
    /// The files below `folder`, made when they are not there: a control plane that starts again keeps its keys,
    /// so that tokens of ServiceAccounts stay valid.
    ///
    /// # Errors
    /// A key cannot be made or a file cannot be written.
    pub(crate) fn ensure(folder: PathBuf) -> io::Result<Self> {
        let pki = Self { folder };
        if !pki.service_account_key().is_file() {
            fs::create_dir_all(&pki.folder)?;
            pki.write().map_err(io::Error::other)?;
        }
        Ok(pki)
    }

    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }

    pub(crate) fn service_account_key(&self) -> PathBuf {
        self.folder.join("service-account.key")
    }

    /// The other half of [`Pki::service_account_key`]: the API server checks with it what it signed.
    pub(crate) fn service_account_public_key(&self) -> PathBuf {
        self.folder.join("service-account.pub")
    }

    /// Certificate and key that the API server and the simulated kubelets show.
    pub(crate) fn serving(&self) -> (PathBuf, PathBuf) {
        (self.folder.join("serving.crt"), self.folder.join("serving.key"))
    }

    fn write(&self) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let authority = CertifiedIssuer::self_signed(authority_params(), KeyPair::generate()?)?;
        let serving = KeyPair::generate()?;
        let certificate = serving_params()?.signed_by(&serving, &authority)?;
        let (certificate_file, key_file) = self.serving();
        fs::write(self.authority(), authority.pem())?;
        fs::write(certificate_file, certificate.pem())?;
        write_secret(&key_file, &serving.serialize_pem())?;
        let signing = KeyPair::generate()?;
        fs::write(self.service_account_public_key(), signing.public_key_pem())?;
        // Last, because `ensure` looks for it.
        write_secret(&self.service_account_key(), &signing.serialize_pem())?;
        Ok(())
    }
}

fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "pintle local control plane");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    params
}

fn serving_params() -> Result<CertificateParams, rcgen::Error> {
    let names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
    let mut params = CertificateParams::new(names.map(str::to_owned))?;
    params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    params.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

/// Writes a file that nobody else on the machine can read.
pub(crate) fn write_secret(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = fs::File::options().create(true).truncate(true).write(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// A bearer token nobody can guess: 128 bits from the kernel.
pub(crate) fn random_token() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex::encode(bytes))
}
