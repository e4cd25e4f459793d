//! `packhouse backup` and `packhouse restore`. Results go to standard output. The exit status is 0
//! only after complete success.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use packhouse_backup::{
    BackupEntry, BackupLocation, BackupState, Demand, Keep, KeyFiles, Manifest, SealingKey, SigningKey, Vault,
};
use packhouse_identity::Sealer;
use packhouse_store::Store;
use serde_json::json;

use super::{SettingFlags, print, settings};
use crate::serve;
use packhouse_config::Config;

/// File in the data folder with the generated sealing key.
const SEALING_KEY: &str = "sealing.key";
/// Purpose for which the signing key of backups is derived from the sealing key.
const SIGNING: &str = "signature of backups";

/// Warning about backups without proof of origin.
const UNAUTHENTICATED: &str = "warning: nothing proves who made these backups; anyone who can write to their location may have forged \
    them. Name the server's public key with --signed-by (`packhouse backup key` prints it), or encrypt backups with a passphrase";

/// Arguments of `packhouse backup TO` and its subcommands.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct BackupArguments {
    #[command(subcommand)]
    command: Option<BackupCommand>,
    /// A folder, or s3://BUCKET/PATH?endpoint=…&region=…
    #[arg(value_name = "TO", required = true)]
    to: Option<String>,
    /// Encrypt for the age recipients in this file (age1…, one a line)
    #[arg(long, value_name = "FILE", conflicts_with = "passphrase_file")]
    recipients_file: Option<PathBuf>,
    /// Encrypt with the passphrase in the first line of this file
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// Leave out the sealing key
    #[arg(long)]
    without_sealing_key: bool,
    #[command(flatten)]
    settings: SettingFlags,
}

#[derive(Debug, Subcommand)]
enum BackupCommand {
    /// Read backups completely and compare them with what was written; fails if anything is damaged
    Verify {
        /// A folder, or s3://BUCKET/PATH?…
        from: String,
        /// Verify only the backup with this id
        #[arg(long, value_name = "ID")]
        backup: Option<String>,
        #[command(flatten)]
        keys: OpeningKeys,
    },
    /// Print the public key with which this server signs its backups, for `--signed-by`; store it
    /// apart from the backups
    Key {
        #[command(flatten)]
        settings: Box<SettingFlags>,
    },
    /// List the backups, oldest first
    List {
        /// A folder, or s3://BUCKET/PATH?…
        from: String,
        /// Print a JSON list
        #[arg(long)]
        json: bool,
    },
    /// Remove old backups and data that only they use; a backup stays if either flag keeps it, and
    /// the newest always stays
    #[command(group(clap::ArgGroup::new("keep").required(true).multiple(true)))]
    Prune {
        /// A folder, or s3://BUCKET/PATH?…
        from: String,
        /// Keep the N newest backups
        #[arg(long, value_name = "N", group = "keep")]
        keep_last: Option<usize>,
        /// Keep backups that are at most DAYS days old
        #[arg(long, value_name = "DAYS", group = "keep")]
        keep_days: Option<u32>,
        /// Remove nothing, only print what would be removed
        #[arg(long)]
        dry_run: bool,
    },
}

/// Keys that open encrypted backups, and the required proof of origin.
#[derive(Debug, Args)]
pub(crate) struct OpeningKeys {
    /// File with age identities, for backups that are encrypted for their recipients
    #[arg(long, value_name = "FILE")]
    identity_file: Option<PathBuf>,
    /// File with the passphrase in its first line, for backups that are encrypted with it
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// Read only backups that are signed with this public key; `packhouse backup key` prints it on
    /// the server
    #[arg(long, value_name = "KEY", conflicts_with = "unauthenticated")]
    signed_by: Option<String>,
    /// Read backups without proof of origin, such as those of earlier versions; anyone who can
    /// write to their location may have forged them
    #[arg(long)]
    unauthenticated: bool,
}

/// Arguments of `packhouse restore FROM`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// A folder, or s3://BUCKET/PATH?endpoint=…&region=…
    #[arg(value_name = "FROM")]
    from: String,
    /// Restore the backup with this id instead of the newest
    #[arg(long, value_name = "ID")]
    backup: Option<String>,
    #[command(flatten)]
    keys: OpeningKeys,
    /// Restore into a data folder that contains other files; the folder is closed to other accounts
    #[arg(long)]
    beside_other_files: bool,
    #[command(flatten)]
    settings: SettingFlags,
}

impl OpeningKeys {
    /// Opens a backup location for reading.
    async fn open(self, from: &str) -> anyhow::Result<Arc<Vault>> {
        let OpeningKeys { identity_file, passphrase_file, signed_by, unauthenticated } = self;
        let keys = KeyFiles { recipients: None, identities: identity_file, passphrase: passphrase_file };
        let demand = Demand { signed_by, unauthenticated };
        let vault = Vault::for_reading(BackupLocation::to_read(from)?, &keys, demand).await?;
        if !vault.is_authenticated() {
            // Printed, because `verify` starts no log.
            print(UNAUTHENTICATED)?;
        }
        Ok(Arc::new(vault))
    }
}

