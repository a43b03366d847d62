#![doc = include_str!("../README.md")]

mod resource;

pub use resource::{Resource, TypeUrl, Version};
