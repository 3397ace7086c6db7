//! Secrets in records. They are stored encrypted and masked for callers who may not see them. A mask that
//! is written leaves the secret unchanged.

mod contents;
mod mask;
mod reseal;

use std::{
    collections::HashSet,
    fmt::Display,
    sync::atomic::{AtomicBool, Ordering},
};

use assay_auth::{Caller, Seal};
use assay_database::begin;
use assay_events::publish_all;
use assay_proto::{Fault, Permission, Variable, VariableInput};
use assay_records::Check;
use sqlx::{PgPool, PgTransaction};

pub use self::reseal::reseal;
pub(crate) use self::{
    contents::check_stored,
    mask::{MASK, masked},
};
use crate::event::EventSource;

const NOTHING_STORED: &str = "is masked, but no value is stored; send the value";

/// Encrypts and decrypts the secrets of records. Empty text is stored and shown as it is.
#[derive(Clone)]
pub(crate) struct Secrets(Seal);

impl Secrets {
    pub(crate) fn new(seal: Seal) -> Self {
        Self(seal)
    }

    /// Returns the secrets of a record for a caller, masked if the caller may not see them.
    pub(crate) fn of(&self, noun: &str, id: impl Display, caller: &Caller) -> RecordSecrets {
        RecordSecrets {
            can_see: caller.may(Permission::AccessSecrets),
            ..RecordSecrets::unseen(self.0.clone(), noun, id)
        }
    }

    /// Returns the secrets of a record in clear, for running tests.
    pub(crate) fn in_clear(&self, noun: &str, id: impl Display) -> RecordSecrets {
        RecordSecrets {
            seal: self.0.clone(),
            record: format!("{noun}/{id}"),
            can_see: true,
            seen: AtomicBool::default(),
        }
    }
}

/// The secrets of one record for one caller.
pub(crate) struct RecordSecrets {
    seal: Seal,
    record: String,
    can_see: bool,
    /// Whether a secret was shown in clear.
    seen: AtomicBool,
}

/// Publishes that a caller sees secrets of records, for the audit log. Secrets are shown only after
/// this succeeds.
pub(crate) async fn publish_seen(
    db: &PgPool,
    caller: &Caller,
    seen: impl IntoIterator<Item = EventSource, IntoIter: Send>,
) -> Result<(), Fault> {
    let mut seen = seen.into_iter().peekable();
    if seen.peek().is_none() {
        return Ok(());
    }
    let mut tx = begin(db).await?;
    publish_seen_with(&mut tx, caller, seen).await?;
    Ok(tx.commit().await?)
}

/// Publishes that a caller sees secrets of records, in the transaction of a change: nothing that can
/// fail follows its commit.
pub(crate) async fn publish_seen_with(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    seen: impl IntoIterator<Item = EventSource, IntoIter: Send>,
) -> Result<(), Fault> {
    publish_all(tx, seen.into_iter().map(|record| record.secrets_seen(caller))).await
}

impl RecordSecrets {
    /// Returns the secrets of a record, always masked.
    fn unseen(seal: Seal, noun: &str, id: impl Display) -> Self {
        let record = format!("{noun}/{id}");
        Self { seal, record, can_see: false, seen: AtomicBool::default() }
    }

    /// Returns a stored secret as the caller may see it.
    pub(crate) fn show(&self, field: &str, stored: &str) -> Result<String, Fault> {
        match stored {
            "" => Ok(String::new()),
            _ if !self.can_see => Ok(MASK.to_owned()),
            _ => {
                self.seen.store(true, Ordering::Relaxed);
                self.open(field, stored)
            }
        }
    }

    /// Returns the record, if a secret of it was shown in clear.
    pub(crate) fn seen(&self, record: EventSource) -> Option<EventSource> {
        self.seen.load(Ordering::Relaxed).then_some(record)
    }

    /// Returns the text to store for a written secret, given the stored one.
    pub(crate) fn store(
        &self,
        field: &str,
        written: &str,
        stored: Option<&str>,
    ) -> Result<String, Fault> {
        match (written, stored) {
            (MASK, Some(stored)) => Ok(stored.to_owned()),
            (MASK, None) => Err(Fault::invalid(field, NOTHING_STORED)),
            _ => self.close(field, written),
        }
    }

    /// Returns stored variables as the caller may see them.
    pub(crate) fn show_all(&self, stored: Vec<Variable>) -> Result<Vec<Variable>, Fault> {
        let shown = stored.into_iter().map(|variable| {
            let content = if variable.is_secured {
                self.show(&field_of(&variable.name), &variable.content)?
            } else {
                variable.content
            };
            Ok(Variable { content, ..variable })
        });
        shown.collect()
    }

