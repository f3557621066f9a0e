// Measurements of handlers without activity and of changes of queues.
import { createTestPawl } from 'pawl/testing'
import { expect, it, onTestFinished } from 'vitest'
import { defineJob } from '../../src/engine/define-job.ts'
import { METRICS, type MetricLabels, type MetricName } from '../../src/engine/watching/metrics.ts'

it('silent handlers and changes of queues are counted', async () => {
  const counted: [MetricName, MetricLabels][] = []
  const metrics = {
    count: (name: MetricName, labels: MetricLabels) => void counted.push([name, labels]),
    observe() {},
    gauge() {},
  }
  const slow = defineJob({
    name: 'slow',
    queue: 'mail',
    stallWarning: '10s',
    run: ({ signal }) =>
      new Promise((_, stop) => signal.addEventListener('abort', () => stop(signal.reason))),
  })
  const test = await createTestPawl({ jobs: [slow], metrics })
  onTestFinished(() => test.close())
  const { pawl } = test
  await pawl.enqueue(slow, null)
  const worker = await pawl.work({ checkup: false })
  const of = (name: MetricName) => counted.filter(([one]) => one === name).map(([, own]) => own)
  for (let i = 0; i < 60 && of('pawl_handlers_silent_total').length === 0; i++) {
    await test.advance('1s')
  }
  expect(of('pawl_handlers_silent_total')[0]).toEqual({ queue: 'mail', kind: 'slow' })
  const ada = pawl.operator({ name: 'ada', reason: 'INC-7' })
  await ada.pauseQueue('mail')
  await ada.pauseQueue('mail')
  await ada.resumeQueue('mail')
  await ada.limitQueue('mail', { maxDepth: 5 })
  expect(of('pawl_queue_changes_total')).toEqual([
    { queue: 'mail', action: 'pause' },
    { queue: 'mail', action: 'resume' },
    { queue: 'mail', action: 'limit' },
  ])
  for (const [name, labels] of counted) expect(METRICS[name].labels).toEqual(Object.keys(labels))
  void worker.stop()
})
