"use strict";
// Everything that comes from the process is text: it is only ever set as textContent or by setAttribute, never parsed.
const kept = "weft-token", every = 1000;
const at = (id) => document.getElementById(id);
const state = {token: null, paused: false, opened: new Set(), filter: "", sort: "count", last: null, before: null, timer: 0, failed: 0, fetched: 0};

function make(tag, attributes = {}, ...children) {
  const one = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "depth") one.style.setProperty("--depth", value);
    else if (name === "share") one.style.transform = `scaleX(${value})`;
    else if (typeof value === "function") one.addEventListener(name, value);
    else if (value !== null && value !== undefined) one.setAttribute(name, value);
  }
  one.append(...children.filter((child) => child !== null && child !== undefined));
  return one;
}
function draw(tag, attributes = {}, ...children) {
  const one = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value);
  one.append(...children);
  return one;
}

// ---- words ------------------------------------------------------------------------------------------------------------------

function short(name) {  // a function without its parameters, and what they are templates of
  if (!name) return "?";
  let depth = 0, end = name.length;
  for (let i = 0; i < name.length; ++i) {
    const c = name[i];
    if (c === "<") ++depth;
    else if (c === ">" && name[i - 1] !== "-") depth = Math.max(0, depth - 1);
    else if (c === "(" && depth === 0 && !name.startsWith("(anonymous namespace)", i) && !name.startsWith("operator()", i - 8)) { end = i; break; }
  }
  return name.slice(0, end).replaceAll("(anonymous namespace)::", "") || name;
}
function fitting(name, room) {  // without its namespaces, where there is no room for them
  while (name.length > room && /^[\w~]+::/.test(name)) name = name.replace(/^[\w~]+::/, "");
  return name.length > room ? `${name.slice(0, room - 1)}…` : name;
}
const plural = (count, one) => `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;
function bytes(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (count >= 1024 && i < units.length - 1) { count /= 1024; ++i; }
  return `${count < 10 && i > 0 ? count.toFixed(1) : Math.round(count)} ${units[i]}`;
}
function duration(seconds) {
  if (seconds < 1e-3) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${Math.round(seconds * 1e3)} ms`;
  if (seconds < 90) return `${seconds.toFixed(1)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}
function does(task, all) {
  if (task.waits.length === 0) return task.state === "running" ? (task.worker !== null ? `on ${all.workerName(task.worker)}` : "") : "";
  const first = task.waits[0];
  const holder = first.holder && all.byId.get(first.holder);
  const held = first.holder ? ` of ${holder ? short(holder.function) : first.holder}` : "";
  return `for ${first.what}${held}${task.waits.length > 1 ? ` and ${task.waits.length - 1} more` : ""}`;
}

// ---- what came, in the form in which it is shown ------------------------------------------------------------------------------

function understand(answer) {
  const snapshot = answer.snapshot || {};
  const all = {status: answer.status, stalls: answer.stalls || [], deadlocks: answer.deadlocks || [], complete: snapshot.is_complete !== false, stuck: snapshot.is_stuck === true};
  all.tasks = (snapshot.tasks || []).map((task) => ({
    id: task.id, parent: task.parent || null, kind: task.kind, state: task.state, function: task.function || "",
    waits: (task.waits || []).map((wait) => ({what: wait.what, at: wait.at, holder: wait.holder || null})),
    stack: task.stack || [], waited: task.waiting_ms ?? task.running_ms ?? null, deadline: task.deadline_in_ms ?? null, stopping: task.stop_requested === true, cause: task.cause || null,
    worker: task.worker !== undefined && task.worker !== null && task.worker >= 0 ? task.worker : null, children: [],
  }));
  all.workers = snapshot.workers || [];
  all.workerName = (index) => `thread ${all.workers[index] ? all.workers[index].thread : index}`;
  all.byId = new Map(all.tasks.map((task) => [task.id, task]));
  all.roots = [];
  for (const task of all.tasks) (task.parent && all.byId.has(task.parent) ? all.byId.get(task.parent).children : all.roots).push(task);
  all.caught = new Set(all.deadlocks.flatMap((one) => one.circle.map((step) => step.id)));
  return all;
}

// ---- parts of the page ----------------------------------------------------------------------------------------------------------

function showFigures(all) {
  const status = all.status, before = state.before ? state.before.status : null;
  const passed = before ? (status.time_ms - before.time_ms) / 1000 : 0;
  const load = passed > 0 ? Math.max(0, status.processor_seconds - before.processor_seconds) / passed : null;
  const jobs = (one) => one.pools.reduce((sum, pool) => sum + pool.workers.reduce((part, worker) => part + worker.jobs, 0), 0);
  const rate = passed > 0 ? Math.max(0, Math.round((jobs(status) - jobs(before)) / passed)) : null;
  const count = (what) => all.tasks.filter((task) => task.state === what).length;
  const figures = [
    ["Tasks", all.tasks.length.toLocaleString("en"), all.complete ? "that live now" : "not all of them"],
    ["Waiting", count("waiting").toLocaleString("en"), "for something"],
    ["Running", count("running").toLocaleString("en"), `${count("ready").toLocaleString("en")} ready`],
    ["Jobs a second", rate === null ? "–" : rate.toLocaleString("en"), "of all pools"],
    ["Processor", load === null ? "–" : `${Math.round(load * 100)} %`, `${duration(status.processor_seconds)} so far`],
    ["Memory", bytes(status.resident_bytes), `${plural(status.open_descriptors, "descriptor")} open`],
  ];
  at("figures").replaceChildren(...figures.map(([name, value, about]) => make("div", {class: "card figure"}, make("dt", {}, name), make("dd", {}, value, make("small", {}, about)))));
}

function showAlarm(all) {
  at("alarm").hidden = all.deadlocks.length === 0;
  at("alarm-title").textContent = all.deadlocks.length === 1 ? "A deadlock: these wait for each other, and none will ever go on" : `${all.deadlocks.length} deadlocks: none of these will ever go on`;
  at("circles").replaceChildren(...all.deadlocks.slice(0, 20).map((one) => make("div", {class: "circle"}, ...one.circle.map((step, i) => {
    const next = one.circle[(i + 1) % one.circle.length];
    return make("div", {class: "step"}, make("span", {class: "arrow", "aria-hidden": "true"}, i === 0 ? "⟳" : "↓"), make("div", {},
      make("div", {class: "name", title: step.function}, short(step.function), " ", make("span", {class: "soft"}, step.id)),
      make("div", {class: "why"}, `waits for ${step.waits_for || "something"} ${step.at || ""}, which ${one.circle.length === 1 ? "it holds itself" : `${short(next.function)} ${next.id} holds`}`)));
  }))));
}

function toggle(key) { if (!state.opened.delete(key)) state.opened.add(key); show(); }

function details(task, all, depth) {
  const lines = [make("div", {}, make("span", {class: "mono"}, task.function || "?"))];
  lines.push(make("div", {class: "soft"}, `${task.kind} ${task.id}${task.worker !== null ? `, on ${all.workerName(task.worker)}` : ""}`));
  for (const wait of task.waits) {
    const holder = wait.holder ? all.byId.get(wait.holder) : null;
    lines.push(make("div", {}, `waits for ${wait.what}${wait.at ? ` ${wait.at}` : ""}${wait.holder ? `, which ${holder ? short(holder.function) : ""} ${wait.holder} holds or brings about` : ""}`));
  }
  if (task.waited !== null) lines.push(make("div", {class: "soft"}, `for ${duration(task.waited / 1000)} so far`));
  if (task.deadline !== null) lines.push(make("div", {class: "soft"}, task.deadline < 0 ? `its deadline was ${duration(-task.deadline / 1000)} ago` : `its deadline is in ${duration(task.deadline / 1000)}`));
  if (task.stopping) lines.push(make("div", {}, `was told to stop${task.cause && task.cause.reason ? `: ${task.cause.reason}` : ""}${task.cause && task.cause.file ? `, at ${task.cause.file}:${task.cause.line}` : ""}`));
  if (task.stack.length) lines.push(make("div", {class: "frames"}, ...task.stack.map((frame, i) => make("div", {}, `#${i} ${frame || "?"}`))));
  return make("div", {class: "more", depth}, ...lines);
}

