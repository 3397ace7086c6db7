//! Tests of the identity service over gRPC with a real database.

mod api_token;
mod audit;
mod clock;
mod current_customer;
mod customer;
mod execution_ended;
mod first_start;
mod invitation;
mod issuing;
mod key_rotation;
mod login;
mod mail;
mod mail_server;
mod mail_turns;
mod membership;
mod password_reset;
mod refine;
mod revocation;
mod seed;
mod session;
mod settings;
mod throttle;
mod user;
mod user_group;
mod user_settings;
mod world;
