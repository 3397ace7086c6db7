//! Customers, accounts and memberships that tests insert directly into the database.

use anyhow::Result;
use assay_proto::{AccountId, CustomerId, UserGroupId, UserId};

use crate::world::{ADMIN, Identity};

impl Identity {
    /// Adds a customer.
    pub(crate) async fn customer(&self, subdomain: &str) -> Result<CustomerId> {
        let id = CustomerId::new();
        sqlx::query(
            "insert into customer (id, name, currency, tax, minimum_consumption_in_h, due_days,
                                   subdomain)
             values ($1, $2, 'EUR', 0, 0, 30, $2)",
        )
        .bind(id)
        .bind(subdomain)
        .execute(&self.db)
        .await?;
        Ok(id)
    }

    /// Adds an account with the password [`PASSWORD`].
    pub(crate) async fn account(&self, email: &str) -> Result<AccountId> {
        let id = AccountId::new();
        sqlx::query(
            "insert into account (id, email, password_hash)
             select $1, $2, password_hash from account where email = $3",
        )
        .bind(id)
        .bind(email)
        .bind(ADMIN)
        .execute(&self.db)
        .await?;
        Ok(id)
    }

    /// Makes an account a member of a customer, in a group with these permissions; returns the
    /// user.
    pub(crate) async fn membership(
        &self,
        customer: CustomerId,
        account: AccountId,
        permissions: &str,
    ) -> Result<UserId> {
        let (group, user) = (UserGroupId::new(), UserId::new());
        sqlx::query(
            "insert into user_group (customer_id, id, name, usage_permission)
             values ($1, $2, 'Group ' || $2, $3)",
        )
        .bind(customer)
        .bind(group)
        .bind(permissions)
        .execute(&self.db)
        .await?;
        sqlx::query(
            "insert into membership (customer_id, id, account_id, user_group_id, display_name)
             values ($1, $2, $3, $4, 'Grace Hopper')",
        )
        .bind(customer)
        .bind(user)
        .bind(account)
        .bind(group)
        .execute(&self.db)
        .await?;
        Ok(user)
    }

    /// Changes a customer; `change` is an SQL assignment such as `archived = true`.
    pub(crate) async fn set(&self, customer: CustomerId, change: &'static str) -> Result<()> {
        let statement = format!("update customer set {change} where id = $1");
        sqlx::query(sqlx::AssertSqlSafe(statement)).bind(customer).execute(&self.db).await?;
        Ok(())
    }
}
