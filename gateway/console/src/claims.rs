//! The contents of a token, to show them. The interface verifies the token of each request.

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde::Deserialize;

use crate::record::Permission;

/// The user of a token.
#[derive(Deserialize)]
pub(crate) struct Claims {
    /// Display name of the user.
    #[serde(default)]
    pub(crate) name: String,
    /// Permissions of the user, separated by commas.
    #[serde(default)]
    permissions: String,
    iat: i64,
    exp: i64,
}

impl Claims {
    /// Reads a token without verifying it.
    pub(crate) fn of(token: &str) -> Option<Self> {
        let payload = token.split('.').nth(1)?;
        let payload = BASE64_URL_SAFE_NO_PAD.decode(payload).ok()?;
        serde_json::from_slice(&payload).ok()
    }

    /// Returns the lifetime of the token, in seconds.
    pub(crate) fn lifetime(&self) -> i64 {
        self.exp - self.iat
    }

    /// Returns whether the user has a permission.
    pub(crate) fn may(&self, permission: Permission) -> bool {
        self.permissions.split(',').any(|one| one.trim() == permission.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_read_from_the_token() {
        let claims = r#"{"name":"Ada","permissions":"Read, Accept","iat":100,"exp":160}"#;
        let token = format!("e30.{}.c2ln", BASE64_URL_SAFE_NO_PAD.encode(claims));
        let claims = Claims::of(&token).unwrap();
        assert_eq!((claims.name.as_str(), claims.lifetime()), ("Ada", 60));
        assert!(claims.may(Permission::Accept) && !claims.may(Permission::Reject));
        assert!(Claims::of("not a token").is_none());
    }
}
