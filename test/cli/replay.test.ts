// `pawl job replay`, `export` and `import`: a failure of one store, run again without it.
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Place } from './pawl.ts'

const JOBS = (charge: string) => `
import { appendFileSync } from 'node:fs'
import { defineJob } from 'pawl'
const note = (text: string) => appendFileSync('calls.txt', text + '\\n')
export const mail = defineJob({ name: 'mail', run: () => 'sent' })
export const order = defineJob({
  name: 'order',
  retry: { max: 0 },
  effects: { receipt: () => note('delivered') },
  async run({ input, step, enqueue, commit, jobId }) {
    const { item, password } = input as { item: string; password: string }
    const price = await step('price', () => { note('price'); return 7 })
    await enqueue(mail, { item })
    ${charge}
    return commit(async (tx) => {
      tx.effect('receipt', { price })
      return { jobId, price, password }
    })
  },
})
export const row = defineJob({ name: 'row', retry: { max: 0 }, run: ({ commit }) =>
  commit(async (tx) => { await tx.query('INSERT INTO rows VALUES (?)', [1]); return 1 }) })
`
const BROKEN = JOBS("throw new Error('no \\u001b[31mbank')")
const REPAIRED = JOBS('')

const FAMILY = `
import { defineJob, Terminal } from 'pawl'
export const child = defineJob({ name: 'child', run: ({ input }) => {
  if (input === 2) throw new Terminal('not two')
  return { of: input }
} })
export const parent = defineJob({ name: 'parent', run: async ({ invokeMany }) => {
  const all = await invokeMany('all', child, [1, 2])
  return all.map((one) => (one.kind === 'succeeded' ? one.output : one.kind))
} })
`

interface Replayed {
  readonly kind: string
  readonly output: unknown
  readonly recorded: { state: string; error: string }
  readonly knownSteps: string[]
  readonly steps: { name: string }[]
  readonly effects: object[]
  readonly enqueued: { type: string; input: unknown }[]
  readonly statement?: { sql: string }
}

/** A store in which an order has failed after its step. */
async function failedOrder() {
  const place = new Place()
  const write = (text: string) => writeFileSync(join(place.folder, 'jobs.ts'), text)
  write(BROKEN)
  const jobs = ['--jobs', 'jobs.ts']
  const input = '{"item":"tea","password":"s3cret"}'
  const [job] = await place.json<{ id: string }>('job', 'enqueue', 'order', input, ...jobs)
  await place.ok('work', '--once', ...jobs)
  const id = job?.id ?? ''
  const calls = () => readFileSync(join(place.folder, 'calls.txt'), 'utf8')
  return { place, id, write, jobs, calls }
}

