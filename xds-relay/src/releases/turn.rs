//! Who of several relays publishes.

use std::sync::Arc;

use xdstp_client::state::{Store, StoreError};

use crate::releases::act::Instance;

/// Whose turn it is to publish, among the relays that have their releases in one store: of [`Etcd`](xdstp_client::state::Etcd) it is
/// who has a lease. A program may have a store of its own that says it otherwise:
///
/// ```
/// use std::sync::Arc;
///
/// use xds_relay::releases::{Instance, Turn, Turns};
/// use xds_relay::state::{Memory, Store, StoreError};
///
/// /// Relays of one process: the first publishes, and the others do not.
/// struct First(Memory, Instance);
///
/// impl Turns for First {
///     fn take(&self, _: &str, instance: Instance) -> Result<Option<Box<dyn Turn>>, StoreError> {
///         Ok((instance == self.1).then(|| Box::new(Always(self.0.clone())) as Box<dyn Turn>))
///     }
/// }
///
/// struct Always(Memory);
///
/// impl Turn for Always {
///     fn is_held(&self) -> bool {
///         true
///     }
///
///     fn store(&self) -> Arc<dyn Store> {
///         Arc::new(self.0.clone())
///     }
/// }
///
/// let turns = First(Memory::default(), Instance(1));
/// assert!(turns.take("a", Instance(1))?.is_some_and(|turn| turn.is_held()));
/// assert!(turns.take("a", Instance(2))?.is_none());
/// # Ok::<(), StoreError>(())
/// ```
pub trait Turns: Send + Sync + 'static {
    /// Takes the turn of a key, if nobody has it. It is over when this relay has been silent for some seconds.
    ///
    /// # Errors
    /// The store does not answer: whose turn it is is not known.
    fn take(&self, key: &str, instance: Instance) -> Result<Option<Box<dyn Turn>>, StoreError>;

    /// Whether others may be there: they are told how clients of this relay are, then.
    fn are_shared(&self) -> bool {
        true
    }
}

/// The turn of a relay, until it is dropped.
pub trait Turn: Send + Sync {
    /// Whether it surely lasts, as far as this relay knows without asking.
    fn is_held(&self) -> bool;

    /// The store as who publishes writes it: what comes after the turn is over is not done.
    fn store(&self) -> Arc<dyn Store>;
}

/// Those of a store that nobody else has: it is always this relay's.
pub(crate) struct Alone(pub(crate) Arc<dyn Store>);

impl Turns for Alone {
    fn take(&self, _: &str, _: Instance) -> Result<Option<Box<dyn Turn>>, StoreError> {
        Ok(Some(Box::new(Self(self.0.clone()))))
    }

    fn are_shared(&self) -> bool {
        false
    }
}

impl Turn for Alone {
    fn is_held(&self) -> bool {
        true
    }

    fn store(&self) -> Arc<dyn Store> {
        self.0.clone()
    }
}
