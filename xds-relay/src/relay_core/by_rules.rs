//! Node groups by aggregation rules.

use xds_transport::server::NodeError;
use xdstp_cache::TypeUrl;
use xdstp_client::federation::NodeGroup;

use crate::aggregation::{ExplainedRule, Request, Rules, Verdict};
use crate::api::RuleExplained;
use crate::config::Unmatched;
use crate::relay_core::client_node::ClientNode;
use crate::relay_core::node_group::NodeGrouping;

/// Requests share that have the same [key](Rules::group) by aggregation rules, and are for the same type and name.
///
/// ```
/// use xds_relay::aggregation::{Reading, Rules};
/// use xds_relay::config::Unmatched;
/// use xds_relay::relay_core::{ByRules, ClientNode, EveryNode, NodeGrouping};
///
/// let rules = Rules::parse("rules.yaml", "
///     fragments:
///     - rules: [{match: {any_match: true}, result: {request_node_fragment: {cluster_action: {exact: true}}}}]
/// ", Reading::Documented)?;
/// let grouping = ByRules::new(rules, Unmatched::OwnGroup, Box::new(EveryNode));
/// // Field 2 of a node is its cluster.
/// let node = ClientNode::decode((&b"\x12\x03web"[..]).into())?;
/// let group = grouping.group_for(&node, &"type.googleapis.com/envoy.config.cluster.v3.Cluster".into())?;
/// assert_eq!(group.unwrap().label(), "web");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ByRules {
    rules: Rules,
    unmatched: Unmatched,
    otherwise: Box<dyn NodeGrouping>,
}

impl ByRules {
    /// By these rules; `otherwise` groups what they have no key for, where that is to have a group.
    pub fn new(rules: Rules, unmatched: Unmatched, otherwise: Box<dyn NodeGrouping>) -> Self {
        Self { rules, unmatched, otherwise }
    }
}

impl NodeGrouping for ByRules {
    fn identity(&self) -> Option<String> {
        let otherwise = self.otherwise.identity()?;
        Some(format!("rules {} {:?} {otherwise}", self.rules.digest(), self.unmatched))
    }

    fn group(&self, node: &ClientNode) -> Result<NodeGroup, NodeError> {
        self.otherwise.group(node)
    }

    fn goes_by_type(&self) -> bool {
        true
    }

    fn group_for(&self, node: &ClientNode, type_url: &TypeUrl) -> Result<Option<NodeGroup>, NodeError> {
        let why = match self.rules.group(node.message(), type_url.as_str()) {
            Ok(key) => return Ok(Some(NodeGroup::new([&[BY_RULES], &*key.to_bytes()].concat(), key.label()))),
            Err(why) => why,
        };
        match self.unmatched {
            Unmatched::OwnGroup => {
                let group = self.otherwise.group(node)?;
                let key = [&[OTHERWISE], group.key()].concat();
                Ok(Some(NodeGroup::new(key, format!("{group}, by no aggregation rule: {why}"))))
            }
            Unmatched::Pass => Ok(None),
            Unmatched::Reject => Err(NodeError::new(format!("no aggregation rule is for its {type_url}: {why}"))),
        }
    }

    fn explain(&self, node: &ClientNode, type_url: &TypeUrl, name: &str) -> Vec<RuleExplained> {
        let (type_url, resource_names) = (type_url.as_str(), &[name.to_owned()]);
        let explained = self.rules.explain(&Request { node: node.message(), type_url, resource_names });
        let fragments = explained.fragments.into_iter().enumerate();
        let of_fragment = |(fragment, rules): (usize, Vec<ExplainedRule>)| {
            let rules = rules.into_iter().enumerate();
            rules.map(move |(rule, explained)| told(fragment + 1, rule + 1, explained))
        };
        fragments.flat_map(of_fragment).collect()
    }
}

fn told(fragment: usize, rule: usize, ExplainedRule { line, verdict, .. }: ExplainedRule) -> RuleExplained {
    let (verdict, words) = match verdict {
        Verdict::Matched(value) => ("matched", value),
        Verdict::NotMatched(reason) => ("not_matched", reason),
        Verdict::Failed(error) => ("failed", error.to_string()),
        Verdict::NotReached => ("not_reached", String::new()),
    };
    RuleExplained { fragment, rule, line, verdict: verdict.to_owned(), words }
}

// The keys of the two kinds of group differ in their first byte.
const BY_RULES: u8 = 0;
const OTHERWISE: u8 = 1;
