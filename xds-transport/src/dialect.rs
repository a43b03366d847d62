//! Which of the two meanings TP2's fields have with a peer.

/// Which form of TP2 a peer speaks.
///
/// Both give the same field numbers to messages that mean different things, and no bytes tell them apart: who is on the other
/// side is for the configuration to say. Without parameters there is no difference.
///
/// ```
/// use xds_transport::Dialect;
/// use xds_transport::server::Settings;
///
/// let mut settings = Settings::default();
/// assert_eq!(settings.dialect, Dialect::Final);
/// settings.dialect = Dialect::Draft;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// The form of 2022: who subscribes sends parameters, and each variant says by its constraints whom it is for.
    #[default]
    Final,
    /// The draft of 2021: who subscribes sends constraints, and each variant carries the parameters that these are about.
    Draft,
}
