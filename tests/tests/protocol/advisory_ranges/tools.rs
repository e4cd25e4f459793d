//! Comparisons by the ecosystems' own tools. The test starts each tool once to compare many pairs
//! of versions. An input line is a pair of versions, separated by a tab. An output line is -1, 0 or
//! 1, or `-` if a version is invalid.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use packhouse_tests::checkout;
use tempfile::TempDir;

const NODE: &str = r#"
const semver = require(process.argv[1]);
const lines = require("fs").readFileSync(0, "utf8").split("\n").filter(line => line.length);
const compare = ([one, other]) => semver.valid(one) && semver.valid(other) ? semver.compare(one, other) : "-";
console.log(lines.map(line => compare(line.split("\t"))).join("\n"));
"#;

const PYTHON: &str = r#"
import functools, sys
from packaging.version import InvalidVersion, Version
@functools.cache
def read(text):
    try:
        return Version(text)
    except InvalidVersion:
        return None
for line in sys.stdin.read().split("\n"):
    if line:
        one, other = map(read, line.split("\t"))
        print("-" if one is None or other is None else (one > other) - (one < other))
"#;

const RUBY: &str = r#"
known = Hash.new { |all, text| all[text] = Gem::Version.correct?(text) ? Gem::Version.new(text) : nil }
STDIN.read.split("\n").reject(&:empty?).each do |line|
  one, other = line.split("\t").map { |text| known[text] }
  puts one && other ? one <=> other : "-"
end
"#;

const PHP: &str = r#"
require $argv[1];
$parser = new Composer\Semver\VersionParser();
$known = [];
// Composer does not order branches: neither of two is higher.
$read = function ($text) use ($parser, &$known) {
    if (!array_key_exists($text, $known)) {
        try { $normal = $parser->normalize($text); } catch (UnexpectedValueException $e) { $normal = "dev-"; }
        $known[$text] = str_starts_with($normal, "dev-") ? null : $normal;
    }
    return $known[$text];
};
foreach (explode("\n", stream_get_contents(STDIN)) as $line) {
    if ($line === "") { continue; }
    [$one, $other] = array_map($read, explode("\t", $line));
    if ($one === null || $other === null) { echo "-\n"; continue; }
    echo Composer\Semver\Comparator::lessThan($one, $other) ? -1
        : (Composer\Semver\Comparator::greaterThan($one, $other) ? 1 : 0), "\n";
}
"#;

const JAVA: &str = r#"
import java.util.*;
import org.apache.maven.artifact.versioning.ComparableVersion;
public class Compared {
    public static void main(String[] args) {
        Map<String, ComparableVersion> known = new HashMap<>();
        StringBuilder out = new StringBuilder();
        Scanner in = new Scanner(System.in);
        while (in.hasNextLine()) {
            String line = in.nextLine();
            if (line.isEmpty()) continue;
            String[] pair = line.split("\t");
            ComparableVersion one = known.computeIfAbsent(pair[0], ComparableVersion::new);
            ComparableVersion other = known.computeIfAbsent(pair[1], ComparableVersion::new);
            out.append(Integer.signum(one.compareTo(other))).append('\n');
        }
        System.out.print(out);
    }
}
"#;

const GO: &str = r#"
package main
import ("bufio"; "fmt"; "os"; "strings"; "compared/semver")
func main() {
	// Versions in OSV have no `v`.
	read := func(text string) string { if strings.HasPrefix(text, "v") { return text }; return "v" + text }
	in, out := bufio.NewScanner(os.Stdin), bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for in.Scan() {
		one, other, pair := strings.Cut(in.Text(), "\t")
		if !pair { continue }
		one, other = read(one), read(other)
		if semver.IsValid(one) && semver.IsValid(other) { fmt.Fprintln(out, semver.Compare(one, other)) } else { fmt.Fprintln(out, "-") }
	}
}
"#;

/// Two versions to compare.
pub(crate) type Pair<'a> = (&'a str, &'a str);

/// Returns the order of each pair by the ecosystem's tool; `None` if a version of the pair is
/// invalid. The error is the reason why the tool is missing.
pub(crate) fn compared<'a>(
    ecosystem: &str,
    pairs: BTreeSet<Pair<'a>>,
) -> Result<BTreeMap<Pair<'a>, Option<Ordering>>, String> {
    let folder = TempDir::new().map_err(|error| error.to_string())?;
    let mut command = match ecosystem {
        "npm" | "crates.io" => {
            let semver = checkout().join(".tools/npm/node_modules/npm11/node_modules/semver");
            run("node", &["-e", NODE, present(&semver)?])
        }
        "PyPI" => {
            let python = checkout().join(".tools/python-clients/bin/python");
            run(present(&python)?, &["-c", PYTHON])
        }
        "RubyGems" => run("ruby", &["-e", RUBY]),
        "Packagist" => {
            let autoload = Path::new("/usr/share/php/Composer/Semver/autoload.php");
            run("php", &["-r", PHP, "--", present(autoload)?])
        }
        "Maven" => {
            let file = write(folder.path(), "Compared.java", JAVA);
            run("java", &["-cp", &maven_jars()?, file.to_str().unwrap()])
        }
        "Go" => go(folder.path())?,
        other => return Err(format!("no tool of {other} is known")),
    };
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    let mut input = child.stdin.take().unwrap();
    let text: String = pairs.iter().map(|(one, other)| format!("{one}\t{other}\n")).collect();
    let writing = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let _ = writing.join().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{ecosystem}: its tool failed: {stderr}");
    let text = String::from_utf8(output.stdout).unwrap();
    let read = |line: &str| line.parse::<i32>().ok().map(|sign| sign.cmp(&0));
    let signs: Vec<Option<Ordering>> = text.lines().map(read).collect();
    assert_eq!(signs.len(), pairs.len(), "{ecosystem}: {stderr}");
    Ok(pairs.into_iter().zip(signs).collect())
}

fn run(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

fn present(path: &Path) -> Result<&str, String> {
    let text = path.to_str().ok_or("a path that is not UTF-8")?;
    if path.exists() { Ok(text) } else { Err(format!("no {text}: `./bootstrap test` installs it")) }
}

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let file = folder.join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, text).unwrap();
    file
}

/// Returns the class path of Maven's own class for comparing versions.
fn maven_jars() -> Result<String, String> {
    let folders = ["/usr/share/maven/lib", "/opt/maven/lib"];
    let home = std::env::var("MAVEN_HOME").map(|home| format!("{home}/lib")).unwrap_or_default();
    for folder in folders.into_iter().chain([home.as_str()]) {
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        if names.into_iter().any(|name| name.starts_with("maven-artifact")) {
            return Ok(format!("{folder}/*"));
        }
    }
    Err("no maven-artifact beside a Maven".to_owned())
}

/// Returns a command that uses the semver package inside Go's own source.
fn go(folder: &Path) -> Result<Command, String> {
    let output =
        Command::new("go").args(["env", "GOROOT"]).output().map_err(|error| format!("go: {error}"))?;
    let root = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let source = Path::new(&root).join("src/cmd/vendor/golang.org/x/mod/semver/semver.go");
    let source =
        std::fs::read_to_string(&source).map_err(|error| format!("{}: {error}", source.display()))?;
    write(folder, "go.mod", "module compared\n");
    write(folder, "main.go", GO);
    write(folder, "semver/semver.go", &source);
    let mut command = run("go", &["run", "."]);
    command.current_dir(folder).env("GOFLAGS", "-mod=mod").env("GOPROXY", "off").env("GOTOOLCHAIN", "local");
    Ok(command)
}
