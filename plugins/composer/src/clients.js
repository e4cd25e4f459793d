// What Composer is told.

const REPOSITORY = [
  "composer config repositories.{repository} composer {address}",
  "composer config --global --auth http-basic.{host} {email} {token}",
  "{http}composer config --global secure-http false",
].join("\n");
const FILE = '{{\n  "repositories": [\n    {{"type": "composer", "url": "{address}"}\n  ]\n}';
const CURL = "curl --fail-with-body --user {email}:{token} --upload-file PACKAGE.zip '{address}?version=VERSION'";

/** What to write where. */
export const clients = [
  { client: "composer", purpose: "read", language: "shell", template: REPOSITORY },
  { client: "composer", purpose: "read", file: "composer.json", language: "json", template: FILE },
  { client: "curl", purpose: "publish", language: "shell", template: CURL },
];

/** One line for each client. */
export const install = [{ client: "composer", language: "shell", template: "composer require {name}:{version}" }];
