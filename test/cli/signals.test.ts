// Signals from the command line, and what `pawl job show` says about jobs that wait.
import { createPawl, defineJob, type JobDefinition, type Pawl } from 'pawl'
import { hardened } from 'pawl/rules'
import { describe, expect, it } from 'vitest'
import { freshStoreDatabase } from '../support/postgres/databases.ts'
import { linesOf, Place } from './pawl.ts'

const STORES = [
  { name: 'SQLite', open: async () => new Place() },
  { name: 'PostgreSQL', open: async () => new Place(await freshStoreDatabase()) },
]

const order = defineJob({ name: 'order' })
const NOBODY = '00000000-0000-7000-8000-00000000dead'
const HOUR = 3_600_000

interface Shown {
  readonly waitsFor?: { readonly for: string; readonly name: string; readonly until: number }
  readonly unreadSignals: readonly { readonly name: string; readonly key: string }[]
}

type Play = (pawl: Pawl, id: string) => Promise<unknown>

/** Enqueues a job in the store of a place. */
async function enqueued(
  place: Place,
  play: Play = async () => {},
  job: JobDefinition = order,
): Promise<string> {
  await using pawl = await createPawl({ store: place.store, jobs: [job] })
  const { id } = await pawl.enqueue(job, null)
  await play(pawl, id)
  return id
}

/** Claims the only job and lets its attempt wait; returns how the wait ended. */
async function wait({ store }: Pawl) {
  const [held] = await store.claim({ worker: 'w1', limit: 1, leaseMs: 60_000, start: true })
  const { id, attempt, execution } = held?.job ?? {}
  return store.waits.wait({
    id: id ?? '',
    fence: { attempt: attempt ?? 0, claim: execution?.claim ?? '' },
    wait: { for: 'signal', name: 'approval', n: 1, until: store.now() + HOUR },
  })
}

