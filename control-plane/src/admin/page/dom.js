// SPDX-License-Identifier: Apache-2.0
// Elements and words. All text goes in as text: names of hosts and reasons come from strangers.

export const byId = (id) => document.getElementById(id);

/** An element with attributes and children; strings are text. */
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(key, '');
    else if (value !== false && value != null) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child != null));
  return element;
}

const shown = new WeakMap();

/** Sets the text of an element if it is another one. */
export function text(element, value) {
  if (shown.get(element) === value) return;
  shown.set(element, value);
  element.textContent = value;
}

/** Sets or removes an attribute if it is another one. */
export function attribute(element, name, value) {
  if (value == null || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) {
    element.setAttribute(name, value);
  }
}

/** Rebuilds what depends on a value only when the value has changed. */
export function whenChanged(element, value, build) {
  const key = JSON.stringify(value);
  if (shown.get(element) === key) return;
  shown.set(element, key);
  element.replaceChildren(...build());
}

/** A table with a caption for those who do not see it. */
export function table(caption, heads, rows) {
  const head = heads.map((name) => el('th', { scope: 'col', class: name.number ? 'number' : null }, name.text ?? name));
  const body = rows.map((cells) =>
    el('tr', {}, ...cells.map((cell, index) => cellOf(cell, heads[index], index))));
  return el('table', {},
    el('caption', { class: 'hidden' }, caption),
    el('thead', {}, el('tr', {}, ...head)),
    el('tbody', {}, ...body));
}

function cellOf(cell, head, index) {
  const kind = head.number ? 'number' : null;
  return index === 0
    ? el('th', { scope: 'row', class: kind }, cell)
    : el('td', { class: kind }, cell);
}

export const UNKNOWN = '–';

// To make one takes longer than to use it.
const WHOLE = new Intl.NumberFormat('en');
const COMPACT = new Intl.NumberFormat('en', { notation: 'compact' });

export function count(value) {
  if (value == null || value < 0) return UNKNOWN;
  return (value < 1e6 ? WHOLE : COMPACT).format(value);
}

/** By three digits: a phone has room for no more. */
export function delay(ms) {
  if (ms == null || ms < 0) return UNKNOWN;
  if (ms === 0) return '0 ms';
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  return `${(ms / 1000).toFixed(ms < 9950 ? 2 : 1)} s`;
}

/** A span of time, by its two largest units. */
export function span(ms) {
  if (ms == null) return UNKNOWN;
  const s = Math.round(ms / 1000);
  if (ms < 1000) return `${ms} ms`;
  if (s < 10) return `${(ms / 1000).toFixed(1)} s`;
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}

export function bytes(value) {
  return value < 1e6 ? `${Math.round(value / 1e3)} kB` : `${(value / 1e6).toFixed(1)} MB`;
}

/** A number of things in words. */
export const of = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

export const clock = (unixMs) => new Date(unixMs).toLocaleTimeString('en-GB');
