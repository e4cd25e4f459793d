//! `packhouse backup` and `packhouse restore`. What is asked for goes to standard output; the exit status is 0 only when it was done
//! whole.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use packhouse_backup::{
    Demand, Found, Keep, KeyFiles, Manifest, Place, SealingKey, SigningKey, State, Vault,
};
use packhouse_identity::Sealer;
use packhouse_store::Store;
use serde_json::json;

use super::{SettingFlags, print, settings};
use crate::serve;
use packhouse_config::Config;

/// The file of the data folder with the key of sealed secrets that nobody chose.
const SEALING_KEY: &str = "sealing.key";
/// The use of the key that backups are signed with, which follows from the key of sealed secrets.
const SIGNING: &str = "signature of backups";

/// What is said of backups that may be anybody's.
const UNAUTHENTICATED: &str = "warning: nothing shows who made these backups, and whoever can write to the place may have forged them; name \
    the server's public key with --signed-by (`packhouse backup key` prints it), or encrypt backups with a passphrase";

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
    /// Print the public key with which this server signs its backups, for `--signed-by`. Keep it apart from the backups.
    Key {
        #[command(flatten)]
        settings: Box<SettingFlags>,
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

/// What opens backups that are encrypted, and what must show who made them.
#[derive(Debug, Args)]
pub(crate) struct OpeningKeys {
    /// Identities of age, for what was encrypted for their recipients
    #[arg(long, value_name = "FILE")]
    identity_file: Option<PathBuf>,
    /// The passphrase in the first line of this file, for what was encrypted with it
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
    /// Read only backups that the server of this public key signed, which `packhouse backup key` prints there
    #[arg(long, value_name = "KEY", conflicts_with = "unauthenticated")]
    signed_by: Option<String>,
    /// Read backups of which nothing shows who made them, as those of earlier versions: whoever can write to the place may have forged them
    #[arg(long)]
    unauthenticated: bool,
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
    /// Restore into a data folder that holds other files too; the folder is closed to other accounts
    #[arg(long)]
    beside_other_files: bool,
    #[command(flatten)]
    settings: SettingFlags,
}

impl OpeningKeys {
    /// The place, opened for reading.
    async fn open(self, from: &str) -> anyhow::Result<Arc<Vault>> {
        let OpeningKeys { identity_file, passphrase_file, signed_by, unauthenticated } = self;
        let keys = KeyFiles { recipients: None, identities: identity_file, passphrase: passphrase_file };
        let demand = Demand { signed_by, unauthenticated };
        let vault = Vault::for_reading(Place::to_read(from)?, &keys, demand).await?;
        if !vault.is_authenticated() {
            // For a verification no log is started.
            print(UNAUTHENTICATED)?;
        }
        Ok(Arc::new(vault))
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
    let signing_key = signing_key(&config)?;
    let store = Store::open(config.store.clone()).await.context("failed to open the store")?;
    let taken = packhouse_backup::take(&store, &vault, key, signing_key.as_ref(), &config.data).await;
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
    ))?;
    match signing_key {
        Some(key) => print(&format!("signed by {}", key.public())),
        None => Ok(()),
    }
}

/// The key with which the server of these settings signs. None where it has no key of sealed secrets yet: that key is not made here, since
/// whoever takes a backup may be another account than the server's.
fn signing_key(config: &Config) -> anyhow::Result<Option<SigningKey>> {
    if config.sealing_key.is_none() && !config.data.join(SEALING_KEY).exists() {
        return Ok(None);
    }
    let sealer = Sealer::new(config.sealing_key.clone(), &config.data);
    SigningKey::from_seed(&sealer.derive(SIGNING, "")?).map(Some)
}

fn print_key(config: &Config) -> anyhow::Result<()> {
    let key = signing_key(config)?;
    let key =
        key.context("the server has no key yet: it makes one at its first start, in its data folder")?;
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
        let vault = self.keys.open(&self.from).await?;
        ensure!(
            self.beside_other_files || !serve::holds_others(&config)?,
            "the data folder {} holds files that are not this program's: name an empty folder with --data, or say --beside-other-files",
            config.data.display()
        );
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
