#![doc = include_str!("../README.md")]

#[cfg(feature = "file-origin")]
pub mod file_origin;
#[cfg(feature = "file-origin")]
mod yaml;
