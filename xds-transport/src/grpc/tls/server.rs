//! A server's TLS: what it is made of, and the connections that are secured by it.

mod accepting;
mod client;
mod current;
mod files;
mod handshake;
mod incoming;
mod notice;
mod secured;
mod sessions;

pub use self::accepting::Accepting;
pub use self::client::TlsClient;
pub use self::current::ServerTls;
pub use self::files::ServerFiles;
pub use self::handshake::HandshakeError;
pub use self::incoming::Incoming;
pub use self::notice::Notice;
pub use self::secured::Secured;
