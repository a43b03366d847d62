//! The origin: a delta server of one collection, as simple as it can be and still be right.
//! A line `ROUND FIRST COUNT` on standard input changes that many resources, in one response to each client.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fan_out::content::Naming;
use fan_out::delta_ads::{DeltaAds, Handler, Responses};
use fan_out::{Error, content};
use tokio::net::TcpListener;
use tonic::Streaming;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use xds_transport::wire::{DeltaDiscoveryRequest, DeltaDiscoveryResponse, walk};

/// How many KiB of resources the first answer to a client holds at most.
const PER_RESPONSE: usize = 1000;

#[derive(Clone)]
struct Origin(Arc<Mutex<State>>);

struct State {
    naming: Naming,
    /// How large each is.
    kibibytes: usize,
    collections: Vec<String>,
    /// The round that changed each resource last.
    rounds: Vec<u64>,
    clients: Vec<Client>,
    nonce: u64,
}

struct Client {
    responses: Responses,
    /// It has asked for something.
    has_asked: bool,
    /// By their place among all.
    collections: HashSet<usize>,
    names: HashSet<usize>,
}

/// Serves `resources` resources until standard input ends. Prints its address.
pub(crate) async fn serve(resources: usize, naming: Naming, kibibytes: usize, listen: SocketAddr) -> Result<(), Error> {
    let listener = TcpListener::bind(listen).await?;
    println!("{}", listener.local_addr()?);
    std::io::stdout().flush()?;
    let (rounds, collections) = (vec![0; resources], naming.collections());
    let state = State { naming, kibibytes, collections, rounds, clients: Vec::new(), nonce: 0 };
    let origin = Origin(Arc::new(Mutex::new(state)));
    let service = DeltaAds::new(Arc::new(origin.clone()));
    tokio::spawn(
        Server::builder()
            .add_service(service)
            .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true))),
    );
    tokio::task::spawn_blocking(move || origin.obey(std::io::stdin().lock())).await?
}

impl Origin {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn obey(&self, commands: impl BufRead) -> Result<(), Error> {
        for line in commands.lines() {
            let numbers = line?.split(' ').map(str::parse).collect::<Result<Vec<u64>, _>>()?;
            let [round, first, count] = numbers[..] else { return Err("a command is ROUND FIRST COUNT".into()) };
            self.lock().publish(round, first as usize, count as usize)?;
        }
        Ok(())
    }
}

impl Handler for Origin {
    fn open(&self, mut requests: Streaming<DeltaDiscoveryRequest>, responses: Responses) {
        let origin = self.clone();
        tokio::spawn(async move {
            let at = {
                let clients = &mut origin.lock().clients;
                clients.push(Client {
                    responses,
                    has_asked: false,
                    collections: HashSet::new(),
                    names: HashSet::new(),
                });
                clients.len() - 1
            };
            while let Ok(Some(request)) = requests.message().await {
                let answered = match request.error_detail {
                    Some(error) => Err(format!("rejected: {}", error.message).into()),
                    None => origin.lock().answer(at, &request),
                };
                if let Err(error) = answered {
                    eprintln!("origin: {error}");
                    break;
                }
            }
            if let Some(client) = origin.lock().clients.get_mut(at) {
                (client.collections, client.names) = (HashSet::new(), HashSet::new());
            }
        });
    }
}

impl State {
    fn publish(&mut self, round: u64, first: usize, count: usize) -> Result<(), Error> {
        let total = self.rounds.len();
        let changed: Vec<_> = (first..first + count).map(|index| index % total).collect();
        for index in &changed {
            self.rounds[*index] = round;
        }
        for at in 0..self.clients.len() {
            let client = &self.clients[at];
            let wants = |index: &usize| {
                client.names.contains(index) || client.collections.contains(&self.naming.collection_of(*index))
            };
            let wanted: Vec<_> = changed.iter().copied().filter(wants).collect();
            self.send(at, &wanted, Vec::new())?;
        }
        Ok(())
    }

    /// Adds what a request subscribes, and sends all of it.
    fn answer(&mut self, at: usize, request: &DeltaDiscoveryRequest) -> Result<(), Error> {
        let (mut wanted, mut missing) = (Vec::new(), Vec::new());
        // Who asks for nothing at first asks for everything.
        let is_first = !std::mem::replace(&mut self.clients[at].has_asked, true);
        let all = (is_first && request.resource_names_subscribe.is_empty()).then(|| "*".to_owned());
        for name in request.resource_names_subscribe.iter().chain(&all) {
            if let Some(collection) = self.collections.iter().position(|collection| collection == name) {
                self.clients[at].collections.insert(collection);
                wanted.extend((0..self.rounds.len()).filter(|index| self.naming.collection_of(*index) == collection));
            } else {
                let index = name.rsplit('/').next().and_then(|text| text.parse().ok());
                match index.filter(|index| *index < self.rounds.len() && *name == self.naming.name(*index)) {
                    Some(index) => {
                        self.clients[at].names.insert(index);
                        wanted.push(index);
                    }
                    None => missing.push(name.clone()),
                }
            }
        }
        for name in &request.resource_names_unsubscribe {
            let client = &mut self.clients[at];
            client.collections.retain(|collection| *name != self.collections[*collection]);
            client.names.retain(|index| *name != self.naming.name(*index));
        }
        let known: HashMap<_, _> =
            request.initial_resource_versions.iter().filter_map(|entry| version_of(entry)).collect();
        wanted.retain(|index| {
            known.get(self.naming.name(*index).as_str()) != Some(&self.rounds[*index].to_string().as_str())
        });
        wanted
            .chunks(PER_RESPONSE / self.kibibytes.clamp(1, PER_RESPONSE))
            .try_for_each(|part| self.send(at, part, Vec::new()))?;
        self.send(at, &[], missing)
    }

    fn send(&mut self, at: usize, indices: &[usize], missing: Vec<String>) -> Result<(), Error> {
        if indices.is_empty() && missing.is_empty() {
            return Ok(());
        }
        self.nonce += 1;
        let response = DeltaDiscoveryResponse {
            type_url: content::TYPE_URL.into(),
            nonce: self.nonce.to_string(),
            removed_resources: missing,
            resources: indices
                .iter()
                .map(|index| self.naming.resource_of(self.kibibytes, *index, self.rounds[*index]))
                .collect(),
            ..DeltaDiscoveryResponse::default()
        };
        Ok(self.clients[at].responses.try_send(Ok(response))?)
    }
}

/// A name and its version.
fn version_of(entry: &[u8]) -> Option<(&str, &str)> {
    let text = |number| walk::text_at(entry, &[number]);
    Some((text(1)?, text(2)?))
}
