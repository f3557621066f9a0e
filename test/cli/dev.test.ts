// `pawl dev` with real processes: results, reload, broken files, ports and its end.
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, it } from 'vitest'
import { isSame, lookAt } from '../../src/cli/dev/watch.ts'
import { freshFolder } from '../processes/folder.ts'
import { Place } from './pawl.ts'

interface Line {
  readonly event: string
  readonly url?: string
  readonly port?: number
  readonly worker?: string
  readonly types?: readonly string[]
  readonly state?: string
  readonly jobId?: string
  readonly message?: string
  readonly text?: string
  readonly keepsOld?: boolean
}

const JOBS = (answer: string) => `
import { defineJob } from 'pawl'
export const hello = defineJob({ name: 'hello', run: () => '${answer}' })
export const slow = defineJob({ name: 'slow', async run({ signal }) {
  await new Promise((done) => { setTimeout(done, 4000) })
  return 'slow'
} })
export const sick = defineJob({ name: 'sick', retry: { max: 0 }, run() {
  throw new Error('no bank', { cause: new Error('no route') })
} })
export const rude = defineJob({ name: 'rude', retry: { max: 0 }, run({ attempt }) {
  if (attempt === 1) process.exit(7)
  return 'back'
} })
`
/** The short lease lets a job of a killed process run again soon. */
const CONFIG = 'export default { jobs: "./jobs.ts", work: { lease: "2s" } }'
const env = { PAWL_STORE: '' }

/** A place with a configuration, and `pawl dev` in it. */
function startDev(jobs: string | undefined, args: readonly string[] = ['--port', '0']) {
  const place = new Place()
  writeFileSync(join(place.folder, 'pawl.config.mjs'), CONFIG)
  if (jobs !== undefined) writeFileSync(join(place.folder, 'jobs.ts'), jobs)
  const child = place.start(['dev', '--json', ...args], { env })
  let errors = ''
  child.stderr.on('data', (text: Buffer) => {
    errors += String(text)
  })
  const lines: Line[] = []
  const waiting = new Set<() => void>()
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(JSON.parse(line) as Line)
    for (const look of waiting) look()
  })
  /** Waits for the next line that matches, once. */
  const next = (matches: (line: Line) => boolean) =>
    new Promise<Line>((resolve, reject) => {
      const look = () => {
        const at = lines.findIndex(matches)
        if (at < 0) return
        waiting.delete(look)
        resolve(lines.splice(at, 1)[0] as Line)
      }
      waiting.add(look)
      look()
      child.once('exit', () => reject(new Error(`it ended: ${errors}`)))
    })
  const result = async (type: string) => {
    const line = ['job', 'enqueue', type, '--wait', '30s']
    return (await place.run(line, { env })).stdout.split('\n')[1]
  }
  return { place, child, next, result, errors: () => errors }
}

