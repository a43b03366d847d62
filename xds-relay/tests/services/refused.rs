//! Who is refused by TLS: what each is told, and what the log says.

use xdstp_client::tls::Tls;

use crate::stream::in_time;
use crate::tls::{Authority, Files, endpoint, why_not};

#[path = "../support/log.rs"]
mod log;

use self::log::Log;

/// A relay's files, where it wants certificates, and clients that show none and two that are not good.
fn files() -> Files {
    let (files, ca, stranger) = (Files::new(), Authority::new("ours"), Authority::new("stranger"));
    files.write("ca.pem", &ca.pem);
    files.identity("server", ca.vouches_for("127.0.0.1", None));
    files.identity("unknown", stranger.vouches_for("client", None));
    files.identity("late", ca.vouches_for("client", Some((2001, 1, 1))));
    files
}

const WANTS: &str = "{ certificate: $server.pem, key: $server.key, client_ca: $ca.pem }";

/// Which of the two ends is ahead is another matter each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_refused_is_told_why_each_time() {
    let files = files();
    let relay = files.relay(WANTS).await;
    let shows = |identity: Option<&str>| -> Tls { files.tls("ca.pem", identity) };
    for at in 0..50 {
        for (identity, words) in
            [(None, "CertificateRequired"), (Some("unknown"), "UnknownCA"), (Some("late"), "CertificateExpired")]
        {
            let said = why_not(endpoint(relay.address).with_tls(shows(identity))).await;
            assert!(said.contains(words), "{words}, at {at}: {said}");
        }
    }
}

#[tokio::test]
async fn the_log_says_where_who_is_refused_is() {
    let (log, files) = (Log::default(), files());
    let lines = log.clone();
    let writing = tracing_subscriber::fmt().with_writer(move || lines.clone()).with_ansi(false);
    // The relay has threads of its own. Others that are refused meanwhile are told of, too.
    tracing::subscriber::set_global_default(writing.finish()).unwrap();
    let relay = files.relay(WANTS).await;
    why_not(endpoint(relay.address).with_tls(files.tls("ca.pem", None))).await;
    in_time(async {
        loop {
            let text = log.text();
            let refusals = text.lines().filter_map(|line| line.split_once(" no TLS with "));
            let mut none = refusals.filter(|(_, why)| why.contains("peer sent no certificates"));
            if let Some((_, why)) = none.next() {
                assert!(why.starts_with("127.0.0.1:"), "{why}");
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
}
