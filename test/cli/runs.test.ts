// `pawl run`: runs as users meet them on the command line.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { ended, linesOf, said } from './pawl.ts'
import { runPlace as place } from './run-place.ts'

interface Said {
  readonly type?: string
  readonly outcome?: string
  readonly run_state?: string
}

describe('pawl run', () => {
  it('starts, explains, resumes, shows and verifies a run', async () => {
    const own = place()
    const start = await own.run(['run', 'start', 'docs', '{"a":1}', '--id', 'd1'])
    expect(start).toMatchObject({ code: 1, stdout: 'd1 DRAFTING\n' })
    expect(start.stderr).toContain('there is no ink')
    expect(start.stderr).toContain('pawl run resume d1')
    const [explained] = await own.json('run', 'explain', 'd1', '--force', 'draft')
    expect(explained).toMatchObject({
      continuesIn: 'PLAN_READY',
      items: [{ key: 'draft', verdict: 'run', because: 'forced' }],
    })
    writeFileSync(join(own.folder, 'ink'), '')
    const lines = await own.json<Said>('run', 'resume', 'd1')
    expect(lines[0]).toMatchObject({ type: 'RESUME_REWIND' })
    expect(lines.at(-1)).toMatchObject({ outcome: 'done', run_state: 'DONE' })
    expect(lines.some(({ type }) => type === 'WORK_ITEM_STARTED')).toBe(false)
    expect(await own.ok('run', 'list')).toMatch(/^d1\tDONE\trun\t\d+\t1\/1\t0\n$/)
    expect(await own.json('run', 'show', 'd1', '--at', '1')).toMatchObject([
      { run_state: 'CREATED', last_seq: 1 },
    ])
    expect(await own.json('run', 'diff', 'd1', '--from', '6', '--to', '7')).toContainEqual({
      path: ['run_state'],
      before: 'PLAN_READY',
      after: 'DRAFTING',
    })
    expect(await own.json('run', 'events', 'd1', '--type', 'RUN_CREATED')).toHaveLength(1)
    expect(await own.run(['run', 'verify'])).toMatchObject({ code: 0 })
    const snapshot = readFileSync(join(own.folder, 'runs/d1/snapshot.json'), 'utf8')
    expect(await own.ok('run', 'replay', 'runs/d1')).toBe(snapshot)
  }, 60_000)

  it('reports the damage of a log before and after it is recorded', async () => {
    const own = place()
    await own.run(['run', 'start', 'docs', '--id', 'd1'])
    const log = join(own.folder, 'runs/d1/events.ndjson')
    // Line 3 stays valid by itself; only the hash in line 4 shows that it was changed.
    const lines = readFileSync(log, 'utf8').split('\n')
    lines[2] = (lines[2] as string).replace(/"span_id":"[^"]*"/, '"span_id":"0000000000000000"')
    writeFileSync(log, lines.join('\n'))
    const explained = await own.ok('run', 'explain', 'd1')
    expect(explained).toContain('damaged in line 3')
    expect(explained).toContain('resuming it records the damage and fails the run')
    const [{ damage }] = (await own.json('run', 'explain', 'd1')) as [{ damage: object }]
    expect(damage).toMatchObject({ line: 3 })
    await own.run(['run', 'resume', 'd1'])
    expect(await own.json('run', 'show', 'd1')).toMatchObject([{ run_state: 'FAILED', damage }])
    expect(await own.ok('run', 'show', 'd1', '--at', '2')).not.toContain('damaged in line')
    const shown = await own.ok('run', 'show', 'd1', '--at', '3')
    expect(shown).toContain('damaged in line 3')
    expect(shown).toContain('SnapshotInvalid')
  }, 60_000)

  it('carries a run elsewhere, forks it, links a commit, and cancels the fork', async () => {
    const own = place()
    await own.run(['run', 'start', 'docs', '--id', 'd1'])
    await own.ok('run', 'export', 'd1', '--out', 'd1.bundle')
    expect(await own.ok('run', 'import', 'd1.bundle', '--dir', 'other')).toBe('d1\n')
    expect(await own.ok('run', 'replay', 'd1', '--dir', 'other')).toBe(
      await own.ok('run', 'replay', 'd1'),
    )
    expect(await own.ok('run', 'fork', 'd1', '--at', '3', '--id', 'd2')).toBe('d2\n')
    await own.ok('run', 'link', 'd2', 'e'.repeat(40))
    await own.ok('run', 'cancel', 'd2', '--reason', 'not needed')
    const [shown] = await own.json('run', 'show', 'd2')
    expect(shown).toMatchObject({ run_state: 'CANCELLED', commits: ['e'.repeat(40)] })
    expect(await own.run(['run', 'resume', 'd2'])).toMatchObject({ code: 5 })
  }, 60_000)

  it('ends with the exit code that says what is wrong', async () => {
    const own = place()
    await own.run(['run', 'start', 'docs', '--id', 'd1'])
    const cases: [string[], number, RegExp][] = [
      [['run', 'show', 'nope'], 4, /E_RUN_NOT_FOUND/],
      [['run', 'start', 'nope'], 4, /E_NAME_UNKNOWN/],
      [['run', 'start', 'docs', '--id', 'd1'], 5, /E_RUN_EXISTS/],
      [['run', 'start', 'docs', '--id', '../x'], 2, /E_RUN_NAME_INVALID/],
      [['run', 'start', 'docs', '{'], 2, /E_USAGE/],
      [['run', 'resume', 'd1', '--force', 'nope'], 4, /E_WORK_UNKNOWN/],
      [['run', 'cancel', 'd1'], 2, /E_USAGE/],
      [['run', 'list', '--dir', 'nowhere'], 4, /E_STORE_MISSING/],
    ]
    for (const [args, code, pattern] of cases) {
      const result = await own.run(args)
      expect([args, result.code]).toEqual([args, code])
      expect(result.stderr).toMatch(pattern)
    }
    const log = join(own.folder, 'runs/d1/events.ndjson')
    writeFileSync(log, readFileSync(log, 'utf8').replace('CLONED_INPUTS', 'CLONED_INPUTZ'))
    expect(await own.run(['run', 'verify', 'd1'])).toMatchObject({ code: 3 })
  }, 60_000)

  it('stops at the first signal, and the run can be resumed', async () => {
    const own = place()
    writeFileSync(join(own.folder, 'ink'), '')
    const args = ['run', 'start', 'docs', '{"sleeps":true}', '--id', 'd1', '--json']
    const child = own.start(args)
    await said(child.stdout, /WORK_ITEM_FINISHED/)
    const end = ended(child)
    child.kill('SIGINT')
    expect(await end).toMatchObject({ code: 130 })
    const [shown] = await own.json<Said>('run', 'show', 'd1')
    expect(shown).toMatchObject({ run_state: 'DRAFTING' })
  }, 60_000)

  it('sends its events to the telemetry server that it is given', async () => {
    const own = place()
    writeFileSync(join(own.folder, 'ink'), '')
    const server = own.start(['telemetry', 'serve', '--port', '0'])
    const url = (await said(server.stdout, /http:\S+\n/)).trim()
    const args = ['run', 'start', 'docs', '--id', 'd1', '--telemetry', url]
    expect(await own.run(args)).toMatchObject({ code: 0 })
    const response = await fetch(`${url}/api/v1/telemetry/events?run=d1`)
    const { items } = (await response.json()) as { items: unknown[] }
    expect(items).toMatchObject(linesOf(await own.ok('run', 'events', 'd1', '--json')))
    server.kill('SIGTERM')
  }, 60_000)
})
