//! Client setup instructions. The user name for a token is the e-mail address of its owner.

use packhouse_sdk::{Client, Install};

const SETTINGS: &str = "<settings>
  <servers>
    <server>
      <id>{repository}</id>
      <username>{email}</username>
      <password>{token}</password>
    </server>
  </servers>
</settings>";

const MIRROR: &str = "<settings>
  <servers>
    <server>
      <id>{repository}</id>
      <username>{email}</username>
      <password>{token}</password>
    </server>
  </servers>
  <profiles>
    <profile>
      <id>{repository}</id>
      <repositories>
        <repository>
          <id>{repository}</id>
          <url>{address}</url>
        </repository>
      </repositories>
      <pluginRepositories>
        <pluginRepository>
          <id>{repository}</id>
          <url>{address}</url>
        </pluginRepository>
      </pluginRepositories>
    </profile>
  </profiles>
  <activeProfiles>
    <activeProfile>{repository}</activeProfile>
  </activeProfiles>
</settings>";

const POM: &str = "<distributionManagement>
  <repository>
    <id>{repository}</id>
    <url>{address}</url>
  </repository>
  <snapshotRepository>
    <id>{repository}</id>
    <url>{address}</url>
  </snapshotRepository>
</distributionManagement>";

const KOTLIN: &str = "repositories {{
    maven {{
        url = uri(\"{address}\")
        credentials {{
            username = \"{email}\"
            password = \"{token}\"
        }
{http}        isAllowInsecureProtocol = true
    }
}";

const GROOVY: &str = "repositories {{
    maven {{
        url = '{address}'
        credentials {{
            username = '{email}'
            password = '{token}'
        }
{http}        allowInsecureProtocol = true
    }
}";

const SBT: &str = "{https}resolvers += \"{repository}\" at \"{address}\"
{http}resolvers += (\"{repository}\" at \"{address}\").withAllowInsecureProtocol(true)
credentials += Credentials(\"{host}\", \"{hostname}\", \"{email}\", \"{token}\")";

const SBT_PUBLISH: &str = "{https}publishTo := Some(\"{repository}\" at \"{address}\")
{http}publishTo := Some((\"{repository}\" at \"{address}\").withAllowInsecureProtocol(true))
publishMavenStyle := true
credentials += Credentials(\"{host}\", \"{hostname}\", \"{email}\", \"{token}\")";

/// Configuration files and commands.
pub(crate) fn clients() -> Vec<Client> {
    let publishing = |text: &str| {
        let indented: Vec<String> = text.lines().map(indent).collect();
        format!("publishing {{{{\n{}\n}}", indented.join("\n"))
    };
    vec![
        Client::read("Maven", MIRROR).file("~/.m2/settings.xml", "xml"),
        Client::read("Gradle (Kotlin)", KOTLIN).file("build.gradle.kts", "kotlin"),
        Client::read("Gradle (Groovy)", GROOVY).file("build.gradle", "groovy"),
        Client::read("sbt", SBT).file("build.sbt", "scala"),
        Client::publish("Maven", SETTINGS).file("~/.m2/settings.xml", "xml"),
        Client::publish("Maven", POM).file("pom.xml", "xml"),
        Client::publish("Maven", "mvn deploy"),
        Client::publish("Gradle (Kotlin)", &publishing(KOTLIN)).file("build.gradle.kts", "kotlin"),
        Client::publish("Gradle (Groovy)", &publishing(GROOVY)).file("build.gradle", "groovy"),
        Client::publish("sbt", SBT_PUBLISH).file("build.sbt", "scala"),
    ]
}

/// Indents a line by one level. The condition `{http}` stays at the beginning of the line.
fn indent(line: &str) -> String {
    match line.strip_prefix("{http}") {
        Some(line) => format!("{{http}}    {line}"),
        None => format!("    {line}"),
    }
}

/// Dependency declarations, one for each client.
pub(crate) fn install() -> Vec<Install> {
    let dependency = "<dependency>\n  <groupId>{1}</groupId>\n  <artifactId>{2}</artifactId>\n  \
                      <version>{version}</version>\n</dependency>";
    vec![
        Install::new("Maven", "xml", dependency).parts(":"),
        Install::new("Gradle (Kotlin)", "kotlin", "implementation(\"{name}:{version}\")"),
        Install::new("Gradle (Groovy)", "groovy", "implementation '{name}:{version}'"),
        Install::new("sbt", "scala", "libraryDependencies += \"{1}\" % \"{2}\" % \"{version}\"").parts(":"),
    ]
}
