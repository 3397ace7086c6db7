//! Secrets in records: encrypted where they are stored, asterisks for those who may not see them,
//! and unchanged where the asterisks come back.

mod contents;
mod reseal;

use std::{
    collections::HashSet,
    fmt::Display,
    sync::atomic::{AtomicBool, Ordering},
};

use assay_auth::{Caller, Seal};
use assay_events::publish_all;
use assay_proto::{Fault, Permission, Variable, VariableInput};
use assay_records::Check;
use assay_runtime::begin;
use sqlx::{PgPool, PgTransaction};

pub(crate) use self::contents::check_stored;
pub use self::reseal::reseal;
use crate::record::Record;

/// What is shown instead of a secret.
pub(crate) const MASK: &str = "********";

const NOTHING_TO_KEEP: &str = "is masked, and there is no stored value to keep";

/// Encrypts and shows secrets. An empty one is no secret: it is stored and shown as it is.
#[derive(Clone)]
pub(crate) struct Secrets(Seal);

impl Secrets {
    pub(crate) fn new(seal: Seal) -> Self {
        Self(seal)
    }

    /// The secrets of one record, for a caller who may see them or not.
    pub(crate) fn of(&self, noun: &str, id: impl Display, caller: &Caller) -> RecordSecrets {
        RecordSecrets {
            can_see: caller.may(Permission::AccessSecrets),
            ..RecordSecrets::unseen(self.0.clone(), noun, id)
        }
    }

    /// The secrets of one record, for whoever needs them to run tests.
    pub(crate) fn in_clear(&self, noun: &str, id: impl Display) -> RecordSecrets {
        RecordSecrets {
            seal: self.0.clone(),
            record: format!("{noun}/{id}"),
            can_see: true,
            seen: AtomicBool::default(),
        }
    }
}

/// The secrets of one record, for one caller.
pub(crate) struct RecordSecrets {
    seal: Seal,
    record: String,
    can_see: bool,
    seen: AtomicBool,
}

/// Tells of the records whose secrets a caller is about to see, for the audit record. What cannot
/// be told of must not be shown.
pub(crate) async fn tell(
    db: &PgPool,
    caller: &Caller,
    seen: impl IntoIterator<Item = Record>,
) -> Result<(), Fault> {
    let mut seen = seen.into_iter().peekable();
    if seen.peek().is_none() {
        return Ok(());
    }
    let mut tx = begin(db).await?;
    tell_with(&mut tx, caller, seen).await?;
    Ok(tx.commit().await?)
}

/// As [`tell`], together with a change of a record: nothing that can fail follows its commit.
pub(crate) async fn tell_with(
    tx: &mut PgTransaction<'_>,
    caller: &Caller,
    seen: impl IntoIterator<Item = Record>,
) -> Result<(), Fault> {
    let events: Result<Vec<_>, _> = seen.into_iter().map(|record| record.seen_by(caller)).collect();
    publish_all(tx, &events?).await
}

impl RecordSecrets {
    /// The secrets of one record, which nobody is to see.
    fn unseen(seal: Seal, noun: &str, id: impl Display) -> Self {
        let record = format!("{noun}/{id}");
        Self { seal, record, can_see: false, seen: AtomicBool::default() }
    }

    /// A stored secret, as the caller may see it.
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

    /// The record, if a secret of it was shown in clear.
    pub(crate) fn seen(&self, record: Record) -> Option<Record> {
        self.seen.load(Ordering::Relaxed).then_some(record)
    }

    /// What to store of a secret, given what is stored.
    pub(crate) fn store(
        &self,
        field: &str,
        written: &str,
        stored: Option<&str>,
    ) -> Result<String, Fault> {
        match (written, stored) {
            (MASK, Some(stored)) => Ok(stored.to_owned()),
            (MASK, None) => Err(Fault::invalid(field, NOTHING_TO_KEEP)),
            _ => self.close(field, written),
        }
    }

    /// Stored variables, as the caller may see them.
    pub(crate) fn show_all(&self, stored: Vec<Variable>) -> Result<Vec<Variable>, Fault> {
        let shown = stored.into_iter().map(|variable| {
            let content = if variable.is_secured {
                self.show(&place_of(&variable.name), &variable.content)?
            } else {
                variable.content
            };
            Ok(Variable { content, ..variable })
        });
        shown.collect()
    }

