//! Checks of the data folder: its owner and permissions, whether writes are durable, and free
//! space.

use std::fs::{self, File, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use packhouse_config::Config;

use super::Findings;

/// Longest acceptable time for a small durable write. A slower disk delays every publish.
const SLOW: Duration = Duration::from_millis(500);
/// Free bytes below which a disk counts as nearly full.
const LITTLE: u64 = 1 << 30;
/// Permission bits of a folder for accounts other than its owner.
const OTHERS: u32 = 0o077;
/// Largest acceptable difference between file times and this machine's clock.
const SKEW: Duration = Duration::from_secs(5);

/// Checks the data folder. Returns true if a server is running on it.
pub(super) fn examine(config: &Config, findings: &mut Findings) -> bool {
    let (data, before) = (config.data.as_path(), findings.faults());
    let setting = config.sources.label("data");
    match fs::metadata(data) {
        Ok(metadata) if !metadata.is_dir() => {
            findings.wrong(format!("{setting} is not a folder; name one with --data or PACKHOUSE_DATA"));
            return false;
        }
        Ok(metadata) => {
            let (owner, own) = (metadata.uid(), rustix::process::geteuid().as_raw());
            if owner != own {
                findings.wrong(format!(
                    "{setting} belongs to the account {owner}, but this command runs as {own}; run it as the server's account, \
                     or change the owner of the folder with chown"
                ));
            }
            if metadata.mode() & OTHERS != 0 && data.join("packhouse-database").exists() {
                findings.wrong(format!(
                    "{setting} is accessible to other accounts; restrict it with chmod 700 {}",
                    data.display()
                ));
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let made =
                data.ancestors().skip(1).find(|folder| folder.as_os_str().is_empty() || folder.exists());
            let place = made.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            match writable(place) {
                Ok(_) => findings.note(format!("{setting} does not exist yet; the first start creates it")),
                Err(error) => findings.wrong(format!(
                    "{setting} does not exist and cannot be created in {}: {error}; create it with the server's account as owner",
                    place.display()
                )),
            }
            return false;
        }
        Err(error) => {
            findings.wrong(format!("{setting} cannot be inspected: {error}; give this account access to it"));
            return false;
        }
    }
    match writable(data) {
        Ok(took) if took > SLOW => findings.wrong(format!(
            "{setting}: a small durable write took {} ms, and every publish waits for such writes; use a faster disk",
            took.as_millis()
        )),
        Ok(_) => {}
        Err(error) => findings.wrong(format!(
            "{setting}: writing a durable file failed (write, fsync, rename, fsync of the folder): {error}; make sure that \
             this account may write there and that the file system supports fsync"
        )),
    }
    clock(data, &setting, findings);
    room(data, &setting, findings);
    findings.ok_unless(
        before,
        format!(
            "data: {} accepts durable writes, has free space and is closed to other accounts",
            data.display()
        ),
    );
    let running = is_running(data);
    if running {
        findings.note("a server is running on this data folder");
    }
    running
}

/// Writes a file in the same way as a blob, and removes it. Returns how long both took.
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

/// Compares file times with the clock: garbage collection uses file times to recognize new files.
fn clock(data: &Path, setting: &str, findings: &mut Findings) {
    let name = data.join(format!(".packhouse-doctor-{}.clock", std::process::id()));
    let file_time = File::create(&name).and_then(|file| file.metadata()?.modified());
    let _ = fs::remove_file(&name);
    let Ok(file_time) = file_time else { return };
    let now = SystemTime::now();
    let apart = now.duration_since(file_time).or_else(|_| file_time.duration_since(now)).unwrap_or_default();
    if apart > SKEW {
        findings.wrong(format!(
            "{setting}: file times differ from this machine's clock by {} s; synchronize both with the same time service",
            apart.as_secs()
        ));
    }
}

fn room(data: &Path, setting: &str, findings: &mut Findings) {
    let Ok(disk) = rustix::fs::statvfs(data) else { return };
    let available = disk.f_bavail.saturating_mul(disk.f_frsize);
    if available < LITTLE {
        findings.wrong(format!(
            "{setting}: its disk has {} MB left; free some space, or move the folder to a larger disk",
            available / 1_000_000
        ));
    }
    if disk.f_files > 0 && disk.f_favail < 1000 {
        findings.wrong(format!(
            "{setting}: its disk has room for only {} more files; use a file system with more inodes",
            disk.f_favail
        ));
    }
}

fn is_running(data: &Path) -> bool {
    let Ok(file) = File::open(data.join("serve.lock")) else { return false };
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}
