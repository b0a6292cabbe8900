// SPDX-License-Identifier: Apache-2.0
// What became of requests, as sidecars report it.

import { count, el, table, whenChanged } from './dom.js';
import { sum } from './past.js';

/** Rates are of so many seconds: reports come one a second, by turns. */
const OVER = 10;

const ANSWERS = {
  ok: 'ok',
  client_error: 'client error (4xx), or given back',
  server_error: 'server error (5xx)',
  no_answer: 'no answer',
};

export class Traffic {
  constructor(root, past) {
    this.root = root;
    this.past = past;
    this.frames = [];
  }

  /** Each frame of the stream, also while another moment is shown. */
  count(frame) {
    this.frames.push({ at: frame.unix_ms, traffic: frame.traffic });
    if (this.frames.length > OVER + 1) this.frames.shift();
  }

  show(frame) {
    const parts = Object.keys(frame.clusters).map((name) => (frame.isPast ? this.then(name, frame.row) : this.now(name)));
    whenChanged(this.root, parts, () => [...parts.flatMap(drawn), note()]);
  }

  then(name, row) {
    const rates = this.past.rates(name, row);
    return { name, isPast: true, rates };
  }

  now(name) {
    const [first, last] = [this.frames[0], this.frames.at(-1)];
    const seconds = (last.at - first.at) / 1000;
    const [before, after] = [first.traffic[name], last.traffic[name]];
    if (!after) return { name };
    const rate = (then, now) => (seconds > 0 && then != null ? Math.max(0, now - then) / seconds : null);
    const classes = Object.entries(after.offered).map(([number, offered]) => {
      const shed = after.shed[number] ?? 0;
      return {
        number,
        offered: rate(before?.offered[number] ?? 0, offered),
        shed: rate(before?.shed[number] ?? 0, shed),
        totalShed: shed,
      };
    });
    const answers = Object.entries(after.answers).map(([kind, total]) => [kind, rate(before?.answers[kind] ?? 0, total), total]);
    return {
      name,
      classes: classes.map(rounded),
      answers: answers.map(([kind, perSecond, total]) => [kind, tidy(perSecond), total]),
      held: [tidy(rate(before?.held ?? 0, after.held)), after.held],
      offered: sum(after.offered),
    };
  }
}

function tidy(rate) {
  return rate == null ? null : rate < 10 ? Math.round(rate * 10) / 10 : Math.round(rate);
}

const rounded = (it) => ({ ...it, offered: tidy(it.offered), shed: tidy(it.shed) });

function drawn(part) {
  const title = el('h3', {}, part.name);
  if (part.isPast) {
    if (!part.rates) return [title, el('p', { class: 'quiet' }, 'Nothing was kept.')];
    const { offered, shed } = part.rates;
    const rows = [['asked for a host', per(tidy(offered))], ['shed (answered 429)', per(tidy(shed))]];
    return [title, table(`Requests of ${part.name} then`, ['Requests', { text: 'a second', number: true }], rows),
      el('p', { class: 'quiet' }, 'By class they are not kept.')];
  }
  if (!part.offered) return [title, el('p', { class: 'quiet' }, 'No sidecar has reported requests since this process began.')];
  const heads = ['Class', { text: 'Offered / s', number: true }, { text: 'Shed / s', number: true }, { text: 'Share', number: true }, { text: 'Shed in all', number: true }];
  const rows = part.classes.map((it) => [
    className(it.number), per(it.offered), per(it.shed), share(it), count(it.totalShed)]);
  const results = [
    ...part.answers.map(([kind, perSecond, total]) => [ANSWERS[kind] ?? kind, per(perSecond), count(total)]),
    ['held (waited for a host)', per(part.held[0]), count(part.held[1])],
  ];
  const scroll = (label, inside) => el('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label }, inside);
  const byClass = `Requests of ${part.name} by class`;
  const byFate = `Requests of ${part.name} by what became of them`;
  return [title, el('div', { class: 'pair' },
    scroll(byClass, table(byClass, heads, rows)),
    scroll(byFate, table(byFate, ['What became of them', { text: 'A second', number: true }, { text: 'In all', number: true }], results)))];
}

function share(it) {
  if (!it.offered) return el('span', {}, '–');
  const part = Math.min(1, it.shed / it.offered);
  const bar = el('span', { class: 'gauge bad', 'aria-hidden': 'true' });
  bar.style.setProperty('--part', `${part * 100}%`);
  return el('span', { class: 'share' }, bar, `${Math.round(part * 100)} %`);
}

const per = (rate) => (rate == null ? '–' : rate.toLocaleString('en'));

/** As the filter names them unless its configuration has other names. */
function className(number) {
  const names = { 0: 'high', 16: 'low' };
  return names[number] ? `${number} (${names[number]})` : number;
}

function note() {
  return el('p', { class: 'quiet' },
    `Rates are of the last ${OVER} s. Shed: answered 429 by a sidecar. The reason of each choice sidecars do not report: it `
    + 'is in weir_decisions_total of each, by reason. Names of classes are the filter’s defaults.');
}
