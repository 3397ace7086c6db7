//! Re-encrypts secrets with another key, so that the previous key can be removed. Neither the secrets nor
//! the versions of their records change, so this is possible at any time.

use assay_auth::{Seal, SealConfig};
use assay_database::command_options;
use assay_proto::{CustomerId, Fault, Variable};
use secrecy::SecretString;
use sqlx::{AssertSqlSafe, Connection, Decode, Encode, PgConnection, Postgres, Type, types::Json};
use uuid::Uuid;

use super::{RecordSecrets, field_of};

/// Number of records that are read at once.
const BATCH: i64 = 500;

/// Re-encrypts all secrets with the first of the encryption keys. Returns the number of changed records.
/// Running programs must know that key beforehand, and can keep running.
pub async fn reseal(database_url: &SecretString, seal: &SealConfig) -> anyhow::Result<u64> {
    let seal = Seal::new(seal)?;
    let mut db = PgConnection::connect_with(&command_options(database_url)?).await?;
    let password = |id: Uuid, stored: &String| {
        if stored.is_empty() {
            return Ok(None);
        }
        RecordSecrets::unseen(seal.clone(), "environment", id).reseal("Password", stored)
    };
    let mut count = reseal_column(&mut db, "environment", "password", password).await?;
    for (table, noun) in [("subject", "subject"), ("test_plan", "test-plan")] {
        let variables = |id: Uuid, stored: &Json<Vec<Variable>>| {
            RecordSecrets::unseen(seal.clone(), noun, id).reseal_all(&stored.0)
        };
        count += reseal_column(&mut db, table, "variables", variables).await?;
    }
    Ok(count)
}

/// Re-encrypts a column of all records, including deleted ones, which history may need.
async fn reseal_column<T>(
    db: &mut PgConnection,
    table: &'static str,
    column: &'static str,
    resealed: impl Fn(Uuid, &T) -> Result<Option<T>, Fault>,
) -> Result<u64, Fault>
where
    T: for<'a> Decode<'a, Postgres> + for<'a> Encode<'a, Postgres> + Type<Postgres> + Send + Unpin,
{
    let (mut count, mut last) = (0, (CustomerId(Uuid::nil()), Uuid::nil()));
    loop {
        let records = sqlx::query_as::<_, (CustomerId, Uuid, T)>(AssertSqlSafe(format!(
            "select customer_id, id, {column} from {table}
             where (customer_id, id) > ($1, $2)
             order by customer_id, id
             limit $3"
        )));
        let records = records.bind(last.0).bind(last.1).bind(BATCH).fetch_all(&mut *db).await?;
        let Some((customer, id, _)) = records.last() else { return Ok(count) };
        last = (*customer, *id);
        for (customer, id, stored) in records {
            let Some(resealed) = resealed(id, &stored)? else { continue };
            // A record that was changed meanwhile is already encrypted with the current key.
            let update = sqlx::query(AssertSqlSafe(format!(
                "update {table} set {column} = $4
                 where customer_id = $1 and id = $2 and {column} = $3"
            )));
            let update = update.bind(customer).bind(id).bind(stored).bind(resealed);
            count += update.execute(&mut *db).await?.rows_affected();
        }
    }
}

impl RecordSecrets {
    /// Returns a stored secret encrypted with the current key, unless it is already.
    fn reseal(&self, field: &str, stored: &str) -> Result<Option<String>, Fault> {
        self.seal.reseal(&self.owner(field), stored)
    }

    /// Returns stored variables with secrets encrypted with the current key, unless they are already.
    fn reseal_all(&self, stored: &[Variable]) -> Result<Option<Json<Vec<Variable>>>, Fault> {
        let (mut variables, mut changed) = (stored.to_vec(), false);
        for variable in variables.iter_mut().filter(|one| one.is_secured && !one.content.is_empty())
        {
            if let Some(resealed) = self.reseal(&field_of(&variable.name), &variable.content)? {
                variable.content = resealed;
                changed = true;
            }
        }
        Ok(changed.then_some(Json(variables)))
    }
}