    /// What to store of variables, given those that are stored: those of the same name are the
    /// same.
    pub(crate) fn store_all(
        &self,
        written: &[VariableInput],
        stored: &[Variable],
    ) -> Result<Vec<Variable>, Fault> {
        let mut check = Check::default();
        let mut kept = Vec::with_capacity(written.len());
        for (place, variable) in written.iter().enumerate() {
            let before = stored.iter().find(|before| before.name == variable.name);
            if let Some(problem) = problem(variable, before) {
                check.refuse(format!("Variables/{place}/Content"), problem);
                continue;
            }
            if let Some(before) = before
                && let Some(problem) = self.problem_of_rule(variable, before)?
            {
                check.refuse(format!("Variables/{place}/ValidationRule"), problem);
                continue;
            }
            let content = match before {
                _ if !variable.is_secured => variable.content.clone(),
                Some(before) if variable.content == MASK && before.is_secured => {
                    before.content.clone()
                }
                Some(before) if variable.content == MASK => {
                    self.close(&place_of(&variable.name), &before.content)?
                }
                _ => self.close(&place_of(&variable.name), &variable.content)?,
            };
            kept.push(with_content(variable.clone(), content));
        }
        check.done().map(|()| kept)
    }

    /// What is wrong with another rule for a secret that stays as it is. Whether it matches is told
    /// only to those who can see the secret: others could guess at it in this way.
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
            return Ok(Some("of a secret can be changed only together with its Content"));
        }
        let content = if before.is_secured {
            self.open(&place_of(&before.name), &before.content)?
        } else {
            before.content.clone()
        };
        let matches = contents::matches(rule, &content);
        Ok((!matches).then_some("does not match the Content that is stored"))
    }

    /// What to store of variables that are copied from another record.
    pub(crate) fn copy_all(
        &self,
        from: &RecordSecrets,
        stored: Vec<Variable>,
    ) -> Result<Vec<Variable>, Fault> {
        let copied = stored.into_iter().map(|variable| {
            if !variable.is_secured || variable.content.is_empty() {
                return Ok(variable);
            }
            let place = place_of(&variable.name);
            let content = self.close(&place, &from.open(&place, &variable.content)?)?;
            Ok(Variable { content, ..variable })
        });
        copied.collect()
    }

    /// Masks the secrets that are written as they are stored already. Only for those who can see
    /// them: others could guess at secrets in this way.
    pub(crate) fn mask_unchanged(
        &self,
        written: &mut [VariableInput],
        stored: &[Variable],
    ) -> Result<(), Fault> {
        for variable in written.iter_mut().filter(|variable| self.can_see && variable.is_secured) {
            let is_same = |before: &&Variable| before.is_secured && before.name == variable.name;
            if let Some(before) = stored.iter().find(is_same)
                && !before.content.is_empty()
                && self.open(&place_of(&before.name), &before.content)? == variable.content
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

/// What is wrong with the content of a variable, given the stored one of the same name.
fn problem(variable: &VariableInput, before: Option<&Variable>) -> Option<&'static str> {
    if variable.content != MASK {
        return None;
    }
    if variable.is_secured {
        return before.is_none().then_some(NOTHING_TO_KEEP);
    }
    // Who cannot see a secret must not get at it by declaring it to be none.
    let was_secured = before.is_some_and(|before| before.is_secured);
    was_secured.then_some("has to be given for the variable to be secured no more")
}

fn place_of(name: &str) -> String {
    format!("Variables/{name}")
}

fn with_content(variable: VariableInput, content: String) -> Variable {
    Variable {
        pool_name: variable.pool_name,
        is_secured: variable.is_secured,
        validation_rule: variable.validation_rule,
        validation_error_msg: variable.validation_error_msg,
        name: variable.name,
        display_name: variable.display_name,
        content,
    }
}

/// Variables with their secrets masked, as they are compared and merged.
pub(crate) fn masked(variables: &[Variable]) -> Vec<Variable> {
    let mask = |variable: &Variable| {
        let is_secret = variable.is_secured && !variable.content.is_empty();
        let content = if is_secret { MASK.to_owned() } else { variable.content.clone() };
        Variable { content, ..variable.clone() }
    };
    variables.iter().map(mask).collect()
}

/// Every variable has a name, and no two have the same.
pub(crate) fn check(check: &mut Check, variables: &[VariableInput]) {
    let mut names = HashSet::new();
    for (place, variable) in variables.iter().enumerate() {
        let field = format!("Variables/{place}/Name");
        check.name(&field, &variable.name);
        if !names.insert(&variable.name) {
            check.refuse(field, "is the name of another variable too");
        }
    }
    contents::check_written(check, variables);
}
