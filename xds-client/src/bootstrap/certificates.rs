//! Where certificates come from that resources name by instance (gRFC A29).

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::creds::TlsFiles;
use super::error::Wrong;
use super::json::Json;

/// A provider of certificates. Those of kinds that are not known are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CertificateProvider {
    /// `file_watcher`.
    FileWatcher(CertificateFiles),
}

/// The files of a `file_watcher`: an identity, who may vouch for peers, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CertificateFiles {
    /// The certificates, as `tls` has them.
    pub tls: TlsFiles,
    /// Who may vouch for the peers of a trust domain (gRFC A87); it goes before `ca_certificate`.
    pub spiffe_trust_bundle_map: Option<PathBuf>,
}

pub(super) fn providers(json: Json<'_>) -> Result<BTreeMap<String, CertificateProvider>, Wrong> {
    let mut all = BTreeMap::new();
    for (instance, json) in json.object()?.iter() {
        let fields = json.object()?;
        if fields.required("plugin_name")?.text()? != "file_watcher" {
            continue;
        }
        let config = fields.required("config")?.object()?;
        let tls = TlsFiles::read(&config)?;
        let bundles = config.text("spiffe_trust_bundle_map_file")?.map(PathBuf::from);
        if tls.identity.is_none() && tls.ca_certificate.is_none() && bundles.is_none() {
            return Err(config.wrong("it names neither a certificate with its key nor a ca_certificate_file"));
        }
        let files = CertificateFiles { tls, spiffe_trust_bundle_map: bundles };
        all.insert(instance.to_owned(), CertificateProvider::FileWatcher(files));
    }
    Ok(all)
}
