//! A control plane that is followed (`follow`): the relay is one client of it, asks it for all that there is, and holds that as a
//! whole, as it does what is in files, in etcd or in Kubernetes. So it has releases.
//!
//! All that there is are the collections that the configuration names, and what resources refer to. It counts once the control plane
//! has said what each of them is. From then on a resource changes once all is known that it refers to: what is late holds up what
//! refers to it, which stays as it was, and nothing else. Silence says nothing: what was said stays while the control plane is away.
//!
//! What is asked, of which server and when it is answered, is the business of a [federation](xdstp_client::federation) of one origin
//! and one client.

mod following;
mod gathered;
mod judge;
mod references;
mod server;
mod streams;

pub(crate) use self::following::{Following, follow_all};
pub use self::server::FollowedServer;
