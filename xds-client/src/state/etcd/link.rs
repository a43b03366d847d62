//! A connection to one member of the cluster at a time: to the next one, when that is no good.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::timeout;
use tonic::metadata::{Ascii, MetadataValue};

use super::failure::Failure;
use super::history::{History, Seen};
use super::messages::{AuthenticateRequest, AuthenticateResponse, RangeRequest, RangeResponse};
use super::options::{EtcdOptions, User};
use super::patience;
use super::range::KeyRange;
use super::rpc::Calls;
use crate::endpoint::Endpoint;
use crate::upstream::connect;

/// How long a member has to be connected to, and to show that it is one of a majority: at first, and longer each time that all of
/// them had so long for nothing.
const PATIENCE: Duration = Duration::from_millis(1500);

/// What one or another member is called over.
#[derive(Debug)]
pub(super) struct Link {
    options: EtcdOptions,
    history: Arc<History>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    connection: Option<Connection>,
    /// Which member is tried next.
    next: usize,
    /// How often that was not done in time, since there was a connection.
    late: usize,
    made: u64,
}

/// A member that answered when it was connected to, with what had been seen of the cluster by then.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) calls: Calls,
    pub(super) seen: Seen,
    member: usize,
    number: u64,
}

impl State {
    /// One that is slow is no reason to wait for another: it is when all of them are.
    fn patience(&self, members: usize) -> Duration {
        let rounds = self.late.checked_div(members).unwrap_or(0);
        patience::after(PATIENCE, u32::try_from(rounds).unwrap_or(u32::MAX))
    }
}

impl Link {
    pub(super) fn new(options: EtcdOptions, history: Arc<History>) -> Self {
        Self { options, history, state: Mutex::default() }
    }

    pub(super) fn history(&self) -> &Arc<History> {
        &self.history
    }

    /// The connection there is, or one to the first member that is good, of all in turn.
    pub(super) async fn connection(&self) -> Result<Connection, Failure> {
        let state = &mut *self.state.lock().await;
        let is_current = |there: &&Connection| there.seen.number == self.history.seen().number;
        if let Some(there) = state.connection.as_ref().filter(is_current) {
            return Ok(there.clone());
        }
        state.connection = None;
        let mut reasons = Vec::new();
        for _ in &self.options.members {
            let index = state.next % self.options.members.len();
            // Before it is tried: who gives up meanwhile has tried it.
            state.next = index + 1;
            let Some(member) = self.options.members.get(index) else { break };
            let patience = state.patience(self.options.members.len());
            let tried = timeout(patience, self.dial(member)).await.unwrap_or_else(|_| {
                state.late += 1;
                Err(Failure::Elsewhere(format!("nothing was answered within {patience:?}")))
            });
            match tried {
                Ok((calls, seen)) => {
                    state.late = 0;
                    state.made += 1;
                    let there = Connection { calls, seen, member: index, number: state.made };
                    return Ok(state.connection.insert(there).clone());
                }
                Err(Failure::Elsewhere(why) | Failure::Unsure(why) | Failure::Stranger(why)) => {
                    reasons.push(format!("{}: {why}", member.uri()));
                }
                Err(refused) => return Err(refused),
            }
        }
        Err(Failure::Elsewhere(reasons.join("; ")))
    }

    /// A connection is no good, or its member is not: the next one is to another.
    pub(super) async fn leave(&self, left: &Connection) {
        let state = &mut *self.state.lock().await;
        state.connection.take_if(|there| there.number == left.number);
    }

    /// A member does not know us any more: it is told again who we are.
    pub(super) async fn introduce_again(&self, left: &Connection) {
        let state = &mut *self.state.lock().await;
        if state.connection.take_if(|there| there.number == left.number).is_some() {
            state.next = left.member;
        }
    }

    async fn dial(&self, member: &Endpoint) -> Result<(Calls, Seen), Failure> {
        let connected = connect::to(member).await.map_err(Failure::Elsewhere)?;
        let mut calls = Calls { channel: connected.channel, token: None };
        if let Some(user) = &self.options.user {
            calls.token = Some(introduce(&calls, user).await?);
        }
        // A majority is behind what it answers: it is no member that was left behind, nor one of another cluster.
        let KeyRange { key, end: range_end } = KeyRange::of(&self.options.prefix);
        let probe = RangeRequest { key, range_end, limit: 1, keys_only: true, ..RangeRequest::default() };
        let before = self.history.seen();
        let answer: RangeResponse = calls.unary("/etcdserverpb.KV/Range", probe).await?;
        let header = answer.header.ok_or_else(|| Failure::Elsewhere("it does not say who it is".to_owned()))?;
        Ok((calls, self.history.note(before, &header)))
    }
}

/// We say who we are, and are known by the token that is answered.
async fn introduce(calls: &Calls, user: &User) -> Result<MetadataValue<Ascii>, Failure> {
    let User { name, password } = user.clone();
    let password = password().map_err(|why| Failure::Elsewhere(format!("the password of {name}: {why}")))?;
    let who = AuthenticateRequest { name, password };
    let answer: AuthenticateResponse = calls.unary("/etcdserverpb.Auth/Authenticate", who).await?;
    let mut token = MetadataValue::try_from(answer.token)
        .map_err(|_| Failure::Elsewhere("its token cannot be carried".to_owned()))?;
    token.set_sensitive(true);
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_longer_where_all_of_them_are_slow_and_not_where_one_is() {
        let milliseconds = |late, members| State { late, ..State::default() }.patience(members).as_millis();
        assert_eq!([0, 1, 2, 3, 5, 6].map(|late| milliseconds(late, 3)), [1500, 1500, 1500, 3000, 3000, 6000]);
        assert_eq!([0, 1, 2, 3].map(|late| milliseconds(late, 1)), [1500, 3000, 6000, 12_000]);
    }
}
