//! `packhouse backup` and `packhouse restore`. What is asked for goes to standard output; the exit status is 0 only when it was done
//! whole.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use packhouse_backup::{Found, Keep, KeyFiles, Manifest, Place, SealingKey, State, Vault};
use packhouse_store::Store;
use serde_json::json;

use super::{SettingFlags, print, settings};
use crate::serve;
use packhouse_config::Config;

/// The file of the data folder with the key of sealed secrets that nobody chose.
const SEALING_KEY: &str = "sealing.key";

/// `packhouse backup TO`, or one of the commands.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct BackupArguments {
    #[command(subcommand)]
    command: Option<BackupCommand>,
    /// A folder, or s3://BUCKET/PATH?endpoint=…&region=…
    #[arg(value_name = "TO", required = true)]
    to: Option<String>,
    /// Encrypt for these recipients of age (age1…, one a line)
    #[arg(long, value_name = "FILE", conflicts_with = "passphrase_file")]
    recipients_file: Option<PathBuf>,
    /// Encrypt with the passphrase in the first line of this file
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// Leave out the key of sealed secrets
    #[arg(long)]
    without_sealing_key: bool,
    #[command(flatten)]
    settings: SettingFlags,
}

#[derive(Debug, Subcommand)]
enum BackupCommand {
    /// Read everything again and compare it with what was written; an error when something is damaged.
    Verify {
        /// A folder, or s3://BUCKET/PATH?…
        from: String,
        /// Only this backup.
        #[arg(long, value_name = "ID")]
        backup: Option<String>,
        #[command(flatten)]
        keys: OpeningKeys,
    },
    /// Print the backups of a place, the oldest first.
    List {
        /// A folder, or s3://BUCKET/PATH?…
        from: String,
        /// As a JSON list.
        #[arg(long)]
        json: bool,
    },
    /// Remove old backups and what no other needs. What either flag keeps stays, and the newest.
    #[command(group(clap::ArgGroup::new("keep").required(true).multiple(true)))]
    Prune {
        /// A folder, or s3://BUCKET/PATH?…
        from: String,
        /// Keep so many of the newest.
        #[arg(long, value_name = "N", group = "keep")]
        keep_last: Option<usize>,
        /// Keep those that are so many days old at most.
        #[arg(long, value_name = "DAYS", group = "keep")]
        keep_days: Option<u32>,
        /// Remove nothing, and print what would be.
        #[arg(long)]
        dry_run: bool,
    },
}

/// What opens backups that are encrypted.
#[derive(Debug, Args)]
pub(crate) struct OpeningKeys {
    /// Identities of age, for what was encrypted for their recipients
    #[arg(long, value_name = "FILE")]
    identity_file: Option<PathBuf>,
    /// The passphrase in the first line of this file, for what was encrypted with it
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

/// `packhouse restore FROM`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// A folder, or s3://BUCKET/PATH?endpoint=…&region=…
    #[arg(value_name = "FROM")]
    from: String,
    /// The backup of this id, and not the newest.
    #[arg(long, value_name = "ID")]
    backup: Option<String>,
    #[command(flatten)]
    keys: OpeningKeys,
    #[command(flatten)]
    settings: SettingFlags,
}

impl OpeningKeys {
    fn files(self) -> KeyFiles {
        KeyFiles { recipients: None, identities: self.identity_file, passphrase: self.passphrase_file }
    }
}

impl BackupArguments {
    /// Does what the command line says.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self.command {
            None => {
                let to = self.to.context("say where the backup goes")?;
                let keys = KeyFiles {
                    recipients: self.recipients_file,
                    identities: None,
                    passphrase: self.passphrase_file,
                };
                take(settings(self.settings)?, &to, &keys, self.without_sealing_key).await
            }
            Some(BackupCommand::Verify { from, backup, keys }) => {
                verify(&from, backup.as_deref(), &keys.files()).await
            }
            Some(BackupCommand::List { from, json }) => list(&from, json).await,
            Some(BackupCommand::Prune { from, keep_last, keep_days, dry_run }) => {
                prune(&from, Keep { last: keep_last, days: keep_days }, dry_run).await
            }
        }
    }
}

async fn take(config: Config, to: &str, keys: &KeyFiles, without_key: bool) -> anyhow::Result<()> {
    ensure!(
        config.data.is_dir(),
        "there is no data folder {}: name it with --data, and the configuration file with --config",
        config.data.display()
    );
    if let Some(database) = config.store.sqlite_file() {
        ensure!(
            database.exists(),
            "there is no database {}: nothing was served from it yet",
            database.display()
        );
    }
    let vault = Arc::new(Vault::for_taking(Place::to_write(to, &config.data)?, keys).await?);
    let file = config.data.join(SEALING_KEY);
    let key = match (&config.sealing_key, without_key) {
        (Some(_), _) => Err(SealingKey::Set),
        (None, true) => Err(SealingKey::LeftOut),
        (None, false) => Ok(file.as_path()),
    };
    let store = Store::open(config.store.clone()).await.context("failed to open the store")?;
    let taken = packhouse_backup::take(&store, &vault, key, &config.data).await;
    store.close().await;
    let manifest = taken?;
    if manifest.sealing_key == SealingKey::Included && !manifest.encrypted {
        tracing::warn!(
            "the backup is not encrypted and holds the key of sealed secrets: whoever reads it can use the credentials for \
             upstreams and sign as this server. Encrypt backups (--recipients-file, --passphrase-file), or keep the key apart \
             (--without-sealing-key)"
        );
    }
    print(&format!(
        "backup {} of {} rows and {} blobs of {} bytes, of which {} of {} bytes were copied, in {:.1} s",
        manifest.id,
        manifest.rows_in_all(),
        manifest.blobs,
        manifest.blob_bytes,
        manifest.copied_blobs,
        manifest.copied_bytes,
        seconds(manifest.took_ms)
    ))
}

