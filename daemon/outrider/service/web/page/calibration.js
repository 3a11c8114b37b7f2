// Predictions beside what happened: a reliability chart and the scores, for policies that predict.

import { duration, number, percent, plural, significant } from "./words.js";
import { at, keyed, make, part, setText } from "./elements.js";
import { pairs } from "./charts.js";

const SVG = "http://www.w3.org/2000/svg";
const SIDE = 100;
const MARGIN = 6;

export function drawCalibration(s) {
  keyed(
    at("calibration"),
    s.policies.filter((policy) => policy.calibration),
    (policy) => policy.name,
    calibrationBox,
    (box, policy) => {
      setText(part(box, "who"), `${policy.name}: predictions and outcomes`);
      const { evictions, run_s: lengths } = policy.calibration;
      drawDots(part(box, "all"), evictions.all);
      drawDots(part(box, "recent"), evictions.recent);
      pairs(part(box, "pairs"), scores(policy.calibration, evictions, lengths));
      fillTable(box.querySelector("tbody"), evictions.all.bins);
    },
  );
}

function calibrationBox() {
  const box = make("div", "calibration");
  const chart = shape("svg", {
    class: "reliability",
    viewBox: `${-MARGIN} ${-MARGIN} ${SIDE + 2 * MARGIN} ${SIDE + 2 * MARGIN}`,
    "aria-hidden": "true", // the table below says the same
  });
  chart.append(
    shape("rect", { class: "frame", width: SIDE, height: SIDE }),
    shape("line", { class: "diagonal", x1: 0, y1: SIDE, x2: SIDE, y2: 0 }),
    shape("g", { class: "all" }),
    shape("g", { class: "recent" }),
  );
  const figure = make("figure");
  figure.append(
    chart,
    make(
      "figcaption",
      "quiet",
      "Across: predicted probability of eviction, 0 to 1. Up: evicted, of those runs. On the diagonal the two agree. Discs: all runs; rings: recent runs; large: many.",
    ),
  );
  const table = make("table");
  const head = make("tr");
  for (const name of ["Predicted probability", "Runs", "Mean predicted", "Evicted"]) {
    const cell = make("th", "", name);
    cell.scope = "col";
    head.append(cell);
  }
  const thead = make("thead");
  thead.append(head);
  table.append(make("caption", "", "Predicted and observed evictions"), thead, make("tbody"));
  const spoken = make("div", "sr");
  spoken.append(table);
  const beside = make("div", "beside");
  beside.append(figure, make("dl", "pairs"));
  box.append(make("h3", "who"), beside, spoken);
  return box;
}

function scores(calibration, evictions, lengths) {
  const rows = [
    [
      "Runs",
      `${number(evictions.all.n)} scored, ${number(calibration.open)} still running, ${number(calibration.neither)} ended by users or admins`,
    ],
  ];
  if (evictions.all.n) {
    const { all, recent } = evictions;
    rows.push(
      ["Evicted", `${percent(all.observed)}, predicted ${percent(all.predicted)}`],
      [
        "Brier score",
        `${significant(all.brier)}, predicting the observed rate always: ${significant(all.reference)}`,
      ],
      ["Skill", `${percent(all.skill)}, recent ${percent(recent.skill)}`],
    );
  }
  if (lengths.all.n) {
    const { all, recent } = lengths;
    rows.push(
      ["Run time, completed", `${duration(all.observed)}, predicted ${duration(all.predicted)}`],
      [
        "Mean absolute error",
        `${duration(all.mean_absolute_error)}, recent ${duration(recent.mean_absolute_error)}`,
      ],
    );
  }
  return rows;
}

function drawDots(group, scored) {
  const bins = scored.bins.filter((bin) => bin.n > 0);
  const most = Math.max(...bins.map((bin) => bin.n));
  keyed(
    group,
    bins,
    (bin) => bin.bin,
    () => shape("circle", {}),
    (dot, bin) => {
      dot.setAttribute("cx", SIDE * bin.predicted);
      dot.setAttribute("cy", SIDE * (1 - bin.observed));
      dot.setAttribute("r", 1.5 + 3.5 * Math.sqrt(bin.n / most));
    },
  );
}

function fillTable(body, bins) {
  keyed(
    body,
    bins,
    (bin) => bin.bin,
    (bin) => {
      const row = make("tr");
      const head = make("th", "", bin.bin);
      head.scope = "row";
      row.append(head, make("td"), make("td"), make("td"));
      return row;
    },
    (row, bin) => {
      const cells = [plural(bin.n, "run", "runs"), percent(bin.predicted), percent(bin.observed)];
      cells.forEach((text, place) => setText(row.children[place + 1], text));
    },
  );
}

function shape(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
