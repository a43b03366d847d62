//! Orders for a relay: `xds relay freeze`, `unfreeze`, `rollback`.

use std::io::Write;

use xds_relay::api::{OrderDone, Ordered, ReleaseOrder, Releases};

use super::admin::{Address, Admin, Failure, Token};
use super::user::user;
use super::{Done, Form, json};
use crate::ask::Verdict;
use crate::show::visible;

/// Whose order it is, why, and where it is taken.
#[derive(Debug, clap::Args)]
pub(super) struct Ordering {
    /// Of this scope: xdstp://AUTHORITY, or old-style; it may be left out where there is one
    #[arg(long, value_name = "SCOPE")]
    scope: Option<String>,
    /// Why: that is kept
    #[arg(long, value_name = "WORDS")]
    why: String,
    /// Who wants it: that is kept, too; the user without it
    #[arg(long, value_name = "NAME", env = "USER")]
    by: Option<String>,
    /// Only if nothing was done since the releases had this mark
    #[arg(long, value_name = "MARK", value_parser = mark)]
    mark: Option<String>,
    /// Where orders are taken: host:port, https://host:port, or unix:/path; the socket that the admin pages tell of without it
    #[arg(long, value_name = "ADDRESS")]
    orders: Option<Address>,
    /// A file whose first line is a bearer token that they want there (orders.token of the relay)
    #[arg(long, value_name = "FILE", requires = "orders")]
    orders_token: Option<Token>,
}

/// Have everybody served what is stable: what is new waits
#[derive(Debug, clap::Args)]
pub(super) struct Freeze {
    #[command(flatten)]
    ordering: Ordering,
}

/// Have what waits go on, from the first stage
#[derive(Debug, clap::Args)]
pub(super) struct Unfreeze {
    #[command(flatten)]
    ordering: Ordering,
}

/// Have the release under way taken back, or an earlier one served: what is left is not taken again
#[derive(Debug, clap::Args)]
pub(super) struct Rollback {
    /// The release that is to be stable, of those that are kept; the one that is without it
    #[arg(long, value_name = "RELEASE")]
    to: Option<String>,
    #[command(flatten)]
    ordering: Ordering,
}

impl Freeze {
    pub(super) fn run(&self, admin: Admin<'_>, form: Form, out: &mut impl Write) -> Done {
        self.ordering.order(Ordered::Freeze, |order| order, admin, form, out)
    }
}

impl Unfreeze {
    pub(super) fn run(&self, admin: Admin<'_>, form: Form, out: &mut impl Write) -> Done {
        self.ordering.order(Ordered::Unfreeze, |order| order, admin, form, out)
    }
}

impl Rollback {
    pub(super) fn run(&self, admin: Admin<'_>, form: Form, out: &mut impl Write) -> Done {
        let to = |order| ReleaseOrder { to: self.to.clone(), ..order };
        self.ordering.order(Ordered::Rollback, to, admin, form, out)
    }
}

impl Ordering {
    /// Orders it, with what else belongs to it.
    pub(super) fn order(
        &self,
        order: Ordered,
        more: impl FnOnce(ReleaseOrder) -> ReleaseOrder,
        admin: Admin<'_>,
        form: Form,
        out: &mut impl Write,
    ) -> Done {
        let (address, instance) = match &self.orders {
            Some(address) => (address.clone(), None),
            None => taken_at(admin).map(|(address, instance)| (address, Some(instance)))?,
        };
        let at = Admin { address: &address, token: self.orders_token.as_ref(), ..admin };
        let by = self.by.clone().filter(|by| !by.is_empty()).or_else(user);
        let by = by.ok_or_else(|| Failure::Usage("nobody says who wants it: --by NAME".to_owned()))?;
        let (scope, why) = (self.scope.clone(), self.why.clone());
        let order = more(ReleaseOrder { scope, instance, order, by, why, ..ReleaseOrder::default() });
        let done: OrderDone = at.order(&order, self.mark.as_deref())?;
        match form {
            Form::Json => json(out, &done)?,
            Form::Text => {
                writeln!(out, "{}: {}; mark {}", visible(&done.scope), visible(&done.done), visible(&done.mark))?;
                if !done.is_kept {
                    writeln!(out, "what is kept cannot be written now: {}", meanwhile(&done))?;
                }
            }
        }
        Ok(Verdict::There)
    }
}

fn meanwhile(done: &OrderDone) -> &'static str {
    match done.keeps_unsaved {
        true => "it is so on this relay, is kept over a restart of that, and is told to the others when it can be",
        false => "it is so on this relay, and is forgotten if that ends before",
    }
}

/// The socket that the admin pages tell of, and of which relay it is: they may be those of another machine. What they say of a port is not gone by: who answers there is not known, and would be told
/// a token.
fn taken_at(admin: Admin<'_>) -> Result<(Address, String), Failure> {
    let Releases { orders, instance, .. } = admin.get("releases", &[])?;
    let said = orders
        .ok_or_else(|| Failure::NotDone("this relay takes no orders: `orders` of its configuration".to_owned()))?;
    match said.parse() {
        // A path of the directory that the relay is in leads elsewhere from this one.
        Ok(Address::Unix(path)) if path.is_absolute() => Ok((Address::Unix(path), instance)),
        _ => Err(Failure::NotDone(format!("orders are taken at {}: say so with --orders", visible(&said)))),
    }
}

fn mark(text: &str) -> Result<String, String> {
    let is_mark = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if is_mark { Ok(text.to_owned()) } else { Err("expected a mark, as `xds relay releases` tells it".to_owned()) }
}
