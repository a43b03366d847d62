//! What a stream makes of a request: whose it is, whether there may be one, and which session handles it.

use std::time::Instant;

use bytes::Bytes;
use prost::Message;
use xdstp_cache::TypeUrl;

use super::Stream;
use crate::Protocol;
use crate::rate::RateLimit;
use crate::server::error::ProtocolError;
use crate::server::features::Features;
use crate::server::session::{Names, Opening, Room, Session, versions};
use crate::server::settings::Settings;
use crate::server::source::Source;
use crate::server::stream::types::Type;
use crate::server::stream::{ack, entries};
use crate::server::weight::weight;
use crate::wire::names::Split;
use crate::wire::{DeltaDiscoveryRequest, DiscoveryRequest};

/// A request of no more bytes is decoded as it is.
const SHORT: usize = 512;

/// A request of more bytes takes long to read, however few names it has: five milliseconds for each MiB of the smallest fields.
const LONG: usize = 1 << 20;

impl Stream {
    /// Gives the request back if it may not take long and would.
    pub(super) fn handle_request(
        &mut self,
        now: Instant,
        message: Bytes,
        may_take_long: bool,
        source: &mut impl Source,
    ) -> Result<Option<Bytes>, ProtocolError> {
        self.awaited_by_nobody = false;
        match self.protocol {
            Protocol::Delta => {
                if self.is_acknowledged(now, &message, source)? {
                    return unless_refused(source);
                }
                self.handle_delta(now, message, may_take_long, source)
            }
            Protocol::Sotw => self.handle_sotw(now, message, may_take_long, source),
        }
    }

    fn handle_delta(
        &mut self,
        now: Instant,
        message: Bytes,
        may_take_long: bool,
        source: &mut impl Source,
    ) -> Result<Option<Bytes>, ProtocolError> {
        if self.takes_long(&message, may_take_long)? {
            return Ok(Some(message));
        }
        self.admit(now)?;
        // An ACK is short: there is nothing to take apart.
        let split = (message.len() > SHORT).then(|| Split::of(&message)).flatten();
        let listed = split.as_ref().and_then(|split| Some((split.texts()?, split)));
        let request = match &listed {
            Some((_, split)) => DeltaDiscoveryRequest::decode(split.others()),
            None => DeltaDiscoveryRequest::decode(message.clone()),
        };
        let request = request.map_err(malformed)?;
        let names = listed.map_or_else(|| texts_of(&request.resource_names_subscribe), |(names, _)| names);
        self.check_lengths(&request.node, &request.type_url, versions(&request))?;
        self.identify(&request.node, source)?;
        let room = self.room_for_names(&request.type_url);
        match self.open_type(&request.type_url)? {
            Some(Type { url, session: Session::Delta(session), .. }) => {
                session.handle_request(now, url, &request, &names, room, source)?;
            }
            Some(_) => {}
            None => self.open_delta(now, &request, &names, room, source)?,
        }
        unless_refused(source)
    }

    fn handle_sotw(
        &mut self,
        now: Instant,
        message: Bytes,
        may_take_long: bool,
        source: &mut impl Source,
    ) -> Result<Option<Bytes>, ProtocolError> {
        if !may_take_long && message.len() > LONG {
            return Ok(Some(message));
        }
        let split = Split::of(&message);
        let others = split.as_ref().map(|split| DiscoveryRequest::decode(split.others())).transpose();
        let encoded = split.as_ref().map(|split| &*split.names);
        if let (Ok(Some(others)), Some(encoded)) = (&others, encoded)
            && others.resource_locators.is_empty()
            && self.repeats(&others.type_url, encoded)
        {
            self.admit(now)?;
            self.check_lengths(&others.node, &others.type_url, [&*others.version_info])?;
            if let Some(Type { session: Session::Sotw(session), rule, url }) = self.open_type(&others.type_url)? {
                session.handle_request(now, (url, rule), others, &Names::Repeated, Room::default(), source)?;
            }
            return Ok(None);
        }
        if self.takes_long(&message, may_take_long)? {
            return Ok(Some(message));
        }
        self.admit(now)?;
        let listed = split.as_ref().and_then(Split::texts);
        let request = match (others, &listed) {
            (Ok(Some(others)), Some(_)) => others,
            _ => DiscoveryRequest::decode(message.clone()).map_err(malformed)?,
        };
        let names = listed.unwrap_or_else(|| texts_of(&request.resource_names));
        self.check_lengths(&request.node, &request.type_url, [&*request.version_info])?;
        self.identify(&request.node, source)?;
        let room = self.room_for_names(&request.type_url);
        let names = Names::Listed(&names, encoded);
        match self.open_type(&request.type_url)? {
            Some(Type { session: Session::Sotw(session), rule, url }) => {
                session.handle_request(now, (url, rule), &request, &names, room, source)?;
            }
            Some(_) => {}
            None => self.open_sotw(now, &request, &names, room, source)?,
        }
        unless_refused(source)
    }

