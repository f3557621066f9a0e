// Commands that take several names, exit codes of checks, and names that nobody knows.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { linesOf, Place } from './pawl.ts'
import { runPlace } from './run-place.ts'

const WHY = ['--reason', 'INC-7']

describe('a command with several names', () => {
  it('cancels each run that it can, and says which were refused', async () => {
    const own = runPlace()
    for (const id of ['a', 'c']) await own.run(['run', 'start', 'docs', '--id', id])
    const cancelled = await own.run(['run', 'cancel', 'a', 'b', 'c', ...WHY])
    expect(cancelled.code).toBe(4)
    const lines = cancelled.stdout.split('\n')
    expect(lines[0]).toBe('a cancelled')
    expect(lines[1]).toMatch(/^b refused: .*\(E_RUN_NOT_FOUND\)/)
    expect(lines[2]).toBe('c cancelled')
    const again = await own.run(['run', 'cancel', 'a', 'b', ...WHY, '--json'])
    expect(again.code).toBe(5)
    expect(linesOf(again.stdout)).toMatchObject([
      { run_id: 'a', error: { code: 'E_RUN_ENDED' } },
      { run_id: 'b', error: { code: 'E_RUN_NOT_FOUND' } },
    ])
    const one = await own.run(['run', 'cancel', 'b', ...WHY])
    expect(one).toMatchObject({ code: 4, stdout: '' })
    expect(one.stderr).toContain('E_RUN_NOT_FOUND')
  }, 60_000)

  it('pauses each queue that it can', async () => {
    const own = new Place()
    await own.ok('job', 'enqueue', 'send', '1', '--queue', 'mail')
    const paused = await own.run(['queue', 'pause', '', 'mail', ...WHY])
    expect(paused.code).toBe(2)
    expect(paused.stdout).toMatch(/refused: "queue" must not be empty .*\nmail paused\n$/)
  })
})

describe('exit codes of checks', () => {
  it('are 0 for a notice and 3 for damage', async () => {
    const own = runPlace()
    await own.run(['run', 'start', 'docs', '--id', 'd1'])
    const log = join(own.folder, 'runs/d1/events.ndjson')
    const text = readFileSync(log, 'utf8')
    writeFileSync(log, `${text}{"torn`)
    const noticed = await own.run(['run', 'verify'])
    expect(noticed).toMatchObject({ code: 0, stdout: /^d1 notice 6 bytes/ })
    expect(noticed.stderr).toBe('1 runs checked: 0 errors, 1 notices.\n')
    expect(await own.run(['run', 'list', '--check'])).toMatchObject({ code: 0 })
    writeFileSync(log, text.replace('RUN_CREATED', 'RUN_CREATEX'))
    expect(await own.run(['run', 'verify'])).toMatchObject({ code: 3 })
    expect(await own.run(['run', 'verify', 'd1', 'none'])).toMatchObject({ code: 4 })
    expect(await own.run(['run', 'list', '--check'])).toMatchObject({ code: 3 })
    expect(await own.run(['run', 'list'])).toMatchObject({ code: 0 })
    const explained = await own.run(['run', 'explain', 'd1'])
    expect(explained).toMatchObject({ code: 0, stderr: '' })
    expect(explained.stdout).toContain('damaged in line 1')
    expect(explained.stdout).not.toContain('fork')
  }, 60_000)
})

describe('a name without jobs', () => {
  it('is an error for a state, and a notice for a type and a queue', async () => {
    const own = new Place()
    await own.ok('job', 'enqueue', 'send', '1', '--queue', 'mail')
    for (const line of [
      ['job', 'list', '--state', 'nonsense'],
      ['job', 'cancel', '--state', 'nonsense', ...WHY, '--yes'],
      ['audit', 'list', '--to-state', 'nonsense'],
      ['audit', 'export', '--from-state', 'nonsense'],
    ]) {
      const { code, stderr } = await own.run(line)
      expect(stderr, line.join(' ')).toMatch(/must be a state of a lifecycle, one of .*queued/)
      expect(code).toBe(2)
    }
    const typed = await own.run(['job', 'list', '--type', 'sned'])
    expect(typed.code).toBe(0)
    expect(typed.stderr).toContain('this store has no job of type "sned"')
    const queued = await own.run(['job', 'cancel', '--queue', 'mial', ...WHY])
    expect(queued).toMatchObject({ code: 0, stdout: 'cancel: 0 matched\n' })
    expect(queued.stderr).toContain('this store has no job of queue "mial"')
    const quiet = await own.run(['job', 'list', '--type', 'send', '--state', 'failed'])
    expect(quiet.stderr).not.toContain('notice')
  }, 60_000)

  it('prints a notice when a queue without jobs is paused, resumed or limited', async () => {
    const own = new Place()
    await own.ok('job', 'enqueue', 'send', '1', '--queue', 'mail')
    for (const verb of [['pause'], ['resume'], ['limit', '--max-depth', '5']]) {
      const [word = '', ...options] = verb
      const told = await own.run(['queue', word, 'mial', ...options, ...WHY])
      expect(told.code).toBe(0)
      expect(told.stderr).toContain('mial: this queue has no jobs and no workers')
    }
    const [json] = await own.json('queue', 'pause', 'mial', ...WHY)
    expect(json).toMatchObject({ changed: true, notice: expect.stringContaining('no jobs') })
    const [mail] = await own.json('queue', 'pause', 'mail', ...WHY)
    expect(mail).not.toHaveProperty('notice')
  }, 60_000)

  it('is no value at all: an empty option is refused instead of passed over', async () => {
    const own = new Place()
    const id = (await own.ok('job', 'enqueue', 'send', '1')).trim()
    for (const [option, ...rest] of [
      ['--operator', '', ...WHY],
      ['--operator', '  ', ...WHY],
      ['--store', '', ...WHY],
    ]) {
      const { code, stderr } = await own.run(['job', 'cancel', id, option as string, ...rest])
      expect(stderr).toContain(`${option} must not be empty`)
      expect(code).toBe(2)
    }
    const blank = await own.run(['job', 'cancel', id, ...WHY], { env: { PAWL_OPERATOR: ' ' } })
    expect(blank).toMatchObject({ code: 2 })
    writeFileSync(join(own.folder, 'pawl.config.json'), '{"operator":""}')
    const config = await own.run(['job', 'cancel', id, ...WHY])
    expect(config.stderr).toContain('"operator" must not be empty')
    rmSync(join(own.folder, 'pawl.config.json'))
    expect(await own.json('job', 'list')).toMatchObject([{ state: 'queued' }])
  }, 60_000)
})
