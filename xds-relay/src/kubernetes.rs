//! An API server of Kubernetes, as a configuration names it, or the one of the cluster that the relay is in.

use std::env;
use std::path::{Path, PathBuf};

use http::Uri;
use xdstp_client::tls::Tls;

use crate::config::{Kubernetes, OriginTls, ServerAddress};
use crate::error::Error;
use crate::text_file;
use crate::tls;

/// Where a pod has what it needs to ask the API server.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// What a pod knows of its cluster.
#[derive(Debug)]
pub(crate) struct Pod {
    directory: PathBuf,
    /// Of the API server: a host and a port.
    server: Option<(String, String)>,
}

/// Where it is, and who the relay is to it.
pub(crate) struct Access {
    pub(crate) server: Uri,
    pub(crate) tls: Option<Tls>,
    pub(crate) token: Option<PathBuf>,
    /// All, if there are none.
    pub(crate) namespaces: Vec<String>,
}

impl Pod {
    /// That of this process.
    pub(crate) fn here() -> Self {
        let variable = |name| env::var(name).ok().filter(|value| !value.is_empty());
        let server = variable("KUBERNETES_SERVICE_HOST").zip(variable("KUBERNETES_SERVICE_PORT"));
        Self { directory: SERVICE_ACCOUNT.into(), server }
    }

    fn uri(&self) -> Result<Uri, String> {
        const ELSEWHERE: &str = "missing, and this is no pod of a cluster; expected https://HOST:PORT";
        let (host, port) = self.server.as_ref().ok_or(ELSEWHERE)?;
        let bracketed = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let uri = Uri::builder().scheme("https").authority(format!("{bracketed}:{port}")).path_and_query("/").build();
        uri.map_err(|_| format!("`{bracketed}:{port}` of the environment: {ELSEWHERE}"))
    }

    fn namespace(&self) -> Result<String, String> {
        let file = self.directory.join("namespace");
        let text = text_file::bytes(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let text = String::from_utf8_lossy(text.trim_ascii()).into_owned();
        if text.is_empty() { Err(format!("{}: empty", file.display())) } else { Ok(text) }
    }
}

impl Access {
    /// As a configuration says; `field` is what it is called there. Files are read now, to know whether they are good.
    ///
    /// # Errors
    /// A file is not, or nothing says where the API server is.
    pub(crate) fn to(kubernetes: &Kubernetes, field: &str, pod: &Pod) -> Result<Self, Error> {
        let bad = |part: &str, reason: String| Error::Field { field: format!("{field}.{part}"), reason };
        let is_own = kubernetes.server.is_none();
        let server = match &kubernetes.server {
            Some(ServerAddress::Http(uri)) => uri.clone(),
            Some(other @ ServerAddress::Unix(_)) => {
                return Err(bad("server", format!("`{other}`: expected https://HOST:PORT")));
            }
            None => pod.uri().map_err(|reason| bad("server", reason))?,
        };
        let mut files = kubernetes.tls.clone().or_else(|| is_own.then(OriginTls::default));
        if let Some(files) = files.as_mut().filter(|_| is_own) {
            files.ca.get_or_insert_with(|| pod.directory.join("ca.crt"));
        }
        let token = kubernetes.token_file.clone().or_else(|| is_own.then(|| pod.directory.join("token")));
        if let Some(file) = &token {
            readable(file).map_err(|reason| bad("token_file", reason))?;
        }
        let namespaces = match kubernetes.namespaces.as_slice() {
            [] => vec![pod.namespace().map_err(|reason| bad("namespaces", reason))?],
            [all] if all == Kubernetes::EVERYWHERE => Vec::new(),
            some => some.to_vec(),
        };
        let tls = files.map(|files| tls::towards(&files, &format!("{field}.tls"))).transpose()?;
        Ok(Self { server, tls, token, namespaces })
    }

    /// The same, as far as that can be said wherever it is run later.
    ///
    /// # Errors
    /// A file that is named is not good.
    pub(crate) fn check(kubernetes: &Kubernetes, field: &str) -> Result<(), Error> {
        if kubernetes.server.is_some() {
            return Self::to(kubernetes, field, &Pod::here()).map(drop);
        }
        kubernetes.tls.as_ref().map_or(Ok(()), |files| tls::towards(files, &format!("{field}.tls")).map(drop))
    }
}

fn readable(file: &Path) -> Result<(), String> {
    match text_file::bytes(file) {
        Ok(bytes) if bytes.trim_ascii().is_empty() => Err(format!("{}: empty; expected a token", file.display())),
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{}: {error}", file.display())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The files that a pod has.
    fn pod(directory: &Path) -> Pod {
        let signed = rcgen::generate_simple_self_signed(["kubernetes".to_owned()]).unwrap();
        fs::write(directory.join("ca.crt"), signed.cert.pem()).unwrap();
        fs::write(directory.join("token"), "a.b.c").unwrap();
        fs::write(directory.join("namespace"), "mesh\n").unwrap();
        Pod { directory: directory.to_owned(), server: Some(("fd00::1".to_owned(), "443".to_owned())) }
    }

    fn refusal(kubernetes: &Kubernetes, pod: &Pod) -> String {
        Access::to(kubernetes, "origins[0].kubernetes", pod).err().unwrap().to_string()
    }

    #[test]
    fn a_pod_has_all_that_is_needed() {
        let directory = tempfile::tempdir().unwrap();
        let pod = pod(directory.path());
        let ca = fs::read(directory.path().join("ca.crt")).unwrap();
        let access = Access::to(&Kubernetes::in_cluster(), "k", &pod).unwrap();
        assert_eq!(access.server.to_string(), "https://[fd00::1]:443/");
        assert_eq!((access.tls.is_some(), access.token), (true, Some(directory.path().join("token"))));
        assert_eq!(access.namespaces, ["mesh"]);
        // What else is said of TLS leaves whom the pod trusts.
        let named = OriginTls { server_name: Some("kubernetes.default.svc".to_owned()), ..OriginTls::default() };
        fs::remove_file(directory.path().join("ca.crt")).unwrap();
        let error = refusal(&Kubernetes { tls: Some(named), ..Kubernetes::in_cluster() }, &pod);
        assert!(error.starts_with("origins[0].kubernetes.tls.ca: "), "{error}");
        fs::write(directory.path().join("ca.crt"), ca).unwrap();
        let everywhere = Kubernetes::in_cluster().with_namespaces([Kubernetes::EVERYWHERE]);
        assert!(Access::to(&everywhere, "k", &pod).unwrap().namespaces.is_empty());
    }

    #[test]
    fn what_is_lacking_names_its_field() {
        let directory = tempfile::tempdir().unwrap();
        let mut pod = pod(directory.path());
        fs::write(directory.path().join("token"), "\n").unwrap();
        let error = refusal(&Kubernetes::in_cluster(), &pod);
        assert!(error.starts_with("origins[0].kubernetes.token_file: ") && error.contains("empty"), "{error}");
        fs::remove_file(directory.path().join("namespace")).unwrap();
        let at = Kubernetes::at("http://127.0.0.1:8001".parse().unwrap());
        assert!(refusal(&at, &pod).starts_with("origins[0].kubernetes.namespaces: "));
        assert!(Access::to(&at.clone().with_namespaces(["a"]), "k", &pod).is_ok(), "no token where none is named");
        pod.server = None;
        let error = refusal(&Kubernetes::in_cluster(), &pod);
        assert!(error.starts_with("origins[0].kubernetes.server: missing, and this is no pod"), "{error}");
        assert!(Access::check(&Kubernetes::in_cluster(), "k").is_ok(), "it is for where it runs");
    }
}