    /// Whether a request is to be given back. What may take long is read for how much it lists all the same.
    fn takes_long(&self, message: &[u8], may_take_long: bool) -> Result<bool, ProtocolError> {
        if !may_take_long && message.len() > LONG {
            return Ok(true);
        }
        Ok(entries::are_many(self.protocol, message, self.settings.names_per_stream)? && !may_take_long)
    }

    /// Whether this is an ACK of a type that is open, and nothing else: then it is done with.
    fn is_acknowledged(
        &mut self,
        now: Instant,
        message: &[u8],
        source: &mut impl Source,
    ) -> Result<bool, ProtocolError> {
        let Some((type_url, nonce)) = self.node.as_ref().and_then(|_| ack::of_delta(message)) else { return Ok(false) };
        let Some(at) = self.types.position(type_url) else { return Ok(false) };
        self.admit(now)?;
        let may_continue = self.may_continue();
        if let Some((Type { session: Session::Delta(session), .. }, _)) = self.types.at(at) {
            let had_room = session.has_room();
            session.accepted(now, nonce, source);
            self.awaited_by_nobody = had_room && !may_continue && session.subscriber.next_refresh().is_none();
        }
        Ok(true)
    }

    /// Whether a list of names is the last one of its type again.
    fn repeats(&mut self, type_url: &str, encoded: &[u8]) -> bool {
        match self.open_type(type_url) {
            Ok(Some(Type { session: Session::Sotw(session), .. })) => session.repeats(encoded),
            _ => false,
        }
    }

    /// A request is to be handled: there may be so many in a time.
    fn admit(&mut self, now: Instant) -> Result<(), ProtocolError> {
        self.first = None;
        if self.answers > 0 {
            self.answers -= 1;
        } else if let Some(requests) = &mut self.requests {
            if !requests.has_token(now) {
                let RateLimit { burst, every } = requests.limit();
                return Err(ProtocolError::TooOften { burst, every });
            }
            requests.take();
        }
        Ok(())
    }

    fn identify(&mut self, node: &Bytes, source: &mut impl Source) -> Result<(), ProtocolError> {
        // Rules 4, 6: the first node counts for the whole stream.
        if self.node.is_some() {
            return Ok(());
        }
        // It is a slice of the request, which is large where a client resumes, and lives as long as the stream.
        let node = Bytes::copy_from_slice(node);
        source.identify(&node)?;
        self.features = Features::of(&node, self.settings.dialect);
        self.features.ttl &= self.protocol == Protocol::Delta || self.settings.ttl_in_sotw;
        self.node = Some(node);
        Ok(())
    }

