//! Tests of all formats with the reports of real tools.

mod classification;
mod export;
mod hostile;
mod identity;
mod memory;
mod mutation;
mod red;
mod reportportal;
mod samples;
mod truth;