function row(task, all, depth, has, key, times = 1) {
  const open = state.opened.has(key);
  return make("button", {class: "row", type: "button", depth, "aria-expanded": String(open), "data-key": key, title: task.function, click: () => toggle(key)},
    make("span", {class: "mark", "aria-hidden": "true"}, has ? "▸" : ""), make("span", {class: "fn"}, short(task.function)),
    times > 1 ? make("span", {class: "times"}, `× ${times.toLocaleString("en")}`) : null,
    make("span", {class: `tag first ${all.caught.has(task.id) ? "bad" : task.state}`}, all.caught.has(task.id) ? "deadlock" : task.state),
    task.kind !== "task" ? make("span", {class: "tag"}, task.kind.replace("_", " ")) : null,
    task.stopping ? make("span", {class: "tag bad"}, "stopping") : null,
    make("span", {class: "does"}, does(task, all)));
}

// Siblings that are alike stand in one line, since a server has thousands of them.
function branch(tasks, all, depth, path, into, room) {
  const alike = new Map();
  for (const task of tasks) {
    const key = all.caught.has(task.id) || task.children.length ? task.id : [task.function, task.kind, task.state, does(task, all), task.stopping].join("\n");
    if (!alike.has(key)) alike.set(key, []);
    alike.get(key).push(task);
  }
  for (const [key, group] of alike) {
    if (room.left <= 0) return;
    if (group.length <= 3) {
      for (const task of group) {
        if (room.left-- <= 0) return;
        const own = `t${task.id}`;
        into.push(row(task, all, depth, true, own));
        if (state.opened.has(own)) into.push(details(task, all, depth));
        branch(task.children, all, depth + 1, own, into, room);
      }
      continue;
    }
    const own = `g${path}\n${key}`;
    --room.left;
    into.push(row(group[0], all, depth, true, own, group.length));
    if (!state.opened.has(own)) continue;
    for (const task of group.slice(0, 50)) {
      const one = `t${task.id}`;
      --room.left;
      into.push(row(task, all, depth + 1, true, one));
      if (state.opened.has(one)) into.push(details(task, all, depth + 1));
    }
    if (group.length > 50) into.push(make("div", {class: "more soft", depth: depth + 1}, `and ${(group.length - 50).toLocaleString("en")} more`));
  }
}

