//! Rules of the SotW protocol.

mod absence;
mod answers;
mod collections;
mod content;
mod lifetime;
mod requests;
mod silence;
mod versions;
mod wildcards;

use super::*;

fn clusters(interests: &[&str]) -> Client {
    Client::subscribed(Protocol::Sotw, CDS, interests)
}

fn endpoints(interests: &[&str]) -> Client {
    Client::subscribed(Protocol::Sotw, EDS, interests)
}
