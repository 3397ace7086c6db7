//! Tests of fingerprints.

mod failures;
mod hostile;
