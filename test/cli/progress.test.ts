// Long commands show how far they have come, on a terminal and nowhere else.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { createPawl, defineJob } from 'pawl'
import { describe, expect, it } from 'vitest'
import { runLine } from '../../src/cli/command-line.ts'
import { freshFolder } from '../processes/folder.ts'

const job = defineJob({ name: 'job', run: () => 1 })
const JOBS = 1200
const AS = ['--operator', 'ada', '--reason', 'test', '--yes']

/** A store with many jobs that wait. */
async function full(): Promise<{ store: string; folder: string }> {
  const folder = freshFolder()
  const store = `sqlite:${join(folder, 'jobs.db')}`
  await using pawl = await createPawl({ store, jobs: [job] })
  await pawl.enqueueMany(
    job,
    Array.from({ length: JOBS }, () => ({ input: null })),
  )
  return { store, folder }
}

/** Runs a line in this process; only stderr is a terminal, as in `pawl … > file`. */
async function said(store: string, args: readonly string[], isTTY = true): Promise<string> {
  let text = ''
  const stderr = new Writable({
    write(chunk, _encoding, done) {
      text += String(chunk)
      done()
    },
  })
  const stdout = new Writable({ write: (_chunk, _encoding, done) => done() })
  const { signal } = new AbortController()
  const code = await runLine(args, {
    env: { ...process.env, PAWL_STORE: store },
    stdin: Readable.from([]) as NodeJS.ReadStream,
    stdout,
    stderr: Object.assign(stderr, { isTTY }),
    listen: () => ({ interrupted: signal, interruptedAgain: signal }),
  })
  expect([args, code, text]).toEqual([args, 0, expect.anything()])
  return text
}

const ERASE = '\r\u001b[K'

describe('progress on a terminal', () => {
  it('is one line of bulk commands, the doctor, exports and retention', async () => {
    const { store, folder } = await full()
    const file = join(folder, 'facts.ndjson')
    expect(await said(store, ['doctor', '--full'])).toContain(`${ERASE}${JOBS} jobs checked …`)
    const exported = await said(store, ['audit', 'export', '--out', file])
    expect(exported).toBe(`${ERASE}1000 facts exported …${ERASE}Written to ${file}.\n`)
    expect(readFileSync(file, 'utf8').split('\n')).toHaveLength(JOBS + 1)
    const cancelled = await said(store, ['job', 'cancel', '--type', 'job', ...AS])
    expect(cancelled).toContain(`${ERASE}cancel: ${JOBS} jobs …${ERASE}`)
    expect(cancelled).toContain(`cancel would change: ${JOBS} matched`)
    // The shortest time to keep jobs is a second, after which there is something to remove.
    const remove = () => said(store, ['retention', 'run', '--cancelled', '1s', ...AS])
    await expect.poll(remove, { timeout: 20_000 }).toMatch(/\d+ jobs removed …/)
  })

  it('is erased before the result', async () => {
    const { store } = await full()
    const text = await said(store, ['doctor', '--full'])
    expect(text.lastIndexOf(ERASE)).toBe(text.length - ERASE.length)
  })

  it('is not written with --json, or if stderr is not a terminal', async () => {
    const { store } = await full()
    expect(await said(store, ['doctor', '--full', '--json'])).toBe('')
    expect(await said(store, ['doctor', '--full'], false)).not.toContain('checked')
    const quiet = await said(store, ['job', 'cancel', '--type', 'job', ...AS], false)
    expect(quiet).not.toContain('\r')
  })
})
