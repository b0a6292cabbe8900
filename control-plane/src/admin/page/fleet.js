// SPDX-License-Identifier: Apache-2.0
// The clusters, each with a strip of a cell a host.

import { UNKNOWN, count, delay, el, of, span, text } from './dom.js';
import { load } from './past.js';

const ALL = 4096;
const STEPS = 6;

export class Fleet {
  /** `chosen` is told of the host that a cell stands for. */
  constructor(root, colour, chosen) {
    this.root = root;
    this.chosen = chosen;
    this.cards = new Map();
    this.colour = 'load';
    this.readColours();
    colour.addEventListener('change', (event) => {
      this.colour = event.target.value;
      this.repaint();
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
      this.readColours();
      this.repaint();
    });
    new ResizeObserver(() => this.repaint()).observe(root);
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(name).trim();
    this.steps = Array.from({ length: STEPS }, (_, step) => colour(`--heat-${step}`));
    this.bad = colour('--bad');
    this.quiet = colour('--line-strong');
    this.ground = colour('--card');
  }

  show(frame) {
    this.frame = frame;
    for (const name of this.cards.keys()) {
      if (!frame.clusters[name]) {
        this.cards.get(name).card.remove();
        this.cards.delete(name);
      }
    }
    for (const [name, cluster] of Object.entries(frame.clusters)) this.showCluster(name, cluster, frame);
  }

  showCluster(name, cluster, frame) {
    let parts = this.cards.get(name);
    if (!parts) {
      parts = newCard(name);
      parts.canvas.addEventListener('click', (event) => {
        const host = this.hostAt(name, event);
        if (host) this.chosen(host.host);
      });
      parts.canvas.addEventListener('mousemove', (event) => {
        const host = this.hostAt(name, event);
        parts.canvas.title = host ? `${host.host}: ${this.words(host)}` : '';
      });
      this.cards.set(name, parts);
      this.root.append(parts.card);
    }
    const { total } = cluster;
    const out = [[total.draining, 'draining'], [total.down, 'down'], [total.stale, 'stale']].filter(([n]) => n > 0);
    text(parts.up, `${count(total.up)} of ${count(total.hosts)}`);
    text(parts.out, out.map(([n, word]) => `${count(n)} ${word}`).join(', ') || 'none out');
    text(parts.load, count(total.in_progress));
    text(parts.queued, `of them ${count(total.queued)} queued`);
    text(parts.delay, delay(total.worst_delay_ms));
    const worst = cluster.hosts.find((host) => !host.stale && host.delay_ms === total.worst_delay_ms);
    text(parts.worst, worst && total.worst_delay_ms > 0 ? worst.host : '');
    const levels = cluster.hosts.map((host) => host.level ?? ALL);
    const lowest = levels.reduce((low, level) => Math.min(low, level), ALL);
    text(parts.level, levels.length === 0 ? UNKNOWN : lowest === ALL ? 'all' : `${Math.floor(lowest / ALL * 100)} %`);
    text(parts.restricted, total.restricted === 0 ? 'nobody restricted' : `${of(total.restricted, 'host')} restricted`);
    parts.level.classList.toggle('bad', lowest < ALL);
    parts.out.classList.toggle('bad', total.down > 0);
    const age = cluster.table_age_ms == null ? '' : ` · table ${cluster.version ?? ''}, ${span(cluster.table_age_ms)} old`;
    text(parts.policy, `selection ${cluster.selection} · overload ${cluster.overload}${frame.isPast ? '' : age}`);
    this.paint(name, cluster, parts);
  }

  repaint() {
    if (!this.frame) return;
    for (const [name, parts] of this.cards) this.paint(name, this.frame.clusters[name], parts);
  }

  value(host) {
    if (this.colour === 'level') return ALL - (host.level ?? ALL);
    if (this.colour === 'delay') return host.delay_ms ?? -1;
    return load(host.in_progress, host.queued);
  }

  words(host) {
    const jobs = load(host.in_progress, host.queued);
    const level = host.level == null ? 'admits all' : `admits ${host.level} of ${ALL} ranks`;
    return `${host.state}, load ${count(jobs)}, delay ${delay(host.delay_ms)}, ${level}`;
  }

