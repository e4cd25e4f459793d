// The settings that a repository of any format has, as far as a plugin heeds them. The host fills every default in; where one is not said, as
// in a test, its default stands.

const DEFAULTS = { redeploy: "deny", republish_deleted: false, upstream: "", max_file_bytes: null };

/** A repository's settings. */
export function settingsOf(repository) {
  return { ...DEFAULTS, ...repository.settings() };
}

/** Bytes that a file may have: as many as the operator allows, else as the format does. */
export function fileLimit(settings, formatLimit) {
  return settings.max_file_bytes ?? formatLimit;
}
