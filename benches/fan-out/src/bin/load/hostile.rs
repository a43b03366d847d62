//! Good clients beside one who asks for a million things at a time: how long their updates take.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use fan_out::content::Naming;
use fan_out::delta_ads::PATH;
use fan_out::{Error, content, framed};
use prost::Message;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use xds_transport::wire::{DeltaDiscoveryRequest, DiscoveryRequest, Node};

use crate::clients::{Clients, Protocol};
use crate::processes::{Origin, Program};

/// How many entries a request has: as many as are served, and as many as fit into one.
const ENTRIES: [usize; 2] = [100_000, 1_000_000];

#[derive(Args)]
pub(crate) struct Hostile {
    #[command(flatten)]
    program: Program,
    /// How many streams send such requests, one after the other.
    #[arg(long, default_value_t = 2)]
    streams: usize,
    /// How long each kind goes on, in seconds.
    #[arg(long, default_value_t = 10)]
    seconds: u64,
}

impl Hostile {
    pub(crate) async fn run(&self) -> Result<(), Error> {
        println!("| beside | requests | updates | p50 ms | p99 ms | longest ms |");
        println!("|---|--:|--:|--:|--:|--:|");
        self.measure("nobody", PATH, None).await?;
        // In the scope that the good clients are served from, and over the stream that their updates come on.
        let theirs = Naming::Pool.collections().concat();
        let theirs = names(ENTRIES[0]).map(|name| theirs.replace("pool/*", &format!("strangers/{name}"))).collect();
        let request = delta(theirs, Vec::new());
        self.measure(&format!("{} names of their authority", ENTRIES[0]), PATH, Some(request)).await?;
        for entries in ENTRIES {
            self.measure(&format!("{entries} names subscribed"), PATH, Some(subscribed(entries))).await?;
            self.measure(&format!("{entries} versions held"), PATH, Some(held(entries))).await?;
            self.measure(&format!("{entries} names over SotW"), content::SOTW_PATH, Some(over_sotw(entries))).await?;
        }
        Ok(())
    }

    async fn measure(&self, label: &str, path: &'static str, request: Option<Bytes>) -> Result<(), Error> {
        let mut origin = Origin::start(1000, Naming::Pool)?;
        // What strangers ask it for is not to be measured: the good clients have one of their own, as far as that goes.
        let others = Origin::start(1, Naming::Pool)?;
        let relay = self.program.start_beside(origin.address, Naming::Pool, others.address)?;
        let clients = Clients::new(relay.address, Protocol::Delta, Naming::Pool.collections());
        clients.connect(10, 1000).await?;
        let mut attacks = JoinSet::new();
        let sent = Arc::new(AtomicU64::new(0));
        if let Some(request) = request {
            for _ in 0..self.streams {
                let (request, address, sent) = (request.clone(), relay.address, sent.clone());
                attacks.spawn(async move {
                    loop {
                        let _ = attack(address, path, request.clone()).await;
                        sent.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        }
        let (started, mut round, mut took) = (Instant::now(), 0, Vec::new());
        while started.elapsed() < Duration::from_secs(self.seconds) {
            round += 1;
            clients.expect(round, 10);
            let published = Instant::now();
            origin.publish(round, 0, 1)?;
            clients.arrived().await?;
            took.push(published.elapsed().as_secs_f64() * 1e3);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        took.sort_by(f64::total_cmp);
        let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize];
        let sent = sent.load(Ordering::Relaxed);
        println!("| {label} | {sent} | {} | {:.1} | {:.1} | {:.1} |", took.len(), at(0.5), at(0.99), at(1.0));
        Ok(())
    }
}

/// Sends one request, and waits for the end of the stream or for a response.
async fn attack(address: SocketAddr, path: &str, request: Bytes) -> Result<(), Error> {
    let tcp = TcpStream::connect(address).await?;
    let (mut http2, connection) = h2::client::handshake(tcp).await?;
    let driving = tokio::spawn(connection);
    let call =
        http::Request::post(format!("http://{address}{path}")).header("content-type", "application/grpc").body(())?;
    let (response, mut requests) = http2.send_request(call, false)?;
    requests.send_data(request, false)?;
    let mut body = response.await?.into_body();
    let _ = tokio::time::timeout(Duration::from_secs(20), body.data()).await;
    driving.abort();
    Ok(())
}

/// So many short names, each with its number.
fn names(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|index| format!("{index:x}"))
}

fn node() -> Bytes {
    Node { id: "hostile".to_owned(), ..Node::default() }.encode_to_vec().into()
}

fn delta(resource_names_subscribe: Vec<String>, initial_resource_versions: Vec<Bytes>) -> Bytes {
    framed(&DeltaDiscoveryRequest {
        node: node(),
        type_url: content::TYPE_URL.to_owned(),
        resource_names_subscribe,
        initial_resource_versions,
        ..Default::default()
    })
}

fn subscribed(count: usize) -> Bytes {
    delta(names(count).collect(), Vec::new())
}

fn held(count: usize) -> Bytes {
    let entry = |name: String| {
        let mut entry = Vec::new();
        prost::encoding::string::encode(1, &name, &mut entry);
        prost::encoding::string::encode(2, &"1".to_owned(), &mut entry);
        entry.into()
    };
    delta(Vec::new(), names(count).map(entry).collect())
}

fn over_sotw(count: usize) -> Bytes {
    let (node, type_url) = (node(), content::TYPE_URL.to_owned());
    framed(&DiscoveryRequest { node, type_url, resource_names: names(count).collect(), ..Default::default() })
}
