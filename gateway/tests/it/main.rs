//! The gateway as a client sees it, in front of services that only the tests have.

mod api;
mod bodies;
mod edge;
mod examples;
mod lists;
mod openapi;
mod outage;
mod problems;
mod records;
mod reset_password;
mod services;
mod updates;
mod uploads;
