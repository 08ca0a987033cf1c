// Draws the results. `run` is what the driver wrote as JSON; see to_json in bench/harness/results.cpp.
'use strict';

const limits = ['plain', 'handwritten'];
const nameOf = r => run.libraries[r.library].name + (r.variant ? ' ' + r.variant : '');
const classOf = r => r.library === 'weft' ? 'weft' : limits.includes(r.library) ? 'limit' : 'peer';
const byId = id => document.getElementById(id);
const escapeHtml = text => String(text).replace(/[&<>"]/g, c => ({'&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;'})[c]);
const measured = row => row.results.filter(r => r.status === 'measured');
const peers = Object.keys(run.libraries).filter(id => id !== 'weft' && !limits.includes(id));
const colourOf = r => r.library === 'weft' ? 'var(--weft)' : limits.includes(r.library) ? 'var(--soft)'
    : `var(--c${peers.indexOf(r.library) % 8})`;

/** Three significant digits: 8.21, 12.5, 1276. */
function significant(value) {
  if (value === 0) return '0';
  const before = Math.floor(Math.log10(Math.abs(value))) + 1;
  return value.toFixed(Math.max(0, Math.min(4, 3 - before)));
}
/** A ratio: 0.93, 1.30, 13.1, 130. */
const times = value => `${value.toFixed(value >= 99.5 ? 0 : value >= 9.995 ? 1 : 2)} ×`;
const memory = kib => kib < 10240 ? `${kib} KiB` : `${Math.round(kib / 1024)} MiB`;
const interval = e => `${significant(e.low)} … ${significant(e.high)}`;
const percent = share => `${significant(100 * share)} %`;

/** What a program reported besides: "p50 us 1.20". */
const extraOf = r => Object.entries(r.extra ?? {}).map(([what, value]) => `${escapeHtml(what)} ${significant(value)}`);

/** What the pointer shows about one result. */
function details(row, r) {
  const lines = [`<b>${escapeHtml(nameOf(r))}</b>${row.label ? ', ' + escapeHtml(row.label) : ''}`];
  if (r.figure) lines.push(`${significant(r.figure.value)} ${row.unit} (${interval(r.figure)})`);
  if (r.cpu) lines.push(`${significant(r.cpu.value)} ${row.unit} of processor time (${interval(r.cpu)})`);
  if (r.ratio) lines.push(`${times(r.ratio.value)} weft (${times(r.ratio.low)} … ${times(r.ratio.high)}, ${percent(r.ratio.coverage)})`);
  if (r.allocations !== undefined) lines.push(`${significant(r.allocations)} allocations an await`);
  lines.push(...extraOf(r));
  if (r.peak_rss_kib && !row.counts) lines.push(`${memory(r.peak_rss_kib)} at most`);
  if (r.note) lines.push(escapeHtml(r.note));
  return lines.join('<br>');
}

// ---- one row: bars -------------------------------------------------------------------------------------------------

/** What is drawn hollow: a ratio from an earlier run, or frames that a library keeps for itself (malloc sees none). */
function ghostOf(row, r, base) {
  if (r.status === 'recorded') return base && {value: r.ratio.value * base.figure.value, text: `not measured in this run, but on ${r.note.slice(0, 10)}`};
  const cached = row.counts && r.extra?.['cached bytes'];
  return cached ? {value: cached, text: `${significant(cached)} bytes from its own cache`} : undefined;
}

/** A bar of `r`, with a dot for each round and a whisker for the interval; all in percent, so that it stretches. */
function barSvg(r, largest) {
  const x = value => `${(100 * value / largest).toFixed(3)}%`;
  let svg = `<svg aria-hidden="true"><rect class="track" y="4" width="100%" height="14" rx="3"/>`;
  if (r.figure) svg += `<rect class="fill" y="4" width="${x(r.figure.value)}" height="14" rx="3"/>`;
  if (r.ghost) svg += `<rect class="ghost" y="4" width="${x(r.ghost.value)}" height="14" rx="3"/><text x="8" y="15">${escapeHtml(r.ghost.text)}</text>`;
  for (const round of r.rounds ?? []) svg += `<circle class="dot" cx="${x(Math.min(round, largest))}" cy="11" r="2.2"/>`;
  if (r.figure && r.rounds.length > 1) {
    const low = x(Math.min(r.figure.low, largest)), high = x(Math.min(r.figure.high, largest));
    svg += `<line class="whisker" x1="${low}" x2="${high}" y1="11" y2="11"/>` +
        `<line class="whisker" x1="${low}" x2="${low}" y1="6.5" y2="15.5"/>` +
        `<line class="whisker" x1="${high}" x2="${high}" y1="6.5" y2="15.5"/>`;
  }
  return svg + '</svg>';
}

function barsHtml(row) {
  const base = measured(row).find(r => r.library === 'weft');
  const results = row.results.filter(r => r.status !== 'absent' && r.status !== 'not here').map(r => ({...r, ghost: ghostOf(row, r, base)}));
  const value = r => Math.max(r.figure?.value ?? 0, r.ghost?.value ?? 0);
  results.sort((a, b) => (a.status === 'failed') - (b.status === 'failed') || value(a) - value(b));
  const largest = 1.06 * Math.max(...results.map(value)) || 1;

  const last = row.counts ? 'allocations' : 'memory';
  const cpu = text => row.shows_cpu ? `<span class="cpu">${text}</span>` : '';
  const lines = [`<div class="bar head"><span class="name"></span><span></span><span class="figure">${row.counts ? 'bytes' : row.unit}</span>` +
                 `<span class="ratio">× weft</span>${cpu('CPU')}<span class="memory">${last}</span></div>`];
  results.forEach(r => {
    const tip = `data-tip="${escapeHtml(details(row, r))}"`;
    const name = `<span class="name">${escapeHtml(nameOf(r))}</span>`;
    if (r.status === 'failed') {
      lines.push(`<div class="bar failed" ${tip}>${name}<span></span><span class="note">failed: ${escapeHtml(r.note)}</span></div>`);
    } else if (r.status === 'recorded') {
      lines.push(`<div class="bar gone" ${tip}>${name}${barSvg(r, largest)}<span class="figure">–</span>` +
                 `<span class="ratio">${times(r.ratio.value)}</span>${cpu('')}<span class="memory"></span></div>`);
    } else {
      const ratio = r.ratio ? times(r.ratio.value) : '';
      const side = row.counts ? significant(r.allocations) : memory(r.peak_rss_kib);
      lines.push(`<div class="bar ${classOf(r)}" ${tip}>${name}${barSvg(r, largest)}` +
                 `<span class="figure">${significant(r.figure.value)}</span><span class="ratio">${ratio}</span>` +
                 `${cpu(r.cpu ? significant(r.cpu.value) : '')}<span class="memory">${side}</span></div>`);
      if (!row.counts && r.extra) lines.push(`<div class="extra">${extraOf(r).join(', ')}</div>`);
    }
  });
  return `<div class="bars${row.counts ? ' counts' : row.shows_cpu ? ' threads' : ''}">${lines.join('')}</div>`;
}

// ---- one workload at many sizes: curves ----------------------------------------------------------------------------

/** Round numbers (1, 2, 5 times a power of ten) within a range, for a logarithmic axis. */
function logTicks(low, high) {
  const all = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); ++e)
    for (const m of [1, 2, 5]) all.push(m * 10 ** e);
  const inside = all.filter(t => t >= low * 0.999 && t <= high * 1.001);
  return inside.length > 6 ? inside.filter(t => Number.isInteger(Math.round(1e6 * Math.log10(t)) / 1e6)) : inside;
}

