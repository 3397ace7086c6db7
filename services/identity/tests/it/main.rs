//! The identity service over gRPC, on a real database.

mod current_customer;
mod first_start;
mod login;
mod refine;
mod world;
