//! What a check has to work with: a server, and a hand on its resources.

use std::collections::BTreeSet;
use std::time::Duration;

use xds_transport::Dialect;
use xds_transport::wire::Node;
use xdstp_client::upstream::Pool;

use super::adapter::{Adapter, Applied, Change, Failure};
use super::check::{Done, Stop};
use super::client::{Client, Transcript};
use super::link::Link;
use super::messages::Said;
use super::method::Method;
use super::resources::{Item, Of};

pub(crate) struct Lab {
    server: Pool,
    adapter: Adapter,
    /// Sees whether a change arrived at the server, where the adapter does not know.
    probe: Option<(Client, u32)>,
    pub(crate) timeout: Duration,
    pub(crate) method: Method,
    /// The form of dynamic parameters.
    pub(crate) dialect: Dialect,
    pub(crate) transcript: Transcript,
    run: String,
    rule: u16,
    /// What the server has of this check.
    there: BTreeSet<(Of, String)>,
    clients: usize,
    marks: u32,
}

impl Lab {
    pub(crate) fn new(server: Pool, adapter: Adapter, timeout: Duration, seed: u64) -> Self {
        Self {
            server,
            adapter,
            probe: None,
            timeout,
            method: Method::SotwAds,
            dialect: Dialect::Final,
            transcript: Transcript::default(),
            run: format!("xds-{seed:x}"),
            rule: 0,
            there: BTreeSet::new(),
            clients: 0,
            marks: 0,
        }
    }

    pub(crate) fn speaking(self, dialect: Dialect) -> Self {
        Self { dialect, ..self }
    }

    /// Another check begins.
    pub(crate) fn begin(&mut self, rule: u16, method: Method) {
        (self.rule, self.method, self.clients, self.marks) = (rule, method, 0, 1);
        self.transcript.take();
    }

    /// Takes away what the check left.
    pub(crate) async fn clear(&mut self) {
        let remove: Vec<_> = std::mem::take(&mut self.there).into_iter().collect();
        if !remove.is_empty() {
            // The next check sees to itself.
            let _ = self.adapter.change(&Change { put: Vec::new(), remove }, self.timeout).await;
        }
    }

    /// A name of this check's own.
    pub(crate) fn name(&self, short: &str) -> String {
        format!("{}-{}-{}-{short}", self.run, self.rule, self.method.as_str())
    }

    /// The names that a check calls so.
    pub(crate) fn names<const N: usize>(&self, short: [&str; N]) -> [String; N] {
        short.map(|short| self.name(short))
    }

    /// An `xdstp:` name of this check's own: what is behind the type, such as `dir/a?k=1`.
    pub(crate) fn xdstp(&self, of: Of, rest: &str) -> String {
        format!("xdstp://conformance/{}/{}/{rest}", of.full_name(), self.name("d"))
    }

    pub(crate) fn marker(&self) -> String {
        self.name("marker")
    }

    /// A stream of the method, which is asked for this type first.
    pub(crate) fn open(&mut self, of: Of) -> Client {
        self.open_by(self.method, of, &[])
    }

    /// The same, by another method, and with features of the client.
    pub(crate) fn open_by(&mut self, method: Method, of: Of, features: &[&str]) -> Client {
        self.clients += 1;
        let link = Link::open(self.server.clone(), method.path(of));
        let mut client = Client::new(link, method, self.clients, self.timeout, self.transcript.clone());
        client.node = Some(self.node(features));
        client.dialect = self.dialect;
        client
    }

    pub(crate) fn node(&self, features: &[&str]) -> Node {
        Node {
            id: self.run.clone(),
            cluster: "conformance".into(),
            user_agent_name: "xds".into(),
            user_agent_version: env!("CARGO_PKG_VERSION").into(),
            client_features: features.iter().map(|feature| (*feature).to_owned()).collect(),
            ..Node::default()
        }
    }

