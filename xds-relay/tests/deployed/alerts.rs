//! `deploy/alerts.yaml`, and what `docs/operate.md` says of it.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{expression, of_repository, told};

/// As Prometheus reads it: what it does not know, it refuses.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    name: String,
    rules: Vec<Alert>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Alert {
    alert: String,
    expr: String,
    #[serde(default, rename = "for")]
    lasts: Option<String>,
    labels: Labels,
    annotations: Annotations,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Labels {
    severity: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Annotations {
    summary: String,
    runbook: String,
}

fn alerts() -> Option<Vec<Alert>> {
    let rules: Rules = serde_saphyr::from_str(&of_repository("deploy/alerts.yaml")?).unwrap();
    assert_eq!(rules.groups.iter().map(|group| group.name.as_str()).collect::<Vec<_>>(), ["xds-relay"]);
    Some(rules.groups.into_iter().flat_map(|group| group.rules).collect())
}

#[test]
fn alerts_are_of_what_relays_tell() {
    let (Some(alerts), told) = (alerts(), told()) else { return };
    let mut names = BTreeSet::new();
    for Alert { alert, expr, lasts, labels, annotations } in alerts {
        expression::checked(&told, &expr, &annotations.summary);
        assert!(["critical", "warning"].contains(&labels.severity.as_str()), "{alert}");
        let is_time = |time: &String| time.strip_suffix(['m', 'h']).is_some_and(|n| n.parse::<u8>().is_ok());
        assert!(lasts.iter().all(is_time), "{alert}");
        assert!(alert.starts_with("XdsRelay") && names.insert(alert.clone()), "{alert}");
    }
}

#[test]
fn each_alert_says_what_to_do_and_nothing_else_is_said() {
    let (Some(alerts), Some(book)) = (alerts(), of_repository("docs/operate.md")) else { return };
    let sections = book.split("## When an alert fires").nth(1).unwrap();
    let sections: Vec<_> = sections.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    assert_eq!(sections, alerts.iter().map(|alert| alert.alert.as_str()).collect::<Vec<_>>(), "in the same order");
    for Alert { alert, annotations, .. } in alerts {
        assert_eq!(annotations.runbook, format!("docs/operate.md#{}", alert.to_lowercase()));
    }
}
