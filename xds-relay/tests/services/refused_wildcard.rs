//! A relay behind one that refuses a wildcard: who asks for all is told so, whatever others ask for by name.

use crate::Running;
use crate::clients::{ask, relay, told};
use crate::limits::CLUSTERS;
use crate::stream::Call;
use xds_transport::Protocol;

#[tokio::test]
async fn a_wildcard_that_an_origin_refuses_is_refused_and_is_not_what_others_have() {
    for protocol in ["delta", "sotw"] {
        let (first, _directory) = relay("[{ match: { any: true }, names: ['shop/**'] }]").await;
        let origins = format!("[{{ name: first, server: '{}', protocol: {protocol} }}]", first.address);
        let second = Running::start_with(&origins, "").await;
        let mut by_name = Call::open(second.address, Protocol::Delta.aggregated_method()).await;
        ask(&mut by_name, CLUSTERS, &["shop/a"], "n").await;
        assert_eq!(told(&mut by_name).await, ["+shop/a"], "{protocol}");
        let mut all = Call::open(second.address, Protocol::Delta.aggregated_method()).await;
        ask(&mut all, CLUSTERS, &["*"], "n").await;
        let mut said = Vec::new();
        while !said.iter().any(|said: &String| said.starts_with('!')) {
            said.extend(told(&mut all).await);
        }
        assert!(said.contains(&"!* 7".to_owned()) && said.iter().all(|said| !said.starts_with('-')), "{said:?}");
    }
}