describe('pawl job replay', () => {
  it('answers invoked jobs with their recorded outcomes', async () => {
    const place = new Place()
    writeFileSync(join(place.folder, 'jobs.ts'), FAMILY)
    const jobs = ['--jobs', 'jobs.ts']
    const [job] = await place.json<{ id: string }>('job', 'enqueue', 'parent', 'null', ...jobs)
    await place.ok('work', '--once', ...jobs)
    const [replayed] = await place.json<Replayed>('job', 'replay', job?.id ?? '', ...jobs)
    expect(replayed).toMatchObject({ kind: 'succeeded', output: [{ of: 1 }, 'failed'] })
  })

  it('runs the handler with recorded input and steps, and changes nothing', async () => {
    const { place, id, write, jobs, calls } = await failedOrder()
    expect(calls()).toBe('price\n')
    const before = await place.ok('audit', 'export', '--payloads')
    const same = await place.run(['job', 'replay', id, ...jobs])
    expect([same.code, same.stderr]).toEqual([1, expect.stringContaining('Nothing is written')])
    expect(same.stdout).toContain('steps     recorded: price\n')
    expect(same.stdout).toContain('enqueue   mail {"item":"tea"}  (not done)\n')
    expect(same.stdout).toMatch(/replayed {2}failed .*no \\x1b\[31mbank/)
    expect(same.stdout).toMatch(/^Error: no \\x1b\[31mbank\n {4}at .*jobs\.ts:\d+/m)

    write(REPAIRED)
    const [good] = await place.json<Replayed>('job', 'replay', id, ...jobs)
    expect(good).toMatchObject({
      kind: 'succeeded',
      output: { jobId: id, price: 7, password: 's3cret' },
      recorded: { error: expect.stringContaining('bank') },
      ...{
        knownSteps: ['price'],
        steps: [],
        effects: [{ name: 'receipt', payload: { price: 7 } }],
      },
      enqueued: [{ type: 'mail', input: { item: 'tea' } }],
    })
    expect(calls()).toBe('price\n')
    const live = await place.json<Replayed>('job', 'replay', id, '--live-step', 'price', ...jobs)
    expect(live[0]).toMatchObject({ knownSteps: [], steps: [{ name: 'price', result: 7 }] })
    expect(calls()).toBe('price\nprice\n')
    expect(await place.ok('audit', 'export', '--payloads')).toBe(before)
  })

  it('prints the SQL of a commit and does not run it', async () => {
    const { place, write, jobs } = await failedOrder()
    write(REPAIRED)
    const [job] = await place.json<{ id: string }>('job', 'enqueue', 'row', ...jobs)
    const { code, stdout } = await place.run(['job', 'replay', job?.id ?? '', ...jobs])
    expect(code).toBe(1)
    expect(stdout).toContain('query     INSERT INTO rows VALUES (?) [1]  (not run)\n')
    expect(stdout).toContain('which a replay does not do')
  })

  it('says what is missing', async () => {
    const { place, id, jobs } = await failedOrder()
    const none = '00000000-0000-7000-8000-000000000001'
    expect((await place.run(['job', 'replay', none, ...jobs])).code).toBe(4)
    expect((await place.run(['job', 'replay', ...jobs])).code).toBe(2)
    const noCode = await place.run(['job', 'replay', id])
    expect([noCode.code, noCode.stderr]).toEqual([2, expect.stringContaining('no code to replay')])
  })
})

describe('a bundle of pawl job export', () => {
  it('is replayed without the store, and has no secrets unless it is asked for', async () => {
    const { place, id, write, jobs } = await failedOrder()
    write(REPAIRED)
    await place.ok('job', 'export', id, '--out', 'job.ndjson')
    const text = readFileSync(join(place.folder, 'job.ndjson'), 'utf8')
    expect(text).not.toContain('s3cret')
    expect(text).toContain('"redacted":["password"')
    const elsewhere = `sqlite:${join(place.folder, 'nowhere.db')}`
    const args = ['--bundle', 'job.ndjson', '--store', elsewhere, ...jobs]
    const [safe] = await place.json<Replayed>('job', 'replay', ...args)
    expect(safe).toMatchObject({ kind: 'succeeded', output: { jobId: id, price: 7 } })
    expect(existsSync(join(place.folder, 'nowhere.db'))).toBe(false)
    expect(await place.ok('job', 'export', id, '--whole')).toContain('s3cret')
    const own = await place.ok('job', 'export', id, '--redact', 'ITEM')
    expect(own).toContain('s3cret')
    expect(own).not.toContain('tea')
    const again = await place.run(['job', 'export', id, '--out', 'job.ndjson'])
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('cannot be created')])
  })

  it('is imported as held jobs with the same ids and inputs, once', async () => {
    const { place, id, write, jobs, calls } = await failedOrder()
    write(REPAIRED)
    await place.ok('job', 'export', id, '--out', 'job.ndjson', '--redact', 'item')
    const store = ['--store', `sqlite:${join(place.folder, 'other.db')}`]
    const args = ['job', 'import', 'job.ndjson', ...jobs, ...store]
    const planned = await place.run([...args, '--dry-run'])
    expect(planned.stdout).toBe(`${id}  order  would be imported\n`)
    expect(existsSync(join(place.folder, 'other.db'))).toBe(false)
    const first = await place.run(args)
    expect([first.code, first.stdout]).toEqual([0, `${id}  order  imported\n`])
    expect(first.stderr).toContain('Values that the export has replaced are "[redacted]" in 1 ')
    expect(first.stderr).toContain('pawl job submit ID')
    expect(await place.ok(...args, '--run')).toBe(`${id}  order  exists\n`)
    const shown = await place.json<{ job: object; input: object }>('job', 'show', id, ...store)
    expect(shown[0]).toMatchObject({
      job: { id, type: 'order', state: 'created', attempt: 0, key: null },
      input: { item: '[redacted]', password: 's3cret' },
    })
    await place.ok('job', 'submit', id, '--reason', 'try', ...store)
    await place.ok('work', '--once', ...jobs, ...store)
    expect(calls()).toBe('price\nprice\ndelivered\n')
    const type = ['job', 'import', 'job.ndjson', '--store', `sqlite:${place.folder}/third.db`]
    expect(await place.ok(...type, '--run')).toContain('imported')
    const none = await place.run([...args, '00000000-0000-7000-8000-000000000001'])
    expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('does not have this job')])
  })

  it('that is damaged, hostile or of another version is refused', async () => {
    const { place, id, jobs } = await failedOrder()
    const lines = (await place.ok('job', 'export', id)).trimEnd().split('\n')
    const body = lines.slice(0, -1)
    const sealed = (own: readonly string[]) => {
      const text = own.map((line) => `${line}\n`).join('')
      return `${text}{"sha256":"${createHash('sha256').update(text).digest('hex')}"}\n`
    }
    const [head = '', first = '', ...rest] = body
    const hostile: [string, RegExp][] = [
      ['', /no checksum/],
      [`${body.join('\n')}\n`, /no checksum/],
      [`${lines.join('\n').replace('tea', 'tee')}\n`, /another checksum/],
      [`${lines.join('\n')}\n{}\n`, /comes after the checksum/],
      [sealed([head.replace('"version":1', '"version":2'), first]), /does not read; it reads 1/],
      [sealed(['{"format":"zip"}', first]), /does not say "format"/],
      [sealed([head, 'junk']), /Line 2 .* is not a JSON object/],
      [sealed([head, '{"fact":null,"payload":null}']), /no fact with the id of a job/],
      [sealed([head, ...rest]), /must have the fact 1/],
      [sealed([head, first, first]), /must have the fact 2/],
      [sealed([head, first.replace(/"payload":.*/, '"payload":7}')]), /no payload text/],
      [
        sealed([head, `{"fact":{"jobId":"${id}","seq":1,"trigger":"create"},"payload":null}`]),
        /job that/,
      ],
    ]
    for (const [text, why] of hostile) {
      writeFileSync(join(place.folder, 'bad.ndjson'), text)
      const { code, stderr } = await place.run(['job', 'replay', '--bundle', 'bad.ndjson', ...jobs])
      expect([code, stderr]).toEqual([2, expect.stringMatching(why)])
      expect(stderr).toContain('E_JOB_BUNDLE_INVALID')
    }
  })
})
