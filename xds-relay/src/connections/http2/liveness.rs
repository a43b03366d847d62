//! Every five minutes a client is asked whether it is there.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::server::Connection;
use h2::{Ping, PingPong};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use xds_transport::grpc::server::Alarm;

use crate::connections::begun::Heard;

/// As gRPC's own do. Clients may ping as often as they like (rule 137).
const BETWEEN: Duration = Duration::from_secs(300);
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// Anything that is read is an answer: a pong may come behind much else.
pub(crate) struct Liveness {
    /// Taken when the first is sent: from then on `h2` looks for them in each turn.
    pings: Option<PingPong>,
    heard: Heard,
    alarm: Alarm,
    asked: bool,
}

impl Liveness {
    pub(crate) fn new(heard: Heard) -> Self {
        Self { pings: None, heard, alarm: Alarm::at(Instant::now() + BETWEEN), asked: false }
    }

    /// Whether the client says so much that no more of it is read.
    pub(super) fn is_flooded(&self) -> bool {
        self.heard.is_too_much()
    }

    /// Ready once the client did not answer in time.
    pub(super) fn poll_dead<I>(&mut self, http2: &mut Connection<I, Bytes>, cx: &mut Context<'_>) -> Poll<()>
    where
        I: AsyncRead + AsyncWrite + Unpin,
    {
        while self.alarm.poll(cx).is_ready() {
            let heard = self.heard.take();
            let next = if self.asked {
                if !heard {
                    tracing::debug!("a client does not answer");
                    return Poll::Ready(());
                }
                BETWEEN - ANSWER_WITHIN
            } else {
                if self.pings.is_none() {
                    self.pings = http2.ping_pong();
                }
                self.ask(cx);
                ANSWER_WITHIN
            };
            self.asked = !self.asked;
            self.alarm.set(Instant::now() + next);
        }
        Poll::Pending
    }

    fn ask(&mut self, cx: &mut Context<'_>) {
        let Some(pings) = &mut self.pings else { return };
        // The pong before has to be taken; where none came, its ping is still to be answered.
        let _ = pings.poll_pong(cx);
        let _ = pings.send_ping(Ping::opaque());
    }
}