function showTree(all) {
  const wanted = state.filter.trim().toLowerCase();
  const into = [], room = {left: 1500};
  const fits = (task) => `${task.function} ${task.kind} ${task.state} ${does(task, all)} ${task.id}`.toLowerCase().includes(wanted);
  if (wanted) branch(all.tasks.filter(fits).map((task) => ({...task, children: []})), all, 0, "found", into, room);
  else branch(all.roots, all, 0, "", into, room);
  if (room.left <= 0) into.push(make("div", {class: "empty"}, "There are more: filter them."));
  if (!into.length) into.push(make("div", {class: "empty"}, wanted ? "No task is like that." : "No task lives now."));
  at("tree-count").textContent = all.tasks.length ? `${plural(all.tasks.length, "task")}, those that are alike in one line` : "";
  const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.key : null;
  at("tree").replaceChildren(...into);
  if (focused) for (const one of at("tree").querySelectorAll(".row")) if (one.dataset.key === focused) one.focus({preventScroll: true});
}

function table(titles, rows) {
  return make("table", {}, make("thead", {}, make("tr", {}, ...titles.map((title) => make("th", {scope: "col"}, title)))), make("tbody", {}, ...rows));
}

function showWorkers(all) {
  const rows = [];
  all.status.pools.forEach((pool) => {
    const before = state.before && state.before.status.pools.find((one) => one.name === pool.name);
    pool.workers.forEach((worker, i) => {
      const earlier = before && before.workers[i];
      const awake = earlier ? worker.awake - earlier.awake : 0, asleep = earlier ? worker.asleep - earlier.asleep : 0;
      const share = awake + asleep > 0 ? Math.min(1, awake / (awake + asleep)) : 0;
      rows.push(make("tr", {}, make("td", {}, make("span", {class: "mono"}, `${pool.name}-${i}`)),
        make("td", {}, make("span", {class: "load", title: `${Math.round(share * 100)} % awake`}, make("i", {share}))),
        make("td", {}, `${Math.round(share * 100)} %`), make("td", {}, worker.waiting.toLocaleString("en")), make("td", {}, worker.jobs.toLocaleString("en")), make("td", {}, worker.steals.toLocaleString("en"))));
    });
  });
  at("worker-count").textContent = all.status.pools.length ? `of ${plural(all.status.pools.length, "pool")}` : "";
  at("workers").replaceChildren(rows.length ? table(["Worker", "Awake", "", "Queue", "Jobs", "Steals"], rows) : make("div", {class: "empty"}, "No pool and no runtime is there."));
}

