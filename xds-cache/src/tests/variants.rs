//! Variants, and who gets which.

mod model;
mod naive;