    /// Puts these, each with a content, and the marker of the check beside them.
    pub(crate) async fn start(&mut self, resources: &[(Of, &str, u32)]) -> Done {
        let marker = self.marker();
        let of = resources.first().map_or(Of::Endpoints, |(of, ..)| *of);
        let mut all = resources.to_vec();
        all.push((of, &marker, self.marks));
        self.put(&all).await
    }

    /// Puts these as one change.
    pub(crate) async fn put(&mut self, resources: &[(Of, &str, u32)]) -> Done {
        let item = |(of, name, content): &(Of, &str, u32)| Item::new(*of, *name, *content);
        self.change(Change { put: resources.iter().map(item).collect(), remove: Vec::new() }).await
    }

    pub(crate) async fn remove(&mut self, of: Of, name: &str) -> Done {
        self.change(Change { put: Vec::new(), remove: vec![(of, name.to_owned())] }).await
    }

    /// Changes the server's resources, and comes back when it has them so.
    pub(crate) async fn change(&mut self, mut change: Change) -> Done {
        self.transcript.note(&change.line());
        // What is removed is so before the rest is put.
        change.remove.iter().for_each(|gone| _ = self.there.remove(gone));
        self.there.extend(change.put.iter().map(|item| (item.of, item.name.clone())));
        let probe = format!("{}-probe", self.run);
        let count = self.probe.as_ref().map_or(1, |(_, count)| count + 1);
        if self.adapter.is_blind() {
            change.put.push(Item::new(Of::Route, probe.as_str(), count));
        }
        match self.adapter.change(&change, self.timeout).await {
            Ok(Applied::Now) => Ok(()),
            Ok(Applied::Sometime) => self.arrived(&probe, count).await,
            Err(Failure::None) => Err(Stop::inconclusive("it takes changes of the server's resources: see --adapter")),
            Err(Failure::Unsupported(why)) => Err(Stop::inconclusive(format!("the adapter cannot do that: {why}"))),
            Err(Failure::Broken(why)) => Err(Stop::inconclusive(format!("the adapter: {why}"))),
        }
    }

    /// Waits until the server has what was put last.
    async fn arrived(&mut self, name: &str, count: u32) -> Done {
        let late = |_| Stop::inconclusive("the change did not arrive at the server in time");
        let mut client = match self.probe.take() {
            Some((client, _)) => client,
            None => {
                let link = Link::open(self.server.clone(), Method::SotwAds.path(Of::Route));
                let mut client = Client::new(link, Method::SotwAds, 0, self.timeout, Transcript::default());
                client.node = Some(self.node(&[]));
                client.want(Of::Route, &[name]).await.map_err(late)?;
                client
            }
        };
        let seen = client.told(Of::Route, &[(name, count)]).await;
        // One that failed is of no use to the next.
        self.probe = seen.is_ok().then_some((client, count));
        seen.map(|_| ()).map_err(late)
    }

    /// Changes the marker, which the client asked for, and waits for it: what else was to come is there by then.
    pub(crate) async fn mark(&mut self, client: &mut Client, of: Of) -> Done<Vec<Said>> {
        self.marks += 1;
        let (name, content) = (self.marker(), self.marks);
        self.put(&[(of, &name, content)]).await?;
        client.told(of, &[(&name, content)]).await
    }

    /// Waits until the server has read what the client sent: by another request, of routes, on the same aggregated stream.
    pub(crate) async fn barrier(&mut self, client: &mut Client) -> Done {
        self.marks += 1;
        let name = self.name(&format!("barrier-{}", self.marks));
        self.put(&[(Of::Route, &name, 1)]).await?;
        client.want(Of::Route, &[&name]).await?;
        client.told(Of::Route, &[(&name, 1)]).await.map(|_| ())
    }

    /// Has a server that reads requests one by one answer what it read, before more is sent that would take its place: by a
    /// barrier, and by a change of what the client has.
    pub(crate) async fn read_by_now(
        &mut self,
        client: &mut Client,
        (of, name, content): (Of, &str, u32),
    ) -> Done<Vec<Said>> {
        if client.method.is_aggregated() {
            self.barrier(client).await?;
        }
        self.put(&[(of, name, content)]).await?;
        client.told(of, &[(name, content)]).await
    }
}
