//! The cache against a naive model: random histories, checked against a full scan.