    /// Returns the variables to store for written ones, given the stored ones. A written variable
    /// replaces the stored one of the same name.
    pub(crate) fn store_all(
        &self,
        written: Vec<VariableInput>,
        stored: &[Variable],
    ) -> Result<Vec<VariableInput>, Fault> {
        let mut check = Check::default();
        let mut variables = Vec::with_capacity(written.len());
        for (index, variable) in written.into_iter().enumerate() {
            let before = stored.iter().find(|before| before.name == variable.name);
            if let Some(problem) = problem(&variable, before) {
                check.refuse(format!("Variables/{index}/Content"), problem);
                continue;
            }
            if let Some(before) = before
                && let Some(problem) = self.problem_of_rule(&variable, before)?
            {
                check.refuse(format!("Variables/{index}/ValidationRule"), problem);
                continue;
            }
            let field = field_of(&variable.name);
            let content = match before {
                _ if !variable.is_secured => variable.content,
                Some(before) if variable.content == MASK && before.is_secured => {
                    before.content.clone()
                }
                Some(before) if variable.content == MASK => self.close(&field, &before.content)?,
                _ => self.close(&field, &variable.content)?,
            };
            variables.push(VariableInput { content, ..variable });
        }
        check.done().map(|()| variables)
    }

    /// Returns the problem of a new rule for a secret that is left unchanged. Only callers who can see
    /// the secret learn whether it matches; others could guess the secret by its rule.
    fn problem_of_rule(
        &self,
        variable: &VariableInput,
        before: &Variable,
    ) -> Result<Option<&'static str>, Fault> {
        let rule = &variable.validation_rule;
        let is_kept = variable.content == MASK && variable.is_secured && !before.content.is_empty();
        if !is_kept || rule.is_empty() || *rule == before.validation_rule {
            return Ok(None);
        }
        if !self.can_see {
            return Ok(Some("can be changed only together with the Content, which is secret"));
        }
        let content = if before.is_secured {
            self.open(&field_of(&before.name), &before.content)?
        } else {
            before.content.clone()
        };
        let matches = contents::matches(rule, &content);
        Ok((!matches).then_some("does not match the stored Content"))
    }

    /// Returns the variables to store for those of another record.
    pub(crate) fn copy_all(
        &self,
        from: &RecordSecrets,
        stored: Vec<Variable>,
    ) -> Result<Vec<Variable>, Fault> {
        let copied = stored.into_iter().map(|variable| {
            if !variable.is_secured || variable.content.is_empty() {
                return Ok(variable);
            }
            let field = field_of(&variable.name);
            let content = self.close(&field, &from.open(&field, &variable.content)?)?;
            Ok(Variable { content, ..variable })
        });
        copied.collect()
    }

    /// Masks written secrets that equal the stored ones, if the caller can see them; other callers could
    /// guess secrets by the outcome.
    pub(crate) fn mask_unchanged(
        &self,
        written: &mut [VariableInput],
        stored: &[Variable],
    ) -> Result<(), Fault> {
        for variable in written.iter_mut().filter(|variable| self.can_see && variable.is_secured) {
            let is_same = |before: &&Variable| before.is_secured && before.name == variable.name;
            if let Some(before) = stored.iter().find(is_same)
                && !before.content.is_empty()
                && self.open(&field_of(&before.name), &before.content)? == variable.content
            {
                MASK.clone_into(&mut variable.content);
            }
        }
        Ok(())
    }

    fn close(&self, field: &str, secret: &str) -> Result<String, Fault> {
        match secret {
            "" => Ok(String::new()),
            _ => self.seal.close(&self.owner(field), secret.as_bytes()),
        }
    }

    fn open(&self, field: &str, stored: &str) -> Result<String, Fault> {
        let secret = self.seal.open(&self.owner(field), stored)?;
        String::from_utf8(secret).map_err(Fault::internal)
    }

    fn owner(&self, field: &str) -> String {
        format!("{}/{field}", self.record)
    }
}

/// Returns the problem of the content of a variable, given the stored variable of the same name.
fn problem(variable: &VariableInput, before: Option<&Variable>) -> Option<&'static str> {
    if variable.content != MASK {
        return None;
    }
    if variable.is_secured {
        return before.is_none().then_some(NOTHING_STORED);
    }
    // A caller who cannot see a secret must not reveal it by declaring that it is not secret.
    let was_secured = before.is_some_and(|before| before.is_secured);
    was_secured.then_some("is required to change the variable to one that is not secured")
}

fn field_of(name: &str) -> String {
    format!("Variables/{name}")
}

/// Checks that every variable has a unique name, and that the contents match their rules.
pub(crate) fn check(check: &mut Check, variables: &[VariableInput]) {
    let mut names = HashSet::new();
    for (index, variable) in variables.iter().enumerate() {
        let field = format!("Variables/{index}/Name");
        check.name(&field, &variable.name);
        if !names.insert(&variable.name) {
            check.refuse(field, "must be unique");
        }
    }
    contents::check_written(check, variables);
}