  paint(name, cluster, parts) {
    const { canvas, legend } = parts;
    const width = parts.card.clientWidth - 32;
    const hosts = cluster.hosts;
    if (width <= 0) return;
    const cell = hosts.length <= 48 ? 26 : hosts.length <= 300 ? 17 : 12;
    const across = Math.max(1, Math.floor(width / cell));
    const height = Math.ceil(hosts.length / across) * cell;
    const scale = devicePixelRatio;
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    parts.grid = { cell, across };
    const floor = this.colour === 'level' ? ALL : this.colour === 'delay' ? 20 : 8;
    const most = this.colour === 'level' ? ALL : hosts.reduce((top, host) => Math.max(top, this.value(host)), floor);
    const context = canvas.getContext('2d');
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    hosts.forEach((host, index) => {
      const x = (index % across) * cell;
      const y = Math.floor(index / across) * cell;
      this.cell(context, host, x, y, cell - 2, most);
    });
    this.explain(legend, most);
    const { total } = cluster;
    const label = `${of(total.hosts, 'host')} of ${name} by ${this.colour === 'delay' ? 'queuing delay' : this.colour}: `
      + `${count(total.up)} up, ${count(total.draining)} draining, ${count(total.down)} down. The table of hosts has each.`;
    if (canvas.getAttribute('aria-label') !== label) canvas.setAttribute('aria-label', label);
  }

  cell(context, host, x, y, size, most) {
    const value = this.value(host);
    const step = value <= 0 ? 0 : Math.min(STEPS - 1, 1 + Math.floor(value / most * (STEPS - 1)));
    if (host.state === 'up' && value >= 0 && !host.stale) {
      context.fillStyle = this.steps[step];
      context.fillRect(x, y, size, size);
      return;
    }
    // Not by colour alone: what drains has a frame, what is down a cross, what is not known a dot.
    context.strokeStyle = host.state === 'down' ? this.bad : this.quiet;
    context.lineWidth = 1.5;
    context.strokeRect(x + 1, y + 1, size - 2, size - 2);
    if (host.state === 'down') {
      context.beginPath();
      context.moveTo(x + 2, y + 2);
      context.lineTo(x + size - 2, y + size - 2);
      context.moveTo(x + size - 2, y + 2);
      context.lineTo(x + 2, y + size - 2);
      context.stroke();
    } else if (value < 0 || host.stale) {
      context.fillStyle = this.quiet;
      context.fillRect(x + size / 2 - 1, y + size / 2 - 1, 2, 2);
    } else {
      context.fillStyle = this.steps[step];
      // Of a thousand hosts each has 10 pixels: any smaller, this would be the dot.
      context.fillRect(x + 3, y + 3, size - 6, size - 6);
    }
  }

  explain(legend, most) {
    const least = this.colour === 'level' ? 'admits all' : '0';
    const top = this.colour === 'level' ? 'nothing' : this.colour === 'delay' ? delay(most) : `${count(most)} jobs`;
    text(legend.least, least);
    text(legend.most, top);
  }

  hostAt(name, event) {
    const { canvas, grid } = this.cards.get(name);
    const box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / grid.cell);
    const row = Math.floor((event.clientY - box.top) / grid.cell);
    return column < grid.across ? this.frame.clusters[name]?.hosts[row * grid.across + column] : undefined;
  }
}

function newCard(name) {
  const figure = (label) => {
    const value = el('dd', { class: 'value' });
    const more = el('dd', { class: 'quiet' });
    return [el('div', {}, el('dt', {}, label), value, more), value, more];
  };
  const [hosts, up, out] = figure('Hosts up');
  const [loads, loadValue, queued] = figure('In progress');
  const [delays, delayValue, worst] = figure('Worst queuing delay');
  const [levels, level, restricted] = figure('Lowest admission level');
  const policy = el('p', { class: 'quiet' });
  const canvas = el('canvas', { role: 'img', class: 'strip' });
  const least = el('span');
  const most = el('span');
  const ramp = Array.from({ length: STEPS }, (_, step) => el('i', { class: `heat-${step}` }));
  const marks = el('span', { class: 'marks' },
    el('i', { class: 'mark draining' }), ' draining ', el('i', { class: 'mark down' }), ' down ',
    el('i', { class: 'mark unknown' }), ' not known or stale');
  const legend = el('p', { class: 'legend quiet', 'aria-hidden': 'true' }, least, ...ramp, most, marks);
  const card = el('article', { class: 'card', 'aria-label': `Cluster ${name}` },
    el('div', { class: 'bar' }, el('h3', {}, name), policy),
    el('dl', { class: 'figures' }, hosts, loads, delays, levels), canvas, legend);
  return { card, up, out, load: loadValue, queued, delay: delayValue, worst, level, restricted, policy, canvas, legend: { least, most } };
}

