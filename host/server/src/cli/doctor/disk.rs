//! The data folder: whose it is, whether what is written there stays, and how much more fits.

use std::fs::{self, File, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use packhouse_config::Config;

use super::Findings;

/// A disk that takes longer than this for a few bytes makes every publish wait.
const SLOW: Duration = Duration::from_millis(500);
/// Bytes below which a disk is nearly full.
const LITTLE: u64 = 1 << 30;
/// What others may do with a folder.
const OTHERS: u32 = 0o077;
/// How far the clock of a file may be from this machine's.
const SKEW: Duration = Duration::from_secs(5);

/// Looks at the folder; whether a server runs on it.
pub(super) fn examine(config: &Config, findings: &mut Findings) -> bool {
    let (data, before) = (config.data.as_path(), findings.faults());
    let setting = config.sources.label("data");
    match fs::metadata(data) {
        Ok(metadata) if !metadata.is_dir() => {
            findings.wrong(format!("{setting} is no folder; name one with --data, or PACKHOUSE_DATA"));
            return false;
        }
        Ok(metadata) => {
            let (owner, own) = (metadata.uid(), rustix::process::geteuid().as_raw());
            if owner != own {
                findings.wrong(format!(
                    "{setting} belongs to the account {owner} and this is {own}; run this as the account of the server, or give \
                     the folder to it with chown"
                ));
            }
            if metadata.mode() & OTHERS != 0 && data.join("packhouse-database").exists() {
                findings.wrong(format!(
                    "{setting} is open to other accounts; close it with chmod 700 {}",
                    data.display()
                ));
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let made =
                data.ancestors().skip(1).find(|folder| folder.as_os_str().is_empty() || folder.exists());
            let place = made.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            match writable(place) {
                Ok(_) => findings.note(format!("{setting} is not there yet; the first start makes it")),
                Err(error) => findings.wrong(format!(
                    "{setting} is not there and cannot be made in {}: {error}; make it, and give it to the account of the server",
                    place.display()
                )),
            }
            return false;
        }
        Err(error) => {
            findings
                .wrong(format!("{setting} cannot be looked at: {error}; see that this account may reach it"));
            return false;
        }
    }
    match writable(data) {
        Ok(took) if took > SLOW => findings.wrong(format!(
            "{setting}: the disk took {} ms to make a few bytes durable, for which every publish waits; use a faster one",
            took.as_millis()
        )),
        Ok(_) => {}
        Err(error) => findings.wrong(format!(
            "{setting} takes no durable file (write, fsync, rename, fsync of the folder): {error}; see that this account may write \
             there, and that the file system knows fsync"
        )),
    }
    clock(data, &setting, findings);
    room(data, &setting, findings);
    findings.well_unless(
        before,
        format!("data: {} takes durable files, has room, and is closed to others", data.display()),
    );
    let running = is_running(data);
    if running {
        findings.note("a server runs on this data folder at the moment");
    }
    running
}

/// Writes a file as blobs are written, and takes it away; how long that took.
fn writable(folder: &Path) -> std::io::Result<Duration> {
    let began = Instant::now();
    let name = format!(".packhouse-doctor-{}", std::process::id());
    let (first, second) = (folder.join(format!("{name}.new")), folder.join(name));
    let written = (|| {
        let mut file = File::options().write(true).create_new(true).open(&first)?;
        file.write_all(b"packhouse doctor\n")?;
        file.sync_all()?;
        fs::rename(&first, &second)?;
        File::open(folder)?.sync_all()
    })();
    let _ = fs::remove_file(&first);
    let removed = fs::remove_file(&second);
    written.and(removed).map(|()| began.elapsed())
}

/// Garbage is told from what is new by the times of files.
fn clock(data: &Path, setting: &str, findings: &mut Findings) {
    let name = data.join(format!(".packhouse-doctor-{}.clock", std::process::id()));
    let seen = File::create(&name).and_then(|file| file.metadata()?.modified());
    let _ = fs::remove_file(&name);
    let Ok(seen) = seen else { return };
    let now = SystemTime::now();
    let apart = now.duration_since(seen).or_else(|_| seen.duration_since(now)).unwrap_or_default();
    if apart > SKEW {
        findings.wrong(format!(
            "{setting}: the times of its files are {} s from this machine's clock; set both by the same time service",
            apart.as_secs()
        ));
    }
}

fn room(data: &Path, setting: &str, findings: &mut Findings) {
    let Ok(disk) = rustix::fs::statvfs(data) else { return };
    let available = disk.f_bavail.saturating_mul(disk.f_frsize);
    if available < LITTLE {
        findings.wrong(format!(
            "{setting}: its disk has {} MB left; free some space or move the folder to a larger disk",
            available / 1_000_000
        ));
    }
    if disk.f_files > 0 && disk.f_favail < 1000 {
        findings.wrong(format!(
            "{setting}: its disk takes only {} more files; use a file system with more inodes",
            disk.f_favail
        ));
    }
}

fn is_running(data: &Path) -> bool {
    let Ok(file) = File::open(data.join("serve.lock")) else { return false };
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}
