//! Tests of the gateway over HTTP, in front of test services.

mod api;
mod bodies;
mod edge;
mod examples;
mod lists;
mod openapi;
mod outage;
mod permissions;
mod problems;
mod records;
mod reset_password;
mod services;
mod updates;
mod uploads;