async fn verify(from: &str, id: Option<&str>, keys: &KeyFiles) -> anyhow::Result<()> {
    let vault = Arc::new(Vault::for_reading(Place::to_read(from)?, keys).await?);
    let verified = packhouse_backup::verify(&vault, id).await?;
    print(&format!(
        "read {} backups with {} blobs of {} bytes",
        verified.backups, verified.blobs, verified.bytes
    ))?;
    for damaged in &verified.damaged {
        print(&format!("damaged: {damaged}"))?;
    }
    match verified.damaged.len() {
        0 => Ok(()),
        count => bail!("{count} things are not what was written"),
    }
}

async fn list(from: &str, as_json: bool) -> anyhow::Result<()> {
    let vault = Vault::for_looking(Place::to_read(from)?).await?;
    let found = packhouse_backup::list(&vault).await?;
    if as_json {
        let items: Vec<_> = found.iter().map(described).collect();
        return print(&serde_json::to_string_pretty(&items)?);
    }
    for backup in &found {
        match &backup.state {
            State::Whole(manifest) => print(&line(manifest))?,
            State::Damaged(why) => print(&format!("{}  damaged: {why}", backup.id))?,
            State::UnderWay => print(&format!("{}  is being taken", backup.id))?,
            State::BrokenOff => print(&format!("{}  broken off: no backup", backup.id))?,
        }
    }
    Ok(())
}

fn line(manifest: &Manifest) -> String {
    format!(
        "{}  {} rows, {} blobs of {} bytes ({} of {} bytes new), {:.1} s{}",
        manifest.id,
        manifest.rows_in_all(),
        manifest.blobs,
        manifest.blob_bytes,
        manifest.copied_blobs,
        manifest.copied_bytes,
        seconds(manifest.took_ms),
        if manifest.encrypted { ", encrypted" } else { "" }
    )
}

fn described(backup: &Found) -> serde_json::Value {
    match &backup.state {
        State::Whole(manifest) => json!({"id": backup.id, "state": "whole", "manifest": manifest}),
        State::Damaged(why) => json!({"id": backup.id, "state": "damaged", "error": why}),
        State::UnderWay => json!({"id": backup.id, "state": "under_way"}),
        State::BrokenOff => json!({"id": backup.id, "state": "broken_off"}),
    }
}

async fn prune(from: &str, keep: Keep, only_tell: bool) -> anyhow::Result<()> {
    let vault = Vault::for_looking(Place::to_read(from)?).await?;
    let pruned = packhouse_backup::prune(&vault, keep, only_tell).await?;
    let verb = if only_tell { "would remove" } else { "removed" };
    for id in &pruned.removed {
        print(&format!("{verb} {id}"))?;
    }
    for id in &pruned.broken_off {
        print(&format!("{verb} {id}, which had been broken off"))?;
    }
    print(&format!(
        "{verb} {} blobs of {} bytes; {} backups stay",
        pruned.blobs,
        pruned.bytes,
        pruned.kept.len()
    ))
}

impl RestoreArguments {
    /// Does what the command line says.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let config = settings(self.settings)?;
        let vault = Arc::new(Vault::for_reading(Place::to_read(&self.from)?, &self.keys.files()).await?);
        let _lock = serve::alone(&config)?;
        let file = config.data.join(SEALING_KEY);
        let key = config.sealing_key.is_none().then_some(file.as_path());
        let id = self.backup.as_deref();
        let restored = packhouse_backup::restore(&vault, id, config.store.clone(), key).await?;
        let manifest = &restored.manifest;
        match manifest.sealing_key {
            SealingKey::Set | SealingKey::LeftOut => tracing::warn!(
                "the backup does not hold the key of sealed secrets: set `sealing_key`, or the file sealing.key of the data folder, to \
                 that of the server whose backup it is, or set credentials for upstreams and client secrets anew"
            ),
            SealingKey::Included | SealingKey::None => {}
        }
        print(&format!(
            "restored {}: {} rows and {} blobs of {} bytes, of which {} blobs were there already",
            manifest.id,
            manifest.rows_in_all(),
            manifest.blobs,
            manifest.blob_bytes,
            restored.blobs_there
        ))
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}
