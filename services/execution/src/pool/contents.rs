//! The contents of values, which are stored encrypted if they are secret. They are shown to engines alone.

use std::collections::HashSet;

use assay_auth::Seal;
use assay_proto::{
    Fault, PoolId, PoolValueId,
    execution::{Pool, PoolContent, PoolContentInput, PoolValue, PoolValueInput},
};
use assay_records::Check;

/// The mask that is shown instead of a secret.
const MASK: &str = "********";

/// Returns a stored pool as callers see it, with its secrets masked.
pub(super) fn shown(mut pool: Pool) -> Pool {
    let contents = pool.values.iter_mut().flat_map(|value| &mut value.contents);
    for content in contents.filter(|content| content.is_secured && !content.content.is_empty()) {
        MASK.clone_into(&mut content.content);
    }
    pool
}

/// The contents of a pool.
pub(super) struct Contents<'s> {
    pub(super) seal: &'s Seal,
    pub(super) pool: PoolId,
}

impl Contents<'_> {
    /// Returns the values to store for written ones, given the stored ones.
    pub(super) fn store(
        &self,
        written: Vec<PoolValueInput>,
        stored: &[PoolValue],
    ) -> Result<Vec<PoolValue>, Fault> {
        let (mut check, mut kept) = (Check::default(), HashSet::new());
        let mut values = Vec::with_capacity(written.len());
        for (index, value) in written.into_iter().enumerate() {
            let pointer = format!("Values/{index}");
            let id = value.id.filter(|id| !id.is_empty());
            let before = id.as_ref().and_then(|id| stored.iter().find(|before| before.id == *id));
            if let Some(id) = &id
                && (before.is_none() || !kept.insert(id.clone()))
            {
                let problem =
                    "must be the id of another value of the pool; leave it out for a new one";
                check.refuse(format!("{pointer}/Id"), problem);
                continue;
            }
            let id = id.unwrap_or_else(|| PoolValueId::new().to_string());
            let mut contents = Vec::with_capacity(value.contents.len());
            for (index, content) in value.contents.into_iter().enumerate() {
                let of_value = before.into_iter().flat_map(|before| &before.contents);
                let before = of_value.into_iter().find(|before| before.name == content.name);
                match problem(&content, before) {
                    Some(problem) => {
                        check.refuse(format!("{pointer}/Contents/{index}/Content"), problem);
                    }
                    None => contents.push(self.content(&id, content, before)?),
                }
            }
            values.push(PoolValue { id, contents });
        }
        check.done().map(|()| values)
    }

    /// Returns the content to store for a written one, given the stored one of the same name.
    fn content(
        &self,
        value: &str,
        written: PoolContentInput,
        before: Option<&PoolContent>,
    ) -> Result<PoolContent, Fault> {
        let PoolContentInput { name, content, is_secured } = written;
        let content = match before {
            _ if !is_secured => content,
            Some(before) if content == MASK && before.is_secured => before.content.clone(),
            Some(before) if content == MASK => self.close(value, &name, &before.content)?,
            _ => self.close(value, &name, &content)?,
        };
        Ok(PoolContent { name, content, is_secured })
    }

    /// Returns the contents of a stored value in clear.
    pub(super) fn open(&self, value: &PoolValue) -> Result<Vec<PoolContent>, Fault> {
        let open = |content: &PoolContent| {
            if !content.is_secured || content.content.is_empty() {
                return Ok(content.clone());
            }
            let secret = self.seal.open(&self.owner(&value.id, &content.name), &content.content)?;
            let secret = String::from_utf8(secret).map_err(Fault::internal)?;
            Ok(PoolContent { content: secret, ..content.clone() })
        };
        value.contents.iter().map(open).collect()
    }

    /// Encrypts the secrets of values with the current key. Returns whether one had another key.
    pub(super) fn reseal(&self, values: &mut [PoolValue]) -> Result<bool, Fault> {
        let mut has_changed = false;
        for value in values {
            let secrets = value.contents.iter_mut();
            for content in secrets.filter(|one| one.is_secured && !one.content.is_empty()) {
                let owner = self.owner(&value.id, &content.name);
                if let Some(resealed) = self.seal.reseal(&owner, &content.content)? {
                    content.content = resealed;
                    has_changed = true;
                }
            }
        }
        Ok(has_changed)
    }

    fn close(&self, value: &str, name: &str, secret: &str) -> Result<String, Fault> {
        match secret {
            "" => Ok(String::new()),
            _ => self.seal.close(&self.owner(value, name), secret.as_bytes()),
        }
    }

    /// The record and the field of a secret, to which it is bound.
    fn owner(&self, value: &str, name: &str) -> String {
        format!("pool/{}/{value}/{name}", self.pool)
    }
}

/// Returns the problem of a written content, given the stored one of the same name.
fn problem(written: &PoolContentInput, before: Option<&PoolContent>) -> Option<&'static str> {
    if written.content != MASK {
        return None;
    }
    if written.is_secured {
        return before.is_none().then_some("is masked, but no value is stored; send the value");
    }
    let was_secured = before.is_some_and(|before| before.is_secured);
    was_secured.then_some("is required to change the content to one that is not secured")
}

#[cfg(test)]
mod tests {
    use assay_auth::{SealConfig, new_seal_key};

    use super::*;

    fn seal() -> Seal {
        Seal::new(&SealConfig { encryption_keys: new_seal_key("1").unwrap() }).unwrap()
    }

    fn written(id: Option<&str>, content: &str, is_secured: bool) -> Vec<PoolValueInput> {
        let content = PoolContentInput { name: "PIN".into(), content: content.into(), is_secured };
        vec![PoolValueInput { id: id.map(str::to_owned), contents: vec![content] }]
    }

    #[test]
    fn secrets_are_encrypted_masked_and_kept_by_their_mask() {
        let seal = seal();
        let contents = Contents { seal: &seal, pool: PoolId::new() };
        let stored = contents.store(written(None, "1234", true), &[]).unwrap();
        assert!(!stored[0].contents[0].content.contains("1234"));
        let shown = shown(Pool { values: stored.clone(), ..Pool::default() });
        assert_eq!(shown.values[0].contents[0].content, MASK);
        let kept = contents.store(written(Some(&stored[0].id), MASK, true), &stored).unwrap();
        assert_eq!(kept, stored);
        assert_eq!(contents.open(&kept[0]).unwrap()[0].content, "1234");
        let other = Contents { seal: &seal, pool: PoolId::new() };
        assert!(other.open(&kept[0]).is_err(), "a secret is bound to its pool");
    }

    #[test]
    fn a_mask_needs_a_stored_secret_and_an_id_needs_a_stored_value() {
        let seal = seal();
        let contents = Contents { seal: &seal, pool: PoolId::new() };
        let stored = contents.store(written(None, "1234", true), &[]).unwrap();
        let id = Some(stored[0].id.as_str());
        let twice = [written(id, "1", false), written(id, "2", false)].concat();
        for (written, field) in [
            (written(None, MASK, true), "Values/0/Contents/0/Content"),
            (written(id, MASK, false), "Values/0/Contents/0/Content"),
            (written(Some(&PoolValueId::new().to_string()), "1", false), "Values/0/Id"),
            (twice, "Values/1/Id"),
        ] {
            let Err(Fault::Invalid(violations)) = contents.store(written, &stored) else {
                panic!("{field} was accepted")
            };
            assert_eq!(violations[0].field, field);
        }
    }
}
