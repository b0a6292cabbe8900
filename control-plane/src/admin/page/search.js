// SPDX-License-Identifier: Apache-2.0
// Where a request would go, term by term.

import { byId, count, delay, el, span, table, whenChanged } from './dom.js';

const OUTCOMES = {
  send: 'It would be sent',
  hold: 'It would wait at its sidecar',
  shed: 'It would be shed (429)',
  fallback: 'Envoy would choose (fallback)',
};

/** What a selection compares, in its order. */
const RULES = {
  baseline: 'a seeded shuffle by key, the first eligible host',
  random: 'any eligible host at random',
  dynamic: 'known in cache, then assumed in cache, then not cached; among equals the fewest in progress',
  rendezvous: 'the highest hash of key and host among eligible hosts',
  estimate: 'the least expected finish: wait, fetch if absent, run, each by speed; where jobs wait, a fetch counts for those too that it delays',
  hot_cold: 'cold hosts by delay, hot ones by requests in flight',
  caching_plan: 'the host that the plan names, else any at random',
};

export class Search {
  constructor(form, answer) {
    this.form = form;
    this.answer = answer;
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.ask();
    });
  }

  show(frame) {
    const names = Object.keys(frame.clusters);
    const select = byId('search-cluster');
    const { value } = select;
    whenChanged(select, names, () => names.map((name) => el('option', { value: name }, name)));
    if (names.includes(value)) select.value = value;
  }

  async ask() {
    const asked = new URLSearchParams(new FormData(this.form));
    let answer;
    try {
      answer = await (await fetch(`explain?${asked}`)).json();
    } catch {
      this.answer.replaceChildren(el('p', { class: 'bad' }, 'weir-control does not answer.'));
      return;
    }
    this.answer.replaceChildren(...(answer.outcome ? explained(answer) : [problem(answer)]));
  }
}

function problem({ parameter, reason, possible }) {
  const would = possible?.length ? ` Possible: ${possible.join(', ')}.` : '';
  return el('p', { class: 'bad' }, `${parameter}: ${reason}.${would}`);
}

function explained(it) {
  const all = [...it.ranked, ...it.others];
  const holders = all.filter((row) => row.cached !== 'no');
  const keyed = it.keys.length > 0;
  const said = [`${OUTCOMES[it.outcome] ?? it.outcome}: ${it.reason}.`];
  if (it.held_for_ms != null) said.push(`At most for ${span(it.held_for_ms)}.`);
  if (it.hedged_after_ms != null) said.push(`The second host is tried as well after ${span(it.hedged_after_ms)} without an answer.`);
  const parts = [
    el('p', { class: 'verdict', 'data-outcome': it.outcome }, said.join(' ')),
    el('p', {}, `Order: ${RULES[it.selection] ?? it.selection}. Class ${it.class}, rank ${it.rank}; a host admits it where its level is above that.`),
  ];
  if (keyed) {
    parts.push(el('p', {}, 'Holders: ', holders.length === 0
      ? 'none of the hosts shown'
      : holders.map((row) => `${row.address} (${row.cached}${it.keys.length > 1 ? `, ${row.cached_keys} of ${it.keys.length} keys` : ''})`).join(', ')));
  }
  if (it.ranked.length > 0) parts.push(el('h3', {}, 'Ranked, best first'), rows('Ranked hosts', it.ranked, true));
  if (it.others.length > 0) parts.push(el('h3', {}, 'Others'), rows('Other hosts', it.others, false));
  for (const fault of it.trouble) parts.push(el('p', { class: 'bad' }, fault));
  parts.push(el('p', { class: 'quiet' },
    `By table ${it.table_version}, ${span(it.table_age_ms)} old${it.cache_shards.length ? `; cache shard ${it.cache_shards.join(', ')}` : ''}. ${it.note}`));
  return parts;
}

function rows(caption, hosts, ranked) {
  const heads = ['Host', 'State', 'Admits', 'In cache', { text: 'In progress', number: true }, { text: 'Queued', number: true },
    { text: 'Queuing delay', number: true }, { text: 'Level', number: true }, { text: 'Cores', number: true }, 'Figures'];
  const judged = hosts.some((row) => row.estimate);
  if (judged) heads.splice(1, 0, { text: 'Done in', number: true }, { text: 'wait + (fetch + run) ÷ speed', number: true });
  const cells = hosts.map((row, index) => [
    el('span', { class: 'name' }, ranked ? `${index + 1}. ` : '', row.address, row.zone ? el('span', { class: 'quiet more' }, row.zone) : null),
    ...(judged ? terms(row.estimate) : []),
    row.state,
    row.admits ? 'yes' : el('span', { class: 'bad' }, 'no'),
    row.cached,
    count(row.in_progress),
    count(row.queued),
    delay(row.queuing_delay_ms),
    row.admission_level >= 4096 ? 'all' : count(row.admission_level),
    row.capacity_millicores ? (row.capacity_millicores / 1000).toLocaleString('en') : '–',
    figures(row),
  ]);
  const shown = hosts.length > 8 && !ranked ? 'scroll some' : 'scroll';
  return el('div', { class: shown, tabindex: 0, role: 'region', 'aria-label': caption }, table(caption, heads, cells));
}

/** A host that was not looked at has no terms. */
function terms(estimate) {
  if (!estimate) return ['–', 'not looked at'];
  const { wait_ms, fetch_ms, run_ms, speed, avoided } = estimate;
  const sum = `${delay(wait_ms)} + (${delay(fetch_ms)} + ${delay(run_ms)}) ÷ ${speed.toFixed(2)}`;
  return [delay(estimate.finish_ms), avoided ? `${sum}; avoided` : sum];
}

function figures(row) {
  if (row.load_age_ms == null) return row.trouble[0] ?? 'none';
  const age = `${span(row.load_age_ms)} old${row.load_from ? `, ${row.load_from}` : ''}`;
  return row.load_stale ? el('span', { class: 'bad' }, `${age}: stale, not counted`) : age;
}
