//! Public errors that have a cause, of this crate and of those below it: each says what is its own, and its source the rest.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking, as tests do")]

use std::{error::Error, io};

use xds_relay::Config;
use xds_transport::grpc::tls::Pem;
use xds_transport::{
    client::ProtocolError,
    wire::{
        collection::CollectionError,
        walk::{Fields, WalkError},
    },
};
use xdstp_client::Endpoint;
use xdstp_client::bootstrap::Bootstrap;
use xdstp_uri::{ContextParams, Locator, MAX_LEN, ParseError};

fn malformed() -> WalkError {
    Fields::of(b"\x0a\xff").find_map(Result::err).unwrap()
}

fn bad_locator() -> ParseError {
    Locator::parse("xdstp:").unwrap_err()
}

fn too_long() -> xdstp_uri::CollectionError {
    let value = "x".repeat(MAX_LEN - 10);
    let node = ContextParams::new([("k", value.as_str())]).unwrap();
    Locator::parse("xdstp://a/T/*").unwrap().to_collection_name("T", &node).unwrap_err()
}

#[test]
fn no_error_says_what_its_cause_says() {
    let taken = || io::Error::from(io::ErrorKind::AddrInUse);
    let errors: Vec<Box<dyn Error>> = vec![
        Box::new(too_long()),
        Box::new(CollectionError::from(bad_locator())),
        Box::new(ProtocolError::from(malformed())),
        Box::new(Endpoint::new("http://a b").unwrap_err()),
        Box::new(xds_relay::Error::from(taken())),
        Box::new(xds_relay::Error::Listen {
            address: "127.0.0.1:1".parse().unwrap(),
            field: "listen",
            source: taken(),
        }),
        #[cfg(feature = "file-origin")]
        Box::new(xds_relay::file_origin::Descriptors::load("no/such/set".as_ref()).unwrap_err()),
        #[cfg(feature = "file-origin")]
        Box::new(xds_relay::file_origin::Descriptors::load("Cargo.toml".as_ref()).unwrap_err()),
    ];
    for error in errors {
        let cause = error.source().unwrap_or_else(|| panic!("no cause: {error}"));
        assert!(!error.to_string().contains(&cause.to_string()), "{error:?} says the words of its cause");
    }
}

/// It is one line, which says why.
#[test]
fn an_error_of_reading_a_file_of_settings_has_no_cause() {
    let errors: [Box<dyn Error>; 3] = [
        Box::new(Config::load("no/such/file").unwrap_err()),
        Box::new(Bootstrap::from_file("no/such/file").unwrap_err()),
        Box::new(Pem::read("no/such/file".as_ref()).unwrap_err()),
    ];
    for error in errors {
        assert!(error.source().is_none() && error.to_string().starts_with("no/such/file: "), "{error}");
    }
}
