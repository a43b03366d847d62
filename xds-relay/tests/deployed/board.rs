//! `deploy/dashboard.json`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{expression, of_repository, told};

/// What is told, and not on the board, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("downstream_sent_after_seconds_sum", "quantiles say more than a mean"),
    ("downstream_sent_after_seconds_count", "as many as responses with resources that somebody was woken for"),
    ("downstream_acked_after_seconds_sum", "quantiles say more than a mean"),
    ("downstream_acked_after_seconds_count", "as many as ACKs, which are there"),
    ("certificate_lifetime_seconds", "alerts go by it: on the board it is a flat line"),
    ("load_report_streams_opened_total", "how many there are, and what they carry, is there"),
];

#[test]
fn the_board_is_of_what_relays_tell() {
    let Some(board) = of_repository("deploy/dashboard.json") else { return };
    let (board, told) = (serde_json::from_str::<Value>(&board).unwrap(), told());
    let (mut names, mut ids) = (BTreeSet::new(), BTreeSet::new());
    let variables = board["templating"]["list"].as_array().unwrap().iter();
    for query in variables.filter_map(|variable| variable["query"]["query"].as_str()) {
        names.extend(expression::selected(query).into_iter().map(|(name, _)| name));
    }
    for panel in board["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "twice: {panel}");
        for target in panel["targets"].as_array().into_iter().flatten() {
            let [shown, of] = ["legendFormat", "expr"].map(|key| target[key].as_str().unwrap());
            names.extend(expression::checked(&told, of, shown));
        }
    }
    let left_out: BTreeSet<_> = LEFT_OUT.iter().map(|(name, _)| format!("xds_relay_{name}")).collect();
    assert_eq!(left_out.intersection(&names).next(), None, "left out and there");
    let all: BTreeSet<_> = names.union(&left_out).cloned().collect();
    assert_eq!(all, told.into_keys().collect::<BTreeSet<_>>());
}

/// Panels lie beside and below each other, and not on each other.
#[test]
fn each_panel_has_a_place_of_its_own() {
    let Some(board) = of_repository("deploy/dashboard.json") else { return };
    let board: Value = serde_json::from_str(&board).unwrap();
    let mut taken = BTreeSet::new();
    for panel in board["panels"].as_array().unwrap() {
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap());
        assert!(x + w <= 24, "{panel}");
        let places = (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y)));
        places.for_each(|place| assert!(taken.insert(place), "{place:?}: {panel}"));
    }
}
