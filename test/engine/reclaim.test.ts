// A worker that takes a job back which it had itself lost.
import { LeaseLost } from 'pawl'
import { expect, it } from 'vitest'
import { defineJob } from '../../src/engine/define-job.ts'
import type { Store } from '../../src/stores/contract/store.ts'
import { EngineBench } from './bench.ts'

it('claiming a lost job again aborts the first attempt, and keeps the second', async () => {
  const ends: (() => void)[] = []
  const reasons: unknown[] = []
  const slow = defineJob({
    name: 'slow',
    retry: { max: 0, delay: 0, jitter: 0 },
    run: async ({ attempt, signal }) => {
      signal.addEventListener('abort', () => reasons.push([attempt, signal.reason]))
      await new Promise<void>((resolve) => ends.push(resolve))
      return attempt
    },
  })
  let deaf = true
  const bench = await EngineBench.open(
    [slow],
    (store) =>
      new Proxy(store, {
        get(target, name) {
          if (name === 'heartbeat' && deaf)
            return async () => {
              throw new Error('not now')
            }
          const value = Reflect.get(target, name) as unknown
          return typeof value === 'function' ? value.bind(target) : value
        },
      }) as Store,
  )
  await bench.work({ concurrency: 2, lease: '3s' })
  const job = await bench.pawl.enqueue(slow, null)
  await bench.until(() => ends.length === 2)
  deaf = false
  expect(reasons).toHaveLength(1)
  expect(reasons[0]).toEqual([1, expect.any(LeaseLost)])
  ends[0]?.()
  const end = bench.environment.clock.now() + 10_000
  await bench.until(() => bench.environment.clock.now() > end)
  ends[1]?.()
  const outcome = await bench.finish(job.result())
  expect(outcome).toMatchObject({ kind: 'succeeded', output: 2, job: { attempt: 2, crashes: 1 } })
})
