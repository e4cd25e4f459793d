//! Small values of the database, shared by every process that uses it.

use crate::boxed;
use crate::db::values;
use crate::error::StoreError;
use crate::store::Store;

impl Store {
    /// Returns the text stored under this name, or stores `fresh` if nothing is stored yet. The
    /// first caller decides, and every process of this database gets the same text.
    #[boxed]
    pub async fn agreed(&self, name: &str, fresh: &str) -> Result<String, StoreError> {
        let insert = "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
        let find = "SELECT value FROM meta WHERE name = $1";
        if let Some(row) = self.inner.db.fetch_one(find, values![name]).await? {
            return row.columns().text("value");
        }
        self.inner.db.execute(insert, values![name, fresh]).await?;
        let row = self.inner.db.fetch_one(find, values![name]).await?;
        row.map_or_else(
            || Err(StoreError::Corrupt(format!("`{name}` is missing"))),
            |row| row.columns().text("value"),
        )
    }

    /// Replaces the text stored under this name (`None` deletes it) and returns the previous text.
    #[boxed]
    pub async fn replace_fact(&self, name: &str, text: Option<&str>) -> Result<Option<String>, StoreError> {
        // Usually the text is already stored. This read then avoids a write, which would wait for
        // the disk.
        let find = "SELECT value FROM meta WHERE name = $1";
        let row = self.inner.db.fetch_one(find, values![name]).await?;
        let known = row.map(|row| row.columns().text("value")).transpose()?;
        if known.as_deref() == text {
            return Ok(known);
        }
        let mut transaction = self.inner.db.begin().await?;
        let take = "DELETE FROM meta WHERE name = $1 RETURNING value";
        let before = transaction.fetch_one(take, values![name]).await?;
        if let Some(text) = text {
            // If another process has inserted a text meanwhile, this later one replaces it.
            let insert = "INSERT INTO meta (name, value) VALUES ($1, $2) \
                          ON CONFLICT (name) DO UPDATE SET value = excluded.value";
            transaction.execute(insert, values![name, text]).await?;
        }
        transaction.commit().await?;
        before.map(|row| row.columns().text("value")).transpose()
    }
}
