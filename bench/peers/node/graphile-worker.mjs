// Drives graphile-worker on PostgreSQL. Settings and where they are recommended:
//
// | setting | source |
// |---|---|
// | concurrentJobs 24, maxPoolSize 25, localQueue.size 500, completeJobBatchDelay and failJobBatchDelay 0 | documentation, "Performance", the configuration of its quick stats |
// | pollInterval 2000 ms | its default |

import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import { dueOf, measure, required, versionOf } from './measure.mjs'

const quiet = new Logger(() => (level, message) => {
  if (level === 'error') console.error(message)
})
const preset = {
  worker: {
    connectionString: required('DATABASE_URL'),
    concurrentJobs: 24,
    maxPoolSize: 25,
    localQueue: { size: 500 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
    logger: quiet,
  },
}
const utils = await makeWorkerUtils({ preset })
await utils.migrate()

await measure({
  version: versionOf('graphile-worker'),
  settings: () => 'concurrentJobs 24, maxPoolSize 25, localQueue 500, batched completion without delay, one process',
  submit: (task) => utils.addJob('noop', task),
  submitBulk: (tasks) => utils.addJobs(tasks.map((payload) => ({ identifier: 'noop', payload }))),
  submitDelayed: (tasks) => utils.addJobs(tasks.map((payload) => ({ identifier: 'noop', payload, runAt: dueOf(payload) }))),
  async work(part, start) {
    await run({ preset, taskList: { noop: async (task) => start(task) } })
  },
})
