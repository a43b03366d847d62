//! The client's side of a stream.
