//! The metrics, sent to a server of statsd: the families that `/metrics` has, each of its series by a name of its own, so that
//! there are no more names than series there.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use prometheus::proto::{Metric, MetricFamily, MetricType};
use tokio::net::{UdpSocket, lookup_host};
use tokio::time::{MissedTickBehavior, interval};

use crate::admin::Inspect as _;
use crate::config::Statsd;
use crate::pages::Pages;

/// What passes any network in one piece: the least MTU of IPv6, less what IP and UDP need.
const PACKET: usize = 1232;

/// Sends them for as long as it is awaited. What is lost on the way is lost: of counters, what they grew by meanwhile.
pub(crate) async fn send(to: &Statsd, pages: &Pages) {
    let mut ticks = interval(to.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut counts, mut failed) = (Counts::default(), false);
    loop {
        ticks.tick().await;
        let packets = counts.packets(&pages.metrics().families(&pages.gauges()), &to.prefix);
        let result = deliver(&to.address, &packets).await;
        match &result {
            Err(error) if !failed => tracing::warn!("metrics do not reach statsd at {}: {error}", to.address),
            Ok(()) if failed => tracing::info!("metrics are sent to statsd at {} again", to.address),
            _ => {}
        }
        failed = result.is_err();
    }
}

async fn deliver(address: &str, packets: &[String]) -> io::Result<()> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, "no such host");
    let to = lookup_host(address).await?.next().ok_or_else(missing)?;
    let from: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(from).await?;
    for packet in packets {
        socket.send_to(packet.as_bytes(), to).await?;
    }
    Ok(())
}

/// How far counters were when they were sent last, by their names.
#[derive(Default)]
struct Counts(HashMap<String, f64>);

impl Counts {
    fn packets(&mut self, families: &[MetricFamily], prefix: &str) -> Vec<String> {
        let mut packets: Vec<String> = Vec::new();
        for family in families {
            for metric in family.get_metric() {
                for line in self.lines(family, metric, prefix).into_iter().flatten() {
                    match packets.last_mut().filter(|packet| packet.len() + 1 + line.len() <= PACKET) {
                        Some(packet) => {
                            packet.push('\n');
                            packet.push_str(&line);
                        }
                        None => packets.push(line),
                    }
                }
            }
        }
        packets
    }

    /// Of what has one value, unless nothing is to be said; of what took time, how often it did, and how long in all.
    fn lines(&mut self, family: &MetricFamily, metric: &Metric, prefix: &str) -> [Option<String>; 2] {
        let labels: Vec<_> = metric.get_label().iter().map(prometheus::proto::LabelPair::value).collect();
        let prefix = Some(prefix).filter(|prefix| !prefix.is_empty());
        let name = |end: &str| {
            let family = format!("{}{end}", family.name());
            let parts = [&*family].into_iter().chain(labels.iter().copied()).map(plain);
            prefix.map(str::to_owned).into_iter().chain(parts).collect::<Vec<_>>().join(".")
        };
        match family.get_field_type() {
            MetricType::COUNTER => [self.grown(name(""), metric.get_counter().get_value()), None],
            MetricType::GAUGE => [Some(format!("{}:{}|g", name(""), metric.get_gauge().get_value().max(0.0))), None],
            MetricType::HISTOGRAM => {
                let histogram = metric.get_histogram();
                let count = self.grown(name("_count"), histogram.get_sample_count() as f64);
                [count, self.grown(name("_sum"), histogram.get_sample_sum())]
            }
            _ => [None, None],
        }
    }

    fn grown(&mut self, name: String, value: f64) -> Option<String> {
        let before = self.0.insert(name.clone(), value).unwrap_or_default();
        let by = value - before;
        (by > 0.0).then(|| format!("{name}:{by}|c"))
    }
}

/// One step of a name: dots, colons and bars mean something to statsd.
fn plain(text: &str) -> String {
    let text: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect();
    if text.is_empty() { "none".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry};

    use super::*;

    fn registry() -> (Registry, IntCounterVec, IntGauge) {
        let counter = IntCounterVec::new(Opts::new("acks_total", "Acks."), &["origin", "type"]).unwrap();
        let gauge = IntGauge::new("ready", "Ready.").unwrap();
        let registry = Registry::new();
        registry.register(Box::new(counter.clone())).unwrap();
        registry.register(Box::new(gauge.clone())).unwrap();
        (registry, counter, gauge)
    }

    #[test]
    fn counters_say_by_how_much_they_grew_and_gauges_what_they_are() {
        let (registry, counter, gauge) = registry();
        let mut counts = Counts::default();
        counter.with_label_values(&["a.b", "x.v3:T|c"]).inc_by(3);
        gauge.set(1);
        assert_eq!(counts.packets(&registry.gather(), "relay"), ["relay.acks_total.a_b.x_v3_T_c:3|c\nrelay.ready:1|g"]);
        assert_eq!(counts.packets(&registry.gather(), ""), ["acks_total.a_b.x_v3_T_c:3|c\nready:1|g"]);
        counter.with_label_values(&["a.b", "x.v3:T|c"]).inc_by(2);
        counter.with_label_values(&["", ""]).inc();
        gauge.set(0);
        let expected = "relay.acks_total.none.none:1|c\nrelay.acks_total.a_b.x_v3_T_c:2|c\nrelay.ready:0|g";
        assert_eq!(counts.packets(&registry.gather(), "relay"), [expected]);
        assert_eq!(counts.packets(&registry.gather(), "relay"), ["relay.ready:0|g"]);
    }

    #[test]
    fn of_what_took_time_it_is_said_how_often_it_did_and_how_long_in_all() {
        let registry = Registry::new();
        let took =
            HistogramVec::new(HistogramOpts::new("sent_seconds", "Sent.").buckets(vec![0.5, 1.0]), &["type"]).unwrap();
        registry.register(Box::new(took.clone())).unwrap();
        let mut counts = Counts::default();
        took.with_label_values(&["a.b"]).observe(0.25);
        took.with_label_values(&["a.b"]).observe(2.0);
        let expected = "relay.sent_seconds_count.a_b:2|c\nrelay.sent_seconds_sum.a_b:2.25|c";
        assert_eq!(counts.packets(&registry.gather(), "relay"), [expected]);
        took.with_label_values(&["a.b"]).observe(0.5);
        let expected = "relay.sent_seconds_count.a_b:1|c\nrelay.sent_seconds_sum.a_b:0.5|c";
        assert_eq!(counts.packets(&registry.gather(), "relay"), [expected]);
        assert!(counts.packets(&registry.gather(), "relay").is_empty());
    }

    #[test]
    fn a_packet_passes_any_network() {
        let (registry, counter, _) = registry();
        for number in 0..200 {
            counter.with_label_values(&["origin", &number.to_string()]).inc();
        }
        let packets = Counts::default().packets(&registry.gather(), "relay");
        assert!(packets.len() > 2 && packets.iter().all(|packet| packet.len() <= PACKET), "{}", packets.len());
        assert_eq!(packets.iter().flat_map(|packet| packet.lines()).count(), 201);
    }

    #[tokio::test]
    async fn a_server_hears_of_them() {
        let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap().to_string();
        deliver(&address, &["a:1|g".to_owned(), "b:2|g".to_owned()]).await.unwrap();
        for expected in ["a:1|g", "b:2|g"] {
            let mut packet = [0; PACKET];
            let length = server.recv(&mut packet).await.unwrap();
            assert_eq!(&packet[..length], expected.as_bytes());
        }
    }
}
