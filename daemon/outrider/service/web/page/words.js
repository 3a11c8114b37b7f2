// Words and numbers: how quantities are spelled. Null is spelled "unknown", never 0.

const LOCALE = "en-GB";
export const UNKNOWN = "unknown";
let zone = "UTC";
let announce = null;

/** Fulfilled once the zone is known: no time is written before. */
export const zoneKnown = new Promise((resolve) => (announce = resolve));

/** The zone in which all times of the page are written, an IANA name. */
export function setZone(name) {
  zone = name;
  announce();
}

export const siteZone = () => zone;

let labels = {};

/** Labels of codes, by code, as the daemon has them. */
export function setLabels(given) {
  labels = given;
}

/** The label of a code; one without a label, such as a plugin's, has blanks for its `_`. */
export const label = (code) => labels[code] ?? code.split("_").join(" ");

export const known = (value) => value !== null && value !== undefined;
export const sum = (values) => values.reduce((total, value) => total + value, 0);

export function number(value, digits = 0) {
  if (!known(value)) return UNKNOWN;
  return new Intl.NumberFormat("en", { maximumFractionDigits: digits }).format(value);
}

export function significant(value) {
  if (!known(value)) return UNKNOWN;
  return new Intl.NumberFormat("en", { maximumSignificantDigits: 3 }).format(value);
}

export const compact = (value) =>
  new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 2 }).format(value);

/** A ratio as what is more or less: 0.76 is -24 %. */
export function change(ratio) {
  const more = 100 * (ratio - 1);
  return `${more > 0 ? "+" : ""}${number(more, 1)} %`;
}

export const percent = (ratio) => (known(ratio) ? `${number(100 * ratio, 1)} %` : UNKNOWN);

export function kwh(wh) {
  if (!known(wh)) return UNKNOWN;
  const value = wh / 1000;
  return `${number(value, value < 1 ? 3 : value < 100 ? 1 : 0)} kWh`;
}

export function duration(seconds) {
  if (!known(seconds)) return UNKNOWN;
  if (seconds < 1 && seconds > 0) return `${number(1000 * seconds)} ms`;
  if (seconds < 120) return `${number(seconds, seconds < 10 ? 1 : 0)} s`;
  if (seconds < 7200) return `${number(seconds / 60, seconds < 600 ? 1 : 0)} min`;
  if (seconds < 172800) return `${number(seconds / 3600, 1)} h`;
  return `${number(seconds / 86400, 1)} d`;
}

export function bound(seconds) {
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 3600) return `${seconds / 60}m`;
  return seconds < 86400 ? `${seconds / 3600}h` : `${seconds / 86400}d`;
}

export function bytes(size) {
  if (!known(size)) return UNKNOWN;
  return size < 1e6 ? `${number(size / 1e3, 1)} kB` : `${number(size / 1e6, 1)} MB`;
}

export function time(seconds) {
  if (!known(seconds)) return UNKNOWN;
  const parts = {
    timeZone: zone,
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
  };
  const text = new Intl.DateTimeFormat(LOCALE, parts).format(new Date(seconds * 1000));
  return text.replace(",", "");
}

/** The day of a moment. */
export const day = (seconds) => time(seconds).split(" ").slice(0, 3).join(" ");

/** Moments beside another one: times of day where all are of its day, else each with its day. */
export function moments(seconds, other_s) {
  const at = (one) => {
    const [day, month, year, timeOfDay] = time(one).split(" ");
    return { date: `${day} ${month}`, year, timeOfDay };
  };
  const other = at(other_s);
  const all = seconds.map(at);
  if (all.every(({ date, year }) => date === other.date && year === other.year))
    return all.map(({ timeOfDay }) => timeOfDay);
  return all.map(({ date, year, timeOfDay }) =>
    year === other.year ? `${date} ${timeOfDay}` : `${date} ${year} ${timeOfDay}`,
  );
}

/** The time of day now, on the site's clock. */
export const clock = () => new Date().toLocaleTimeString(LOCALE, { timeZone: zone });
export const plural = (count, one, many) => `${number(count)} ${count === 1 ? one : many}`;
export const list = (counts) =>
  Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${number(count)} ${label(name)}`)
    .join(", ") || "none";