function showFunctions(all) {
  const found = new Map();
  for (const task of all.tasks) {
    if (!found.has(task.function)) found.set(task.function, {name: task.function, count: 0, running: 0, ready: 0, waiting: 0, waits: new Map()});
    const one = found.get(task.function);
    ++one.count;
    ++one[task.state];
    for (const wait of task.waits.slice(0, 1)) one.waits.set(wait.what, (one.waits.get(wait.what) || 0) + 1);
  }
  const list = [...found.values()].sort((a, b) => state.sort === "name" ? short(a.name).localeCompare(short(b.name)) : b[state.sort] - a[state.sort] || short(a.name).localeCompare(short(b.name)));
  const rows = list.slice(0, 200).map((one) => {
    const waits = [...one.waits].sort((a, b) => b[1] - a[1]).slice(0, 3).map(([what, count]) => `${what} ${count.toLocaleString("en")}`).join(" · ");
    return make("tr", {}, make("td", {title: one.name}, make("span", {class: "fn"}, short(one.name)), waits ? make("span", {class: "wait"}, waits) : null),
      ...["count", "running", "ready", "waiting"].map((what) => make("td", {}, one[what].toLocaleString("en"))));
  });
  const heads = [["name", "Function"], ["count", "All"], ["running", "Running"], ["ready", "Ready"], ["waiting", "Waiting"]].map(([key, title]) =>
    make("button", {type: "button", "aria-pressed": String(state.sort === key), click: () => { state.sort = key; show(); }}, title));
  at("function-count").textContent = list.length ? `${plural(list.length, "function")} that tasks began with` : "";
  at("functions").replaceChildren(rows.length ? table(heads, rows) : make("div", {class: "empty"}, "No task lives now."));
}

function showStalls(all) {
  const rows = all.stalls.slice(-50).reverse().map((one) => make("tr", {}, make("td", {}, make("span", {class: "fn"}, short(one.function)), make("span", {class: "wait"}, one.doing || "")),
    make("td", {}, `${one.worker ?? ""}`), make("td", {}, duration(one.seconds || 0)), make("td", {}, String(one.waiting ?? ""))));
  at("stall-count").textContent = all.stalls.length ? plural(all.stalls.length, "time") : "";
  at("stalls").replaceChildren(rows.length ? table(["What held a worker up", "Worker", "For", "Behind it"], rows) : make("div", {class: "empty"}, "No worker has been held up."));
}

