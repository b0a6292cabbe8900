// SPDX-License-Identifier: Apache-2.0
// Events of the server, each second.

const SILENT_MS = 4000;
const AGAIN_MS = 3000;

/** Calls `frame` with each event, and `said` with the state of the stream: `live`, `silent` or `refused`. */
export function follow(frame, said) {
  let heard = performance.now();
  let state = '';
  const say = (next, why) => {
    if (state === next) return;
    state = next;
    said(next, why);
  };
  const open = () => {
    const source = new EventSource('events');
    source.onmessage = (event) => {
      heard = performance.now();
      say('live');
      frame(JSON.parse(event.data));
    };
    source.onerror = async () => {
      // A stream that broke off comes back by itself; one that was refused does not.
      if (source.readyState !== EventSource.CLOSED) return;
      say('refused', await whyNot());
      setTimeout(open, AGAIN_MS);
    };
  };
  open();
  setInterval(() => {
    if (state !== 'refused' && performance.now() - heard > SILENT_MS) say('silent');
  }, 1000);
}

/** A stream does not say why it is refused; a question does. */
async function whyNot() {
  const stop = new AbortController();
  try {
    const answer = await fetch('events', { signal: stop.signal });
    return answer.ok ? 'trying again' : (await answer.text()).trim();
  } catch {
    return 'it does not answer';
  } finally {
    stop.abort();
  }
}
