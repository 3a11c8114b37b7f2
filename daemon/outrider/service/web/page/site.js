// The upper sections: the summary, jobs, machines, energy and fairness of the site.

import {
  UNKNOWN,
  bound,
  compact,
  duration,
  known,
  kwh,
  label,
  number,
  percent,
  plural,
  sum,
  time,
} from "./words.js";
import { at, keyed, make, orNone, part, setText, share } from "./elements.js";
import { bars, legend, stack } from "./charts.js";
import { knowsNothing, missing } from "./gaps.js";

const PURPOSES = [
  ["goodput", "useful: runs that completed"],
  ["badput", "wasted: runs that were evicted"],
  ["open", "runs not ended yet"],
  ["idle", "idle machines"],
  ["sleep", "asleep"],
  ["owner", "owners' own use"],
];
const MACHINE_STATES = [
  ["busy", "busy"],
  ["free", "free"],
  ["owner", "owner logged in"],
  ["asleep", "asleep"],
  ["closed", "not open to jobs"],
];
const JOB_STATES = ["queued", "running", "suspended", "held"];

export function drawTop(s) {
  const mode = at("mode");
  setText(mode, s.mode);
  mode.dataset.mode = s.mode;
  mode.title =
    {
      observe: "only watches and measures",
      shadow: "also records what the policies would do; changes nothing",
      canary: "applies the policy's decisions to some of the jobs",
      active: "applies the policy's decisions",
    }[s.mode] ?? "";
  setText(at("sentence"), s.sentence);
  setText(at("starts-summary"), s.expected_starts?.summary ?? "Expected starts are not available.");
  const gap = missing(s);
  document.title = `Outrider: ${s.mode}, ${gap || `${number(s.jobs.queued)} waiting`}`;
  const since = `since ${time(s.since_s)}, event time`;
  const ownClock = s.own_clock ? ". A simulated site with its own clock" : "";
  setText(
    at("window"),
    gap ? `${gap}.` : `Numbers count ${since}; now it is ${time(s.now_s)} there${ownClock}.`,
  );
  for (const small of document.querySelectorAll("[data-window]")) {
    const now = gap ? `as of ${time(s.now_s)}` : `now, ${time(s.now_s)}`;
    const when = knowsNothing(s) ? gap : "now" in small.dataset ? `${now}, event time` : since;
    setText(small, `${small.dataset.window} · ${when}`);
  }
  setText(
    at("footer"),
    `Outrider ${s.version}. Times are event time in the zone ${s.timezone || "UTC"}.`,
  );
}

export function drawFigures(s) {
  const compared = s.policies.filter((policy) => known(policy.agreement_ratio));
  const best =
    compared.find((policy) => policy.role === "acting") ??
    compared.find((policy) => policy.learned) ??
    compared[0];
  const gap = missing(s);
  const machines = Object.values(s.machines);
  const figures = [
    [
      "Jobs waiting",
      number(s.jobs.queued),
      `${number(s.jobs.running)} running, ${number(s.jobs.held)} held`,
    ],
    [
      "Jobs completed",
      number(s.jobs.completed),
      `of ${number(s.jobs.submitted)} submitted; ${number(s.jobs.removed)} removed`,
    ],
    [
      "Mean wait",
      duration(s.wait_s.all.mean),
      `over ${plural(s.wait_s.all.n, "first start", "first starts")}`,
    ],
    [
      "Machines free",
      number(s.machines.free),
      `of ${number(machines.every(known) ? sum(machines) : null)}; ${number(s.machines.busy)} busy`,
    ],
    ["Useful energy", kwh(s.energy_wh.goodput), `${kwh(s.energy_wh.badput)} wasted`],
    [
      "Agreement",
      percent(best?.agreement_ratio),
      best ? `${best.name}, same cluster as the scheduler` : "no start compared yet",
    ],
  ];
  keyed(
    at("figures"),
    figures,
    ([name]) => name,
    ([name]) => {
      const box = make("div");
      box.append(make("dt", "", name), make("dd", "value"), make("dd", "more"));
      return box;
    },
    (box, [, value, more]) => {
      setText(part(box, "value"), value);
      part(box, "value").toggleAttribute("data-unknown", value === UNKNOWN);
      setText(part(box, "more"), gap ? `${gap} · ${more}` : more);
    },
  );
}

export function drawWaits(s) {
  legend(
    at("job-states"),
    JOB_STATES.map((state) => ({ kind: state, name: state, value: number(s.jobs[state]) })),
  );
  const most = Math.max(1, ...s.wait_buckets_s.map(([, count]) => count));
  const last = s.wait_buckets_s.filter(([upper]) => known(upper)).at(-1)?.[0] ?? 0;
  keyed(
    at("wait-histogram"),
    s.wait_buckets_s,
    ([upper]) => upper,
    ([upper]) => {
      const item = make("li");
      const column = make("span", "space");
      column.setAttribute("aria-hidden", "true");
      column.append(make("span", "count"), make("span", "fill"));
      const tick = make("span", "tick", known(upper) ? bound(upper) : `>${bound(last)}`);
      tick.setAttribute("aria-hidden", "true");
      item.append(column, tick, make("span", "sr"));
      return item;
    },
    (item, [upper, count]) => {
      const range = known(upper) ? `up to ${duration(upper)}` : `more than ${duration(last)}`;
      const text = `${range}: ${plural(count, "job", "jobs")}`;
      item.title = text;
      setText(part(item, "sr"), text);
      setText(part(item, "count"), count ? compact(count) : "");
      item.toggleAttribute("data-some", count > 0);
      share(part(item, "fill"), count / most);
    },
  );
  const all = s.wait_s.all;
  const more = [
    ["median", all.median],
    ["p95", all.p95],
    ["longest", all.max],
  ].filter(([, value]) => known(value));
  const never = all.censored_n
    ? `; ${plural(all.censored_n, "job", "jobs")} never started, still waiting or removed`
    : "";
  const words = [["mean", all.mean], ...more]
    .map(([name, value]) => `${name} ${duration(value)}`)
    .join(", ");
  setText(
    at("wait-summary"),
    `M${words.slice(1)}${never}. Each column counts the waits up to its bound that are above the bound before.`,
  );
}

