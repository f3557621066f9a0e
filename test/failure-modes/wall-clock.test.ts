// Real processes on one SQLite file whose wall clocks differ and step. libfaketime fakes them; it
// is tried both with and without the monotonic clock of the process.
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LIFECYCLES } from '../../src/core/lifecycles/index.ts'
import { Doctor } from '../../src/doctor/doctor.ts'
import { systemEnvironment } from '../../src/environment/system.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import type { TimeChange, TimeStatus } from '../../src/stores/store-time.ts'

const LIBRARY = ['x86_64-linux-gnu', 'aarch64-linux-gnu']
  .map((platform) => `/usr/lib/${platform}/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path))
const PROGRAM = fileURLToPath(new URL('clock-process.mjs', import.meta.url))
const TIMEOUT_MS = 120_000
const LEASE_MS = 2000

interface Said {
  readonly kind: 'ready' | 'answer' | 'started' | 'lost' | 'expired' | 'time'
  readonly change?: TimeChange
  readonly ids?: string[]
  readonly jobs?: { state: string; attempt: number; crashes: number; runAt: number }[]
  readonly explanation?: { kind: string }
  readonly now?: number
  readonly status?: TimeStatus
}

/** A process with a wall clock of its own. */
class ClockProcess {
  readonly said: Said[] = []
  readonly #child: ChildProcess
  #heard: () => void = () => {}

  constructor(order: { store: string; id: string; works: boolean }, clock: NodeJS.ProcessEnv) {
    const env = { ...process.env, ...clock }
    this.#child = fork(PROGRAM, [JSON.stringify(order)], { env, execArgv: [] })
    this.#child.on('message', (said: Said) => {
      this.said.push(said)
      this.#heard()
    })
  }

  /** The first thing said since `from` that matches. */
  async until(matches: (said: Said) => boolean, from = 0): Promise<Said> {
    for (;;) {
      const found = this.said.slice(from).find(matches)
      if (found !== undefined) return found
      await new Promise<void>((resume) => {
        this.#heard = resume
      })
    }
  }

  async ask(question: object): Promise<Said> {
    const from = this.said.length
    this.#child.send(question)
    return this.until(({ kind }) => kind === 'answer', from)
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const ended = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await ended
  }

  count(kind: Said['kind']): number {
    return this.said.filter((said) => said.kind === kind).length
  }
}

for (const fakes of ['wall clock', 'wall clock and monotonic clock'] as const) {
  describe.skipIf(LIBRARY === undefined)(`with processes whose ${fakes} libfaketime fakes`, () => {
    let folder = ''
    let processes: ClockProcess[] = []

    beforeEach(() => {
      folder = mkdtempSync(join(tmpdir(), 'pawl-clock-'))
    })
    afterEach(async () => {
      for (const one of processes) await one.kill()
      processes = []
      rmSync(folder, { recursive: true, force: true })
    })

    const store = () => `sqlite:${join(folder, 'jobs.db')}`

    async function start(id: string, clock: NodeJS.ProcessEnv = {}): Promise<ClockProcess> {
      const faked = Object.keys(clock).length > 0
      const real = { DONT_FAKE_MONOTONIC: '1', FAKETIME_DONT_FAKE_MONOTONIC: '1' }
      const env = {
        ...(faked && { LD_PRELOAD: LIBRARY }),
        ...(fakes === 'wall clock' && real),
        ...clock,
      }
      const one = new ClockProcess({ store: store(), id, works: id.startsWith('worker') }, env)
      processes.push(one)
      await one.until(({ kind }) => kind === 'ready')
      return one
    }

    async function untilEnded(asked: ClockProcess, ids: readonly string[]) {
      for (;;) {
        const { jobs = [] } = await asked.ask({ ask: 'jobs', ids })
        if (jobs.every(({ state }) => state === 'succeeded')) return jobs
      }
    }

    /** Every job has ended in its first attempt, and the doctor finds nothing. */
    async function expectUntouched(asked: ClockProcess, ids: readonly string[]): Promise<void> {
      for (const job of await untilEnded(asked, ids)) {
        expect(job).toMatchObject({ attempt: 1, crashes: 0 })
      }
      for (const one of processes) expect([one.count('lost'), one.count('expired')]).toEqual([0, 0])
      const environment = systemEnvironment()
      const opened = await openSqliteStore({ path: join(folder, 'jobs.db'), environment })
      try {
        const doctor = new Doctor({ store: opened, environment, lifecycles: LIFECYCLES })
        const { findings } = await doctor.check({ full: true })
        expect(findings.filter(({ severity }) => severity === 'error')).toEqual([])
      } finally {
        await opened.close()
      }
    }

    it('jobs start at once and keep their attempts, whoever enqueues and runs them', {
      timeout: TIMEOUT_MS,
    }, async () => {
      const ids: string[] = []
      const all = [
        await start('worker-1'),
        await start('worker-2', { FAKETIME: '+600s' }),
        await start('client-1', { FAKETIME: '-600s' }),
        await start('client-2', { FAKETIME: '+30s' }),
        await start('client-3', { FAKETIME: '-30s' }),
      ]
      const times = await Promise.all(all.map((one) => one.ask({ ask: 'time' })))
      const nows = times.map(({ now }) => now as number)
      expect(Math.max(...nows) - Math.min(...nows)).toBeLessThan(1000)
      for (const one of all) {
        const order = { ask: 'enqueue', name: 'long', input: { ms: LEASE_MS * 1.5 }, count: 8 }
        ids.push(...((await one.ask(order)).ids ?? []))
      }
      const { explanation } = await (all[2] as ClockProcess).ask({ ask: 'explain', ids })
      expect(explanation?.kind).not.toBe('no-worker')
      await expectUntouched(all[3] as ClockProcess, ids)
    })

    it('a job of a dead worker ten minutes ahead is recovered within lease and two seconds', {
      timeout: TIMEOUT_MS,
    }, async () => {
      const dead = await start('worker-1', { FAKETIME: '+600s' })
      const client = await start('client-1')
      await client.ask({ ask: 'enqueue', name: 'long', input: { ms: 3_600_000 }, count: 1 })
      await dead.until(({ kind }) => kind === 'started')
      const heir = await start('worker-2', { FAKETIME: '-30s' })
      const killedAt = performance.now()
      await dead.kill()
      await heir.until(({ kind }) => kind === 'expired')
      expect(performance.now() - killedAt).toBeLessThan(LEASE_MS + 2000)
    })

    // A monotonic clock that is set back stops the timers of Node itself.
    const steps = fakes === 'wall clock' ? ['+30', '-600', '+600', '-30'] : ['+30', '+600']

    it('steps of the wall clock during work cost no attempt', { timeout: TIMEOUT_MS }, async () => {
      const file = join(folder, 'offset')
      const setOffset = (text: string) => writeFileSync(file, `${text}\n`)
      const clock = { FAKETIME_TIMESTAMP_FILE: file, FAKETIME_NO_CACHE: '1' }
      setOffset('+0')
      const worker = await start('worker-1', clock)
      const client = await start('client-1')
      const order = { ask: 'enqueue', name: 'long', input: { ms: LEASE_MS * 4 }, count: 8 }
      const { ids = [] } = await client.ask(order)
      for (let i = 0; i < 8; i++) await worker.until(({ kind }) => kind === 'started', i)
      for (const step of steps) {
        const before = worker.count('time')
        setOffset(step)
        await worker.until(() => worker.count('time') > before, worker.said.length)
        const late = await client.ask({ ask: 'enqueue', name: 'quick', count: 2 })
        ids.push(...(late.ids ?? []))
      }
      await start('worker-2', { FAKETIME: '+600s' })
      await expectUntouched(client, ids)
    })
  })
}

it.skipIf(LIBRARY !== undefined)(
  'libfaketime is not installed: wall clocks are not faked',
  () => {},
)
