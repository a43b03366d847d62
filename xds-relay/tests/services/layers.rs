//! A relay within a program: what that puts around its calls.

use std::sync::{Arc, Mutex};

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use xds_relay::config::Origin;
use xds_relay::{Config, Relay};

use crate::Running;
use crate::health::{CHECK, asked};

const ADS: &str = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources";
const LRS: &str = "/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats";

#[tokio::test]
async fn all_calls_go_through_the_layers_of_a_program_the_last_one_first() {
    let met = Arc::<Mutex<Vec<String>>>::default();
    let layer = |name: &'static str| {
        let met = met.clone();
        from_fn(move |request: Request, next: Next| {
            met.lock().unwrap().push(format!("{name} {}", request.uri().path()));
            next.run(request)
        })
    };
    let mut config = Config::new([Origin::server("up", "http://127.0.0.1:1".parse().unwrap())]);
    (config.listen, config.admin) = (([127, 0, 0, 1], 0).into(), None);
    let builder = Relay::builder(config).layer(layer("inner")).layer(layer("outer"));
    let relay = Running::run(builder.bind().await.unwrap());
    for path in [CHECK, ADS, LRS] {
        asked(&relay, path, "").await.status().await;
        assert_eq!(
            met.lock().unwrap().drain(..).collect::<Vec<_>>(),
            [format!("outer {path}"), format!("inner {path}")]
        );
    }
}
