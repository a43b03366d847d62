//! Node groups by aggregation rules.

use xds_transport::server::NodeError;
use xdstp_cache::TypeUrl;
use xdstp_client::federation::NodeGroup;

use crate::aggregation::{ExplainedRule, Group, KeyError, Request, Rules, Verdict};
use crate::api::RuleExplained;
use crate::config::Unmatched;
use crate::relay_core::client_node::ClientNode;
use crate::relay_core::node_group::{Covers, NodeGrouping, Rest};

/// Requests share that have the same [key](Rules::group) by aggregation rules, and are for the same type and name. Who has none shares
/// with nobody by them.
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

    /// What a node shares of a type by the rules.
    fn shared(&self, node: &ClientNode, type_url: &TypeUrl) -> Result<Group, KeyError> {
        let group = self.rules.group(node.message(), type_url.as_str())?;
        // A type of a stream is of one group: where some names may have no key, and are served all the same, it is that of those.
        if self.unmatched != Unmatched::Reject {
            group.has_all_names()?;
        }
        Ok(group)
    }

    /// The group of what has no key for this reason, and is served.
    fn apart(&self, node: &ClientNode, why: &KeyError) -> Result<Option<NodeGroup>, NodeError> {
        if self.unmatched == Unmatched::Pass {
            return Ok(None);
        }
        let group = self.otherwise.group(node)?;
        let key = [&[OTHERWISE], group.key()].concat();
        Ok(Some(NodeGroup::new(key, format!("{group}, by no aggregation rule: {why}"))))
    }
}

fn no_rule(type_url: &TypeUrl, why: &KeyError) -> String {
    format!("no aggregation rule is for its {type_url}: {why}")
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
        match self.shared(node, type_url) {
            Ok(group) => {
                let key = group.key();
                Ok(Some(NodeGroup::new([&[BY_RULES], &*key.to_bytes()].concat(), key.unique_label())))
            }
            Err(why) if self.unmatched == Unmatched::Reject => Err(NodeError::denied(no_rule(type_url, &why))),
            Err(why) => self.apart(node, &why),
        }
    }

    fn covers(&self, node: &ClientNode, type_url: &TypeUrl) -> Covers {
        let group = match self.shared(node, type_url) {
            Ok(group) if group.has_all() => return Covers::All,
            Ok(group) => group,
            Err(why) if self.unmatched == Unmatched::Reject => return Covers::Nothing(no_rule(type_url, &why)),
            Err(_) => return Covers::All,
        };
        let rest = match self.unmatched {
            Unmatched::Reject => Rest::Refused,
            _ => match self.apart(node, &NO_NAME) {
                Ok(group) => Rest::Group(group),
                Err(_) => Rest::Refused,
            },
        };
        let type_url = type_url.clone();
        let has = move |name: &str| {
            let name = Some(name).filter(|name| *name != "*");
            group.has(name).map_err(|why| match name {
                Some(name) => format!("no aggregation rule is for {name:?} of {type_url}: {why}"),
                None => format!("no aggregation rule is for all of {type_url}: {why}"),
            })
        };
        Covers::Some { has: Box::new(has), rest }
    }

    fn explain(&self, node: &ClientNode, type_url: &TypeUrl, name: Option<&str>) -> Vec<RuleExplained> {
        let names: Vec<String> = name.map(str::to_owned).into_iter().collect();
        let request = Request { node: node.message(), type_url: type_url.as_str(), resource_names: &names };
        let explained = self.rules.explain(&request);
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

/// Why all there is of a type has no key by rules that take a name.
const NO_NAME: KeyError = KeyError::NoSuchName;

// The keys of the two kinds of group differ in their first byte.
const BY_RULES: u8 = 0;
const OTHERWISE: u8 = 1;