describe.each(STORES)('pawl signal on $name', { timeout: 60_000 }, ({ open }) => {
  it('approves and rejects what jobs ask for, with a name and a reason', async () => {
    const place = await open()
    const [yes, no] = [await enqueued(place, wait), await enqueued(place, wait)]
    const listed = await place.json('job', 'list', '--waits-for', 'approval')
    expect(listed.map((job) => (job as { id: string }).id).sort()).toEqual([yes, no].sort())
    const signed = ['--operator', 'ann', '--reason', 'checked']
    expect(await place.json('job', 'approve', yes, ...signed)).toMatchObject([{ done: 1 }])
    expect(await place.ok('job', 'reject', no, ...signed)).toBe('reject: 1 matched, 1 done\n')
    const again = await place.run(['job', 'reject', no, ...signed])
    expect(again.code).toBe(5)
    expect(`${again.stdout}${again.stderr}`).toContain('E_JOB_NOT_ASKING')
    await using pawl = await createPawl({ store: place.store })
    for (const [id, approved] of [
      [yes, true],
      [no, false],
    ] as const) {
      const { signals } = await pawl.store.waits.history(id)
      const payload = JSON.stringify({ approved })
      expect(signals).toMatchObject([{ name: 'approval', payload, by: 'ann', note: 'checked' }])
    }
  })

  it('sends a signal once per key, and the job that waits for it becomes ready', async () => {
    const place = await open()
    const id = await enqueued(place, wait)
    const line = ['signal', 'send', id, 'approval', '{"by":"ann"}', '--key', 'mail-7']
    const other = await place.json('signal', 'send', id, 'other')
    expect(other).toMatchObject([{ id, name: 'other', kind: 'sent', state: 'waiting' }])
    expect(await place.ok(...line)).toBe('sent\n')
    const again = await place.run(line)
    expect(again).toMatchObject({ code: 0, stdout: 'same\n' })
    expect(again.stderr).toContain('Nothing was stored')
    expect(await place.json(...line)).toEqual([
      { id, name: 'approval', key: 'mail-7', kind: 'same', state: 'queued' },
    ])
    await using pawl = await createPawl({ store: place.store })
    expect(await wait(pawl)).toMatchObject({
      kind: 'over',
      end: { kind: 'received', payload: '{"by":"ann"}' },
    })
  })

  it('takes the payload from stdin, and records who sent it', async () => {
    const place = await open()
    const id = await enqueued(place)
    const input = '{"day":{"@pawl:date":"2026-01-31T00:00:00.000Z"}}'
    const sent = await place.run(['signal', 'send', id, 'approval', '-'], { input })
    expect(sent).toMatchObject({ code: 0, stdout: 'sent\n' })
    await place.ok('signal', 'send', id, 'approval', '--reason', 'the mail was lost')
    await using pawl = await createPawl({ store: place.store })
    const { signals } = await pawl.store.waits.history(id)
    expect(signals.map(({ payload }) => payload)).toEqual([input, 'null'])
    const facts = (await pawl.store.facts(id)).filter(({ trigger }) => trigger === 'signal')
    expect(facts).toMatchObject([
      { actor: 'client' },
      { actor: 'operator', operator: 'ada', note: 'the mail was lost' },
    ])
    expect(facts[0]).not.toHaveProperty('operator')
  })

  it('lists signals as unread or received, and what the job waits for', async () => {
    const place = await open()
    const id = await enqueued(place)
    for (const key of ['first', 'second']) {
      await place.ok('signal', 'send', id, 'approval', `"${key}\\u001b"`, '--key', key)
    }
    const silent = await place.run(['signal', 'list', id])
    expect(silent.stdout).toMatch(/^2\t\S+ ago\tapproval\tfirst\tunread\t"first\\u001b"\n3\t/)
    expect(silent.stderr).toBe('The job does not wait now.\n')
    await using pawl = await createPawl({ store: place.store })
    expect(await wait(pawl)).toMatchObject({ kind: 'over' })
    const fence = { attempt: 1, claim: (await pawl.store.get(id))?.execution?.claim ?? '' }
    const next = { for: 'signal', name: 'payment', n: 1, until: null } as const
    await pawl.store.waits.wait({ id, fence, wait: next })
    const { stdout, stderr } = await place.run(['signal', 'list', id])
    expect(stdout).toMatch(/\tfirst\tby fact 5\t.*\n3\t.*\tsecond\tunread\t/)
    expect(stderr).toBe('The job waits for signal payment, without a time-out.\n')
    const lines = linesOf(await place.ok('signal', 'list', id, '--json'))
    expect(lines).toMatchObject([
      { kind: 'signal', id, key: 'first', received: true, receivedBy: 5, payload: 'first\u001b' },
      { kind: 'signal', id, key: 'second', received: false },
      { kind: 'wait', id, for: 'signal', name: 'payment', n: 1, until: null },
    ])
    const none = await place.run(['signal', 'list', await enqueued(place)])
    expect(none).toMatchObject({ code: 0, stdout: '' })
    expect(none.stderr).toMatch(/^The job has no signals\.\n/)
  })

  it('is refused with the exit code of the error, and stores nothing', async () => {
    const place = await open()
    const id = await enqueued(place)
    const ended = await enqueued(place, (pawl, own) => pawl.job(own).cancel())
    const strict = await enqueued(place, undefined, defineJob({ name: 'x', lifecycle: hardened }))
    const refused: [string[], number, RegExp][] = [
      [['send', NOBODY, 'approval'], 4, /E_JOB_NOT_FOUND/],
      [['send', ended, 'approval'], 5, /E_JOB_ENDED/],
      [['send', strict, 'approval'], 5, /E_UNSUPPORTED/],
      [['send', id, 'approval', '{by: ann}'], 2, /The payload is not JSON/],
      [['send', id, 'approval', '12345678901234567890'], 2, /cannot represent the number/],
      [['send', id, 'pawl.x'], 2, /E_DEFINITION_INVALID/],
      [['send', id, 'a\nb'], 2, /control characters/],
      [['send', id, 'approval', '--key', 'a\nb'], 2, /control characters/],
      [['send', id, 'approval', '--key', ''], 2, /--key must not be empty/],
      [['send', id, 'approval', '--operator', 'bob'], 2, /A reason is required/],
      [['send', id], 2, /Missing required argument 'name'/],
      [['send', id, 'approval', '1', '2'], 2, /Too many arguments/],
      [['list', NOBODY], 4, /E_JOB_NOT_FOUND/],
    ]
    for (const [args, code, why] of refused) {
      const answer = await place.run(['signal', ...args])
      expect([args, answer.code, answer.stdout]).toEqual([args, code, ''])
      expect(answer.stderr).toMatch(why)
    }
    const json = await place.run(['signal', 'send', ended, 'approval', '--json'])
    expect(linesOf(json.stderr)).toMatchObject([{ error: { code: 'E_JOB_ENDED' } }])
    expect(await place.json('signal', 'list', id)).toEqual([])
  })

  it('is shown by pawl job show: the wait with its end, and unread signals', async () => {
    const place = await open()
    const id = await enqueued(place, wait)
    await place.ok('signal', 'send', id, 'late', '--key', 'k1')
    const text = await place.ok('job', 'show', id)
    expect(text).toContain(`  unread     1 signal: late  (pawl signal list ${id})\n`)
    expect(text).toMatch(/#3 .* wait .* waits for signal approval 1\n/)
    expect(text).toMatch(/#4 .* signal .* signal late, key k1\n/)
    const [shown] = await place.json<Shown>('job', 'show', id)
    const until = new Date(shown?.waitsFor?.until ?? 0).toISOString()
    expect(text).toContain(`  waits for  signal approval, until ${until} (in `)
    expect(shown?.waitsFor).toMatchObject({ for: 'signal', name: 'approval', n: 1 })
    expect(shown?.unreadSignals).toMatchObject([{ seq: 4, name: 'late', key: 'k1' }])
    const listed = await place.json('job', 'list', '--waits-for', 'approval')
    expect(listed).toMatchObject([{ id }])
    expect(await place.json('job', 'list', '--waits-for', 'late')).toEqual([])
    await place.ok('job', 'cancel', id, '--reason', 'x')
    const after = await place.ok('job', 'show', id)
    expect(after).not.toContain('waits for  ')
    expect(after).toContain('  unread     1 signal: late')
    const [ended] = await place.json<Shown>('job', 'show', id)
    expect(ended).not.toHaveProperty('waitsFor')
    expect(ended?.unreadSignals).toHaveLength(1)
    const list = await place.run(['signal', 'list', id])
    expect(list.stderr).toBe('The job does not wait now.\n')
  })
})
