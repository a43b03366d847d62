//! A cluster of etcd, as a configuration names it.

use std::path::Path;

use xdstp_client::state::{EtcdOptions, EtcdOptionsError};

use crate::config::{Etcd, EtcdUser, ServerAddress};
use crate::error::Error;
use crate::text_file::{self, Unread};
use crate::tls;

/// Where it is, and who the relay is to it; `field` is what the configuration calls it, such as `state.etcd`. Files are read now, and the
/// password each time that etcd asks who the relay is.
///
/// # Errors
/// A file is not good, or no member can be at an address.
pub(crate) fn etcd_options(etcd: &Etcd, field: &str) -> Result<EtcdOptions, Error> {
    let bad = |part: &str, error: &EtcdOptionsError| Error::Field {
        field: format!("{field}.{part}"),
        reason: error.to_string(),
    };
    let endpoints = etcd.endpoints.iter().map(ServerAddress::to_string);
    let options = EtcdOptions::new(endpoints, &etcd.prefix).map_err(|error| bad("endpoints", &error))?;
    let options = match &etcd.tls {
        Some(files) => options.with_tls(tls::towards(files, &format!("{field}.tls"))?),
        None => options,
    };
    let Some(EtcdUser { name, password_file, .. }) = &etcd.user else { return Ok(options) };
    // There may be another one by the time it is needed.
    password(password_file).map_err(|reason| Error::Field { field: format!("{field}.user.password_file"), reason })?;
    let file = password_file.clone();
    options.with_user_of(name, move || password(&file)).map_err(|error| bad("user", &error))
}

/// What is in the file, without the end of its line. What is wrong says nothing of it.
fn password(file: &Path) -> Result<String, String> {
    let text = text_file::read(file).map_err(|error| match error {
        Unread::File(error) => format!("{}: {error}", file.display()),
        Unread::Text(_) => format!("{}: no text; expected a password and nothing else", file.display()),
    })?;
    let password = text.strip_suffix('\n').unwrap_or(&text);
    let password = password.strip_suffix('\r').unwrap_or(password);
    match password {
        "" => Err(format!("{}: empty; expected a password", file.display())),
        _ if password.contains('\n') => {
            Err(format!("{}: several lines; expected a password and nothing else", file.display()))
        }
        _ => Ok(password.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_password_is_the_one_line_of_its_file_and_what_is_wrong_does_not_tell_it() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("password");
        let options = |text: &[u8]| {
            fs::write(&file, text).unwrap();
            let etcd = Etcd::new(["https://a:1".parse().unwrap()], "x/").with_user("me", &file);
            etcd_options(&etcd, "state.etcd").map_err(|error| error.to_string())
        };
        for good in ["hunter2", "hunter2\n", "hunter2\r\n", " "] {
            assert!(options(good.as_bytes()).is_ok());
        }
        for (bad, words) in [
            (&b""[..], "empty; expected a password"),
            (b"\n", "empty; expected a password"),
            (b"hunter\n2", "several lines; expected a password and nothing else"),
            (b"hunter\xff", "no text; expected a password and nothing else"),
        ] {
            let error = options(bad).unwrap_err();
            assert_eq!(error, format!("state.etcd.user.password_file: {}: {words}", file.display()));
        }
        // It is another one when it is asked for again.
        fs::write(&file, "hunter3\n").unwrap();
        assert_eq!(password(&file).as_deref(), Ok("hunter3"));
        fs::remove_file(&file).unwrap();
        let etcd = Etcd::new(["https://a:1".parse().unwrap()], "x/").with_user("me", &file);
        let error = etcd_options(&etcd, "origins[1].etcd").unwrap_err().to_string();
        assert!(error.starts_with("origins[1].etcd.user.password_file: "), "{error}");
    }

    #[test]
    fn files_of_tls_are_named_by_their_fields() {
        let directory = tempfile::tempdir().unwrap();
        let mut etcd = Etcd::new(["https://a:1".parse().unwrap()], "x/");
        etcd.tls.as_mut().unwrap().ca = Some(directory.path().join("none.pem"));
        let error = etcd_options(&etcd, "state.etcd").unwrap_err().to_string();
        assert!(error.starts_with("state.etcd.tls.ca: "), "{error}");
    }
}
