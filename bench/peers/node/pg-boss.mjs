// Drives pg-boss on PostgreSQL. Settings and where they are recommended:
//
// | setting | source |
// |---|---|
// | batchSize 10,000 for a backlog | documentation, "Workers", `batchSize`: many jobs per fetch; the number is our choice |
// | pollingIntervalSeconds 0.5 | documentation, "Workers": the smallest that it allows |
// | batchSize 200 otherwise | our choice: all that is due in one poll |

import PgBoss from 'pg-boss'
import { dueOf, measure, required, versionOf } from './measure.mjs'

const QUEUE = 'bench'
const batchSize = (part) => (part === 'backlog' ? 10_000 : 200)

const boss = new PgBoss(required('DATABASE_URL'))
boss.on('error', (error) => console.error(error))
await boss.start()
await boss.createQueue(QUEUE)

await measure({
  version: versionOf('pg-boss'),
  settings: (part) => `batchSize ${batchSize(part)}, poll every 0.5 s, one process`,
  submit: (data) => boss.send(QUEUE, data),
  submitBulk: (tasks) => boss.insert(tasks.map((data) => ({ name: QUEUE, data }))),
  submitDelayed: (tasks) => boss.insert(tasks.map((data) => ({ name: QUEUE, data, startAfter: dueOf(data) }))),
  async work(part, start) {
    const options = { batchSize: batchSize(part), pollingIntervalSeconds: 0.5 }
    await boss.work(QUEUE, options, async (jobs) => jobs.forEach(({ data }) => start(data)))
  },
})
