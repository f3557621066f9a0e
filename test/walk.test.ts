// The walk of one job in docs/internals/architecture.md names files that the job really walks
// through: each of them runs between `enqueue` and `result()`.
import { readFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { createPawl, defineJob, type PawlEvent } from 'pawl'
import { expect, it } from 'vitest'

const invoice = defineJob({
  name: 'invoice',
  async run({ step, commit }) {
    const body = await step('render', () => 'Invoice')
    return commit((tx) => {
      tx.effect('email', body)
      return body
    })
  },
  effects: { email: () => {} },
})

it('the walk of one job names at most 22 files, and each of them has a part in it', async () => {
  const [, section = ''] = readFileSync('docs/internals/architecture.md', 'utf8').split(
    '## The walk of one job',
  )
  const [table = ''] = section.split('\n## ')
  const files = [...table.matchAll(/^\| ?\w* ?\| (.*?) \|/gm)].flatMap(([, cell = '']) => {
    const [first = '', ...others] = [...cell.matchAll(/`(.*?)`/g)].map(([, path = '']) => path)
    return [first, ...others.map((name) => first.replace(/[^/]+$/, name))]
  })
  const walked = files.filter((path) => path.startsWith('src/'))
  expect(walked.length).toBeGreaterThan(15)
  expect(walked.length).toBeLessThanOrEqual(22)

  let delivered = () => {}
  const delivery = new Promise<void>((resolve) => {
    delivered = resolve
  })
  const onEvent = ({ type }: PawlEvent) => type === 'effect' && delivered()
  await using pawl = await createPawl({ store: 'sqlite::memory:', jobs: [invoice], onEvent })
  await pawl.work({ checkup: false })
  using session = await coverage()
  const job = await pawl.enqueue(invoice, null)
  expect(await job.result()).toMatchObject({ kind: 'succeeded', output: 'Invoice' })
  await delivery
  const executed = await session.executed()
  expect(walked.filter((path) => !executed.some((url) => url.endsWith(`/${path}`)))).toEqual([])
})

/** Counts calls of functions from now on. */
async function coverage() {
  const session = new Session()
  session.connect()
  await session.post('Profiler.enable')
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
  return {
    async executed(): Promise<string[]> {
      const { result } = await session.post('Profiler.takePreciseCoverage')
      return result.flatMap(({ url, functions }) =>
        functions.some(({ functionName, ranges }) => functionName && ranges[0]?.count) ? [url] : [],
      )
    },
    [Symbol.dispose]: () => session.disconnect(),
  }
}
