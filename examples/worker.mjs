// A Duly worker in Node.js 20 without packages: node worker.mjs [SERVER]. See README.md.
import { setTimeout as sleep } from 'node:timers/promises';
const handlers = { 'word-count': async ({ text }) => ({ words: text.split(/\s+/).filter(Boolean).length }) }; // add yours
const server = process.argv[2] ?? 'http://127.0.0.1:8080', slots = 4, headers = { 'content-type': 'application/json' };
const session = { seq: 0, sending: Promise.resolve() }, waiting = [], running = new Set(), outcomes = [], stop = new AbortController();

async function call(path, body, method = 'POST', seconds = 5, cut = new AbortController().signal) {
  for (let wait = 0.05; !cut.aborted; await sleep(wait * (1000 + 500 * Math.random()))) { // all are safe to repeat
    const options = { method, headers, signal: AbortSignal.any([cut, AbortSignal.timeout(seconds * 1000)]) };
    const answer = await fetch(`${server}/v1${path}`, { ...options, body: body && JSON.stringify(body) }).catch(() => null);
    const text = await answer?.text().catch(() => null);
    if (answer?.ok && text != null) return JSON.parse(text || '{}');
    if (text?.includes('SESSION_NOT_FOUND')) return null;
    if (answer?.status >= 400 && answer.status < 500 && answer.status !== 429) throw new Error(text);
    wait = Number(answer?.headers.get('retry-after')) || Math.min(2 * wait, 2);
  }
}

async function claim() {
  const hello = { name: `node-${process.pid}`, types: Object.keys(handlers) };
  if (!session.seq) Object.assign(session, await call('/sessions', hello), { seq: 1 });
  const { sessionId, seq } = session, ask = { sessionId, seq, max: slots, waitSeconds: 20 };
  const answer = await call('/leases', ask, 'POST', 25, stop.signal); // null: the session has ended
  session.seq = answer ? seq + Math.sign(answer.leases.length) : 0; // up once leases arrived; 0: register again
  for (const { task, epoch } of answer?.leases ?? []) waiting.push({ ...task, epoch, seq, abort: new AbortController() });
}

async function slot() {
  const claimed = () => session.claiming ??= claim().finally(() => { session.claiming = undefined; }); // one at a time
  while (!stop.signal.aborted) await (waiting.length ? run(waiting.shift()) : claimed());
}

async function run(task) { // a handler's second argument is a signal: cancelled, lost or out of time
  const signal = AbortSignal.any([task.abort.signal, AbortSignal.timeout(Math.ceil((task.timeoutSeconds ?? 1800) * 1000))]);
  if (running.add(task) && signal.aborted) return running.delete(task);
  try { await finish(task, { outcome: 'success', result: await handlers[task.type](task.payload, signal) }); }
  catch (error) { await finish(task, { outcome: 'retry', error: { code: 'NODE', message: `${error}` } }); }
}

function finish(task, ended) { // takes along what has piled up while the last call was under way
  outcomes.push({ taskId: task.taskId, epoch: task.epoch, ...ended });
  const send = (batch) => batch.length && call('/leases/finish', { sessionId: session.sessionId, outcomes: batch });
  const sent = session.sending.then(() => send(outcomes.splice(0, 1000))).catch(console.error);
  return session.sending = sent.then(() => running.delete(task));
}

for (const name of ['SIGTERM', 'SIGINT']) process.once(name, () => stop.abort());
for (let count = 0; count < slots; count += 1) slot();
while (!stop.signal.aborted || running.size) { // heartbeats, also while the last tasks finish
  await sleep((session.heartbeatSeconds ?? 0.1) * 1000, 0, { signal: stop.signal }).catch(() => sleep(100));
  if (stop.signal.aborted) for (const task of waiting.splice(0)) finish(task, { outcome: 'release' });
  const held = [...waiting, ...running], received = [...new Set(held.map((task) => task.seq))];
  const body = { received, unstarted: waiting.map((task) => task.taskId) };
  const answer = session.sessionId && await call(`/sessions/${session.sessionId}/heartbeat`, body);
  const gone = new Set([...answer?.lost ?? [], ...answer?.cancel ?? []].map(({ taskId, epoch }) => taskId + epoch));
  for (const task of held) if (gone.has(task.taskId + task.epoch)) task.abort.abort();
  if (answer?.drain) stop.abort();
}
await session.sending.then(() => session.sessionId && call(`/sessions/${session.sessionId}`, undefined, 'DELETE'));
process.exit(); // the server has taken back what was left
