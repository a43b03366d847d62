//! Serving xDS over gRPC: a body that pulls its stream when HTTP/2 asks for more, a task that reads
//! requests, and no queue between them.

mod age;
mod alarm;
mod apart;
mod body;
mod refusal;
mod requests;
mod service;
mod unfinished;

pub use alarm::Alarm;
pub use service::{Accept, Accepted, Opened, Service, StreamHandle, Wake};