export function drawMachines(s) {
  const total = sum(Object.values(s.machines));
  stack(
    at("machine-bar"),
    MACHINE_STATES.map(([state]) => [state, s.machines[state]]),
  );
  legend(
    at("machine-states"),
    MACHINE_STATES.map(([state, name]) => ({
      kind: state,
      name,
      value: number(s.machines[state]),
    })),
  );
  const clusters = orNone(s.clusters, total ? "no clusters are declared" : "no machines seen yet");
  keyed(
    at("clusters"),
    clusters,
    (cluster) => cluster.key ?? cluster.name,
    (cluster) => {
      if (cluster.none) return make("li", "none", cluster.none);
      const item = make("li");
      const bar = make("span", "track stack");
      bar.setAttribute("aria-hidden", "true");
      item.append(make("span", "name", cluster.name), make("span", "value"), bar);
      return item;
    },
    (item, cluster) => {
      if (cluster.none) return;
      const rest = Math.max(0, cluster.machines - cluster.busy - cluster.free - cluster.owner);
      const watts = known(cluster.active_w) ? `${number(cluster.active_w)} W` : "watts unknown";
      item.title = `${cluster.name}: ${cluster.busy} busy, ${cluster.free} free, ${cluster.owner} with owner, ${rest} asleep or not open; ${watts}`;
      setText(part(item, "name"), cluster.name);
      const value = part(item, "value");
      if (!value.firstChild) value.append(make("span", "main"), " ", make("span", "more"));
      setText(part(value, "main"), `${number(cluster.busy)} busy`);
      setText(
        part(value, "more"),
        `of ${number(cluster.machines)}, ${number(cluster.free)} free · ${watts}`,
      );
      stack(part(item, "stack"), [
        ["busy", cluster.busy],
        ["free", cluster.free],
        ["owner", cluster.owner],
        ["asleep", rest],
      ]);
    },
  );
}

export function drawEnergy(s) {
  const energy = s.energy_wh;
  const total = sum(PURPOSES.map(([purpose]) => energy[purpose] ?? 0));
  stack(
    at("energy-bar"),
    PURPOSES.map(([purpose]) => [purpose, energy[purpose]]),
  );
  legend(
    at("energy-purposes"),
    PURPOSES.map(([purpose, name]) => ({
      kind: purpose,
      name,
      value: kwh(energy[purpose]),
      more:
        known(energy[purpose]) && total > 0 ? `${number((100 * energy[purpose]) / total)} %` : "",
    })),
  );
  setText(at("energy-source"), sourceOf(s));
  const amount = known(s.saving.wh) ? ` (${kwh(s.saving.wh)})` : "";
  setText(at("saving"), `Saving: ${s.saving.text}${amount}.`);
}

// Where the energy figures come from: declared watts, meters, or both.
function sourceOf(s) {
  const measured = sum(Object.values(s.energy_measured_wh ?? {}));
  const sources = {
    table: "Computed from the watts declared for each cluster.",
    measured: "Measured by meters.",
    mixed: `Of it measured by meters: ${percent(s.energy_measured_ratio)}. The rest is computed from the watts declared for each cluster.`,
    unknown: "No watts are declared for these machines, so their energy is unknown, not 0.",
  };
  const source = sources[s.power_source] ?? "";
  const seen = s.power_source === "unknown" && measured > 0;
  return seen ? `${source} Meters measured ${kwh(measured)}.` : source;
}

export function drawEvictions(s) {
  const rows = Object.entries(s.evictions)
    .filter(([, count]) => count > 0)
    .sort(([, a], [, b]) => b - a);
  const most = Math.max(1, ...rows.map(([, count]) => count));
  bars(
    at("evictions"),
    rows.map(([reason, count]) => ({
      key: reason,
      name: label(reason),
      value: number(count),
      kind: "badput",
      fill: count / most,
    })),
    "no run was evicted",
  );
  const all = s.goodput_s + s.badput_s;
  const ratio = all > 0 ? `, ${percent(s.badput_s / all)} of all CPU time of ended runs` : "";
  setText(
    at("lost-work"),
    `${plural(s.starts, "start", "starts")}; ${number(s.badput_s / 3600, 1)} CPU-hours wasted${ratio}.`,
  );
}

export function drawFairness(s) {
  const { share: shares, target: targets } = s.fairness;
  const names = [...new Set([...Object.keys(targets), ...Object.keys(shares)])].sort();
  const scale = Math.max(0.05, ...names.map((vo) => Math.max(shares[vo] ?? 0, targets[vo] ?? 0)));
  bars(
    at("fairness"),
    names.map((vo) => ({
      name: vo,
      value: percent(shares[vo]),
      more: `target ${percent(targets[vo] ?? null)}`,
      fill: (shares[vo] ?? 0) / scale,
      target: (targets[vo] ?? 0) / scale,
      kind: "share",
    })),
    "no CPU time was delivered yet",
  );
  const value = (ratio) => (known(ratio) ? number(ratio, 3) : UNKNOWN);
  setText(
    at("fairness-summary"),
    `Fairness ${value(s.fairness.utility)} at the last submission, ${value(s.fairness.windowed)} of recent use, ${value(s.fairness.time_mean)} on average over time; 1 is at the targets.`,
  );
}
