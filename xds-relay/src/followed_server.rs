//! A control plane that is followed (`follow`): as one client of it the relay learns all that there is of the collections that are named,
//! and of the routes that these refer to. That can be released; of everything else it is asked for what clients want.
//!
//! What there is counts once the control plane has said all that there is of each collection, on the streams that there are now: before, and
//! while it is away, nothing is known, and nothing is released. Silence says nothing of a name: what refers to it stays as it was, or is
//! left out where it is new, and all else goes on.
//!
//! What is asked, of which server and when it is answered, is the business of a [federation](xdstp_client::federation) of one origin
//! and one client.

mod asking;
mod following;
mod gathered;
mod judge;
mod lacking;
mod lapsed;
mod references;
mod server;
mod standing;
mod streams;

pub(crate) use self::following::{Following, follow_all};
pub use self::server::FollowedServer;