// The tree from left to right, a column a level; who waits for whom on top of it. Leaves that are alike are one box.
function showGraph(all) {
  const width = 174, height = 42, gapX = 34, gapY = 14, most = 60;
  const waitsForOne = (task) => task.waits.some((wait) => wait.holder && all.byId.has(wait.holder) && all.byId.get(wait.holder).parent !== task.id);
  const waitedFor = new Set(all.tasks.flatMap((task) => task.waits.map((wait) => wait.holder)));
  const alikeTo = new Map(), times = new Map();  // the box that stands for a leaf; how many it stands for
  const firsts = new Map();
  for (const task of all.tasks) {
    const isPlain = !task.children.length && !waitsForOne(task) && !waitedFor.has(task.id);
    const key = isPlain ? [task.parent, task.function, task.kind, task.state, does(task, all)].join("\n") : task.id;
    if (!firsts.has(key)) firsts.set(key, task);
    alikeTo.set(task, firsts.get(key));
    times.set(firsts.get(key), (times.get(firsts.get(key)) || 0) + 1);
  }
  let chosen = new Set(times.keys());
  const isAll = chosen.size <= most;
  if (!isAll) {
    chosen = new Set();
    const add = (task) => { while (task && !chosen.has(task) && chosen.size < most) { chosen.add(task); task = task.parent ? all.byId.get(task.parent) : null; } };
    for (const id of all.caught) if (all.byId.has(id)) add(all.byId.get(id));
    for (const task of all.tasks) if (chosen.size < most && waitsForOne(task)) { add(task); for (const wait of task.waits) if (wait.holder) add(all.byId.get(wait.holder)); }
  }
  at("graph-count").textContent = isAll ? "" : `${plural(chosen.size, "task")} of ${all.tasks.length.toLocaleString("en")}: those that wait for another one`;
  if (!chosen.size) return at("graph").replaceChildren(make("div", {class: "empty"}, all.tasks.length ? "Nobody waits for what another task holds." : "No task lives now."));
  const places = new Map();
  let nextRow = 0, deepest = 0;
  const place = (task, depth) => {
    deepest = Math.max(deepest, depth);
    const row = nextRow;
    places.set(task, {x: 4 + depth * (width + gapX), y: 4 + row * (height + gapY)});
    task.children.filter((child) => chosen.has(child)).forEach((child) => place(child, depth + 1));
    if (nextRow === row) ++nextRow;
  };
  for (const task of all.tasks) if (chosen.has(task) && !(task.parent && chosen.has(all.byId.get(task.parent)))) place(task, 0);
  const reach = 92;  // how far the curves of waits go to the right
  const svg = draw("svg", {width: 8 + (deepest + 1) * (width + gapX) - gapX + reach, height: 8 + nextRow * (height + gapY) - gapY, role: "img", "aria-label": "Tasks and who waits for whom"});
  const under = draw("g"), over = draw("g"), labels = draw("g");
  for (const [task, p] of places) {
    const parent = task.parent && all.byId.get(task.parent);
    if (parent && places.has(parent)) {
      const q = places.get(parent), fromX = q.x + width, fromY = q.y + height / 2, toX = p.x, toY = p.y + height / 2, half = fromX + gapX / 2;
      under.append(draw("path", {class: "below", d: toY === fromY ? `M${fromX} ${fromY}H${toX}` : `M${fromX} ${fromY}H${half - 8}q8 0 8 8V${toY - 8}q0 8 8 8H${toX}`}));
    }
    const bad = all.caught.has(task.id), count = times.get(task) || 1;
    const name = fitting(short(task.function), count > 1 ? 15 : 20);
    const state = `${task.kind.replace("_", " ")}, ${task.state}${task.waits.length ? ` for ${task.waits[0].what}` : ""}`;
    const group = draw("g", {});
    group.append(draw("title", {}, `${task.function}\n${task.kind} ${task.id}, ${task.state}`));
    if (count > 1) group.append(draw("rect", {class: "box", x: p.x + 5, y: p.y + 4, width, height, rx: 8}));
    group.append(draw("rect", {class: bad ? "box bad" : "box", x: p.x, y: p.y, width, height, rx: 8}),
      draw("line", {class: `edge-state ${bad ? "bad" : task.state}`, x1: p.x + 6, x2: p.x + 6, y1: p.y + 9, y2: p.y + height - 9}),
      draw("text", {x: p.x + 16, y: p.y + 18}, name),
      draw("text", {class: "sub", x: p.x + 16, y: p.y + 34}, state.length > 25 ? `${state.slice(0, 24)}…` : state));
    if (count > 1) group.append(draw("text", {class: "times", x: p.x + width - 8, y: p.y + 18, "text-anchor": "end"}, `× ${count.toLocaleString("en")}`));
    over.append(group);
  }
  let bend = 0;
  const named = new Set();
  for (const [task, p] of places) for (const wait of task.waits) {
    const holder = wait.holder && all.byId.get(wait.holder);
    if (!holder || !places.has(holder) || holder.parent === task.id) continue;  // that one waits for its children is in the tree
    const q = places.get(holder), bad = all.caught.has(task.id) && all.caught.has(holder.id) ? " bad" : "";
    const down = q.y >= p.y ? 1 : -1, out = down > 0 ? 40 + (bend++ % 3) * 14 : 24 + (bend++ % 3) * 14;
    const fromX = p.x + width, fromY = p.y + height / 2 + (down > 0 ? -8 : -2), toX = q.x + width, toY = q.y + height / 2 + (down > 0 ? 10 : 4), farX = Math.max(fromX, toX) + out;
    over.append(draw("path", {class: `waits${bad}`, d: `M${fromX} ${fromY}C${farX} ${fromY} ${farX} ${toY} ${toX + 7} ${toY}`}),
      draw("path", {class: `tip${bad}`, d: `M${toX} ${toY}l9 -4.5v9z`}));
    const pair = [task.id, holder.id].sort().join();
    if (named.has(pair)) continue;  // two that wait for each other: one name for both arrows
    named.add(pair);
    labels.append(draw("text", {class: `label${bad}`, x: (Math.max(fromX, toX) + 3 * farX) / 4 + 4, y: (fromY + toY) / 2 + 3}, wait.what.slice(0, 16)));
  }
  svg.append(under, over, labels);
  at("graph").replaceChildren(svg);
}

