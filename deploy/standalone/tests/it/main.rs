//! Assay as a whole, over HTTP and NATS: five programs, real PostgreSQL, real NATS.

mod junit;
mod line;
mod lists;
mod process;
mod world;
