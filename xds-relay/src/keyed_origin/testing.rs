//! Who is told, in tests.

use std::sync::mpsc::Sender;

use xdstp_client::federation::{Held, Unreadable};

use super::relayed::Told;
use super::standing::Standing;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Names(Vec<String>),
    Remembered(Vec<String>),
    Trouble(Option<String>),
    Refused(u64),
}

impl Told for Sender<Heard> {
    fn content(&mut self, held: Vec<Held>, _: Vec<Unreadable>) {
        let _ = self.send(Heard::Names(names(&held)));
    }

    fn remembered(&mut self, held: Vec<Held>) {
        let _ = self.send(Heard::Remembered(names(&held)));
    }

    fn standing(&mut self, standing: &Standing) {
        let _ = self.send(Heard::Trouble(standing.trouble()));
    }

    fn refused(&mut self, values: u64) {
        let _ = self.send(Heard::Refused(values));
    }
}

fn names(held: &[Held]) -> Vec<String> {
    held.iter().map(|(_, name, _)| name.as_str().to_owned()).collect()
}
