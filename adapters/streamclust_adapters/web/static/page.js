// Takes the sections of the state from the server and shows them. Whatever came with the stream is
// set as text, never as markup.

import { colour, noise, percent, timeline, whole } from "./draw.js";

const AGAIN = 2000;
const FEW = { clusters: 12, changes: 8 };
const NOISE = -1;

const latest = new Map();
const all = new Set();
let paused = false;

const show = {
  now(told) {
    const rows = [
      ["Events", whole(told.events)],
      ["Clusters", whole(told.clusters)],
      ["Noise now", percent(told.noise)],
      ["Rule agrees", percent(told.fidelity)],
      ["Drift alarms", whole(told.alarms), told.alarms > 0],
      ["Refused", whole(told.refused), told.refused > 0],
    ];
    const list = document.getElementById("now");
    keyed(list, rows, (row) => row[0], () => made("div", {}, made("dt"), made("dd")), fill);
    function fill(item, [name, value, alert]) {
      text(item.children[0], name);
      text(item.children[1], value);
      item.children[1].classList.toggle("alert", Boolean(alert));
    }
    list.title = told.first_refusal ? `First refusal: ${told.first_refusal}` : "";
  },

  clusters(told) {
    const place = section("clusters", told.length);
    const shown = some("clusters", told);
    const table = place.querySelector("table");
    table.hidden = !told.length;
    const most = Math.max(1e-9, ...told.map((one) => one.share ?? 0));
    const fill = (row, one) => fillRow(row, one, most);
    keyed(table.tBodies[0], shown, (one) => one.id, emptyRow, fill);
  },

  timeline(told) {
    const place = section("timeline", told.lives.length);
    if (told.lives.length) {
      timeline(place.querySelector(".picture"), told);
    }
    const hint = "Left to right: events. The width of a band is the weight of its cluster.";
    const more = told.hidden ? ` ${whole(told.hidden)} shorter lives are not drawn.` : "";
    text(place.querySelector(".hint"), hint + more);
  },

  noise(told) {
    const place = section("noise", told.course.length);
    if (told.course.length) {
      noise(place.querySelector(".picture"), told);
    }
    place.querySelector(".legend").hidden = !told.alarms.length;
  },

  changes(told) {
    const list = section("changes", told.length).querySelector("ol");
    const news = told.filter((one) => !one.routine);
    const items = some("changes", told, news.length ? news : told).map((one) => {
      const kind = made("span", { class: "kind" });
      const when = made("span", { class: "when" });
      const what = made("p", { class: "text" });
      text(kind, one.kind === "RefitDone" && !one.routine ? "Drift alarm" : words(one.kind));
      text(when, `event ${whole(one.tick)}`);
      text(what, one.text);
      return made("li", {}, made("div", { class: "head" }, kind, when), what);
    });
    list.replaceChildren(...items);
  },

  answers(told) {
    const list = section("answers", told.length).querySelector("ol");
    const items = told.map((one) => {
      const region = made("span", { class: "region" });
      const when = made("span", { class: "when" });
      const rule = made("p", { class: "rule" });
      const cold = one.region === "cold";
      text(region, cold ? "nothing was known yet" : one.region);
      text(when, `event ${whole(one.event)}${one.key ? `, ${one.key}` : ""}`);
      text(rule, one.rule ?? (cold ? "" : "its rule was not written (run --explain)"));
      const name = cold ? [] : [chip(one.cluster, "")];
      const head = made("div", { class: "head" }, ...name, region, when);
      return made("li", {}, head, rule);
    });
    list.replaceChildren(...items);
  },

  figures(told) {
    const list = document.querySelector("#figures dl");
    const make = () => made("div", {}, made("dt"), made("dd"));
    keyed(list, Object.entries(told), (entry) => entry[0], make, (item, [name, value]) => {
      text(item.children[0], name.replaceAll("_", " "));
      text(item.children[1], value === null ? "–" : short(value));
    });
  },

  state(told) {
    text(document.getElementById("state"), told.text);
    document.getElementById("state").dataset.state = told.state;
    document.title = `${told.text} – streamclust`;
  },
};

connect();

document.getElementById("pause").addEventListener("click", (event) => {
  paused = !paused;
  event.currentTarget.setAttribute("aria-pressed", String(paused));
  if (!paused) {
    latest.forEach((told, name) => show[name](told));
  }
});

