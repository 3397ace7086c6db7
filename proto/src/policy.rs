//! Permissions, and the access rules of methods.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use crate::{Fault, Permission};

/// Requirement of a method on its caller.
#[derive(Clone, Copy, Debug)]
pub enum Needs {
    /// No token.
    Nothing,
    /// Any valid token.
    Token,
    /// A token with one permission of the first list, and with all of the second.
    Permissions { one_of: &'static [Permission], all_of: &'static [Permission] },
}

static BY_PATH: LazyLock<HashMap<&str, Needs>> =
    LazyLock::new(|| crate::POLICY.iter().copied().collect());

impl Needs {
    /// Returns the requirement of the method at a path, `/package.Service/Method`. Methods that are
    /// not in the contracts have none and must not be called.
    pub fn of(path: &str) -> Option<Self> {
        BY_PATH.get(path).copied()
    }

    /// Fails if a caller with these permissions lacks one.
    pub fn check(self, held: Permissions) -> Result<(), Fault> {
        let Self::Permissions { one_of, all_of } = self else { return Ok(()) };
        let has_all = all_of.iter().all(|permission| held.contains(*permission));
        if has_all && held.contains_any(one_of) {
            return Ok(());
        }
        Err(Fault::Forbidden(format!("requires the permission {self}")))
    }
}

/// Formats the names of the permissions, such as `Execute and Read`.
impl std::fmt::Display for Needs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self::Permissions { one_of, all_of } = self else { return Ok(()) };
        let names = |permissions: &[Permission]| permissions.iter().map(crate::name_of).collect();
        let (one_of, all_of): (Vec<String>, Vec<String>) = (names(one_of), names(all_of));
        let one_of = one_of.join(" or ");
        f.write_str(&[&[one_of], &all_of[..]].concat().join(" and "))
    }
}

/// Returns the full name of the method at a path, `package.Service/Method`, if a contract has it.
pub fn method_at(path: &str) -> Option<&'static str> {
    BY_PATH.get_key_value(path).map(|(path, _)| path.trim_start_matches('/'))
}

/// How the response of a method arrives that only reads, so that its calls may be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// As one message.
    Message,
    /// As a stream of messages, the first one without waiting for an event.
    Stream,
    /// As a stream of messages that wait for events.
    Events,
}

impl Reading {
    /// Returns how the response of the method at a path arrives, or `None` if the method does not
    /// only read.
    pub fn of(path: &str) -> Option<Self> {
        static READING: LazyLock<HashMap<&str, Reading>> =
            LazyLock::new(|| crate::READING.iter().copied().collect());
        READING.get(path).copied()
    }
}

/// Returns whether the method at a path waits for messages of its caller, for an event or for a
/// batch, so that it is idle most of the time.
pub fn waits(path: &str) -> bool {
    static WAITING: LazyLock<HashSet<&str>> =
        LazyLock::new(|| crate::WAITING.iter().copied().collect());
    WAITING.contains(path)
}

/// Returns whether the method at a path creates a credential or a grant, so that it compares the
/// caller's token with the latest revocations in its own transaction.
pub fn issues(path: &str) -> bool {
    static ISSUING: LazyLock<HashSet<&str>> =
        LazyLock::new(|| crate::ISSUING.iter().copied().collect());
    ISSUING.contains(path)
}

/// Returns whether the method at a path accepts stream tokens, which are valid for nothing else.
pub fn streams(path: &str) -> bool {
    crate::STREAMING.contains(&path)
}

/// A set of permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions(u64);

impl Permissions {
    pub fn contains(self, permission: Permission) -> bool {
        self.0 & Self::bit(permission) != 0
    }

    pub fn contains_any(self, permissions: &[Permission]) -> bool {
        permissions.iter().any(|permission| self.contains(*permission))
    }

    /// Returns the intersection of both sets.
    #[must_use]
    pub fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Parses names separated by commas. Fails for unknown names and for an empty set.
    pub fn parse(field: &'static str, text: &str) -> Result<Self, Fault> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let set: Self = names
            .map(|name| {
                crate::value_of(name)
                    .ok_or_else(|| Fault::invalid(field, format!("no such permission: {name:?}")))
            })
            .collect::<Result<_, _>>()?;
        if set == Self::default() {
            return Err(Fault::invalid(field, "must name at least one permission"));
        }
        Ok(set)
    }

    fn bit(permission: Permission) -> u64 {
        1 << permission as u64
    }
}

impl FromIterator<Permission> for Permissions {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        Self(permissions.into_iter().map(Self::bit).fold(0, std::ops::BitOr::bitor))
    }
}

/// Formats the names in the order of the contract, separated by a comma and a space.
impl std::fmt::Display for Permissions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let held = (1..64).filter_map(|number| Permission::try_from(number).ok());
        let names: Vec<String> =
            held.filter(|permission| self.contains(*permission)).map(crate::name_of).collect();
        f.write_str(&names.join(", "))
    }
}