const short = n => n >= 1e6 ? `${n / 1e6} M` : n >= 1e3 ? `${n / 1e3} k` : `${n}`;

/** Moves labels apart that would overlap, and keeps their order. */
function spread(labels, gap, top, bottom) {
  labels.sort((a, b) => a.y - b.y);
  labels.forEach((l, i) => { l.at = Math.max(l.y, i ? labels[i - 1].at + gap : top); });
  for (let i = labels.length - 1, end = bottom; i >= 0; --i, end = labels[i + 1].at - gap) labels[i].at = Math.min(labels[i].at, end);
}

function drawCurves(into, rows, valueOf, unit, tickText) {
  const series = new Map();
  for (const row of rows)
    for (const r of measured(row)) {
      const value = valueOf(row, r);
      if (!(value > 0)) continue;
      if (!series.has(nameOf(r))) series.set(nameOf(r), {r, points: []});
      series.get(nameOf(r)).points.push({size: row.size, value, row, r});
    }
  if (!series.size) return;
  const points = [...series.values()].flatMap(s => s.points);
  const width = into.clientWidth, height = Math.round(Math.min(340, Math.max(260, width * 0.62)));
  const left = 46, right = 104, top = 14, bottom = 34;
  const sizes = points.map(p => p.size), values = points.map(p => p.value);
  const sizeLow = Math.min(...sizes), sizeHigh = Math.max(...sizes);
  const low = Math.min(...values) / 1.15, high = Math.max(...values) * 1.15;
  const x = s => left + (width - left - right) * (sizeHigh > sizeLow ? Math.log(s / sizeLow) / Math.log(sizeHigh / sizeLow) : 0.5);
  const y = v => top + (height - top - bottom) * (1 - Math.log(v / low) / Math.log(high / low));

  let svg = '';
  for (const t of logTicks(low, high))
    svg += `<line class="grid" x1="${left}" x2="${width - right}" y1="${y(t)}" y2="${y(t)}"/>` +
           `<text x="${left - 8}" y="${y(t) + 4}" text-anchor="end">${tickText(t)}</text>`;
  const ticks = [...new Set(sizes)].sort((a, b) => b - a);
  const crowded = (width - left - right) / ticks.length < 36;
  for (const s of ticks.filter((_, i) => !crowded || i % 2 === 0)) svg += `<text x="${x(s)}" y="${height - bottom + 20}" text-anchor="middle">${short(s)}</text>`;
  svg += `<text x="0" y="${top - 4}">${unit}</text>`;

  const labels = [];
  for (const [name, s] of series) {
    s.points.sort((a, b) => a.size - b.size);
    labels.push({name, s, y: y(s.points.at(-1).value)});
  }
  spread(labels, 15, top + 4, height - bottom + 4);
  labels.sort((a, b) => (a.s.r.library === 'weft') - (b.s.r.library === 'weft'));  // weft on top
  for (const {name, s, y: from, at} of labels) {
    const kind = classOf(s.r), colour = colourOf(s.r), end = x(s.points.at(-1).size);
    const path = s.points.map((p, i) => `${i ? 'L' : 'M'}${x(p.size).toFixed(1)} ${y(p.value).toFixed(1)}`).join('');
    svg += `<g class="series ${kind}"><path class="hit" d="${path}"/><path class="curve ${kind}" d="${path}" stroke="${colour}"/>`;
    for (const p of s.points)
      svg += `<circle cx="${x(p.size)}" cy="${y(p.value)}" r="${kind === 'weft' ? 4 : 3}" fill="${colour}" data-tip="${escapeHtml(details(p.row, p.r))}"/>`;
    svg += `<path d="M${end + 6} ${from}L${end + 16} ${at}" stroke="${colour}" opacity="0.4" fill="none"/>` +
           `<text class="label ${kind}" x="${end + 20}" y="${at + 4}" style="fill:${colour}">${escapeHtml(name)}</text></g>`;
  }
  into.innerHTML = `<svg class="chart" height="${height}" viewBox="0 0 ${width} ${height}">${svg}</svg>`;
}