impl BackupArguments {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self.command {
            None => {
                let to = self.to.context("the destination of the backup is missing")?;
                let keys = KeyFiles {
                    recipients: self.recipients_file,
                    identities: None,
                    passphrase: self.passphrase_file,
                };
                take(settings(self.settings)?, &to, &keys, self.without_sealing_key).await
            }
            Some(BackupCommand::Verify { from, backup, keys }) => {
                verify(keys.open(&from).await?, backup.as_deref()).await
            }
            Some(BackupCommand::Key { settings: flags }) => print_key(&settings(*flags)?),
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
            "there is no database {}: no server has been started with it",
            database.display()
        );
    }
    let vault = Arc::new(Vault::for_taking(BackupLocation::to_write(to, &config.data)?, keys).await?);
    let file = config.data.join(SEALING_KEY);
    let key = match (&config.sealing_key, without_key) {
        (Some(_), _) => Err(SealingKey::Set),
        (None, true) => Err(SealingKey::LeftOut),
        (None, false) => Ok(file.as_path()),
    };
    let signing_key = signing_key(&config)?;
    let store = Store::open(config.store.clone()).await.context("failed to open the store")?;
    let taken = packhouse_backup::take(&store, &vault, key, signing_key.as_ref(), &config.data).await;
    store.close().await;
    let manifest = taken?;
    if manifest.sealing_key == SealingKey::Included && !manifest.encrypted {
        tracing::warn!(
            "the backup is not encrypted and contains the sealing key: anyone who can read it can use the credentials for \
             upstreams and sign as this server. Encrypt backups (--recipients-file, --passphrase-file), or leave the key out \
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
    ))?;
    match signing_key {
        Some(key) => print(&format!("signed by {}", key.public())),
        None => Ok(()),
    }
}

/// Returns the key with which this server signs. `None` if there is no sealing key yet. This
/// command does not create one, because it may run under another account than the server.
fn signing_key(config: &Config) -> anyhow::Result<Option<SigningKey>> {
    if config.sealing_key.is_none() && !config.data.join(SEALING_KEY).exists() {
        return Ok(None);
    }
    let sealer = Sealer::new(config.sealing_key.clone(), &config.data);
    SigningKey::from_seed(&sealer.derive(SIGNING, "")?).map(Some)
}

fn print_key(config: &Config) -> anyhow::Result<()> {
    let key = signing_key(config)?;
    let key = key.context("the server has no key yet: its first start creates one in the data folder")?;
    print(&key.public())
}

async fn verify(vault: Arc<Vault>, id: Option<&str>) -> anyhow::Result<()> {
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
        count => bail!("{count} items are damaged"),
    }
}

async fn list(from: &str, as_json: bool) -> anyhow::Result<()> {
    let vault = Vault::for_looking(BackupLocation::to_read(from)?).await?;
    let found = packhouse_backup::list(&vault).await?;
    if as_json {
        let items: Vec<_> = found.iter().map(described).collect();
        return print(&serde_json::to_string_pretty(&items)?);
    }
    for backup in &found {
        match &backup.state {
            BackupState::Whole(manifest) => print(&line(manifest))?,
            BackupState::Damaged(why) => print(&format!("{}  damaged: {why}", backup.id))?,
            BackupState::UnderWay => print(&format!("{}  in progress", backup.id))?,
            BackupState::BrokenOff => print(&format!("{}  interrupted, not usable", backup.id))?,
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

fn described(backup: &BackupEntry) -> serde_json::Value {
    match &backup.state {
        BackupState::Whole(manifest) => json!({"id": backup.id, "state": "whole", "manifest": manifest}),
        BackupState::Damaged(why) => json!({"id": backup.id, "state": "damaged", "error": why}),
        BackupState::UnderWay => json!({"id": backup.id, "state": "under_way"}),
        BackupState::BrokenOff => json!({"id": backup.id, "state": "broken_off"}),
    }
}

async fn prune(from: &str, keep: Keep, only_tell: bool) -> anyhow::Result<()> {
    let vault = Vault::for_looking(BackupLocation::to_read(from)?).await?;
    let pruned = packhouse_backup::prune(&vault, keep, only_tell).await?;
    let verb = if only_tell { "would remove" } else { "removed" };
    for id in &pruned.removed {
        print(&format!("{verb} {id}"))?;
    }
    for id in &pruned.broken_off {
        print(&format!("{verb} {id}, which was interrupted"))?;
    }
    print(&format!(
        "{verb} {} blobs of {} bytes; {} backups remain",
        pruned.blobs,
        pruned.bytes,
        pruned.remaining.len()
    ))
}

impl RestoreArguments {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let config = settings(self.settings)?;
        let vault = self.keys.open(&self.from).await?;
        ensure!(
            self.beside_other_files || !serve::has_foreign_files(&config)?,
            "the data folder {} contains files of other programs: name an empty folder with --data, or add --beside-other-files",
            config.data.display()
        );
        let _lock = serve::lock_data_folder(&config)?;
        let file = config.data.join(SEALING_KEY);
        let key = config.sealing_key.is_none().then_some(file.as_path());
        let id = self.backup.as_deref();
        let restored = packhouse_backup::restore(&vault, id, config.store.clone(), key).await?;
        let manifest = &restored.manifest;
        match manifest.sealing_key {
            SealingKey::Set | SealingKey::LeftOut => tracing::warn!(
                "the backup does not contain the sealing key: set `sealing_key`, or the file sealing.key in the data folder, to the key \
                 of the server that was backed up, or set credentials for upstreams and client secrets again"
            ),
            SealingKey::Included | SealingKey::None => {}
        }
        print(&format!(
            "restored {}: {} rows and {} blobs of {} bytes, of which {} blobs already existed",
            manifest.id,
            manifest.rows_in_all(),
            manifest.blobs,
            manifest.blob_bytes,
            restored.blobs_there
        ))
    }
}

#[expect(clippy::cast_precision_loss, reason = "printed with one decimal")]
fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}
