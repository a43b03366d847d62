//! TLS that comes to nothing, as nobody goes on with it.

use super::*;
use crate::config::ListenTls;

/// A client of a relay that speaks TLS, until it stops.
fn secured(stop: impl Future<Output = ()> + Send + 'static) -> (DuplexStream, EndedBy) {
    let directory = tempfile::tempdir().unwrap();
    let [certificate, key] = ["a.pem", "a.key"].map(|name| directory.path().join(name));
    let made = rcgen::generate_simple_self_signed(["a".to_owned()]).unwrap();
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let files = ListenTls { certificate, key, client_ca: None };
    let tls = tls::Downstream::load(&files, tls::With::Clients).unwrap();
    let (near, far) = tokio::io::duplex(1 << 16);
    let (_, ended) = serve_by(Some(Arc::new(tls)), limits(), far, Router::new(), stop);
    (near, ended)
}

/// Nothing, and the head of a handshake that says that there is more.
const BEGINNINGS: [&[u8]; 2] = [&[], &[22, 3, 1, 1, 0, 1]];

#[tokio::test(start_paused = true)]
async fn a_handshake_that_stands_still_has_the_time_that_a_preface_has() {
    for sent in BEGINNINGS {
        let (mut client, ended) = secured(pending());
        let start = Instant::now();
        client.write_all(sent).await.unwrap();
        timeout(Duration::from_secs(60), client.read_to_end(&mut Vec::new())).await.expect("it is kept").unwrap();
        assert_eq!(start.elapsed().as_secs(), 10);
        assert_eq!(*ended.lock().unwrap(), ["preface"]);
    }
}

/// Of which nothing is counted: the client did no wrong.
#[tokio::test(start_paused = true)]
async fn a_handshake_is_over_when_all_stop() {
    for sent in BEGINNINGS {
        let (mut client, ended) = secured(sleep(Duration::from_secs(3)));
        let start = Instant::now();
        client.write_all(sent).await.unwrap();
        client.read_to_end(&mut Vec::new()).await.unwrap();
        assert_eq!(start.elapsed().as_secs(), 3);
        assert!(ended.lock().unwrap().is_empty());
    }
}

/// One that is vouched for may come with a hundred, and TLS keeps these, too.
#[test]
fn of_what_a_client_shows_its_own_certificate_is_kept() {
    let made = ["a", "b", "c"].map(|name| rcgen::generate_simple_self_signed([name.to_owned()]).unwrap().cert);
    let chain = made.each_ref().map(|made| made.der().clone());
    let kept = own(&chain).expect("it is one");
    assert_eq!((kept.chain(), kept.dns_names()), (&[Bytes::copy_from_slice(&chain[0])][..], &["a".to_owned()][..]));
    assert!(own(&[]).is_none());
}
