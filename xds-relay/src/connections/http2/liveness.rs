//! Every five minutes a client is asked whether it is there.

use std::task::{Context, Poll};
use std::time::Duration;

use h2::{Ping, PingPong};
use tokio::time::Instant;
use xds_transport::grpc::server::Alarm;

use crate::connections::begun::Heard;

/// As gRPC's own do. Clients may ping as often as they like (rule 137).
const BETWEEN: Duration = Duration::from_secs(300);
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// Anything that is read is an answer: a pong may come behind much else.
pub(super) struct Liveness {
    pings: Option<PingPong>,
    heard: Heard,
    alarm: Alarm,
    asked: bool,
}

impl Liveness {
    pub(super) fn new(pings: Option<PingPong>, heard: Heard) -> Self {
        Self { pings, heard, alarm: Alarm::at(Instant::now() + BETWEEN), asked: false }
    }

    /// Ready once the client did not answer in time.
    pub(super) fn poll_dead(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.alarm.poll(cx).is_ready() {
            let heard = self.heard.take();
            let next = if self.asked {
                if !heard {
                    return Poll::Ready(());
                }
                BETWEEN - ANSWER_WITHIN
            } else {
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
