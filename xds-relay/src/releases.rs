//! Releases: what a scope has once it has settled, under an id that is the same on all relays; and who is served which.
//!
//! A [`Manifest`] lists what a scope has, and [`Release`] is its id. [`Settling`] says when there is a new one. [`Control`] is the
//! one small value that says which release everybody is served (`stable`), which one some are (`candidate`), and how far that got:
//! a state machine without I/O, which [`Order`]s change. [`Stages`] say who is among those some. [`Stored`] keeps it all in a store.
//! A relay serves by it once it is told to [roll out](crate::relay_core::RelayCore::roll_out).
//!
//! ```
//! use std::time::{Duration, SystemTime};
//! use xds_relay::releases::{Act, By, Control, Instance, Item, Manifest, Order, Stage, Stages, Transition, Types, Who};
//! use xds_transport::{Frame, wire::Node};
//!
//! let type_url = "type.googleapis.com/envoy.config.cluster.v3.Cluster".into();
//! let cluster = |body: &[u8]| {
//!     let resource = Frame::of_message(&type_url, body).into_resource(None);
//!     "backend".parse().ok().and_then(|name| Item::of(&type_url, &name, &resource, Types::Default))
//! };
//! let (first, second) = (Manifest::new(cluster(b"1")), Manifest::new(cluster(b"2")));
//! let stages = Stages::new([Stage { who: Who::Percent("5%".parse()?), hold: Duration::from_secs(60) }]);
//!
//! let mut control = Control::default();
//! let mut now = SystemTime::UNIX_EPOCH;
//! let order = |control: &mut Control, by, act| control.apply(&Order::new(act, by, "", now), &stages, &|_| true);
//! order(&mut control, By::Instance(Instance(1)), Act::TakeOver)?;
//! let by = By::Publisher(control.publisher().ok_or("nobody publishes")?);
//! for manifest in [&first, &second] {
//!     order(&mut control, by.clone(), Act::Publish { release: manifest.release(), removes_much: false })?;
//! }
//! assert_eq!(control.stable(), Some(first.release()));
//! let of_canary = control.release_for(&stages, &Node { id: "node-22".to_owned(), ..Node::default() }, None);
//! assert!(of_canary == control.stable() || of_canary == Some(second.release()));
//!
//! now += Duration::from_secs(60);
//! let order = |control: &mut Control, by, act| control.apply(&Order::new(act, by, "", now), &stages, &|_| true);
//! assert_eq!(order(&mut control, by, Act::Advance { release: second.release() })?, Transition::Promoted);
//! assert_eq!(control.stable(), Some(second.release()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod act;
mod candidate;
mod control;
mod difference;
mod fields;
mod halt;
mod keyspace;
mod manifest;
mod ordered;
mod records;
mod release;
mod sealed;
mod settling;
mod stage;
mod stored;
mod turn;
mod types;

pub(crate) use self::act::millis_of;
pub use self::act::{Act, By, Instance, OnHalt, Order, Publisher, Said, Transition};
pub use self::candidate::{Candidate, Progress};
pub(crate) use self::candidate::{MAY_LACK, REMOVES_MUCH};
pub use self::control::error::ControlError;
pub use self::control::{Control, NotTaken};
pub use self::difference::Difference;
pub use self::fields::{FieldChange, FieldDifference, Fields, NotShown};
pub use self::halt::{Halt, Threshold, ThresholdError};
pub(crate) use self::keyspace::PREFIX;
pub use self::manifest::{BodyHash, Item, Manifest};
pub use self::release::{Release, ReleaseError};
pub use self::settling::Settling;
pub use self::stage::{Percent, PercentError, Stage, Stages, Who};
pub use self::stored::error::{Damage, StoredError};
pub use self::stored::{Applied, Kept, Logged, Reader, Stored};
pub(crate) use self::stored::{Taken, Waiting, WaitingOrders};
pub(crate) use self::turn::Alone;
pub use self::turn::{Turn, Turns};
pub use self::types::{Gathered, Types};
