//! Real client programs: Maven, Gradle, curl. Each program runs in a home folder of its own. It
//! neither reads nor changes the files of the person who runs the tests.

use crate::server::OWNER;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// The folder of Debian's packages of Maven plugins, in the versions that [`PLUGINS`] names.
const DEBIAN: &str = "/usr/share/maven-repo";

/// Maven plugins by name, in versions that both Debian 12 and Maven Central have.
pub const PLUGINS: [(&str, &str); 8] = [
    ("compiler", "3.10.1"),
    ("dependency", "3.5.0"),
    ("deploy", "3.0.0"),
    ("install", "3.1.0"),
    ("jar", "3.3.0"),
    ("resources", "3.3.0"),
    ("source", "3.2.1"),
    ("surefire", "2.22.3"),
];

/// The full name of a plugin's goal, such as
/// `org.apache.maven.plugins:maven-deploy-plugin:3.0.0:deploy-file`.
pub fn goal(plugin: &str, goal: &str) -> String {
    let version = PLUGINS.iter().find(|(name, _)| *name == plugin).map(|(_, version)| version);
    let version = version.unwrap_or_else(|| panic!("no version of {plugin} is named"));
    format!("org.apache.maven.plugins:maven-{plugin}-plugin:{version}:{goal}")
}

/// Output and exit status of a program.
#[derive(Clone, Debug)]
pub struct ProgramOutput {
    /// True if it exited with 0.
    pub success: bool,
    /// Everything that it printed to standard output and standard error.
    pub text: String,
}

impl ProgramOutput {
    /// Fails the test unless the program exited with 0.
    #[track_caller]
    pub fn success(self) -> Self {
        assert!(self.success, "it failed:\n{}", self.text);
        self
    }

    /// Fails the test unless the program failed and printed this.
    #[track_caller]
    pub fn refused(self, words: &str) -> Self {
        assert!(!self.success, "it succeeded:\n{}", self.text);
        assert!(self.text.contains(words), "{words:?} is not in the output:\n{}", self.text);
        self
    }
}

impl From<Output> for ProgramOutput {
    fn from(output: Output) -> Self {
        let text = [output.stdout, output.stderr].concat();
        Self { success: output.status.success(), text: String::from_utf8_lossy(&text).into_owned() }
    }
}

/// Runs a command and collects its output.
#[track_caller]
pub fn run(command: &mut Command) -> ProgramOutput {
    let output = command.stdin(Stdio::null()).output();
    output.unwrap_or_else(|error| panic!("{command:?}: {error}")).into()
}

/// Returns true if a program is on the path.
pub fn has(program: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(program).is_file()))
}

/// Maven with a settings file, a local repository and a workspace of its own.
#[derive(Debug)]
pub struct Maven {
    home: TempDir,
}

impl Maven {
    /// A fresh Maven that sends this token to the server `packhouse`; the error says that there is
    /// no Maven here.
    pub fn new(token: &str) -> Result<Self, String> {
        if !has("mvn") {
            return Err("no mvn on the path".to_owned());
        }
        let home = TempDir::new().map_err(|error| error.to_string())?;
        let maven = Self { home };
        maven.credential(OWNER, token);
        Ok(maven)
    }

    /// The workspace.
    pub fn folder(&self) -> &Path {
        self.home.path()
    }

    /// Uses this credential from now on.
    pub fn credential(&self, user: &str, password: &str) {
        let server = format!(
            "<server><id>packhouse</id><username>{user}</username><password>{password}</password></server>"
        );
        self.write(
            "settings.xml",
            &format!("<settings><servers>{server}</servers>{}</settings>\n", debian_profile()),
        );
    }

    /// Deletes every artifact and all metadata of the group `org.example`, so that Maven must fetch
    /// them again. The plugins stay.
    pub fn forget(&self) {
        let _ = fs::remove_dir_all(self.local().join("org/example"));
    }

    /// Its local repository.
    pub fn local(&self) -> PathBuf {
        self.home.path().join("local")
    }

