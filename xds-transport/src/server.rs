//! The server's side of a stream.