function show() {
  const all = state.last;
  if (!all) return;
  const status = all.status, name = (status.program || "").split("/").pop() || "process";
  document.title = `${name} · weft`;
  at("program").textContent = name;
  at("process").textContent = `process ${status.process}`;
  const health = at("health");
  health.className = `pill${all.deadlocks.length || all.stuck ? " bad" : ""}`;
  health.textContent = all.deadlocks.length ? plural(all.deadlocks.length, "deadlock") : all.stuck ? "all tasks are asleep" : "no deadlock";
  for (const part of [showFigures, showAlarm, showTree, showWorkers, showFunctions, showStalls, showGraph]) part(all);
  at("foot").textContent = `As of ${new Date(status.time_ms).toLocaleTimeString()}. Metrics for Prometheus are at /metrics, with the same token.`;
}

// ---- asking ----------------------------------------------------------------------------------------------------------------------

function enter(shown) {
  for (const id of ["top", "all", "foot"]) at(id).hidden = !shown;
  at("door").hidden = shown;
  if (!shown) at("token").focus();
}

function leave(why) {
  clearTimeout(state.timer);
  sessionStorage.removeItem(kept);
  state.token = state.last = state.before = null;
  at("token").value = "";
  at("wrong").textContent = why;
  enter(false);
}

async function ask() {
  clearTimeout(state.timer);
  if (!state.token) return;
  const began = performance.now();
  try {
    const answer = await fetch("/all.json", {headers: {Authorization: `Bearer ${state.token}`}, cache: "no-store", credentials: "omit", redirect: "error"});
    if (answer.status === 401) return leave("That is not the token of this process.");
    if (!answer.ok) throw new Error(String(answer.status));
    const all = understand(await answer.json());
    if (!state.token) return;
    state.before = state.last;
    state.last = all;
    state.failed = 0;
    sessionStorage.setItem(kept, state.token);
    enter(true);
    show();
    at("age").textContent = "";
  } catch (failure) {
    if (!state.last) return leave("The process does not answer.");
    at("age").textContent = "does not answer: this is the last it said";
    at("health").className = "pill idle";
    if (++state.failed > 30) return;
  }
  // What takes long is asked for less often: at most a fifth of the time.
  if (!state.paused) state.timer = setTimeout(ask, Math.max(every, 4 * (performance.now() - began)));
}

at("door").addEventListener("submit", (event) => {
  event.preventDefault();
  state.token = at("token").value.trim();
  at("wrong").textContent = "";
  if (/^[\x21-\x7e]+$/.test(state.token)) ask();
  else leave("That is not the token of this process.");
});
at("pause").addEventListener("click", () => {
  state.paused = !state.paused;
  at("pause").textContent = state.paused ? "Go on" : "Pause";
  at("pause").setAttribute("aria-pressed", String(state.paused));
  if (!state.paused) ask();
});
at("leave").addEventListener("click", () => leave(""));
at("filter").addEventListener("input", () => { state.filter = at("filter").value; show(); });
document.addEventListener("visibilitychange", () => {
  if (document.hidden) clearTimeout(state.timer);
  else if (!state.paused) ask();
});
state.token = sessionStorage.getItem(kept);
if (state.token) ask();
else enter(false);
