//! The admin pages of a relay, and where it takes orders, by TLS.

use super::cli::Run;
use super::run;
use super::tls::Secure;

const OF_BOTH: &str = "
state: { path: $state }
rollout: [{ scope: old-style, settle: 0s }]
admin:
  address: 127.0.0.1:0
  token: $token
  tls: { certificate: $relay.example.com.pem, key: $relay.example.com.key, client_ca: $ca.pem }
orders:
  address: 127.0.0.1:0
  tls: { certificate: $relay.example.com.pem, key: $relay.example.com.key, client_ca: $ca.pem }
";

/// What is run with the relay's files, where `$` is their directory.
fn told(secure: &Secure, args: &str) -> Run {
    let directory = secure.file("");
    let args: Vec<_> = args.split(' ').map(|arg| arg.replace('$', &directory)).collect();
    run(&["relay"].into_iter().chain(args.iter().map(String::as_str)).collect::<Vec<_>>())
}

#[test]
fn admin_pages_and_orders_are_reached_by_tls_with_a_certificate_of_our_own() {
    let secure = Secure::with(OF_BOTH);
    let (admin, orders) = (&secure.admin, secure.orders.as_ref().unwrap());
    let who = "--ca $ca.pem --cert $me.pem --key $me.key --server-name relay.example.com";
    for asked in [
        format!("--admin https://{admin} --token $token {who} status"),
        // As `--ca` says without a scheme, and wherever it is.
        format!("status --admin {admin} --token $token {who}"),
        format!("freeze --orders https://{orders} --by ann --why test {who}"),
    ] {
        // What is to be frozen settles first.
        let told = (0..1000).map(|_| told(&secure, &asked)).find(|run| run.code == 0 || !asked.contains("freeze"));
        let told = told.unwrap_or_else(|| panic!("{asked}"));
        assert_eq!((told.code, &*told.err), (0, ""), "{asked}");
    }
    for (asked, code, words) in [
        (format!("--admin https://{admin} {who} status"), 3, "HTTP 401"),
        (format!("--admin https://{admin} --ca $ca.pem --server-name relay.example.com status"), 3, "Certificate"),
        (format!("--admin https://{admin} status"), 3, "UnknownIssuer"),
        (format!("--admin https://{admin} --ca $ca.pem --server-name other status"), 3, "other"),
        (format!("--admin {admin} status"), 3, "it speaks TLS, and was spoken to in clear text: expected https://"),
        (format!("--admin https://{admin} --ca $none.pem status"), 2, "none.pem: "),
        (format!("--admin https://{admin} --ca $me.key status"), 2, "me.key: "),
        (format!("--admin https://{admin} --cert $me.pem --key $ca.pem status"), 2, "ca.pem: "),
        (format!("--admin http://{admin} --ca $ca.pem status"), 2, "--ca is for TLS, and http://"),
    ] {
        let told = told(&secure, &asked);
        assert_eq!(told.code, code, "{asked}: {}", told.err);
        assert!(told.err.contains(words), "{asked}: {}", told.err);
    }
}

#[test]
fn a_token_is_not_sent_in_clear_text_to_another_machine() {
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    std::fs::write(&token, "a-token-0123456789").unwrap();
    let token = token.to_str().unwrap();
    for admin in ["10.0.0.1:1", "http://10.0.0.1:1", "relay.example.com:1"] {
        let told = run(&["relay", "--admin", admin, "--token", token, "--timeout", "0.1", "status"]);
        assert_eq!(told.code, 2, "{admin}: {}", told.err);
        let words =
            format!("a token is not sent in clear text to another machine, as {admin} may be: expected https://");
        assert!(told.err.contains(&words), "{}", told.err);
    }
    // Nobody listens there.
    for admin in ["127.0.0.1:1", "https://127.0.0.1:1"] {
        assert_eq!(run(&["relay", "--admin", admin, "--token", token, "status"]).code, 3, "{admin}");
    }
}
