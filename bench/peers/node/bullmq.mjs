// Drives BullMQ on Redis. Settings and where they are recommended:
//
// | setting | source |
// |---|---|
// | concurrency 100 | guide, "Parallelism and Concurrency": between 100 and 300 |
// | maxRetriesPerRequest null for the worker | guide, "Going to production" |
// | removeOnComplete, keep 1,000 | guide, "Auto-removal of jobs" |
// | Redis with an append-only file, synced every second | guide, "Going to production", "Persistence" |

import { Queue, Worker } from 'bullmq'
import IORedis from 'ioredis'
import { dueOf, measure, required, versionOf } from './measure.mjs'

const QUEUE = 'bench'
const CONCURRENCY = 100
const connect = () => new IORedis(required('REDIS_URL'), { maxRetriesPerRequest: null })

const queue = new Queue(QUEUE, {
  connection: connect(),
  defaultJobOptions: { removeOnComplete: { count: 1000 } },
})
await queue.waitUntilReady()

await measure({
  version: versionOf('bullmq'),
  settings: () => `concurrency ${CONCURRENCY}, removeOnComplete 1000, one process`,
  submit: (task) => queue.add('noop', task),
  submitBulk: (tasks) => queue.addBulk(tasks.map((data) => ({ name: 'noop', data }))),
  submitDelayed: (tasks) => queue.addBulk(tasks.map((data) => ({ name: 'noop', data, opts: { delay: dueOf(data) - Date.now() } }))),
  async work(part, start) {
    const run = async (job) => start(job.data)
    const worker = new Worker(QUEUE, run, { connection: connect(), concurrency: CONCURRENCY })
    worker.on('error', (error) => console.error(error))
    await worker.waitUntilReady()
  },
})
