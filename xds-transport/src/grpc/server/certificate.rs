//! The certificate that a client showed.

use std::sync::Arc;

use bytes::Bytes;
use rustls_pki_types::CertificateDer;

use self::subject::subject;

mod subject;

/// What a client proved to be, by TLS. Whoever takes connections puts it among the extensions of their requests, once the client is
/// vouched for; [`Opened::certificate`](super::Opened::certificate) has it from there. Clones share it. Of the names that it is for,
/// host names and URIs are read: who goes by addresses or e-mail reads these in the [chain](Self::chain).
///
/// ```
/// use xds_transport::grpc::server::ClientCertificate;
///
/// assert!(ClientCertificate::new(["no certificate"]).is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate(Arc<Parts>);

#[derive(Debug, PartialEq, Eq)]
struct Parts {
    chain: Vec<Bytes>,
    subject: String,
    dns_names: Vec<String>,
    uri_names: Vec<String>,
}

impl ClientCertificate {
    /// Of certificates as TLS has them (DER), the client's own first: none if that is no certificate.
    pub fn new(chain: impl IntoIterator<Item = impl Into<Bytes>>) -> Option<Self> {
        let chain: Vec<Bytes> = chain.into_iter().map(Into::into).collect();
        let own = CertificateDer::from(&**chain.first()?);
        let own = webpki::EndEntityCert::try_from(&own).ok()?;
        let texts = |texts: &mut dyn Iterator<Item = &str>| texts.map(str::to_owned).collect();
        let subject = subject(own.subject());
        let (dns_names, uri_names) = (texts(&mut own.valid_dns_names()), texts(&mut own.valid_uri_names()));
        Some(Self(Arc::new(Parts { chain, subject, dns_names, uri_names })))
    }

    /// The certificates, the client's own first.
    pub fn chain(&self) -> &[Bytes] {
        &self.0.chain
    }

    /// Whose it is, as RFC 4514 writes names: `CN=client,O=Example`. Empty if it says so by its other names only.
    pub fn subject(&self) -> &str {
        &self.0.subject
    }

    /// The names of hosts that it is for.
    pub fn dns_names(&self) -> &[String] {
        &self.0.dns_names
    }

    /// The URIs that it is for.
    pub fn uri_names(&self) -> &[String] {
        &self.0.uri_names
    }

    /// The SPIFFE id, if it is an X.509-SVID: these have one URI, and no more.
    pub fn spiffe_id(&self) -> Option<&str> {
        match self.uri_names() {
            [id] if id.starts_with("spiffe://") => Some(id),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType, string::Ia5String};

    use super::*;

    fn certificate(uris: &[&str]) -> ClientCertificate {
        let mut params = CertificateParams::new(vec!["a.example.com".to_owned(), "10.0.0.1".to_owned()]).unwrap();
        params.subject_alt_names.extend(uris.iter().map(|uri| SanType::URI(Ia5String::try_from(*uri).unwrap())));
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, "Example, Inc.");
        params.distinguished_name.push(DnType::CommonName, " client");
        params.distinguished_name.push(DnType::CustomDnType(vec![1, 2, 840, 1]), "x");
        let key = KeyPair::generate().unwrap();
        ClientCertificate::new([params.self_signed(&key).unwrap().der().to_vec()]).unwrap()
    }

    #[test]
    fn a_certificate_says_whose_it_is() {
        let shown = certificate(&["spiffe://example.com/ns/a/sa/b"]);
        assert_eq!(shown.subject(), r"1.2.840.1=#0c0178,CN=\ client,O=Example\, Inc.");
        assert_eq!(shown.dns_names(), ["a.example.com"]);
        assert_eq!(shown.spiffe_id(), Some("spiffe://example.com/ns/a/sa/b"));
        assert_eq!(shown.chain().len(), 1);
        for uris in [&[][..], &["https://example.com"], &["spiffe://a", "spiffe://b"]] {
            assert_eq!((certificate(uris).spiffe_id(), certificate(uris).uri_names().len()), (None, uris.len()));
        }
    }
}