    /// How many names a type may have beside those of the others.
    fn room_for_names(&self, type_url: &str) -> Room {
        let is_other = |url: &TypeUrl| self.only_type.is_none() && url.as_str() != type_url;
        let others = || self.types.iter().filter(|of| is_other(&of.url));
        let names: usize = others().map(|of| of.session.names()).sum();
        let brought: usize = others().map(|of| of.session.brought()).sum();
        let selectors: usize = others().map(|of| of.session.selectors()).sum();
        let Settings { names_per_stream: limit, name_bytes, selectors_per_stream: selectors_limit, .. } = self.settings;
        let selectors = selectors_limit.saturating_sub(selectors);
        let names = limit.saturating_sub(names + self.refusals.names_but_of(type_url));
        Room { names, brought: limit.saturating_sub(brought), limit, name_bytes, selectors, selectors_limit }
    }

    /// What is kept of a stream is bounded: a name that is longer is none, and answered as such (rule 109).
    fn check_lengths<'a>(
        &self,
        node: &[u8],
        type_url: &str,
        versions: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), ProtocolError> {
        let Settings { name_bytes, node_bytes, .. } = self.settings;
        let lengths = [("node", node.len(), node_bytes), ("type URL", type_url.len(), name_bytes)];
        let versions = versions.into_iter().map(|version| ("version", version.len(), name_bytes));
        match lengths.into_iter().chain(versions).find(|(_, length, limit)| length > limit) {
            Some((what, length, limit)) => Err(ProtocolError::TooLong { what, length, limit }),
            None => Ok(()),
        }
    }

    /// The open session of a request's type; `None` when this is its first request.
    fn open_type(&mut self, asked: &str) -> Result<Option<&mut Type>, ProtocolError> {
        if let Some(served) = &self.only_type
            && !asked.is_empty()
            && asked != served.as_str()
        {
            return Err(ProtocolError::WrongType { served: served.clone(), asked: asked.into() });
        }
        let asked = self.only_type.as_ref().map_or(asked, TypeUrl::as_str);
        if asked.is_empty() {
            return Err(ProtocolError::MissingType);
        }
        let position = self.types.position(asked.as_bytes());
        let opens = position.is_none() && !self.refusals.knows(asked);
        if opens && self.types.len() + self.refusals.types() >= self.settings.types_per_stream {
            return Err(ProtocolError::TooMany { what: "types", limit: self.settings.types_per_stream });
        }
        Ok(position.and_then(|at| self.types.at(at)).map(|(of, _)| of))
    }

    fn open_delta(
        &mut self,
        now: Instant,
        request: &DeltaDiscoveryRequest,
        names: &[&str],
        room: Room,
        source: &mut impl Source,
    ) -> Result<(), ProtocolError> {
        let url = self.opened_type(&request.type_url);
        let rule = self.settings.rules.of(&url).clone();
        let opening = Opening { type_url: &url, rule: &rule, now, features: self.features, room };
        let (session, opened) = Session::open_delta(opening, request, names, source);
        self.types.insert(Type { url, rule, session });
        opened
    }

    fn open_sotw(
        &mut self,
        now: Instant,
        request: &DiscoveryRequest,
        names: &Names<'_>,
        room: Room,
        source: &mut impl Source,
    ) -> Result<(), ProtocolError> {
        let url = self.opened_type(&request.type_url);
        let rule = self.settings.rules.of(&url).clone();
        if rule.delta_only {
            if let Names::Listed(names, _) = names {
                room.check(names.iter().map(|name| weight(name)).sum())?;
                self.refusals.ask(url, names);
            }
            return Ok(());
        }
        let opening = Opening { type_url: &url, rule: &rule, now, features: self.features, room };
        let (session, opened) = Session::open_sotw(opening, request, names, source);
        self.types.insert(Type { url, rule, session });
        opened
    }

    fn opened_type(&self, asked: &str) -> TypeUrl {
        self.only_type.clone().unwrap_or_else(|| asked.into())
    }
}

fn malformed(error: prost::DecodeError) -> ProtocolError {
    ProtocolError::Malformed(error.to_string())
}

/// A request is handled, and nothing of it is given back: unless it, or what came before, asks for more than is served.
fn unless_refused(source: &mut impl Source) -> Result<Option<Bytes>, ProtocolError> {
    source.refused().map_or(Ok(None), |refused| Err(refused.into()))
}

fn texts_of(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}
