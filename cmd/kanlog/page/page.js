"use strict";
// The page shows what stands in its data, which somebody else wrote: every word
// goes into the page as text, nothing is ever parsed as HTML. A card is read and
// drawn when somebody opens it; a long list grows by steps.
(() => {
  const STEP = 200, ROWS = 100;
  const lines = id => document.getElementById(id).textContent.trim().split("\n").filter(Boolean);
  const [board, boardEvents] = JSON.parse(document.getElementById("data-board").textContent);
  const cards = lines("data-cards").map(l => JSON.parse(l));
  const details = lines("data-details");
  const byID = new Map(cards.map((c, n) => { c.n = n; return [c.id, c]; }));
  const main = document.getElementById("main"), search = document.getElementById("search"), found = document.getElementById("found");
  let view = "cards", opened = new Set();

  function el(name, attrs, ...children) {
    const e = document.createElement(name);
    for (const [k, v] of Object.entries(attrs || {})) {
      if (k === "class") e.className = v;
      else if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
      else if (v !== null && v !== undefined) e.setAttribute(k, v);
    }
    e.append(...children.flat().filter(c => c !== null && c !== undefined && c !== ""));
    return e;
  }
  function svg(name, attrs, ...children) {
    const e = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [k, v] of Object.entries(attrs)) e.setAttribute(k, v);
    e.append(...children);
    return e;
  }
  const words = s => el("bdi", {}, String(s));
  const time = t => t === null || t === undefined ? "" : new Date(t).toISOString().slice(0, 19).replace("T", " ");
  function span(ms) {
    const s = Math.round(ms / 1000);
    if (s < 60) return s + "s";
    if (s < 3600) return Math.floor(s / 60) + "m " + s % 60 + "s";
    if (s < 172800) return Math.floor(s / 3600) + "h " + Math.floor(s % 3600 / 60) + "m";
    return Math.floor(s / 86400) + "d " + Math.floor(s % 86400 / 3600) + "h";
  }
  const now = Date.parse(board.exported_at);
  const outcome = r => r.outcome || "open";
  const plain = s => s.replace(/_/g, " ");
  const mark = (r, text) => el("span", {class: "outcome o-" + outcome(r)}, text || plain(outcome(r)));

  // Lists that grow by a button.
  function grow(list, into, make, button, step) {
    let at = 0;
    const more = el("button", {type: "button", class: "more", onclick: next});
    function next() {
      into.append(...list.slice(at, at + step).map(make).flat());
      at = Math.min(at + step, list.length);
      more.textContent = `Show ${Math.min(step, list.length - at)} more of ${list.length - at}`;
      more.hidden = at >= list.length;
    }
    next();
    button.append(more);
  }

  // The runs of one card, or of several, on one axis.
  function range(runs) {
    let from = Infinity, to = -Infinity;
    for (const r of runs) {
      from = Math.min(from, r.start);
      to = Math.max(to, r.end ?? now);
    }
    if (to - from < 1000) to = from + 1000;
    return [from, to];
  }
  function ticks(from, to, n) {
    const steps = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800, 2592000, 31536000].map(s => s * 1000);
    const step = steps.find(s => (to - from) / s <= n) || steps[steps.length - 1] * Math.ceil((to - from) / n / steps[steps.length - 1]);
    const at = [];
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) at.push(t);
    return [at, step];
  }
  const WIDTH = 1000, marks = () => innerWidth < 700 ? 3 : 7;
  function axis(from, to) {
    const [at, step] = ticks(from, to, marks());
    const x = t => (t - from) / (to - from) * WIDTH;
    const box = el("div", {class: "chart axis"});
    for (const t of at.filter(t => x(t) < WIDTH * .94)) {
      const day = time(t).slice(5, 10), clock = time(t).slice(11, step < 60000 ? 19 : 16);
      const label = step >= 86400000 ? time(t).slice(0, 10) : step >= 3600000 || t === at[0] ? day + " " + clock : clock;
      const e = el("span", {}, label);
      e.style.left = x(t) / WIDTH * 100 + "%";
      box.append(e);
    }
    return box;
  }
  function bars(runs, from, to, height) {
    const s = svg("svg", {viewBox: `0 0 ${WIDTH} ${height}`, height, preserveAspectRatio: "none", role: "img", "aria-label": runs.length + " runs"});
    const x = t => (t - from) / (to - from) * WIDTH;
    for (const t of ticks(from, to, marks())[0]) s.append(svg("line", {class: "grid", x1: x(t), x2: x(t), y1: 0, y2: height, "vector-effect": "non-scaling-stroke"}));
    for (const r of runs) {
      const end = r.end ?? now;
      if (end < from || r.start > to) continue;
      const left = Math.max(x(r.start), 0), width = Math.max(Math.min(x(end), WIDTH) - left, 3);
      s.append(svg("rect", {class: "bar o-" + outcome(r), x: Math.min(left, WIDTH - width), width, y: 3, height: height - 6},
        svg("title", {}, `run ${r.id}: ${plain(outcome(r))}, ${time(r.start)} UTC, ${span(end - r.start)}`)));
    }
    return s;
  }
  function legend(runs) {
    const n = new Map();
    for (const r of runs) n.set(outcome(r), (n.get(outcome(r)) || 0) + 1);
    const list = [...n].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    return el("ul", {class: "legend"}, list.map(([o, k]) => el("li", {class: "o-" + o}, el("i", {}), `${plain(o)} ${k}`)));
  }

  // One card.
  function link(id) {
    const c = byID.get(id);
    if (!c) return el("span", {class: "id"}, id);
    return el("a", {href: "#" + id, onclick: e => { e.preventDefault(); show(id); }}, el("span", {class: "id"}, id), " ", words(c.title), ` (${c.status})`);
  }
  function facts(t) {
    const dl = el("dl", {});
    const add = (name, ...value) => dl.append(el("dt", {}, name), el("dd", {}, ...value));
    const given = (name, value) => { if (value !== null && value !== undefined && value !== "") add(name, words(value)); };
    add("Status", t.status);
    given("Blocked", [t.block_kind, t.block_reason].filter(Boolean).join(": "));
    given("Last error", t.last_error);
    given("Assignee", t.assignee);
    given("Reviewer", t.reviewer);
    if (t.priority) add("Priority", String(t.priority));
    given("Tenant", t.tenant);
    given("Tags", t.tags.join(", "));
    given("Key", t.key);
    add("Created", time(t.created_at) + " UTC by ", words(t.created_by));
    if (t.started_at) add("Started", time(t.started_at) + " UTC");
    if (t.completed_at) add("Completed", time(t.completed_at) + " UTC");
    if (t.not_before) add("Not before", time(t.not_before) + " UTC");
    if (t.workspace_kind !== "scratch") given("Workspace", [t.workspace_kind, t.workspace_path, t.branch].filter(Boolean).join(", "));
    if (t.parents.length) add("Waits for", t.parents.map(id => el("div", {}, link(id))));
    if (t.children.length) add("Others wait", t.children.map(id => el("div", {}, link(id))));
    return dl;
  }
  function runRow(r) {
    const end = r.ended_at ? Date.parse(r.ended_at) : null;
    let said = [r.error, r.summary].filter(Boolean).join("\n");
    if (r.exit_code !== null && !said.includes("exit " + r.exit_code)) said += `${said && "\n"}exit ${r.exit_code}`;
    if (r.signal && !said.includes(r.signal)) said += `${said && "\n"}${r.signal}`;
    return el("tr", {}, el("td", {class: "num"}, String(r.id)), el("td", {}, mark(r), r.lane === "review" ? " (review)" : ""),
      el("td", {class: "when"}, time(r.started_at)), el("td", {class: "num"}, span((end ?? now) - Date.parse(r.started_at)) + (end === null ? " so far" : "")),
      el("td", {class: "wide"}, words(r.holder || r.assignee || "")), el("td", {class: "said"}, words(said)));
  }
  const head = (...names) => el("thead", {}, el("tr", {}, names.map(n => el("th", {class: "h-" + n.toLowerCase().replace(/[^a-z].*/, "")}, n))));
  function eventRow(e) {
    return el("tr", {}, el("td", {class: "num"}, String(e.seq)), el("td", {class: "when"}, time(e.at)), el("td", {class: "num"}, e.run === null ? "" : String(e.run)),
      el("td", {}, plain(e.kind)), el("td", {class: "wide"}, words(e.actor)), el("td", {class: "said"}, words(e.text)));
  }
  function eventTable(events) {
    const body = el("tbody", {}), box = el("div", {}, el("table", {}, head("Seq", "Time (UTC)", "Run", "Event", "By", ""), body));
    grow(events, body, eventRow, box, STEP);
    return box;
  }
  function closed(title, make, open) {
    const d = el("details", {}, el("summary", {}, title));
    const fill = () => { if (d.open && !d.dataset.made) { d.dataset.made = 1; d.append(make()); } };
    d.addEventListener("toggle", fill);
    if (open) { d.open = true; fill(); }
    return d;
  }
  function detail(c) {
    const [d, events] = JSON.parse(details[c.n]);
    const box = el("div", {class: "inside"}, facts(d.task));
    const add = (title, ...what) => box.append(el("h3", {}, title), ...what);
    if (d.task.body) add("Body", el("pre", {dir: "auto"}, d.task.body));
    if (d.task.result) add("Result", el("pre", {dir: "auto"}, d.task.result));
    if (d.runs.length) {
      const [from, to] = range(c.runs), body = el("tbody", {});
      add(`Runs (${d.runs.length})`, axis(from, to), el("div", {class: "chart"}, bars(c.runs, from, to, 26)), legend(c.runs),
        el("table", {}, head("Run", "Outcome", "Started (UTC)", "Took", "Who", "What it said"), body));
      grow(d.runs, body, runRow, box, STEP);
    }
    if (d.comments.length) add(`Comments (${d.comments.length})`, ...d.comments.map(m =>
      el("div", {class: "comment"}, el("p", {}, words(m.author), ", " + time(m.at) + " UTC"), el("pre", {dir: "auto"}, m.text))));
    if (events.length) add(`Events (${events.length})`, closed("the log of this card", () => eventTable(events), board.task !== null));
    return box;
  }

  // The cards by status.
  const ORDER = ["running", "blocked", "review", "triage", "ready", "scheduled", "todo", "done", "archived"];
  const needs = q => c => {
    c.text ??= [c.id, c.title, c.status, c.assignee, c.tenant, c.note, ...c.tags, ...c.runs.map(outcome)].join("\n").toLowerCase();
    return q.every(w => c.text.includes(w));
  };
  const asked = () => search.value.toLowerCase().split(/\s+/).filter(Boolean);
  function row(c) {
    const tr = el("tr", {class: "card", id: c.id});
    const title = el("button", {type: "button", class: "title", "aria-expanded": "false"}, words(c.title));
    const newest = c.runs.slice(-24);
    tr.append(el("td", {class: "id"}, c.id), el("td", {}, title, c.tags.map(t => el("span", {class: "tag"}, words(t)))), el("td", {class: "wide"}, words(c.assignee || "")),
      el("td", {class: "num"}, c.priority ? String(c.priority) : ""),
      el("td", {class: "dots wide", title: c.runs.length ? c.runs.length + " runs, the newest last" : ""}, newest.map(r => el("i", {class: "o-" + outcome(r), title: `run ${r.id}: ${plain(outcome(r))}`}))),
      el("td", {class: "note"}, words(c.note || "")));
    const toggle = open => {
      if (open === tr.classList.contains("open")) return;
      if (open) tr.after(el("tr", {class: "detail"}, el("td", {colspan: 6}, detail(c))));
      else tr.nextSibling.remove();
      tr.classList.toggle("open", open);
      title.setAttribute("aria-expanded", open);
      if (open) opened.add(c.id); else opened.delete(c.id);
    };
    tr.addEventListener("click", e => { if (!e.target.closest("a") && !getSelection().toString()) toggle(!tr.classList.contains("open")); });
    if (opened.has(c.id)) queueMicrotask(() => toggle(true));
    return tr;
  }
  function drawCards(list) {
    const section = el("section", {}), q = asked().length > 0;
    for (const status of ORDER) {
      const some = list.filter(c => c.status === status);
      if (!some.length) continue;
      const last = status === "done" || status === "archived";
      some.sort((a, b) => last ? (b.completed_at ?? b.created_at) - (a.completed_at ?? a.created_at) || b.n - a.n : b.priority - a.priority || a.n - b.n);
      const d = closed(status, () => {
        const body = el("tbody", {}), box = el("div", {}, el("table", {class: "cards"}, head("Card", "Title", "Assignee", "Prio", "Runs", "Note"), body));
        grow(some, body, row, box, STEP);
        return box;
      }, (q || cards.length <= 60 || status === "running" || !last && some.length <= 50) || some.some(c => opened.has(c.id)));
      d.className = "s-" + status;
      d.firstChild.append(el("span", {class: "n"}, ` ${some.length}`));
      section.append(d);
    }
    if (boardEvents.length && !q) section.append(closed(`events of the board itself ${boardEvents.length}`, () => eventTable(boardEvents), false));
    return section;
  }

  // Every run of the cards on one axis.
  let zoom = "fit";
  function drawTime(list) {
    const had = list.filter(c => c.runs.length);
    if (!had.length) return el("p", {class: "empty"}, "No runs.");
    const all = had.flatMap(c => c.runs);
    let [from, to] = range(all);
    const newest = new Map(had.map(c => [c, Math.max(...c.runs.map(r => r.start))]));
    had.sort((a, b) => newest.get(b) - newest.get(a));
    const last = {hour: 3600e3, six: 6 * 3600e3, day: 86400e3, week: 7 * 86400e3}[zoom];
    if (last) from = Math.max(from, to - last);
    if (zoom === "fit") [from, to] = range(had.slice(0, ROWS).flatMap(c => c.runs));
    const inside = r => (r.end ?? now) >= from && r.start <= to;
    const shown = had.filter(c => c.runs.some(inside));
    const pick = el("select", {onchange: e => { zoom = e.target.value; draw(); }},
      [["fit", `the newest ${Math.min(ROWS, had.length)} cards`], ["all", "all of it"], ["week", "the last week"], ["day", "the last day"], ["six", "the last 6 hours"], ["hour", "the last hour"]].map(([v, name]) => el("option", {value: v, selected: v === zoom ? "" : null}, name)));
    const grid = el("div", {class: "timeline"}, el("div", {class: "label"}, el("span", {class: "id"}, "UTC")), axis(from, to));
    const box = el("section", {}, el("div", {class: "tools"}, el("label", {}, "Range ", pick), `${time(from)} to ${time(to)} UTC, ${shown.length} cards, the newest run first`), legend(all.filter(inside)), grid);
    grow(shown, grid, c => [el("div", {class: "label"}, el("a", {href: "#" + c.id, title: c.title, onclick: e => { e.preventDefault(); show(c.id); }}, el("span", {class: "id"}, c.id), words(c.title))),
      el("div", {class: "chart"}, bars(c.runs, from, to, 22))], box, ROWS);
    return box;
  }

  function draw() {
    const q = asked(), list = q.length ? cards.filter(needs(q)) : cards;
    found.textContent = q.length ? `${list.length} of ${cards.length} cards` : "";
    for (const [id, name] of [["tab-cards", "cards"], ["tab-time", "time"]]) document.getElementById(id).setAttribute("aria-selected", view === name);
    main.replaceChildren(list.length ? view === "cards" ? drawCards(list) : drawTime(list) : el("p", {class: "empty"}, cards.length ? "No card fits." : "There are no cards."));
  }
  // Shows one card, wherever it stands.
  function show(id) {
    const c = byID.get(id);
    if (!c) return;
    if (view !== "cards" || search.value) { view = "cards"; search.value = ""; }
    opened = new Set([id]);
    draw();
    const d = main.querySelector("details.s-" + c.status);
    // It may stand behind the button.
    for (let b; !document.getElementById(id) && (b = d.querySelector("button.more:not([hidden])"));) b.click();
    queueMicrotask(() => document.getElementById(id)?.scrollIntoView({block: "center"}));
    history.replaceState(null, "", "#" + id);
  }

  if (board.task !== null && cards.length === 1) {
    main.append(detail(cards[0]));
    return;
  }
  document.querySelector("nav").hidden = false;
  let wait;
  search.addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(draw, 120); });
  document.getElementById("tab-cards").addEventListener("click", () => { view = "cards"; draw(); });
  document.getElementById("tab-time").addEventListener("click", () => { view = "time"; draw(); });
  addEventListener("hashchange", () => show(location.hash.slice(1)));
  if (location.hash === "#timeline") view = "time";
  draw();
  if (byID.has(location.hash.slice(1))) show(location.hash.slice(1));
})();
