// The two pictures: lives of clusters, and noise over time. Texts are set as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";
const COLOURS = 7;

export function colour(cluster) {
  return `k${cluster % COLOURS}`;
}

export function whole(value) {
  return value === null || value === undefined ? "–" : value.toLocaleString("en");
}

export function percent(value) {
  return value === null || value === undefined ? "–" : `${(100 * value).toFixed(1)} %`;
}

export function timeline(place, told) {
  const lane = told.lives.length > 24 ? 13 : 22;
  const width = Math.max(place.clientWidth, 200);
  const left = 10 + 7 * Math.max(2, ...told.lives.map((life) => String(life.id).length));
  const top = 6;
  const height = top + lane * told.lives.length + 22;
  const first = Math.min(...told.lives.map((life) => life.start));
  const x = scale(first, told.last, left, width - 12);
  const y = new Map(told.lives.map((life, row) => [life.id, top + lane * (row + 0.5)]));
  const heaviest = Math.max(1e-9, ...told.lives.flatMap((life) => life.weights.map((w) => w[1])));
  const alive = told.lives.filter((life) => life.end === null).length;
  const svg = picture(width, height, `${told.lives.length} clusters, ${alive} of them alive`);
  axis(svg, x, first, told.last, top, height - 18, width);
  for (const life of told.lives) {
    const middle = y.get(life.id);
    add(svg, "text", { class: "label", x: left - 8, y: middle + 4, "text-anchor": "end" }, life.id);
    add(svg, "path", {
      class: `band ${colour(life.id)}`,
      d: band(life, told.last, middle, lane, heaviest, x),
    });
  }
  for (const link of told.links) {
    const at = x(link.tick);
    add(svg, "path", {
      class: link.kind === "merge" ? "mark dashed" : "mark",
      d: `M${at} ${y.get(link.source)}V${y.get(link.target)}`,
    });
  }
  for (const life of told.lives) {
    const middle = y.get(life.id);
    if (life.born) {
      add(svg, "circle", { class: "mark open", cx: x(life.start), cy: middle, r: 3.2 });
    }
    if (life.ended_by === "died") {
      const end = x(life.end);
      add(svg, "path", {
        class: "mark",
        d: `M${end - 3} ${middle - 3}l6 6M${end + 3} ${middle - 3}l-6 6`,
      });
    }
  }
  place.replaceChildren(svg);
}

export function noise(place, told) {
  const width = Math.max(place.clientWidth, 200);
  const height = 170;
  const [top, bottom, left] = [8, height - 22, 40];
  const first = told.course[0][0];
  const last = Math.max(told.course.at(-1)[0], first + 1);
  const most = nice(Math.max(0.01, ...told.course.map((point) => point[1])));
  const x = scale(first, last, left, width - 12);
  const y = scale(0, most, bottom, top);
  const now = percent(told.course.at(-1)[1]);
  const svg = picture(width, height, `Noise: ${now} now; drift alarms: ${told.alarms.length}`);
  axis(svg, x, first, last, top, bottom, width);
  for (const share of [0, most / 2, most]) {
    add(svg, "path", { class: "grid", d: `M${left} ${y(share)}H${width - 12}` });
    const digits = most < 0.04 ? 1 : 0;
    const text = `${(100 * share).toFixed(digits)} %`;
    add(svg, "text", { x: left - 6, y: y(share) + 4, "text-anchor": "end" }, text);
  }
  const line = told.course.map(([event, share]) => `${x(event)} ${y(share)}`).join("L");
  add(svg, "path", { class: "area", d: `M${x(first)} ${bottom}L${line}V${bottom}Z` });
  add(svg, "path", { class: "course", d: `M${line}` });
  for (const event of told.alarms.filter((event) => event >= first)) {
    add(svg, "path", { class: "alarm", d: `M${x(event)} ${top}V${bottom}` });
  }
  place.replaceChildren(svg);
}

function band(life, last, middle, lane, heaviest, x) {
  const end = life.end === null ? last : life.end;
  const inside = life.weights.filter(([event]) => event >= life.start && event <= end);
  const weights = inside.length ? inside : [[life.start, 0]];
  const points = [[life.start, weights[0][1]], ...weights, [end, weights.at(-1)[1]]];
  const half = (weight) => 0.8 + (0.44 * lane - 0.8) * (weight / heaviest);
  const upper = points.map(([event, weight]) => `${x(event)} ${middle - half(weight)}`);
  const lower = points.map(([event, weight]) => `${x(event)} ${middle + half(weight)}`).reverse();
  return `M${[...upper, ...lower].join("L")}Z`;
}

function axis(svg, x, first, last, top, bottom, width) {
  const step = nice((last - first) / Math.max(2, Math.floor(width / 90)));
  for (let at = Math.ceil(first / step) * step; at <= last; at += step) {
    add(svg, "path", { class: "grid", d: `M${x(at)} ${top}V${bottom}` });
    const anchor = x(at) > width - 40 ? "end" : "middle";
    add(svg, "text", { x: x(at), y: bottom + 15, "text-anchor": anchor }, whole(at));
  }
}

function nice(value) {
  const size = 10 ** Math.floor(Math.log10(Math.max(value, 1e-9)));
  const found = [1, 2, 5, 10].find((one) => one * size >= value * 0.999) * size;
  return value >= 1 ? Math.max(1, Math.round(found)) : found;
}

function scale(from, to, low, high) {
  const span = to - from || 1;
  return (value) => Math.round(10 * (low + ((high - low) * (value - from)) / span)) / 10;
}

function picture(width, height, label) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", label);
  return svg;
}

function add(svg, name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, value);
  }
  if (text !== undefined) {
    element.textContent = text;
  }
  svg.append(element);
}
