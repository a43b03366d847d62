//! What the origin says on a stream, on its way to the session that it is for.

use std::time::Instant;

use bytes::Bytes;

use crate::Protocol;
use crate::client::error::ProtocolError;
use crate::client::stream::Stream;
use crate::client::update::Event;
use crate::response::Response;

impl Stream {
    /// Takes a response in. Finish the update it makes before the next is read: what is not read holds the server
    /// back (rule 130), and what is read waits here.
    ///
    /// # Errors
    /// When the transport should close the stream and connect anew. Until it has, every further response fails alike, and
    /// there is no request.
    pub fn handle_message(&mut self, now: Instant, message: Bytes) -> Result<(), ProtocolError> {
        let walked = self.walk(message);
        self.handle_walked(now, walked)
    }

    /// A response as it is read; why there is none any more, once the stream failed.
    pub(super) fn walk(&self, message: Bytes) -> Result<Response, ProtocolError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        Ok(match self.protocol {
            Protocol::Delta => Response::from_delta_in(self.dialect, message)?,
            Protocol::Sotw => Response::from_sotw_in(self.dialect, message, &self.rules)?,
        })
    }

    pub(super) fn handle_walked(
        &mut self,
        now: Instant,
        walked: Result<Response, ProtocolError>,
    ) -> Result<(), ProtocolError> {
        walked
            .and_then(|response| self.handle_response(now, response))
            .inspect_err(|error| self.failed = Some(error.clone()))
    }

    pub(super) fn handle_response(&mut self, now: Instant, mut response: Response) -> Result<(), ProtocolError> {
        response.settle_redirects(self.follows_redirects);
        let id = self.update_id();
        let intern = self.intern.clone();
        // What was not asked for on this stream is not answered (rules 8, 9).
        let asked = self.session(response.type_url.as_str().into()).filter(|session| session.is_opened());
        if let Some(session) = asked {
            let update = session.handle_response(now, id, response, intern.as_deref())?;
            self.events.extend(update.map(Event::Update));
        }
        Ok(())
    }
}