for (const name of Object.keys(FEW)) {
  document.querySelector(`#${name} .more`).addEventListener("click", () => {
    all.has(name) ? all.delete(name) : all.add(name);
    show[name](latest.get(name));
  });
}

new ResizeObserver(() => {
  for (const name of ["timeline", "noise"]) {
    if (latest.has(name) && !paused) {
      show[name](latest.get(name));
    }
  }
}).observe(document.querySelector("main"));

function connect() {
  const source = new EventSource("events");
  for (const name of Object.keys(show)) {
    source.addEventListener(name, (message) => {
      latest.set(name, JSON.parse(message.data));
      if (!paused || name === "state") {
        show[name](latest.get(name));
      }
    });
  }
  source.addEventListener("open", () => {
    if (latest.has("state")) {
      show.state(latest.get("state"));
    }
  });
  source.addEventListener("error", () => {
    show.state({ state: "lost", text: "connection lost, trying again" });
    if (source.readyState === EventSource.CLOSED) {
      setTimeout(again, AGAIN);
    }
  });
}

async function again() {
  try {
    const answer = await fetch("session");
    if (answer.status === 401) {
      location.assign("login");
      return;
    }
  } catch {
    // the server is not there yet
  }
  connect();
}

function section(name, count) {
  const place = document.getElementById(name);
  place.querySelector(".empty").hidden = count > 0;
  const legend = place.querySelector(".legend");
  if (legend) {
    legend.hidden = !count;
  }
  return place;
}

function some(name, told, best = told) {
  const button = document.querySelector(`#${name} .more`);
  const few = best.slice(0, FEW[name]);
  button.hidden = told.length === few.length;
  button.setAttribute("aria-expanded", String(all.has(name)));
  text(button, all.has(name) ? "Show fewer" : `Show all ${whole(told.length)}`);
  return all.has(name) ? told : few;
}

function emptyRow() {
  const share = made("td", { class: "share" }, made("meter", { "aria-hidden": true }), made("span"));
  const cells = [made("td", { class: "cluster" }), made("td", { class: "number" }), share];
  return made("tr", {}, ...cells, made("td", { class: "rule" }));
}

function fillRow(row, one, most) {
  const [cluster, size, share, rule] = row.cells;
  row.className = colour(one.id);
  if (cluster.dataset.name !== one.name || !cluster.children.length) {
    cluster.dataset.name = one.name;
    cluster.replaceChildren(chip(one.id, one.name));
  }
  text(size, one.size === null ? "" : whole(one.size));
  share.children[0].hidden = one.share === null;
  share.children[0].value = (one.share ?? 0) / most;
  text(share.children[1], percent(one.share));
  const lines = one.more ? [...one.rule, `${whole(one.more)} more, narrower`] : one.rule;
  keyed(rule, lines.map((line, at) => [at, line]), (pair) => pair[0], () => made("p"), fillLine);
  function fillLine(line, [at, told]) {
    text(line, told);
    line.classList.toggle("rest", one.more > 0 && at === one.rule.length);
  }
}

function chip(cluster, name) {
  const label = made("span");
  text(label, cluster === NOISE ? "noise" : cluster);
  const kind = cluster === NOISE ? "noise" : colour(cluster);
  const parts = [made("i", { "aria-hidden": "true" }), label];
  if (name) {
    const small = made("small");
    text(small, name);
    parts.push(small);
  }
  return made("span", { class: `chip ${kind}` }, ...parts);
}

// Children of a place that stay the same elements as long as their key is there.
function keyed(place, items, keyOf, make, fill) {
  place.elements ??= new Map();
  const kept = new Map();
  for (const item of items) {
    const key = keyOf(item);
    const element = place.elements.get(key) ?? make();
    fill(element, item);
    kept.set(key, element);
  }
  place.elements = kept;
  const wanted = [...kept.values()];
  if (wanted.length !== place.children.length || wanted.some((one, at) => place.children[at] !== one)) {
    place.replaceChildren(...wanted);
  }
}

function made(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

function text(element, value) {
  if (element.textContent !== String(value)) {
    element.textContent = value;
  }
}

function words(kind) {
  const told = kind.replaceAll(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  return told[0].toUpperCase() + told.slice(1);
}

function short(value) {
  return Number.isInteger(value) ? whole(value) : Number(value.toPrecision(4)).toLocaleString("en");
}