const redraws = [];

function addCurves(section, rows) {
  const charts = document.createElement('div');
  charts.className = 'charts';
  const titles = ['Time', ...(rows[0].shows_cpu ? ['Processor time'] : []), 'Memory, above what the program starts with'];
  charts.innerHTML = titles.map(title => `<div><h3>${title}</h3><div></div></div>`).join('');
  section.append(charts);
  const places = [...charts.children].map(c => c.lastElementChild);
  const time = places[0], space = places.at(-1);
  redraws.push(() => {
    drawCurves(time, rows, (_, r) => r.figure.value, rows[0].unit, t => String(+t.toPrecision(1)));
    if (rows[0].shows_cpu) drawCurves(places[1], rows, (_, r) => r.cpu?.value, rows[0].unit, t => String(+t.toPrecision(1)));
    drawCurves(space, rows, (_, r) => Math.max(r.peak_rss_kib - r.own_rss_kib, 64) / 1024, 'MiB', String);
  });
}

// ---- the page ------------------------------------------------------------------------------------------------------

/** What a person should know at first sight: weft's figure, and the next library's. */
function cardHtml(row) {
  const base = measured(row).find(r => r.library === 'weft');
  if (!base || row.counts) return '';
  const others = measured(row).filter(r => classOf(r) === 'peer' && r.ratio).sort((a, b) => a.ratio.value - b.ratio.value);
  const says = r => `${escapeHtml(nameOf(r))} <b>${times(r.ratio.value)}</b>`;
  const than = others.length === 0 ? '' : `the next: ${others.slice(0, 3).map(says).join(', ')}`;
  const [number, ...unit] = [significant(base.figure.value), row.unit];
  return `<div class="card"><div class="what">${escapeHtml(row.title)}</div>` +
      `<div class="figure">${number} <small>${unit}</small></div><div class="than">${than}</div></div>`;
}