describe('pawl dev', () => {
  it('runs jobs, serves the API, takes changed files and ends cleanly', async () => {
    const { place, child, next, result } = startDev(JOBS('one'))
    const running = await next(({ event }) => event === 'running')
    expect([...(running.types ?? [])].sort()).toEqual(['hello', 'rude', 'sick', 'slow'])
    expect(await result('hello')).toBe('succeeded "one"')
    expect(await result('sick')).toBe('parked Error: no bank')
    const { text } = await next(({ event }) => event === 'threw')
    expect(text).toMatch(/^Error: no bank\n {4}at .*jobs\.ts:\d+(\n|.)*caused by Error: no route/)
    const jobs = await fetch(`${running.url}/api/v1/jobs`)
    expect(((await jobs.json()) as { items: object[] }).items).toHaveLength(2)
    expect(readFileSync(join(place.folder, '.pawl', '.gitignore'), 'utf8')).toBe('*\n')

    // A running job is finished by the old process; the new one has the port and the new code.
    const slow = (await place.run(['job', 'enqueue', 'slow'], { env })).stdout.trim()
    await next(({ event, jobId }) => event === 'started' && jobId === slow)
    writeFileSync(join(place.folder, 'jobs.ts'), JOBS('two'))
    const changed = await next(({ event }) => event === 'running')
    expect(changed.url).toBe(running.url)
    expect(changed.worker).not.toBe(running.worker)
    expect(await result('hello')).toBe('succeeded "two"')
    const done = await next(({ event, jobId }) => event === 'reported' && jobId === slow)
    expect(done).toMatchObject({ state: 'succeeded', attempt: 1 })

    child.kill('SIGINT')
    expect(await once(child, 'exit')).toEqual([0, null])
    await expect(fetch(`${running.url}/healthz`)).rejects.toThrow()
    const [worker] = await place.json<{ activity: string }>(
      'worker',
      'list',
      '--store',
      `sqlite:${join(place.folder, '.pawl/jobs.db')}`,
    )
    expect(worker?.activity).not.toBe('working')
  }, 60_000)

  it('keeps the last good worker when a file breaks, and takes the repaired one', async () => {
    const { place, next, result } = startDev(JOBS('good'))
    const running = await next(({ event }) => event === 'running')
    const path = join(place.folder, 'jobs.ts')
    for (const broken of [
      'export const hello = (',
      'throw new Error("at load")',
      'process.exit(3)',
    ]) {
      writeFileSync(path, broken)
      const failed = await next(({ event }) => event === 'failed')
      expect(failed.keepsOld).toBe(true)
      const health = await fetch(`${running.url}/healthz`)
      expect(health.status).toBe(200)
    }
    writeFileSync(path, JOBS('repaired'))
    await next(({ event }) => event === 'running')
    expect(await result('hello')).toBe('succeeded "repaired"')
    // The configuration can break as well, and it can go.
    writeFileSync(join(place.folder, 'pawl.config.mjs'), 'export default { jbs: 1 }')
    expect((await next(({ event }) => event === 'failed')).message).toContain('"jbs" is not known')
    rmSync(join(place.folder, 'pawl.config.mjs'))
    expect((await next(({ event }) => event === 'running')).types).toEqual([])
  }, 60_000)

  it('serves the API without a worker while no file can be loaded', async () => {
    const { place, next, result } = startDev('import "./nowhere.ts"')
    expect((await next(({ event }) => event === 'failed')).keepsOld).toBe(false)
    const bare = await next(({ event }) => event === 'running')
    expect(bare.worker).toBeUndefined()
    expect((await fetch(`${bare.url}/healthz`)).status).toBe(200)
    writeFileSync(join(place.folder, 'jobs.ts'), JOBS('at last'))
    const running = await next(({ event }) => event === 'running')
    expect(running.url).toBe(bare.url)
    expect(await result('hello')).toBe('succeeded "at last"')
  }, 60_000)

  it('starts the worker again when your code ends its process', async () => {
    const { place, next } = startDev(JOBS('one'))
    const first = await next(({ event }) => event === 'running')
    const id = (await place.run(['job', 'enqueue', 'rude'], { env })).stdout.trim()
    const second = await next(({ event }) => event === 'running')
    expect(second.worker).not.toBe(first.worker)
    const done = await next(({ event, jobId }) => event === 'reported' && jobId === id)
    expect(done.state).toBe('succeeded')
  }, 90_000)

  it('takes another port if the wanted one is taken', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as { port: number }
    const { next, child } = startDev(JOBS('one'), ['--port', String(port)])
    const running = await next(({ event }) => event === 'running')
    expect(running.port).not.toBe(port)
    expect((await fetch(`${running.url}/healthz`)).status).toBe(200)
    server.close()
    child.kill('SIGTERM')
    await once(child, 'exit')
  }, 60_000)

  it('leaves no worker behind when it is killed', async () => {
    const { child, next } = startDev(JOBS('one'))
    const { url } = await next(({ event }) => event === 'running')
    child.kill('SIGKILL')
    await once(child, 'exit')
    for (;;) {
      const isThere = await fetch(`${url}/healthz`).then(
        () => true,
        () => false,
      )
      if (!isThere) break
    }
  }, 60_000)
})

it('a look at files notices content, new files and removed ones, but not what is ignored', () => {
  const folder = freshFolder()
  const look = () => lookAt([folder], [])
  let last = look()
  const hasChanged = () => {
    const found = look()
    const isOther = !isSame(last, found)
    last = found
    return isOther
  }
  writeFileSync(join(folder, 'a.ts'), '1')
  expect(hasChanged()).toBe(true)
  writeFileSync(join(folder, 'a.ts'), '22')
  expect(hasChanged()).toBe(true)
  mkdirSync(join(folder, 'deep'))
  expect(hasChanged()).toBe(false)
  writeFileSync(join(folder, 'deep', 'b.mjs'), '')
  expect(hasChanged()).toBe(true)
  rmSync(join(folder, 'a.ts'))
  expect(hasChanged()).toBe(true)
  for (const name of ['node_modules', '.pawl', 'dist']) {
    mkdirSync(join(folder, name))
    writeFileSync(join(folder, name, 'c.js'), '')
  }
  writeFileSync(join(folder, 'result.json'), '{}')
  expect(hasChanged()).toBe(false)
  writeFileSync(join(folder, 'pawl.config.json'), '{}')
  expect(hasChanged()).toBe(true)
})
