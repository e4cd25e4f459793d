//! A Debian 12 of a test's own, made by debootstrap, with systemd as its first process. It
//! simulates an operator's new machine on which a package is installed. Its network has only
//! loopback. Dropping it removes the system with everything in it.

use crate::clients::{ProgramOutput, has, run};
use crate::database::is_root;
use crate::server::eventually;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use tempfile::TempDir;

/// Packages besides Debian's smallest set: an init, and a client. The list includes every Debian
/// package that the `packhouse` package depends on, because the system cannot fetch anything.
const PACKAGES: &str = "systemd,systemd-sysv,adduser,ca-certificates,python3-venv";

/// Shell script that starts init in a copy of the system. It must run in its own mount, process and
/// host name namespaces. The copy shares only the devices of the machine's `/dev` that the script
/// binds: null, random and terminal devices.
const BOOT: &str = r#"
set -e
lower=$1 work=$2 root=$2/root
mount --make-rprivate /
mount -t tmpfs tmpfs "$work"
mkdir "$work/upper" "$work/scratch" "$root"
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$work/upper,workdir=$work/scratch" "$root"
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys" && mount -o remount,ro,bind "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device" && mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs tmpfs "$root/dev/shm"
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
else
  mount -t tmpfs -o mode=755 tmpfs "$root/sys/fs/cgroup"
  mkdir "$root/sys/fs/cgroup/unified" "$root/sys/fs/cgroup/systemd"
  mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup/unified"
  mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/systemd"
fi
# No chroot: it would prevent user namespaces, which PrivateUsers= gives to services.
cd "$root" && mkdir -p mnt/old && pivot_root . mnt/old
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /bin/sh -c 'umount -l /mnt/old && exec /sbin/init' 2>/dev/null
"#;

/// A running system.
#[derive(Debug)]
pub struct Debian {
    unshare: Child,
    init: u32,
    _home: TempDir,
}

impl Debian {
    /// Boots a system; the error says why that is impossible here. The first boot in a checkout
    /// runs debootstrap, which takes minutes.
    pub fn boot() -> Result<Self, String> {
        if !is_root() {
            return Err("to boot a system in a folder needs root".to_owned());
        }
        for program in ["unshare", "nsenter", "pivot_root", "ip"] {
            if !has(program) && !Path::new("/sbin").join(program).exists() {
                return Err(format!("no {program} on the path"));
            }
        }
        let lower = pristine()?;
        let home = TempDir::new().map_err(|error| error.to_string())?;
        let script = home.path().join("boot");
        fs::write(&script, BOOT).map_err(|error| error.to_string())?;
        let work = home.path().join("work");
        fs::create_dir(&work).map_err(|error| error.to_string())?;
        let log = fs::File::create(home.path().join("log")).map_err(|error| error.to_string())?;
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--uts", "--ipc", "--cgroup", "--net", "--kill-child"]);
        command.arg("bash").arg(&script).arg(lower).arg(work).stdin(Stdio::null());
        command.stdout(log.try_clone().map_err(|error| error.to_string())?).stderr(log);
        let mut unshare = command.spawn().map_err(|error| error.to_string())?;
        let init = eventually("the first process runs or has failed", || {
            if let Ok(Some(_)) = unshare.try_wait() {
                return Some(None);
            }
            let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", unshare.id())).ok()?;
            let child: u32 = children.split_whitespace().next()?.parse().ok()?;
            let name = fs::read_to_string(format!("/proc/{child}/comm")).ok()?;
            (name.trim() == "systemd").then_some(Some(child))
        });
        let log = || fs::read_to_string(home.path().join("log")).unwrap_or_default();
        let Some(init) = init else { return Err(format!("systemd does not run here: {}", log())) };
        let debian = Self { unshare, init, _home: home };
        run(Command::new("nsenter").args(["-t", &init.to_string(), "-n", "ip", "link", "set", "lo", "up"]))
            .success();
        eventually("systemd has finished booting", || {
            let state = debian.run(&["systemctl", "is-system-running"]).text;
            ["running", "degraded"].contains(&state.trim()).then_some(())
        });
        Ok(debian)
    }

    /// Runs this command as root in the system.
    #[track_caller]
    pub fn run(&self, words: &[&str]) -> ProgramOutput {
        let mut command = self.enter(&["-a", "-r", "-w"]);
        run(command.arg("--").args(words).env("DEBIAN_FRONTEND", "noninteractive"))
    }

    /// Runs these lines of a shell as root in the system.
    #[track_caller]
    pub fn shell(&self, lines: &str) -> ProgramOutput {
        self.run(&["bash", "-euo", "pipefail", "-c", lines])
    }

    /// The id that the system's first process has on the host machine.
    pub fn init(&self) -> u32 {
        self.init
    }

    /// The path at which the host machine sees this file of the system.
    pub fn path(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.init)).join(path.trim_start_matches('/'))
    }

    fn enter(&self, flags: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", "/root")
            .env("LC_ALL", "C.UTF-8");
        command.args(["-t", &self.init.to_string()]).args(flags);
        command
    }
}

impl Drop for Debian {
    fn drop(&mut self) {
        // When the first process ends, all others end too, and the last one takes the mounts with
        // it.
        let _ = Command::new("kill").args(["-KILL", &self.init.to_string()]).status();
        let _ = self.unshare.wait();
    }
}

/// Returns the folder of a system as debootstrap made it; nothing writes to this folder. Concurrent
/// tests wait until the first of them has made it.
fn pristine() -> Result<PathBuf, String> {
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock();
    let target = crate::checkout().join("target");
    let (whole, part) = (target.join("debian-12"), target.join("debian-12.part"));
    if whole.is_dir() {
        return Ok(whole);
    }
    if !has("debootstrap") && !Path::new("/usr/sbin/debootstrap").exists() {
        return Err("no debootstrap: `./bootstrap test-dist` installs it".to_owned());
    }
    let _ = fs::remove_dir_all(&part);
    let mut command = Command::new("debootstrap");
    command.args(["--variant=minbase", &format!("--include={PACKAGES}"), "bookworm"]).arg(&part);
    let path = std::env::var("PATH").unwrap_or_default();
    let output = run(command.env("PATH", format!("{path}:/usr/sbin:/sbin")));
    if !output.success {
        return Err(format!("debootstrap failed: {}", output.text.lines().last().unwrap_or_default()));
    }
    fs::rename(&part, &whole).map_err(|error| error.to_string())?;
    Ok(whole)
}