function facts(title, object) {
  const entries = Object.entries(object).filter(([, v]) => v !== '' && v !== null && typeof v !== 'object');
  return `<div><h3>${title}</h3><dl>` +
      entries.map(([k, v]) => `<dt>${escapeHtml(k)}</dt><dd>${escapeHtml(v === true ? 'yes' : v === false ? 'no' : v)}</dd>`).join('') + '</dl></div>';
}

function aboutHtml() {
  const missing = Object.values(run.libraries).filter(l => !l.found);
  const failed = run.rows.flatMap(row => row.results.filter(r => r.status === 'failed').map(r => `${row.title}, ${nameOf(r)}: ${r.note}`));
  const versions = Object.fromEntries(Object.values(run.libraries).filter(l => l.found && l.version).map(l => [l.name, l.version]));
  let html = '<h2>How this was measured</h2>';
  html += `<p>Each pair of workload and library is a process of its own, checked for its result. A round runs all of them, one
    after the other on one core, so that the machine's drift hits all alike; a ratio is taken within each round.
    The figures are medians of ${run.rounds} rounds, the whiskers distribution-free intervals between two of the rounds.
    “Hand-written” is the least a coroutine can do, without a library's features; “plain calls” are no coroutines at all.</p>`;
  html += `<p>Again: <code>${escapeHtml(run.command)}</code></p>`;
  if (failed.length) html += `<div class="failures"><h3>Failed</h3>${failed.map(escapeHtml).join('<br>')}</div>`;
  if (run.left_out.length) html += `<h3>Left out of this run</h3><p>${run.left_out.map(escapeHtml).join('; ')}</p>`;
  if (missing.length)
    html += `<h3>Not on this machine</h3><p>${missing.map(l => `${escapeHtml(l.name)}: configure with <code>${escapeHtml(l.option)}/its/prefix</code>`).join('<br>')}</p>`;
  html += `<div class="columns">${facts('Machine', {...run.machine, 'stolen by the hypervisor': percent(run.stolen)})}` +
      `<div>${facts('Build', run.build)}${facts('Libraries', versions)}</div></div>`;
  return html;
}

function showTips() {
  const tip = byId('tip');
  const show = event => {
    const of = event.target.closest?.('[data-tip]');
    tip.hidden = !of;
    if (!of) return;
    if (tip.innerHTML !== of.dataset.tip) tip.innerHTML = of.dataset.tip;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${event.clientY + box.height + 28 > innerHeight ? event.clientY - box.height - 14 : event.clientY + 18}px`;
  };
  for (const kind of ['pointermove', 'pointerdown']) document.addEventListener(kind, show);
}

function show() {
  const machine = run.machine.cpu ?? 'an unknown machine';
  byId('subtitle').textContent = `${run.when.slice(0, 10)} · ${machine} · ${run.build.compiler} ${run.build.flags}`;
  byId('cards').innerHTML = run.rows.filter(row => ['chain', 'chain_opaque', 'collect_all'].includes(row.workload)).map(cardHtml).join('');
  byId('legend').innerHTML = [['weft', 'weft'], ['peer', 'a peer'], ['limit', 'the limit: no library at all']]
      .map(([c, text]) => `<span><i style="background:var(--${c})"></i>${text}</span>`).join('') +
      `<span>shorter is better · dots: the rounds · whisker: the median's interval</span>`;

  const workloads = [...new Set(run.rows.map(row => row.workload))];
  for (const workload of workloads) {
    const rows = run.rows.filter(row => row.workload === workload);
    const section = document.createElement('section');
    section.innerHTML = `<h2>${escapeHtml(workload)}<span>${escapeHtml(rows[0].about)}</span></h2><p></p>`;
    if (rows.length > 2 && !rows[0].counts) addCurves(section, rows);
    const shown = rows.length > 2 && !rows[0].counts && !rows[0].shows_cpu ? rows.slice(-1) : rows;  // of curves the last
    const cells = shown.map(row => `<div>${row.label ? `<h3>${escapeHtml(row.label)}</h3>` : ''}${barsHtml(row)}</div>`);
    section.insertAdjacentHTML('beforeend', `<div class="${shown.length > 1 ? 'charts' : ''}">${cells.join('')}</div>`);
    byId('sections').append(section);
  }
  byId('about').innerHTML = aboutHtml();

  const redraw = () => redraws.forEach(draw => draw());
  redraw();
  new ResizeObserver(redraw).observe(document.body);
  showTips();
}

show();
