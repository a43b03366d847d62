//! An origin that comes and goes, or is another, as the configuration of the relay says so.

use crate::network::{Network, config};

impl Network<'_> {
    /// The second origin is another from now on, or there is none. Where all has come to rest before, nothing that a client holds is
    /// sent to it again, and nothing is taken from it.
    pub(super) fn lead(&mut self, away: bool, rests: bool) -> Result<(), String> {
        if !rests {
            self.lead_to(away);
            return Ok(());
        }
        self.settle()?;
        let before: Vec<_> = self.down.iter().map(|hop| hop.consumer.resent()).collect();
        self.lead_to(away);
        self.rest()?;
        for (hop, before) in self.down.iter().zip(before) {
            if hop.consumer.resent() != before {
                return Err(format!(
                    "client {} is sent again what it holds, for another origin has it",
                    hop.consumer.client()
                ));
            }
        }
        Ok(())
    }

    pub(super) fn lead_to(&mut self, away: bool) {
        self.leads += usize::from(!away);
        self.away = away;
        let name = format!("o1-{}", self.leads);
        self.say(|| if away { "there is no second origin".into() } else { format!("the second origin is {name}") });
        self.core.lead(&config(&self.world, (!away).then_some(&name)));
        self.touch();
    }
}