    /// Writes a file of the workspace.
    pub fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.home.path().join(path);
        fs::create_dir_all(path.parent().expect("a file lies in a folder"))
            .expect("a folder of the workspace");
        fs::write(&path, text).expect("a file of the workspace");
        path
    }

    /// `mvn`, in a folder of the workspace.
    pub fn command(&self, folder: &str) -> Command {
        let mut command = Command::new("mvn");
        command
            .current_dir(self.home.path().join(folder))
            .env("HOME", self.home.path())
            .env_remove("MAVEN_OPTS");
        command
            .args(["--batch-mode", "--no-transfer-progress", "--settings"])
            .arg(self.home.path().join("settings.xml"));
        command.arg(format!("-Dmaven.repo.local={}", self.local().display())).arg("-DskipTests");
        command
    }

    /// Runs `mvn` with these arguments in a folder of the workspace.
    #[track_caller]
    pub fn run(&self, folder: &str, arguments: &[&str]) -> ProgramOutput {
        run(self.command(folder).args(arguments))
    }
}

/// A profile that makes Maven use Debian's plugins, without the network. Empty if they are not
/// installed; then Maven fetches plugins as usual.
pub fn debian_profile() -> String {
    if !Path::new(DEBIAN).join("org/apache/maven/plugins/maven-deploy-plugin").is_dir() {
        return String::new();
    }
    let content = format!(
        "<id>central</id><url>file://{DEBIAN}</url><releases><checksumPolicy>ignore</checksumPolicy></releases>\
         <snapshots><enabled>false</enabled></snapshots>"
    );
    format!(
        "<profiles><profile><id>debian</id><repositories><repository>{content}</repository></repositories>\
         <pluginRepositories><pluginRepository>{content}</pluginRepository></pluginRepositories></profile></profiles>\
         <activeProfiles><activeProfile>debian</activeProfile></activeProfiles>"
    )
}

/// The `<build>` section of a project with the version of every plugin, including the sources jar.
pub fn build_section() -> String {
    let plugins: String = PLUGINS
        .iter()
        .map(|(name, version)| {
            let attach = "<executions><execution><goals><goal>jar-no-fork</goal></goals></execution></executions>";
            let more = if *name == "source" { attach } else { "" };
            format!("<plugin><artifactId>maven-{name}-plugin</artifactId><version>{version}</version>{more}</plugin>")
        })
        .collect();
    format!("<build><plugins>{plugins}</plugins></build>")
}

/// A POM of the group `org.example` with this content and the properties that every project here
/// needs.
pub fn pom(artifact: &str, version: &str, inside: &str) -> String {
    format!(
        r#"<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>org.example</groupId><artifactId>{artifact}</artifactId><version>{version}</version>
  <properties>
    <maven.compiler.source>11</maven.compiler.source><maven.compiler.target>11</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  {inside}
</project>
"#
    )
}

/// The section with the repository that a project publishes to.
pub fn distribution(url: &str) -> String {
    format!(
        "<distributionManagement><repository><id>packhouse</id><url>{url}</url></repository>\
         <snapshotRepository><id>packhouse</id><url>{url}</url></snapshotRepository></distributionManagement>"
    )
}

/// The POM of a project that resolves one artifact from a repository.
pub fn consumer(url: &str, artifact: &str, version: &str) -> String {
    let repository = format!(
        "<id>packhouse</id><url>{url}</url><releases><checksumPolicy>fail</checksumPolicy></releases>\
         <snapshots><enabled>true</enabled><updatePolicy>always</updatePolicy><checksumPolicy>fail</checksumPolicy></snapshots>"
    );
    let inside = format!(
        "<packaging>pom</packaging><repositories><repository>{repository}</repository></repositories>\
         <dependencies><dependency><groupId>org.example</groupId><artifactId>{artifact}</artifactId>\
         <version>{version}</version></dependency></dependencies>"
    );
    pom("consumer", "1", &inside)
}
