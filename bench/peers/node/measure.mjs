// What is measured of a peer on Node, and how: the same for each of them, and the same definitions
// as bench/peers/rust/src and bench/peers/celery/driver.py.
//
// A driver is called as `node DRIVER PEER PART TASKS` on an empty store and prints one line of JSON
// per figure. It gives `measure` an object with
//   version, settings(part),
//   submit(task), submitBulk(tasks), submitDelayed(tasks)   resolve when the peer has taken them
//   work(part, start)                                       starts workers; each task calls start(task)

import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

const BULK = 1000
const PAUSE_MS = 10 // between lone tasks: the last one's outcome is stored, the peer is idle again
const LEAD_MS = 8000 // from the first submit of delayed tasks to the first due time
const SPREAD_MS = 10_000 // over so long the delayed tasks are due
const TEXT = '0123456789012345678901234567890123456789012' // fills the payload up to about 100 bytes

export const required = (variable) => {
  const value = process.env[variable]
  if (!value) throw new Error(`${variable} is not set: bench/peers/run sets it`)
  return value
}

export const versionOf = (name) =>
  JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url))).version

export async function measure(peer) {
  const [name, part, count] = process.argv.slice(2)
  const parts = { single, backlog, idle, delayed }
  if (!parts[part]) throw new Error('usage: node DRIVER PEER single|backlog|idle|delayed TASKS')
  const figures = await parts[part](peer, Number(count))
  for (const [figure, value, unit] of figures) {
    const row = { peer: name, version: peer.version, figure, value, unit, settings: peer.settings(part) }
    console.log(JSON.stringify(row))
  }
  process.exit(0) // the stores are thrown away, so workers need not end in order
}

// performance.now() has the resolution, Date.now() alone only milliseconds.
const clock = () => performance.timeOrigin + performance.now()
const payload = (number, due = clock()) => ({ number, due_micros: Math.round(due * 1000), text: TEXT })
export const dueOf = (task) => new Date(task.due_micros / 1000)

async function single(peer, tasks) {
  const start = performance.now()
  for (let number = 0; number < tasks; number++) await peer.submit(payload(number))
  return [rate('submit single', tasks, performance.now() - start)]
}

async function backlog(peer, tasks) {
  const start = performance.now()
  await inBulk(tasks, payload, (bulk) => peer.submitBulk(bulk))
  const submit = performance.now() - start
  const starts = await new Starts(tasks).of((record) => peer.work('backlog', record))
  const times = starts.map(({ at }) => at)
  // No-ops: the start of the last is its end.
  const drain = times.reduce((a, b) => Math.max(a, b)) - times.reduce((a, b) => Math.min(a, b))
  return [rate('submit bulk', tasks, submit), rate('drain', tasks, drain)]
}

async function idle(peer, tasks) {
  let started
  await peer.work('idle', (task) => started({ number: task.number, at: performance.now() }))
  const lone = async (number) => {
    const start = new Promise((resolve) => (started = resolve))
    const submitted = performance.now()
    await peer.submit(payload(number))
    const { number: ran, at } = await start
    if (ran !== number) throw new Error(`task ${ran} ran instead of ${number}`)
    return at - submitted
  }
  await lone(tasks) // shows that the worker is there; connections and plans are warm after it
  const millis = []
  for (let number = 0; number < tasks; number++) {
    await sleep(PAUSE_MS)
    millis.push(await lone(number))
  }
  return percentiles('idle latency', millis)
}

async function delayed(peer, tasks) {
  const starts = new Starts(tasks)
  const all = starts.of((record) => peer.work('delayed', record))
  await peer.submit(payload(tasks))
  await starts.warm
  const begin = Math.ceil(clock()) + LEAD_MS // whole milliseconds: finer is not everybody's
  const due = (number) => begin + Math.floor((SPREAD_MS * number) / tasks)
  await inBulk(tasks, (number) => payload(number, due(number)), (bulk) => peer.submitDelayed(bulk))
  if (clock() > begin) throw new Error(`storing ${tasks} delayed tasks took longer than ${LEAD_MS} ms`)
  const millis = (await all).map(({ late }) => late)
  const early = millis.filter((late) => late < 0).length
  return [...percentiles('lateness', millis), ['early', early, 'tasks']]
}

async function inBulk(tasks, make, submit) {
  for (let first = 0; first < tasks; first += BULK) {
    const length = Math.min(BULK, tasks - first)
    await submit(Array.from({ length }, (_, index) => make(first + index)))
  }
}

// The first start of each task; a task that runs twice counts once.
class Starts {
  #seen
  #first = []
  #warmed
  #done

  constructor(tasks) {
    this.#seen = new Uint8Array(tasks)
    this.warm = new Promise((resolve) => (this.#warmed = resolve))
  }

  async of(work) {
    const done = new Promise((resolve) => (this.#done = resolve))
    await work((task) => this.#record(task))
    await done
    return this.#first
  }

  #record({ number, due_micros }) {
    if (number >= this.#seen.length) return this.#warmed()
    if (this.#seen[number]) return
    this.#seen[number] = 1
    this.#first.push({ at: performance.now(), late: clock() - due_micros / 1000 })
    if (this.#first.length === this.#seen.length) this.#done()
  }
}

const rate = (figure, tasks, millis) => [figure, (tasks / millis) * 1000, 'tasks/s']

function percentiles(figure, millis) {
  millis.sort((a, b) => a - b)
  const at = (share) => millis[Math.floor((millis.length - 1) * share)]
  return [['p50', 0.5], ['p99', 0.99], ['max', 1]].map(([label, share]) => [`${figure} ${label}`, at(share), 'ms'])
}
