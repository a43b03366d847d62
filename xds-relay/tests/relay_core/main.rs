//! The relay between machines of both sides: no socket, no task, no clock but the test's own.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

#[path = "../../../xds-transport/tests/simulation/random.rs"]
mod random;
mod support;

mod absence;
mod aggregation;
mod aliases;
mod another_server;
mod client_limits;
mod conversion;
mod counters;
mod denied;
mod drift;
mod drift_hostile;
mod drift_rounds;
mod ends;
mod errors;
mod file_variants;
#[cfg(feature = "file-origin")]
mod followed;
mod groups;
mod judged;
mod last_known_good;
mod leaving;
mod led;
mod lifetime;
mod limits;
mod lives;
mod loops;
mod moved_after_restart;
mod node_parameters;
mod nodes;
mod order;
mod outage;
mod parameter_histories;
mod parameters;
mod per_type;
mod per_type_away;
mod pieces;
mod proposal_draft;
mod proposal_forms;
mod proposal_maps;
mod refusals;
mod refused;
mod remembered;
mod replica_alarms;
mod replica_copies;
mod replica_histories;
mod replica_restores;
mod replica_waiting;
mod replica_writes;
mod replicas;
mod request_room;
mod resume;
mod returning;
mod rollout_halts;
mod rollouts;
mod routing;
mod servers_after_restart;
mod several_servers;
mod shared_known;
mod shared_known_histories;
mod sharing;
mod shortest;
mod speakers;
mod stores;
mod streams;
mod tree_groups;
mod trees;
mod two_scopes;
mod uncached;
mod unreadable;
mod versions;
