//! Rules of the delta protocol.

mod absence;
mod answers;
mod collections;
mod content;
mod lifetime;
mod reconnect;
mod requests;

use super::*;

fn client(interests: &[&str]) -> Client {
    Client::subscribed(Protocol::Delta, CDS, interests)
}
