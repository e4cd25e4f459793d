// Times by the calendar: ms since 1970, and RFC 3339 both ways.

const FORM = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:Z|([+-])(\d\d):(\d\d))$/;

/** Reads RFC 3339 with any number of digits behind the second, of which three count, or none. Null for anything else, for a day that no
 * calendar has, an hour 24, and for what is before 1970 in UTC. */
export function parseRfc3339(text) {
  const parts = FORM.exec(text);
  if (parts === null) return null;
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map(Number);
  const ms = Number((parts[7] ?? "").slice(0, 3).padEnd(3, "0"));
  const [hours, minutes] = [Number(parts[9] ?? 0), Number(parts[10] ?? 0)];
  if (year < 1970 || hour > 23 || minute > 59 || second > 59 || hours > 23 || minutes > 59) return null;
  const there = Date.UTC(year, month - 1, day, hour, minute, second, ms);
  const calendar = new Date(there);
  if (calendar.getUTCMonth() !== month - 1 || calendar.getUTCDate() !== day) return null;
  const ahead = (hours * 60 + minutes) * 60_000 * (parts[8] === "-" ? -1 : 1);
  return there - ahead < 0 ? null : there - ahead;
}

/** RFC 3339 in UTC with three digits behind the second. */
export function toRfc3339(ms) {
  return new Date(ms).toISOString();
}
